//! Values over rounds, virtual time and traffic: metrics, regret, participation.

use super::super::courses::{Between, Over, lines};
use super::super::model::{Axis, Chart, Choice, Figure, Line, Mark, Scale};
use super::super::study::{Study, capitalised, id, linear, regret_words};
use super::super::theory;
use super::{either, how_means_are_shown, marks, mean_words};
use fedgenie_core::metric::{Metric, MetricId, Place, Statistic, value_of};
use fedgenie_experiment::experiment::{ACTIVE_CLUSTERS, CurvePoint, REASSIGNMENTS, number};

/// A horizontal axis.
fn axis_of(over: Over) -> Axis {
    match over {
        Over::Rounds => either(linear("round", None), Scale::Linear),
        Over::Time => either(linear("virtual time", Some("s")), Scale::Linear),
        Over::Traffic => either(linear("traffic of clients, both ways", Some("B")), Scale::Linear),
        Over::Energy => either(linear("energy drawn by jobs", Some("J")), Scale::Linear),
    }
}

const fn words_of(over: Over) -> &'static str {
    match over {
        Over::Rounds => "rounds",
        Over::Time => "virtual time",
        Over::Traffic => "traffic",
        Over::Energy => "energy",
    }
}

/// Every metric over virtual time and over rounds; the main one over traffic, where that is limited, and over energy,
/// where clients have batteries.
pub(super) fn metrics(study: &Study<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let declared = study.measured();
    let mut metrics = study.metrics();
    // As policies are mainly judged; the others are as the task declares them.
    let is_main = |id: MetricId| {
        let is_it = |metric: &&Metric| {
            metric.main && (metric.id == id || metric.id.over(Place::Servers, Statistic::Mean) == id)
        };
        declared.iter().any(|metric| is_it(&metric))
            || study.targets().iter().any(|reached| id.is_called(&reached.target.metric))
    };
    metrics.sort_by_key(|&metric| !is_main(metric));
    for metric in metrics {
        let range = declared.iter().find(|known| known.id == metric).map(|known| known.range);
        let is_share = range == Some((Some(0.0), Some(1.0)));
        let is_main = is_main(metric);
        let first = study.over();
        let has_traffic = is_main && study.limits_traffic() || first == Some(Over::Traffic);
        let traffic = has_traffic.then_some((Over::Traffic, "-traffic"));
        let energy = (is_main && study.has_batteries()).then_some((Over::Energy, "-energy"));
        let all = traffic.into_iter().chain([(Over::Time, ""), (Over::Rounds, "-rounds")]).chain(energy);
        let mut all: Vec<(Over, &str)> = all.collect();
        all.sort_by_key(|&(over, _)| first.is_some() && first != Some(over));
        for (over, ending) in all {
            let value = |point: &CurvePoint| value_of(&point.metrics, metric);
            let lines = lines(study, Between::Steps, over, value);
            let words = metric.words();
            let (drawn, mut method) = how_means_are_shown(study);
            let caption = format!(
                "{}, measured at the end of a round and held until the next measurement. {drawn}",
                subject(metric, &words)
            );
            let known = study.controls(metric);
            if !known.is_empty() {
                let each = known.iter().map(|(name, value)| format!("{name} {}", number(*value)));
                method.push_str(&format!(" Controls (dashed): {}.", each.collect::<Vec<_>>().join(", ")));
            }
            figures.extend(figure(Course {
                id: id(&format!("{metric}{ending}")),
                title: format!("{} over {}", capitalised(&words), words_of(over)),
                caption,
                method,
                summary: finals(study, &format!("final.{metric}"), "at the end"),
                choice: Choice::new(&metric.to_string(), [("over", words_of(over))]),
                over,
                y: value_axis(&words, &lines, is_share),
                lines,
                marks: marks(study, metric),
            }));
        }
    }
    figures
}

/// The subject of a metric.
fn subject(metric: MetricId, words: &str) -> String {
    match (metric.place, metric.measure) {
        (Place::Model, ACTIVE_CLUSTERS) => "Clusters to which an edge server belongs".to_owned(),
        (Place::Model, REASSIGNMENTS) => {
            "Edge servers that were moved to another cluster so far, each time counted".to_owned()
        }
        (Place::Servers, _) => format!("{} over edge servers, each under its model", capitalised(words)),
        (Place::Edges, _) => format!("{} over edge servers, each under the model that it has made", capitalised(words)),
        (Place::Clients, _) => format!("{} over clients, each on its own data", capitalised(words)),
        _ => capitalised(words),
    }
}

