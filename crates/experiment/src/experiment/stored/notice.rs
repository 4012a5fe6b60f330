//! Notices about a folder, for its reader to see before its results.

use super::super::artefacts::{self, MANIFEST_FILE, Manifest, RUN_FILE, SUMMARY_FILE};
use super::super::below;
use super::super::incomplete::{Incomplete, counted, without_results};
use super::{RunState, Status, Stored};
use crate::scenario::points;
use fedgenie_core::text::shortened;
use std::collections::BTreeMap;

/// Most runs that are named, and most characters of the reason of one.
const SHOWN: usize = 5;
const REASON: usize = 200;

/// A notice about a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The folder's name where several are read; empty where there is one.
    pub folder: String,
    /// A sentence.
    pub text: String,
    /// The remedy, with its command.
    pub remedy: Option<String>,
}

impl Notice {
    /// The sentence, with the folder's name.
    pub fn sentence(&self) -> String {
        if self.folder.is_empty() { self.text.clone() } else { format!("{}: {}", self.folder, self.text) }
    }

    /// The sentence with the remedy.
    pub fn advice(&self) -> String {
        let remedy = self.remedy.as_ref().map_or_else(String::new, |remedy| format!("; {remedy}"));
        format!("{}{remedy}", self.sentence())
    }
}

/// Names of runs, those of one reason together: `a-s1, a-s2 (it diverged), b-s1`.
fn named(runs: &[&RunState]) -> String {
    let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for run in runs.iter().take(SHOWN) {
        let reason = run.reason.as_deref();
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&run.name),
            None => groups.push((reason, vec![&run.name])),
        }
    }
    let group = |(reason, names): &(Option<&str>, Vec<&str>)| {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({})", shortened(reason, REASON)));
        format!("{}{reason}", names.join(", "))
    };
    let more = if runs.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", groups.iter().map(group).collect::<Vec<_>>().join(", "))
}

/// Notices about runs without results, which are never intended.
pub fn of_runs(labels: &[String], points: &[BTreeMap<String, String>], states: &[RunState]) -> Vec<Notice> {
    told(labels, points, states, &|| None)
}

fn told(
    labels: &[String],
    points: &[BTreeMap<String, String>],
    states: &[RunState],
    command: &dyn Fn() -> Option<String>,
) -> Vec<Notice> {
    let lacking: Vec<&RunState> = states.iter().filter(|state| !state.status.has_summary()).collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    let plain = |text: String| Notice { folder: String::new(), text, remedy: None };
    let has_some = |label: &str, point: usize| {
        states.iter().any(|state| state.status.has_summary() && state.point == point && state.arm == label)
    };
    let incomplete: Vec<Incomplete> = lacking.iter().filter_map(|state| Incomplete::of(state)).collect();
    let names = points::names(points);
    let mut notices: Vec<Notice> =
        without_results(labels, &names, has_some, &incomplete, |runs| counted(runs)).into_iter().map(plain).collect();
    for (status, became, remedy) in [
        (Status::Failed, "failed", "tries them again, to the same end unless program or data are others"),
        (Status::Missing, "are missing", "makes them"),
    ] {
        let runs: Vec<&RunState> = lacking.iter().copied().filter(|run| run.status == status).collect();
        if runs.is_empty() {
            continue;
        }
        let text = format!("{} of {} runs {became}: {}", runs.len(), states.len(), named(&runs));
        let remedy = command().map(|command| format!("`{command}` {remedy}"));
        notices.push(Notice { remedy, ..plain(text) });
    }
    notices
}

/// All notices about a folder.
pub(super) fn of(stored: &Stored, is_alone: bool, uses_rounds: bool) -> Vec<Notice> {
    let say = |text: String, remedy: Option<String>| Notice { folder: String::new(), text, remedy };
    // A manifest that differs from its scenario may name runs that the scenario does not have.
    let is_listed = !stored.changed.iter().any(|changed| changed.file == MANIFEST_FILE);
    let command = || is_listed.then(|| artefacts::completion(&stored.folder));
    let mut notices = Vec::new();
    let (Manifest { version, arms, points, .. }, own) = (&stored.manifest, env!("CARGO_PKG_VERSION"));
    if version != own {
        notices.push(say(format!("the runs are of fedgenie {version}, and this is {own}"), None));
    }
    let mut builds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (run, build) in &stored.manifest.other_builds {
        builds.entry(build).or_default().push(run);
    }
    for (build, runs) in builds {
        let more = if runs.len() > SHOWN { ", …" } else { "" };
        let (count, shown) = (runs.len(), runs[..runs.len().min(SHOWN)].join(", "));
        let runs = if count == 1 { "1 run is".to_owned() } else { format!("{count} runs are") };
        let text = format!("{runs} of another build ({build}), kept after a look at the first rounds: {shown}{more}");
        notices.push(say(text, None));
    }
    let of_runs = stored.states.iter().flat_map(|state| &state.changed);
    let changed: Vec<String> = stored.changed.iter().chain(of_runs).map(ToString::to_string).collect();
    if !changed.is_empty() {
        let more = if changed.len() > SHOWN { format!(", and {} more", changed.len() - SHOWN) } else { String::new() };
        let (count, shown) = (changed.len(), changed[..changed.len().min(SHOWN)].join(", "));
        let files = match count {
            1 => "1 changed file is taken as it is".to_owned(),
            _ => format!("{count} changed files are taken as they are"),
        };
        let remedy = format!("`{}` writes the manifest anew", artefacts::completion(&stored.folder));
        notices.push(say(format!("{files}: {shown}{more}"), (!is_listed).then_some(remedy)));
    }
    if !below::is_there(&stored.folder, SUMMARY_FILE) {
        let remedy = command().map(|command| format!("`{command}` writes it"));
        notices.push(say(format!("{SUMMARY_FILE} is missing"), remedy));
    }
    notices.extend(told(arms, points, &stored.states, &command));
    let alone: Vec<&RunState> = stored.states.iter().filter(|run| run.status == Status::SummaryOnly).collect();
    if uses_rounds && !alone.is_empty() {
        let text = format!(
            "{} of {} runs have their {RUN_FILE} alone, and no rounds: {}",
            alone.len(),
            stored.states.len(),
            named(&alone)
        );
        notices.push(say(text, None));
    }
    if !is_alone {
        notices.iter_mut().for_each(|notice| notice.folder.clone_from(&stored.name));
    }
    notices
}
