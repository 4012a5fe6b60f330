//! Which cluster each edge server belongs to, over rounds.

use crate::model::{Axis, Chart, Figure, Panel, Scale};
use crate::study::{Arm, Study, linear};
use fedgenie_experiment::experiment::{CurvePoint, RunSummary};

/// The most columns.
const MOST_ROUNDS: usize = 60;

/// A map of server by round for each policy with cluster models, of its first seed. A cell is outlined where the server
/// has moved since the round of the column before.
pub(super) fn map(study: &Study<'_>) -> Option<Figure> {
    let seed = study.arms.iter().flat_map(Arm::all_runs).map(|run| run.seed).min()?;
    let first = |arm: &Arm<'_>| -> Option<(String, Vec<CurvePoint>)> {
        let run: &RunSummary = arm.all_runs().find(|run| run.seed == seed)?;
        let known: Vec<&CurvePoint> = run.curve.iter().filter(|point| !point.clusters.is_empty()).collect();
        let stride = known.len().div_ceil(MOST_ROUNDS).max(1);
        let last = known.len().checked_sub(1)?;
        // The last round is among them.
        let kept = known.into_iter().enumerate().filter(|(index, _)| (last - index) % stride == 0);
        Some((arm.label.clone(), kept.map(|(_, point)| point.clone()).collect()))
    };
    let all: Vec<(String, Vec<CurvePoint>)> = study.arms.iter().filter_map(first).collect();
    let (_, longest) = all.iter().max_by_key(|(_, points)| points.len())?;
    let rounds: Vec<u32> = longest.iter().map(|point| point.round).collect();
    let servers = all.iter().flat_map(|(_, points)| points).map(|point| point.clusters.len()).max()?;
    let panel = |(label, points): &(String, Vec<CurvePoint>)| {
        let at = |server: usize, round: u32| {
            let point = points.iter().find(|point| point.round == round)?;
            point.clusters.get(server).copied()
        };
        let row = |server: usize| rounds.iter().map(|&round| at(server, round).map(f64::from)).collect::<Vec<_>>();
        let moved = |server: usize| {
            let mut before = None;
            let mut is_moved = |round: &u32| {
                let now = at(server, *round);
                let is_moved = now.is_some() && before.is_some() && now != before;
                before = now.or(before);
                is_moved
            };
            rounds.iter().map(&mut is_moved).collect::<Vec<_>>()
        };
        let moves: Vec<Vec<bool>> = (0..servers).map(moved).collect();
        let contour = if moves.iter().flatten().any(|&is_moved| is_moved) { moves } else { Vec::new() };
        Panel { label: label.clone(), cells: (0..servers).map(row).collect(), contour }
    };
    let panels: Vec<Panel> = all.iter().map(panel).collect();
    // Where no server ever leaves its cluster and all policies agree, nothing is to be seen.
    if panels.iter().all(|panel| panel.contour.is_empty()) {
        return None;
    }
    let last = |(label, points): &(String, Vec<CurvePoint>)| {
        let clusters: Vec<String> = points.last()?.clusters.iter().map(u32::to_string).collect();
        Some(format!("{label}: servers end in clusters {}", clusters.join(", ")))
    };
    Some(Figure {
        id: "clusters".to_owned(),
        title: "Cluster of each edge server over rounds".to_owned(),
        caption: format!(
            "The cluster that each edge server belongs to after a round, of seed {seed}. Outlined: it has moved since the \
             round of the column before."
        ),
        method: String::new(),
        summary: all.iter().filter_map(last).collect(),
        choice: None,
        chart: Chart::Heat {
            x: linear("round", None),
            columns: rounds.iter().map(u32::to_string).collect(),
            y: linear("edge server", None),
            rows: (0..servers).map(|server| server.to_string()).collect(),
            value: Axis { scales: vec![Scale::Names], ..linear("cluster", None) },
            panels,
        },
    })
}
