//! Curves of every point of a sweep together, one figure for each policy, in the colours of one scale.

use super::super::model::{Chart, Figure, LineKind, Series};
use super::super::study::{Study, id};
use super::super::style::Style;
use super::course;

/// The most points whose curves are drawn together; of more, as many, evenly spaced.
const MOST_CURVES: usize = 12;

/// The ends of the scale of colours and the colours between: all are visible on white and on black.
const SCALE: [[u8; 3]; 4] = [[86, 60, 200], [0, 130, 190], [40, 160, 90], [225, 125, 0]];

/// The points whose curves are drawn, along the first axis; empty without a sweep.
fn drawn(study: &Study<'_>) -> Vec<usize> {
    let Some(axis) = study.sweep.axes.first() else { return Vec::new() };
    let mut points: Vec<usize> = (0..study.points.len()).collect();
    points.sort_by_key(|&point| axis.places[point]);
    let last = points.len() - 1;
    match points.len() {
        ..=MOST_CURVES => points,
        _ => (0..MOST_CURVES).map(|index| points[index * last / (MOST_CURVES - 1)]).collect(),
    }
}

/// The label of a point's curve.
fn label(study: &Study<'_>, point: usize) -> String {
    let bare = study.bare_words(point);
    if study.arms.iter().any(|arm| arm.label == bare) { study.point_words(point).to_owned() } else { bare }
}

/// The looks of the points.
pub(in super::super) fn series(study: &Study<'_>) -> Vec<Series> {
    let points = drawn(study);
    let last = points.len().saturating_sub(1).max(1);
    let of = |(index, &point): (usize, &usize)| {
        let style = Style { colour: colour(index, last), ..Style::of_index(index % 8) };
        Series { label: label(study, point), style }
    };
    points.iter().enumerate().map(of).collect()
}

/// The colour of one of several steps on the scale.
fn colour(index: usize, last: usize) -> [u8; 3] {
    let steps = (SCALE.len() - 1) * index;
    let (below, part) = ((steps / last).min(SCALE.len() - 2), steps % last);
    let part = if steps / last > below { last } else { part };
    let mix = |channel: usize| {
        let (low, high) = (usize::from(SCALE[below][channel]), usize::from(SCALE[below + 1][channel]));
        ((low * (last - part) + high * part) / last) as u8
    };
    [mix(0), mix(1), mix(2)]
}

/// The metrics that policies are mainly judged by over virtual time and over rounds; without any, the mean regret.
pub(super) fn curves(study: &Study<'_>) -> Vec<Figure> {
    let points = drawn(study);
    if points.is_empty() {
        return Vec::new();
    }
    let targets = study.targets();
    let measured = study.measured();
    let is_main = |figure: &Figure| {
        let of_metric = |name: &str| [id(name), id(&format!("{name}-rounds"))].contains(&figure.id);
        targets.iter().any(|reached| of_metric(&reached.target.metric))
            || measured.iter().any(|metric| metric.main && of_metric(&metric.id.to_string()))
    };
    let mut figures = Vec::new();
    for arm in (0..study.arms.len()).filter(|&arm| study.arms[arm].all_runs().next().is_some()) {
        let own = study.points_of(arm, &points, |point| label(study, point));
        let mut found: Vec<Figure> = course::metrics(&own).into_iter().filter(is_main).collect();
        if found.is_empty() {
            let regrets = course::regrets_without_theory(&own).into_iter();
            found = regrets.filter(|figure| ["regret", "regret-time"].contains(&figure.id.as_str())).collect();
        }
        for mut figure in found {
            thin(&mut figure);
            let whose = &study.arms[arm].label;
            let (name, over) = match figure.id.rsplit_once('-') {
                Some((name, over @ ("rounds" | "time"))) => (name.to_owned(), format!("-{over}")),
                _ => (figure.id.clone(), String::new()),
            };
            figure.id = match study.arms.len() {
                1 => format!("{name}-points{over}"),
                _ => id(&format!("{name}-points-{whose}{over}")),
            };
            figure.title = match study.arms.len() {
                1 => format!("{}, at every point of the sweep", figure.title),
                _ => format!("{}, {whose} at every point of the sweep", figure.title),
            };
            if points.len() < study.points.len() {
                let which = format!(" Drawn are {} of {} points, evenly spaced.", points.len(), study.points.len());
                figure.method.push_str(&which);
            }
            if let Some(choice) = &mut figure.choice {
                choice.values.insert(0, ["of".to_owned(), choice.of.replace('_', " ")]);
                if study.arms.len() > 1 {
                    choice.values.insert(0, ["policy".to_owned(), whose.clone()]);
                }
                choice.of = "curves of points".to_owned();
            }
            figures.push(figure);
        }
    }
    figures
}

/// Leaves the means: bands and single seeds of so many curves hide each other.
fn thin(figure: &mut Figure) {
    if let Chart::Lines { lines, .. } = &mut figure.chart {
        lines.retain(|line| line.role == LineKind::Mean);
        lines.iter_mut().for_each(|line| line.band.clear());
    }
    if let Some(start) = figure.caption.find("Thick lines are means") {
        figure.caption.truncate(start);
        figure.caption.push_str("Lines are means over seeds; each stops where the shortest of its runs stops.");
        figure.method.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_one_end_of_the_scale_to_the_other() {
        assert_eq!([0, 3, 6, 9].map(|index| colour(index, 9)), SCALE);
        assert_eq!(colour(1, 2), [20, 145, 140], "half-way between the second and the third");
        assert_eq!((colour(0, 1), colour(1, 1)), (SCALE[0], SCALE[3]));
    }
}
