//! `fedgenie run --dry-run`: what the experiment would cost, in words.

use super::amounts::{bytes, duration, whole};
use super::paragraph;
use fedgenie::experiment::{Basis, Count, Experiment, Forecast, Kind};
use fedgenie::limits;
use fedgenie::text::escaped;

/// Most policies and points whose costs are listed.
const LISTED: usize = 40;

/// The forecast as a person reads it.
pub fn report(experiment: &Experiment, forecast: &Forecast) -> String {
    let sections = &experiment.first().sections;
    let title = escaped(sections.title.as_deref().unwrap_or(&sections.name));
    let mut told = format!("{title}\n{}\n", how_made(forecast));
    let row = |name: &str, text: String| format!("{name:<18}{text}\n");
    told.push_str(&row("runs", runs(forecast)));
    if forecast.runs == 0 {
        return told;
    }
    told.push_str(&row("rounds", per_run(&|kind| kind.rounds, &forecast.rounds, forecast)));
    told.push_str(&row("client trainings", trainings(forecast)));
    let mut evaluations = match forecast.evaluations.value > 0.0 {
        true => per_run(&|kind| kind.evaluations, &forecast.evaluations, forecast),
        false => "none".to_owned(),
    };
    if forecast.evaluations_for_policies.value > 0.0 {
        let further = count(&forecast.evaluations_for_policies);
        evaluations.push_str(&format!("; {further} more that policies ask for"));
    }
    told.push_str(&row("evaluations", evaluations));
    told.push_str(&row("memory", memory(forecast)));
    told.push_str(&row("disk", disk(forecast)));
    let threads = if forecast.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", forecast.threads) };
    let check = duration(forecast.check_s);
    let wall = duration(forecast.wall_s);
    told.push_str(&row(
        "wall time",
        format!("about {wall} on {threads} of this machine, {check} of it for checks before"),
    ));
    told.push_str(&table(forecast));
    let notes: Vec<String> = forecast.notes.iter().map(|note| format!("note: {note}")).collect();
    told.push_str(&paragraph(&notes));
    told.push_str("\nnothing was carried out, and nothing was written\n");
    told
}

fn how_made(forecast: &Forecast) -> String {
    format!("forecast from a trial of {}\n", duration(forecast.trial_s))
}

fn runs(forecast: &Forecast) -> String {
    let Forecast { runs, points, policies, seeds, kept, .. } = *forecast;
    let part = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let parts = [part(points, "point", "points"), part(policies, "policy", "policies"), part(seeds, "seed", "seeds")];
    let kept = if kept > 0 { format!("; {kept} more are complete") } else { String::new() };
    format!("{}: {}{kept}", whole(runs as f64), parts.join(" × "))
}

/// A number with the words for how far it is known.
fn count(count: &Count) -> String {
    let number = whole(count.value);
    match count.basis {
        Basis::Known => number,
        Basis::AtMost => format!("at most {number}"),
        Basis::Estimated => format!("about {number}"),
    }
}

/// A number of all runs, and what a run has of it.
fn per_run(of: &dyn Fn(&Kind) -> Count, all: &Count, forecast: &Forecast) -> String {
    let values = || forecast.kinds.iter().map(|kind| of(kind).value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let (low, high) = (whole(least), whole(most));
    let each = if low == high { low } else { format!("{low} to {high}") };
    format!("{}, {each} in a run", count(all))
}

fn trainings(forecast: &Forecast) -> String {
    let Forecast { client_trainings, client_epochs, epochs, .. } = forecast;
    if client_trainings.value == 0.0 {
        return "none".to_owned();
    }
    let trainings = count(client_trainings);
    match (epochs, client_epochs) {
        (Some(1), _) => format!("{trainings}, of an epoch each"),
        (Some(epochs), Some(all)) => {
            format!("{trainings}, of {epochs} epochs each: {} client-epochs", count(all))
        }
        _ => format!("{trainings}, of the length that [training] says"),
    }
}

fn memory(forecast: &Forecast) -> String {
    let memory = &forecast.memory;
    let amount = |bytes: u64| limits::memory(bytes.into());
    let peak = amount(memory.peak_bytes);
    let Some(trial) = memory.trial_bytes else {
        return format!("about {peak} at the peak, estimated from clients, models and threads");
    };
    let mut parts = vec![format!("{} measured in the trial", amount(trial))];
    if memory.left_out_bytes > 0 {
        parts.push(format!("{} for updates that it left out", amount(memory.left_out_bytes)));
    }
    if memory.results_bytes > 0 {
        parts.push(format!("{} for results of all runs", amount(memory.results_bytes)));
    }
    let estimates = [
        (memory.population_bytes, "clients"),
        (memory.models_bytes, "models and updates"),
        (memory.threads_bytes, "threads"),
    ];
    let estimates: Vec<String> = estimates
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, of)| format!("{} of {of}", amount(*bytes)))
        .collect();
    format!("about {peak} at the peak: {}; estimates: {}", parts.join(", "), estimates.join(", "))
}

fn disk(forecast: &Forecast) -> String {
    match (forecast.disk_bytes, forecast.is_written) {
        (None, _) => "not known: no temporary folder could be written for the trial".to_owned(),
        (Some(size), true) => format!("about {}, without page and pictures", bytes(size as f64)),
        (Some(size), false) => format!("nothing; with --out about {}, without page and pictures", bytes(size as f64)),
    }
}

/// The costs of each policy at each point.
fn table(forecast: &Forecast) -> String {
    let has_points = forecast.points > 1;
    let mut rows = vec![
        ["policy", "point", "rounds", "first round", "later round", "evaluation", "rest", "world", "a run"]
            .map(str::to_owned),
    ];
    for kind in forecast.kinds.iter().take(LISTED) {
        let untried = if kind.tried_rounds == 0 { "*" } else { "" };
        rows.push([
            format!("{}{untried}", escaped(&kind.policy)),
            kind.point.to_string(),
            count(&kind.rounds),
            duration(kind.first_round_s),
            duration(kind.round_s),
            duration(kind.evaluation_s),
            duration(kind.rest_s),
            duration(kind.build_s),
            duration(kind.run_s),
        ]);
    }
    let is_shown = |column: usize| column != 1 || has_points;
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = "\n".to_owned();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().filter(|(column, _)| is_shown(*column));
        let cells: Vec<String> = cells.map(|(_, (cell, &width))| format!("{cell:<width$}")).collect();
        text.push_str(&format!("{}\n", cells.join("  ").trim_end()));
    }
    if forecast.kinds.len() > LISTED {
        text.push_str(&format!("… and {} more; --json lists all\n", forecast.kinds.len() - LISTED));
    }
    if forecast.kinds.iter().take(LISTED).any(|kind| kind.tried_rounds == 0) {
        text.push_str("* not tried; as the same policy at another point, or as another policy\n");
    }
    text
}
