//! The fleet as a scenario that runs as it is, with the evidence in comments.

use crate::group::{GroupFit, PhaseFit};
use crate::law::{Family, LawFit, Parameter};
use crate::loss::Loss;
use crate::personal::{Personal, of_medians};
use crate::{Closing, Fit, Split};
use fedgenie_core::record::Phase;
use std::fmt::Write;

/// Client numbers that a comment lists.
const LISTED: usize = 20;

/// How much longer than the longest job a round waits for lost clients, where the log tells no timeout.
const PATIENCE: f64 = 10.0;

/// A number with six significant digits, with a point if it is whole.
pub(crate) fn plain(x: f64) -> String {
    let text = format!("{x:.5e}");
    let rounded: f64 = text.parse().unwrap_or(x);
    format!("{rounded:?}")
}

/// A time with six significant digits.
fn seconds(x: f64) -> String {
    let text = plain(x);
    format!("\"{} s\"", text.strip_suffix(".0").unwrap_or(&text))
}

/// A law as a scenario writes it.
pub fn written(fit: &LawFit) -> String {
    let value = |parameter: &Parameter| {
        if parameter.is_time { seconds(parameter.value) } else { plain(parameter.value) }
    };
    match fit.family {
        // To the nanosecond.
        Family::Constant => format!("{{ constant = \"{} s\" }}", fit.parameters[0].value),
        Family::Uniform => format!("{{ uniform = [{}, {}] }}", value(&fit.parameters[0]), value(&fit.parameters[1])),
        family => {
            let keys: Vec<String> =
                fit.parameters.iter().map(|parameter| format!("{} = {}", parameter.name, value(parameter))).collect();
            format!("{{ {} = {{ {} }} }}", family.name(), keys.join(", "))
        }
    }
}

/// Parameters with their intervals, in words.
pub(crate) fn intervals(fit: &LawFit) -> String {
    let one = |parameter: &Parameter| {
        let unit = if parameter.is_time { " s" } else { "" };
        let number = |x: f64| format!("{}{unit}", short(x));
        match parameter.interval {
            Some([low, high]) => {
                format!("{} {} ({} to {})", parameter.name, number(parameter.value), short(low), short(high))
            }
            None => format!("{} {}", parameter.name, number(parameter.value)),
        }
    };
    fit.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A number with four significant digits.
pub(crate) fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.3e}").parse().unwrap_or(x);
    format!("{rounded}")
}

