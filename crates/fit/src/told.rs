//! What was fitted, in words: the report of `fedgenie fit`.

use crate::fleet::{intervals, short};
use crate::group::GroupFit;
use crate::held_out::HeldOut;
use crate::law::Family;
use crate::loss::Loss;
use crate::personal::Personal;
use crate::{Closing, Fit};
use fedgenie_core::record::Phase;
use std::fmt::Write;

/// The report, in lines.
pub fn told(fit: &Fit) -> String {
    let mut text = format!(
        "{} jobs of {} clients in {} rounds, usually {} clients a round; {}\n",
        fit.jobs,
        fit.clients.len(),
        fit.rounds,
        fit.cohort,
        match fit.closing {
            Closing::Last => "no job was cut while the server waited".to_owned(),
            Closing::Timeout(timeout) => format!("jobs are cut after {} s", short(timeout)),
            Closing::Count => "jobs are cut after different times, as if enough others had arrived".to_owned(),
        }
    );
    if fit.untimed > 0 {
        let _ = writeln!(text, "{} jobs do not say how long they took, and tell nothing", fit.untimed);
    }
    for one in &fit.correlations {
        let verdict = if one.matters { "they depend on each other" } else { "taken as independent" };
        let _ = writeln!(
            text,
            "correlation of {} and {} within clients: {:.3} ({} degrees of freedom); {verdict}",
            one.one, one.other, one.r, one.free
        );
    }
    let criteria: Vec<String> =
        (1..).zip(&fit.criteria.by_number).map(|(count, value)| format!("{count}: {value:.1}")).collect();
    let _ = writeln!(
        text,
        "groups: {}; criterion by their number: {}; with a median per client: {:.1}",
        fit.groups.len(),
        criteria.join(", "),
        fit.criteria.personal
    );
    for (number, group) in (1..).zip(&fit.groups) {
        text.push_str(&of_group(number, group));
    }
    text.push_str("\np-values are optimistic: the laws were fitted to the durations that they are compared with\n\n");
    match &fit.held_out {
        Ok(held_out) => text.push_str(&of_held_out(held_out)),
        Err(why) => {
            let _ = writeln!(text, "no rounds were held out: {why}");
        }
    }
    text
}

fn of_group(number: usize, group: &GroupFit) -> String {
    let GroupFit { clients, jobs, late, lost, .. } = group;
    let mut text = format!(
        "\ngroup {number}: {} clients, {jobs} jobs, {late} cut while the server waited, {lost} lost\n",
        clients.len()
    );
    match &group.loss {
        Loss::None => {}
        Loss::Probability(p, [low, high]) => {
            let _ = writeln!(text, "  lost with probability {} ({} to {})", short(*p), short(*low), short(*high));
        }
        Loss::Hazards(rates) => {
            for (phase, rate) in Phase::ALL.into_iter().zip(rates) {
                if let Some((rate, [low, high])) = rate {
                    let _ = writeln!(
                        text,
                        "  lost in {phase} at {} /s ({} to {})",
                        short(*rate),
                        short(*low),
                        short(*high)
                    );
                }
            }
        }
    }
    for (phase, fit) in Phase::ALL.into_iter().zip(&group.phases) {
        if let Some(personal) = &fit.personal {
            text.push_str(&of_personal(phase, personal));
            continue;
        }
        let choice = &fit.choice;
        let _ = write!(text, "  {:<9}{}", phase.to_string(), choice.best.family.title());
        if choice.best.family == Family::Constant {
            let _ = writeln!(text, " {} s, in all of {} jobs", choice.best.parameters[0].value, choice.seen);
            continue;
        }
        let _ = write!(text, ": {}; {} durations, {} cut", intervals(&choice.best), choice.seen, choice.cut);
        if let Some(next) = &choice.next {
            let _ = write!(text, "; BIC {:.1}, next {} {:.1}", choice.best.bic, next.family.title(), next.bic);
        }
        if let Some(goodness) = fit.goodness {
            let _ = write!(text, "; KS {:.3}, p {:.2}", goodness.distance, goodness.p_value);
        }
        text.push('\n');
    }
    text
}

/// A phase with a median per client.
fn of_personal(phase: Phase, personal: &Personal) -> String {
    let ends = |(low, high): (f64, f64), median: &f64| (low.min(*median), high.max(*median));
    let (low, high) = personal.medians.iter().fold((f64::INFINITY, 0.0), ends);
    let mut text = format!("  {:<9}", phase.to_string());
    let _ = match personal.sigma {
        None => write!(text, "constant of each client, {} to {} s", short(low), short(high)),
        Some((sigma, [least, most])) => write!(
            text,
            "lognormal with a median of each client, {} to {} s; sigma {} ({} to {})",
            short(low),
            short(high),
            short(sigma),
            short(least),
            short(most)
        ),
    };
    if let Some(goodness) = personal.goodness {
        let _ = write!(text, "; KS {:.3}, p {:.2}", goodness.distance, goodness.p_value);
    }
    text.push('\n');
    text
}

fn of_held_out(found: &HeldOut) -> String {
    let mut text = format!(
        "held out: the fleet of the first four fifths of the rounds, replayed 200 times for each of {} later rounds\n  \
         mean duration: {} s in the log, {} s replayed (ratio {:.3})\n  \
         {} of {} rounds lie within the 90 % of their replays\n  \
         places among the replays: KS {:.3}, p {:.2}\n",
        found.rounds,
        short(found.logged),
        short(found.replayed),
        found.replayed / found.logged,
        found.within,
        found.rounds,
        found.goodness.distance,
        found.goodness.p_value
    );
    if found.left_out > 0 {
        let _ = writeln!(text, "  {} later rounds have a client that the first four fifths lack", found.left_out);
    }
    text
}
