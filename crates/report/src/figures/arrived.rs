//! Shares of runs that have reached a target, over time.

use super::super::model::{Axis, Chart, Choice, Figure, Line, LineKind};
use super::super::study::{Study, id, linear, rounded, rounded_x};
use fedgenie_experiment::experiment::until;

/// One figure for each target that any run reaches: Kaplan and Meier's curves of the policies.
pub(super) fn arrived(study: &Study<'_>) -> Vec<Figure> {
    study.targets().into_iter().filter_map(|reached| of_target(study, &reached.name())).collect()
}

fn of_target(study: &Study<'_>, target: &str) -> Option<Figure> {
    let key = format!("time_to.{target}");
    let combinations = study.combinations();
    let line = |&(arm, point): &(usize, usize)| {
        let runs = &study.arms[arm].runs[point];
        let end = runs.values().filter_map(|run| run.arrival(&key)).map(|found| found.time).fold(0.0, f64::max);
        let steps = until::course(&key, runs);
        let last = steps.last().map_or(0.0, |&(_, share)| share);
        let points = [(0.0, 0.0)].into_iter().chain(steps).chain([(end, last)]);
        Line {
            series: study.arms[arm].label.clone(),
            role: LineKind::Mean,
            label: None,
            points: points.map(|(time, share)| (rounded_x(time), rounded(share))).collect(),
            band: Vec::new(),
            is_staircase: true,
            has_dots: false,
        }
    };
    let lines: Vec<Line> = combinations.iter().map(line).collect();
    if lines.iter().flat_map(|line| &line.points).all(|&(_, share)| share == 0.0) {
        return None;
    }
    let words = |&(arm, point): &(usize, usize)| {
        let cell = study.until_cell(arm, point, &key)?;
        let until = study.until(arm, point, &key)?;
        let median = until.median.map_or_else(
            || "half of the runs are not known to reach it".to_owned(),
            |median| format!("half of the runs reach it by {} s", fedgenie_experiment::experiment::number(median)),
        );
        Some(format!("{}: {cell} s; {median}", study.words(arm, point)))
    };
    Some(Figure {
        id: id(&format!("arrived-{target}")),
        title: format!("Runs that have reached {}", target.replace('_', " ")),
        caption: "The share of runs that have reached the target so far. A line ends where the last run ends that has not reached \
                  it; below 1 there, some never do."
            .to_owned(),
        method: "Shares are Kaplan and Meier's: a run that ends before it arrives counts as long as it is under way.".to_owned(),
        summary: combinations.iter().filter_map(words).collect(),
        choice: Choice::new("arrived", [("target", &target.replace('_', " "))]),
        chart: Chart::Lines {
            x: linear("virtual time", Some("s")),
            y: Axis { range: [Some(0.0), Some(1.0)], ..linear("share of runs", None) },
            lines,
            marks: Vec::new(),
        },
    })
}
