//! Settings under which runs that were not fairly watched would be.

use super::super::compared::Aim;
use super::super::until::FollowUp;
use super::super::{Ended, RunSummary, number};
use fedgenie_core::math::float::ceil;

/// Why the runs cannot be compared in spending until a target, and settings for `--set` that watch all of them equally
/// long: the end that belongs to the quantity alone, as late as the latest of these runs had it.
pub(in super::super) fn of_unfair(
    aim: &Aim,
    follow_up: FollowUp,
    runs: &[&RunSummary],
) -> (Option<String>, Vec<String>) {
    let is_short = |run: &&&RunSummary| {
        let followed = run.followed(&aim.key);
        followed.is_some_and(|(arrival, is_at_limit)| {
            !arrival.has_arrived && !is_at_limit && arrival.time < follow_up.latest
        })
    };
    let short: Vec<&&RunSummary> = runs.iter().filter(is_short).collect();
    let unit = if aim.unit.is_empty() { String::new() } else { format!(" {}", aim.unit) };
    let mut policies: Vec<&str> = Vec::new();
    for run in &short {
        if !policies.contains(&run.arm.as_str()) {
            policies.push(&run.arm);
        }
    }
    let count = if short.len() == 1 { "1 run".to_owned() } else { format!("{} runs", short.len()) };
    let reason = format!(
        "{count} of {} ended without arriving, the first at {}{unit}, before others arrived, the last at {}{unit}",
        policies.join(", "),
        number(follow_up.cut_short),
        number(follow_up.latest)
    );
    let (ends, set) = match aim.key.split('.').next() {
        Some("time_to") => {
            let longest = runs.iter().map(|run| run.virtual_time_s).fold(0.0, f64::max);
            (Ended::VirtualTime, format!("stop.virtual_time=\"{} s\"", ceil(longest)))
        }
        Some("rounds_to") => {
            let longest = runs.iter().map(|run| run.rounds).max().unwrap_or(0);
            (Ended::Rounds, format!("stop.rounds={longest}"))
        }
        Some("bytes_to") => {
            let bytes = |run: &&RunSummary| run.traffic.down_bytes.saturating_add(run.traffic.up_bytes);
            (Ended::Traffic, format!("stop.traffic=\"{} B\"", runs.iter().map(bytes).max().unwrap_or(0)))
        }
        _ => return (Some(reason), Vec::new()),
    };
    // Without a budget a run may go on for ever: that end cannot be taken away.
    let key = |ended: Ended| match ended {
        Ended::Rounds => Some("stop.rounds"),
        Ended::VirtualTime => Some("stop.virtual_time"),
        Ended::Target => Some("stop.target"),
        Ended::Plateau => Some("stop.plateau"),
        Ended::Traffic => Some("stop.traffic"),
        Ended::Budget => None,
    };
    let mut remedy: Vec<String> = Vec::new();
    for ended in short.iter().filter_map(|run| run.ended) {
        let Some(key) = key(ended) else { return (Some(format!("{reason}; their budget was spent")), Vec::new()) };
        let taken_away = format!("{key}=");
        if ended != ends && !remedy.contains(&taken_away) {
            remedy.push(taken_away);
        }
    }
    remedy.push(set);
    (Some(reason), remedy)
}