/// A metric's axis: logarithmic at first if it stays positive and spans more than a decade, as a loss does.
fn value_axis(words: &str, lines: &[Line], is_share: bool) -> Axis {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if is_share {
        return Axis { range: [None, (high > 0.9).then_some(1.0)], ..linear(words, None) };
    }
    match (low > 0.0, high > 10.0 * low) {
        (true, true) => either(linear(words, None), Scale::Log),
        (true, false) => either(linear(words, None), Scale::Linear),
        (false, _) => linear(words, None),
    }
}

/// Every meter's cumulative regret over rounds and over virtual time.
pub(super) fn regrets(study: &Study<'_>) -> Vec<Figure> {
    regrets_of(study, true)
}

/// The same without fitted growth and bounds.
pub(super) fn regrets_without_theory(study: &Study<'_>) -> Vec<Figure> {
    regrets_of(study, false)
}

fn regrets_of(study: &Study<'_>, with_theory: bool) -> Vec<Figure> {
    let mut figures = Vec::new();
    for meter in study.meters() {
        let name = if meter == "mean" { "regret".to_owned() } else { format!("regret-{meter}") };
        for (over, ending) in [(Over::Rounds, ""), (Over::Time, "-time")] {
            let value = |point: &CurvePoint| {
                point.regret.entries().into_iter().find(|(name, _)| *name == meter).and_then(|(_, value)| value)
            };
            let mut lines = lines(study, Between::Straight, over, value);
            let is_positive = lines.iter().flat_map(|line| line.points.last()).any(|point| point.1 > 0.0);
            let unit = if meter == "assignment" { "loss" } else { "reward" };
            let axis = linear(&regret_words(meter), Some(unit));
            let axis = if is_positive { either(axis, Scale::Linear) } else { axis };
            let (drawn, how) = how_means_are_shown(study);
            let caption = format!("{}, summed over rounds. {drawn}", capitalised(&regret_words(meter)));
            let mut method = format!("{}. {how}", meant(meter));
            let mut summary = finals(study, &format!("regret.{meter}"), "after the last round");
            if with_theory && over == Over::Rounds {
                let theory = theory::of_regret(study, meter);
                method.extend(theory.meanings().map(|words| format!(" {words}")));
                lines.extend(theory.lines);
                summary.extend(theory.words);
            }
            figures.extend(figure(Course {
                id: id(&format!("{name}{ending}")),
                title: format!("{} over {}", capitalised(&regret_words(meter)), words_of(over)),
                caption,
                method,
                summary,
                choice: Choice::new("regret", [("regret", meter), ("over", words_of(over))]),
                over,
                y: Axis {
                    range: [matches!(meter, "mean" | "counterfactual" | "assignment").then_some(0.0), None],
                    ..axis
                },
                lines,
                marks: Vec::new(),
            }));
        }
    }
    figures
}

/// The definition of a meter.
fn meant(meter: &str) -> &'static str {
    match meter {
        "mean" => {
            "Reward of the best set minus reward of the selected set, both with each client's mean speed E[τ_min/τ] (never \
             negative for a set as large as the best one; regret theorems bound it)"
        }
        "realised" => {
            "Reward of the genie's set minus reward of the selected set, both with the latencies drawn in this round"
        }
        "expected" => {
            "Reward of the genie's set minus reward of the selected set, both with the expected speed of a set's slowest client \
             (it may be negative, because the genie maximises the minimum of means)"
        }
        "expected-exact" => {
            "Reward of the best set minus reward of the selected set, both with the expected speed of a set's slowest client"
        }
        "counterfactual" => {
            "Value of the best set in hindsight minus value of the selected set (the sum of the values of the clients' own updates, \
             less the price of the round's time; to measure it, the other clients train as well)"
        }
        "assignment" => {
            "Mean loss of edge servers under the models of the clusters that they are assigned to minus the smallest that any \
             cluster's model has there, weighted by training examples, at each decision about clusters (never negative)"
        }
        _ => "Missed reward",
    }
}

/// Final values of all policies.
pub(super) fn finals(study: &Study<'_>, key: &str, when: &str) -> Vec<String> {
    let value = |(arm, point): (usize, usize)| {
        let estimate = study.estimate(arm, point, key)?;
        Some(mean_words(&format!("{} {when}", study.arms[arm].label), &estimate, None))
    };
    study.combinations().into_iter().filter_map(value).collect()
}

pub(super) struct Course {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub method: String,
    pub summary: Vec<String>,
    pub choice: Option<Choice>,
    pub over: Over,
    pub y: Axis,
    pub lines: Vec<Line>,
    pub marks: Vec<Mark>,
}

pub(super) fn figure(course: Course) -> Option<Figure> {
    let Course { id, title, caption, method, summary, choice, over, y, lines, marks } = course;
    let chart = Chart::Lines { x: axis_of(over), y, lines, marks };
    let is_empty = matches!(&chart, Chart::Lines { lines, .. } if lines.is_empty());
    (!is_empty).then_some(Figure { id, title, caption, method, summary, choice, chart })
}
