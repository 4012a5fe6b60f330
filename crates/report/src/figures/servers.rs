//! Metrics of each edge server.

use crate::model::{Chart, Figure, Panel};
use crate::study::{Arm, Study, capitalised, linear, rounded};
use fedgenie_core::metric::Place;
use fedgenie_experiment::experiment::{RunSummary, number};

/// The most edge servers of a picture.
const MOST_SERVERS: usize = 60;

/// The main metric of each edge server under each policy's models, of one seed: other seeds deal other data to
/// the servers.
pub(super) fn map(study: &Study<'_>) -> Option<Figure> {
    let main = study.measured().into_iter().find(|metric| metric.main && metric.id.place == Place::Test)?;
    let measure = main.id.measure;
    let seed = study.arms.iter().flat_map(Arm::all_runs).map(|run| run.seed).min()?;
    let runs: Vec<(&str, &RunSummary)> = study
        .arms
        .iter()
        .filter_map(|arm| Some((arm.label.as_str(), arm.all_runs().find(|run| run.seed == seed)?)))
        .collect();
    let values = |run: &RunSummary| run.servers.get(measure).cloned().unwrap_or_default();
    let servers =
        runs.iter().map(|(_, run)| values(run).len()).max().filter(|servers| (2..=MOST_SERVERS).contains(servers))?;
    let at = |run: &RunSummary, server: usize| values(run).get(server).copied().flatten();
    // Rows are from the bottom up.
    let row = |(_, run): &(&str, &RunSummary)| (0..servers).map(|server| at(run, server).map(rounded)).collect();
    let cells = runs.iter().rev().map(row).collect();
    let of_server = |server: usize| {
        let one = |(label, run): &(&str, &RunSummary)| {
            format!("{label} {}", at(run, server).map_or_else(|| "–".to_owned(), number))
        };
        format!("server {server}: {}", runs.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let words = measure.replace('_', " ");
    Some(Figure {
        id: "servers".to_owned(),
        title: format!("{} of each edge server", capitalised(&words)),
        caption: format!(
            "The {words} of each edge server's model on the server's data, in the last evaluated round, of seed {seed}."
        ),
        method: "Where `last` of `[evaluate]` asks for several rounds, it is their mean.".to_owned(),
        summary: (0..servers).map(of_server).collect(),
        choice: None,
        chart: Chart::Heat {
            x: linear("edge server", None),
            columns: (0..servers).map(|server| server.to_string()).collect(),
            y: linear("policy", None),
            rows: runs.iter().rev().map(|(label, _)| (*label).to_owned()).collect(),
            value: linear(&words, None),
            panels: vec![Panel { label: String::new(), cells, contour: Vec::new() }],
        },
    })
}