/// Numbers of clients in the log, the first few.
fn listed(group: &GroupFit, clients: &[u64]) -> String {
    let first: Vec<String> =
        group.clients.iter().take(LISTED).map(|client| clients[client.index()].to_string()).collect();
    let more = group.clients.len().saturating_sub(LISTED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}

/// The comment above a phase's law.
fn evidence(phase: &PhaseFit) -> String {
    let choice = &phase.choice;
    let mut text = format!("{} durations, {} cut", choice.seen, choice.cut);
    if phase.is_borrowed {
        text.push_str(", of all clients: no job of this group ended this phase");
    }
    if choice.best.family == Family::Constant {
        return format!("# {text}; all alike\n");
    }
    let _ = write!(text, "; ln L {:.2}, BIC {:.2}", choice.best.log_likelihood, choice.best.bic);
    if let Some(next) = &choice.next {
        let _ = write!(text, "; next is {} with BIC {:.2}", next.family.title(), next.bic);
    }
    format!("# {text}\n# 95 %: {}\n", intervals(&choice.best))
}

/// The law of a phase with a median per client.
fn each(personal: &Personal) -> String {
    match personal.sigma {
        None => {
            let all: Vec<String> = personal.medians.iter().map(|x| format!("\"{x} s\"")).collect();
            format!("{{ constant = {{ each = [{}] }} }}", all.join(", "))
        }
        Some((sigma, _)) => {
            let all: Vec<String> = personal.medians.iter().map(|x| seconds(*x)).collect();
            format!("{{ lognormal = {{ median = {{ each = [{}] }}, sigma = {} }} }}", all.join(", "), plain(sigma))
        }
    }
}

/// The comment above a phase with a median per client.
fn of_clients(personal: &Personal) -> String {
    let mut text = "# a median of each client, in the order of their numbers in the log".to_owned();
    if let Some((_, [low, high])) = personal.sigma {
        let _ = write!(text, "; 95 %: sigma {} to {}", short(low), short(high));
    }
    text.push('\n');
    // Of fleets of another size.
    if let Some([median, sigma]) = of_medians(&personal.medians).as_deref() {
        let _ = writeln!(
            text,
            "# for another number of clients: median = {{ lognormal = {{ median = {}, sigma = {} }} }}",
            seconds(median.value),
            plain(sigma.value)
        );
    }
    text
}

/// The key `dropout`, with its evidence.
fn dropout(group: &GroupFit) -> String {
    let counted = format!("{} of {} jobs were lost", group.lost, group.jobs);
    match &group.loss {
        Loss::None => String::new(),
        Loss::Probability(p, [low, high]) => format!(
            "# {counted}; 95 %: {} to {}\ndropout = {{ probability = {} }}\n",
            short(*low),
            short(*high),
            plain(*p)
        ),
        Loss::Hazards(rates) => {
            let there = || Phase::ALL.into_iter().zip(rates).filter_map(|(phase, rate)| Some((phase, (*rate)?)));
            let keys: Vec<String> = there()
                .map(|(phase, (rate, _))| {
                    let rate = plain(rate);
                    format!("{phase} = \"{} /s\"", rate.strip_suffix(".0").unwrap_or(&rate))
                })
                .collect();
            let intervals: Vec<String> = there()
                .map(|(phase, (_, [low, high]))| format!("{phase} {} to {} /s", short(low), short(high)))
                .collect();
            format!("# {counted}; 95 %: {}\ndropout = {{ {} }}\n", intervals.join(", "), keys.join(", "))
        }
    }
}

/// The section `[population]`; with the clients' numbers in the log, its comments name them.
pub fn section(groups: &[GroupFit], clients: Option<&[u64]>) -> String {
    let mut text = "[population]\navailability = \"always\"\n".to_owned();
    for (number, group) in (1..).zip(groups) {
        let _ = write!(text, "\n[[population.group]]\nname = \"group-{number}\"\ncount = {}", group.clients.len());
        if let Some(clients) = clients {
            let _ = write!(text, " # of the log: {}", listed(group, clients));
        }
        text.push('\n');
        text.push_str(&dropout(group));
        text.push_str("\n[population.group.latency]\n");
        for (phase, fit) in Phase::ALL.into_iter().zip(&group.phases) {
            if clients.is_some() {
                text.push_str(&fit.personal.as_ref().map_or_else(|| evidence(fit), of_clients));
            }
            let law = fit.personal.as_ref().map_or_else(|| written(&fit.choice.best), each);
            let _ = writeln!(text, "{phase} = {law}");
        }
    }
    text
}

/// The whole scenario. `of` names the log, `version` the program.
pub fn scenario(fit: &Fit, of: &str, version: &str) -> String {
    let of = of.replace(['\n', '\r'], " ");
    let mut text = format!("# A fleet that fedgenie {version} fitted to {of}.\n");
    let _ = writeln!(
        text,
        "# {} jobs of {} clients in {} rounds. Groups and laws are those of the smallest BIC.",
        fit.jobs,
        fit.clients.len(),
        fit.rounds
    );
    if fit.split == Split::Total {
        text.push_str("# All time counts as computing: phases cannot be told apart, or depend on each other.\n");
    }
    text.push_str("# A log does not tell when devices are away: they are always available.\n");
    for note in &fit.notes {
        let _ = writeln!(text, "# {note}.");
    }
    text.push_str("# Other sections are a frame to start from. [population] is what was fitted.\n\n");
    text.push_str("name = \"fleet\"\ntitle = \"A fleet fitted to a log of jobs\"\nseeds = 5\n\n");
    let _ = write!(text, "[stop]\nrounds = {}\n\n", fit.rounds);
    let _ = writeln!(text, "[protocol.synchronous]\ncohort = {} # the median of the log", fit.cohort.max(1));
    text.push_str(&timeout(fit));
    text.push_str("\n[policy.random]\n\n");
    text.push_str(&section(&fit.groups, Some(&fit.clients)));
    text
}

/// The key `timeout`, where the log has one or clients are lost.
fn timeout(fit: &Fit) -> String {
    let loses = fit.groups.iter().any(|group| group.loss != Loss::None);
    match fit.closing {
        Closing::Timeout(timeout) => format!("timeout = {} # the log's\n", seconds(timeout)),
        Closing::Last | Closing::Count if loses => format!(
            "timeout = {} # the log has none: {PATIENCE} times its longest job\n",
            seconds(PATIENCE * fit.longest)
        ),
        Closing::Last | Closing::Count => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_toml_reads_them() {
        assert_eq!((plain(0.412_345_678), plain(3.0), plain(1e-9)), ("0.412346".into(), "3.0".into(), "1e-9".into()));
        assert_eq!(
            (seconds(2.0), seconds(0.25), seconds(1e7)),
            ("\"2 s\"".into(), "\"0.25 s\"".into(), "\"10000000 s\"".into())
        );
        assert_eq!((short(0.123_456), short(12.0)), ("0.1235".into(), "12".into()));
    }
}
