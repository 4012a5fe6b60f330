//! Selections over rounds: how evenly clients were selected, how many ever, and how many a round.

use super::course::{Course, figure, finals};
use super::how_means_are_shown;
use crate::courses::{self, Between, Over, lines, lines_of};
use crate::model::{Axis, Choice, Figure, Line, LineKind};
use crate::study::{Study, linear, rounded};
use fedgenie_core::math::float::power;
use fedgenie_experiment::experiment::{Asked, RunSummary};

/// The name of the figures on how evenly clients were selected.
pub(super) const EVENNESS: &str = "evenness";

/// How evenly clients were selected, over rounds.
pub(super) fn participation(study: &Study<'_>) -> Vec<Figure> {
    let is_known = study.arms.iter().flat_map(|arm| arm.all_runs()).any(|run| run.metrics.durations.rounds > 0);
    if !is_known {
        return Vec::new();
    }
    let (drawn, how) = how_means_are_shown(study);
    let jain = Course {
        id: "jain".to_owned(),
        title: "Jain's index of selections over rounds".to_owned(),
        caption: format!("How evenly clients were selected so far: 1 if all equally often. {drawn}"),
        method: format!(
            "(Σc)²/(K·Σc²), where c is each of the K clients' number of selections: 1 if all are equal, 1/K if one client is always \
             selected. {how}"
        ),
        choice: Choice::new(EVENNESS, [("by", "Jain's index")]),
        summary: finals(study, "jain", "after the last round"),
        over: Over::Rounds,
        y: Axis { range: [Some(0.0), Some(1.0)], ..linear("Jain's index", None) },
        lines: lines(study, Between::Straight, Over::Rounds, |point| Some(point.jain).filter(|&jain| jain > 0.0)),
        marks: Vec::new(),
    };
    let mut unique_lines = lines(study, Between::Straight, Over::Rounds, |point| Some(point.unique_clients as f64));
    let closed_form = of_random_cohorts(study);
    unique_lines.extend(closed_form.clone());
    let unique = Course {
        id: "unique-clients".to_owned(),
        title: "Clients selected at least once over rounds".to_owned(),
        caption: format!("Number of clients selected at least once so far. {drawn}"),
        method: match closed_form {
            Some(_) => format!(
                "Dashed: K·(1 − (1 − m/K)^r), the mean after r rounds if each chooses m of all K clients uniformly at random. {how}"
            ),
            None => how,
        },
        choice: Choice::new(EVENNESS, [("by", "clients selected")]),
        summary: finals(study, "unique_clients", "after the last round"),
        over: Over::Rounds,
        y: Axis { range: [Some(0.0), None], ..linear("clients selected at least once", None) },
        lines: unique_lines,
        marks: Vec::new(),
    };
    [Some(jain), Some(unique), selected(study)].into_iter().flatten().filter_map(figure).collect()
}

/// Empty phones over virtual time, where clients have batteries.
pub(super) fn empty(study: &Study<'_>) -> Option<Figure> {
    if !study.has_batteries() {
        return None;
    }
    let (drawn, how) = how_means_are_shown(study);
    figure(Course {
        id: "empty-phones".to_owned(),
        title: "Empty phones over virtual time".to_owned(),
        caption: format!("Number of clients whose battery is empty when a round closes. {drawn}"),
        method: format!("A phone is empty while its level is 0. Of up to 1,000 clients. {how}"),
        choice: Choice::new(EVENNESS, [("by", "empty phones")]),
        summary: finals(study, "energy.emptied", "times empty in a run"),
        over: Over::Time,
        y: Axis { range: [Some(0.0), None], ..linear("empty phones", None) },
        lines: lines(study, Between::Steps, Over::Time, |point| point.empty.map(|empty| empty as f64)),
        marks: Vec::new(),
    })
}

/// The mean number of clients that a uniformly random choice of each round's cohort has selected at least once; `None`
/// unless all policies of all runs select a whole cohort of the same size once a round, from the same number of
/// clients.
fn of_random_cohorts(study: &Study<'_>) -> Option<Line> {
    let mut sizes = study.arms.iter().flat_map(|arm| arm.all_runs()).map(|run| {
        // One choice a round among all clients: edge servers and asynchronous rounds choose otherwise.
        let is_whole = |asked: &Asked| asked.asked == asked.cohort && asked.selections == u64::from(run.rounds);
        let asked = run.asked.filter(is_whole)?;
        Some((asked.cohort, run.clients as f64))
    });
    let (cohort, clients) = sizes.next()??;
    if cohort <= 0.0 || cohort > clients || sizes.any(|other| other != Some((cohort, clients))) {
        return None;
    }
    // With the policy that it belongs to, where there is one.
    let arm = study.arms.iter().find(|arm| arm.label.contains("random")).or(study.arms.first())?;
    let rounds = arm.all_runs().next()?.curve.iter().map(|point| f64::from(point.round));
    let value = |round: f64| clients * (1.0 - power(1.0 - cohort / clients, round));
    let points = rounds.map(|round| (round, rounded(value(round)))).collect();
    let label = Some("uniformly random".to_owned());
    let (series, role) = (arm.label.clone(), LineKind::Fit);
    Some(Line { series, role, label, points, band: Vec::new(), is_staircase: false, has_dots: false })
}

/// Clients that are selected in a round, where their number is not the same all the time. Between rounds that are kept,
/// it is the mean.
fn selected(study: &Study<'_>) -> Option<Course> {
    let course = |run: &RunSummary| -> courses::Course {
        let mut before = (0, 0);
        let mut points = Vec::new();
        for point in &run.curve {
            let rounds = point.round.saturating_sub(before.0).max(1);
            points.push((f64::from(point.round), point.selections.saturating_sub(before.1) as f64 / f64::from(rounds)));
            before = (point.round, point.selections);
        }
        points
    };
    let of_arm = |arm: &crate::study::Arm<'_>| -> Vec<courses::Course> { arm.all_runs().map(course).collect() };
    let all: Vec<Vec<courses::Course>> = study.arms.iter().map(of_arm).collect();
    let mut values = all.iter().flatten().flatten().map(|point| point.1);
    let first = values.next()?;
    if values.all(|value| value == first) {
        return None;
    }
    let (drawn, method) = how_means_are_shown(study);
    Some(Course {
        id: "selected".to_owned(),
        title: "Clients selected a round".to_owned(),
        caption: format!("Number of clients selected in a round, over rounds. {drawn}"),
        method: format!("Of long runs some rounds are kept; between two of them, it is the mean. {method}"),
        choice: None,
        summary: finals(study, "asked_mean", "a round on average"),
        over: Over::Rounds,
        y: Axis { range: [Some(0.0), None], begins: true, ..linear("clients selected a round", None) },
        lines: study
            .arms
            .iter()
            .zip(&all)
            .flat_map(|(arm, courses)| lines_of(&arm.label, courses, Between::Steps))
            .collect(),
        marks: Vec::new(),
    })
}
