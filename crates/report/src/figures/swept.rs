//! A sweep: quantities over the swept values.

use super::super::model::{Axis as Shown, Chart, Choice, Figure, Line, LineKind, Mark, Panel, Scale};
use super::super::study::{Arm, Quantity, Study, capitalised, counted, id, interval, linear, rounded};
use super::rounds::{ratio_axis, ratio_words, ratios, row_words};
use super::{MOST_COURSES, either, how_intervals_are_shown, marks, mean_words, whiskers};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::compared::{is_told_apart, rank};
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::{INTERVAL_SEEDS, number};
use fedgenie_experiment::scenario::points;
use fedgenie_experiment::scenario::sweep::Axis;
use std::collections::BTreeMap;

/// The sentence on contours, where there may be some.
const CONTOURS: &str = "Outlined are a policy's best point and the points not told apart from it, each by its own paired \
                        95 % interval.";

/// The kinds of sweeps.
enum Swept {
    /// One axis of numbers: its name, their unit and the value at each point.
    Numbers(String, Option<&'static str>, Vec<f64>),
    /// Two axes: their names, their values in order, and each point's column and row.
    Grid([String; 2], [Vec<String>; 2], Vec<[usize; 2]>),
    /// Anything else.
    Points,
}

impl Study<'_> {
    /// The titles of the axes of the sweep: ends of paths, in words.
    pub fn axis_titles(&self) -> Vec<String> {
        let paths: Vec<&String> = self.sweep.axes.iter().flat_map(|axis| &axis.paths).collect();
        let titles = points::titles(&paths);
        let title = |path: &String| paths.iter().position(|known| *known == path).map(|index| titles[index].clone());
        let of = |axis: &Axis| axis.paths.iter().filter_map(title).collect::<Vec<_>>().join(", ");
        self.sweep.axes.iter().map(of).collect()
    }
}

fn swept(study: &Study<'_>) -> Swept {
    let titles = study.axis_titles();
    match &study.sweep.axes[..] {
        [Axis { places, numbers: Some((numbers, unit)), .. }] => {
            let unit = Some(*unit).filter(|unit| !unit.is_empty());
            Swept::Numbers(titles[0].clone(), unit, places.iter().map(|&place| numbers[place]).collect())
        }
        [one, two] => {
            let positions = one.places.iter().zip(&two.places).map(|(&column, &row)| [column, row]).collect();
            Swept::Grid([titles[0].clone(), titles[1].clone()], [one, two].map(|axis| labels(study, axis)), positions)
        }
        _ => Swept::Points,
    }
}

/// The values of an axis, by place.
fn labels(study: &Study<'_>, axis: &Axis) -> Vec<String> {
    let first = |place| axis.places.iter().position(|&other| other == place);
    let points: Vec<usize> = (0..study.points.len()).map_while(first).collect();
    let of_path = |path: &String| -> Vec<String> {
        let value = |&point: &usize| study.points[point].get(path).cloned().unwrap_or_default();
        points::values(&points.iter().map(value).collect::<Vec<_>>())
    };
    let values: Vec<Vec<String>> = axis.paths.iter().map(of_path).collect();
    let label = |place: usize| values.iter().map(|values| values[place].as_str()).collect::<Vec<_>>().join(", ");
    (0..points.len()).map(label).collect()
}

/// Final metrics, regrets, times and the rest over the swept values.
pub(super) fn quantities(study: &Study<'_>, warnings: &mut Vec<String>) -> Vec<Figure> {
    let swept = swept(study);
    let mut figures = Vec::new();
    let paths: Vec<&str> = study.sweep.axes.iter().flat_map(|axis| &axis.paths).map(String::as_str).collect();
    let rewards: Vec<&str> =
        study.points[0].keys().map(String::as_str).filter(|path| path.starts_with("regret.")).collect();
    let rewards = (!rewards.is_empty()).then(|| rewards.join(", "));
    for quantity in study.quantities() {
        // A constant is in the table.
        let means =
            study.combinations().into_iter().filter_map(|(arm, point)| study.estimate(arm, point, &quantity.key));
        let means: Vec<f64> = means.map(|estimate| estimate.mean).collect();
        let never =
            study.combinations().into_iter().any(|(arm, point)| study.beyond(arm, point, &quantity.key).is_some());
        if means.is_empty()
            || !never && means.windows(2).all(|pair| pair[0] == pair[1]) && !quantity.key.starts_with("final.")
        {
            continue;
        }
        let name = match quantity.key.split_once('.') {
            Some(("final", metric)) => metric.to_owned(),
            Some(("regret", "mean")) => "regret".to_owned(),
            Some(("regret", meter)) => format!("regret-{meter}"),
            _ => quantity.key.clone(),
        };
        let chart = match &swept {
            Swept::Numbers(path, unit, values) => over_numbers(study, &quantity, (path, *unit), values),
            Swept::Grid(paths, values, positions) => grid(study, &quantity, paths, values, positions),
            Swept::Points => at_points(study, &quantity),
        };
        let whiskers = match quantity.key.starts_with("reached.") {
            true => whiskers("Wilson"),
            false => how_intervals_are_shown(),
        };
        let (over, [drawn, how]) = match &swept {
            Swept::Numbers(path, ..) => {
                (path.clone(), ["Dots are means over seeds, whiskers 95 % confidence intervals.", &whiskers])
            }
            Swept::Grid([one, two], ..) => (format!("{one} and {two}"), ["Colours are means over seeds.", CONTOURS]),
            Swept::Points => ("the sweep".to_owned(), ["Means over seeds.", &whiskers]),
        };
        let caption = format!("{} at every point of the sweep. {drawn}", capitalised(&quantity.words));
        let mut method = format!("{how}{} Swept: {}.", study.method(&quantity), paths.join(", "));
        if let Some(paths) = rewards.as_ref().filter(|_| quantity.key.starts_with("regret.")) {
            method.push_str(&format!(
                " The sweep changes the reward ({paths}), so regrets of different points have different units."
            ));
            let warning = format!("the sweep changes {paths}: regrets of its points are measured in different rewards");
            warnings.push(warning);
        }
        figures.push(Figure {
            id: id(&name),
            title: format!("{} over {over}", capitalised(&quantity.words)),
            caption,
            method,
            summary: study.combinations().into_iter().filter_map(|of| words(study, of, &quantity)).collect(),
            choice: Choice::new("quantities", [("of", &quantity.words)]),
            chart,
        });
    }
    figures
}

/// A quantity of a policy at a point, in a sentence.
fn words(study: &Study<'_>, (arm, point): (usize, usize), quantity: &Quantity) -> Option<String> {
    let label = study.words(arm, point);
    if let Some(cell) = study.until_cell(arm, point, &quantity.key) {
        let unit = quantity.unit.map_or_else(String::new, |unit| format!(" {unit}"));
        return Some(format!("{label}: {cell}{unit}"));
    }
    let estimate = study.estimate(arm, point, &quantity.key)?;
    Some(match counted(&quantity.key, &estimate) {
        Some(runs) => format!("{label}: {runs} runs"),
        None => mean_words(&label, &estimate, quantity.unit),
    })
}

/// The drawn value of a quantity: where no run arrives, the horizon.
fn shown(study: &Study<'_>, arm: usize, point: usize, key: &str) -> Option<Estimate> {
    let runs = study.arms[arm].runs[point].len();
    let at_horizon = |(horizon, _)| Estimate { mean: horizon, ci95: None, n: runs };
    study.estimate(arm, point, key).or_else(|| study.beyond(arm, point, key).map(at_horizon))
}

/// The horizons at which dots stand for policies of which no run arrives.
fn horizons(study: &Study<'_>, key: &str) -> Vec<Mark> {
    let mut found: Vec<f64> = Vec::new();
    for (arm, point) in study.combinations() {
        if let Some((horizon, _)) = study.beyond(arm, point, key)
            && !found.contains(&horizon)
        {
            found.push(horizon);
        }
    }
    let mark = |value: f64| Mark { label: format!("no run arrives by {}", number(value)), value: rounded(value) };
    found.into_iter().map(mark).collect()
}

fn over_numbers(study: &Study<'_>, quantity: &Quantity, (path, unit): (&str, Option<&str>), values: &[f64]) -> Chart {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &two| values[one].total_cmp(&values[two]));
    let line = |(arm, described): (usize, &Arm<'_>)| {
        let found: Vec<_> =
            order.iter().filter_map(|&point| Some((values[point], shown(study, arm, point, &quantity.key)?))).collect();
        Line {
            series: described.label.clone(),
            role: LineKind::Mean,
            label: None,
            points: found.iter().map(|&(x, estimate)| (x, rounded(estimate.mean))).collect(),
            band: found.iter().filter_map(|(x, estimate)| Some((*x, interval(estimate).ci95?))).collect(),
            is_staircase: false,
            has_dots: true,
        }
    };
    let lines: Vec<Line> = study.arms.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
    let (low, high) = (values[order[0]], values[order[order.len() - 1]]);
    let axis = linear(path, unit);
    let x = if low > 0.0 { either(axis, if high >= 10.0 * low { Scale::Log } else { Scale::Linear }) } else { axis };
    let is_positive = lines.iter().flat_map(|line| &line.points).all(|point| point.1 > 0.0);
    let y = if is_positive { either(quantity.axis(), Scale::Linear) } else { quantity.axis() };
    let metric = study.metrics().into_iter().find(|metric| quantity.key == format!("final.{metric}"));
    let mut marks = metric.map_or_else(Vec::new, |metric| marks(study, metric));
    marks.extend(horizons(study, &quantity.key));
    Chart::Lines { x, y, lines, marks }
}

fn grid(
    study: &Study<'_>,
    quantity: &Quantity,
    paths: &[String; 2],
    values: &[Vec<String>; 2],
    positions: &[[usize; 2]],
) -> Chart {
    let panel = |(arm, described): (usize, &Arm<'_>)| {
        let mut cells = vec![vec![None; values[0].len()]; values[1].len()];
        for (point, &[column, row]) in positions.iter().enumerate() {
            cells[row][column] = shown(study, arm, point, &quantity.key).map(|found| rounded(found.mean));
        }
        let mut contour = Vec::new();
        if let Some(inside) = inside(study, arm, quantity) {
            contour = vec![vec![false; values[0].len()]; values[1].len()];
            positions.iter().zip(inside).for_each(|(&[column, row], is_inside)| contour[row][column] = is_inside);
        }
        Panel { label: described.label.clone(), cells, contour }
    };
    Chart::Heat {
        x: linear(&paths[0], None),
        columns: values[0].clone(),
        y: linear(&paths[1], None),
        rows: values[1].clone(),
        value: quantity.axis(),
        panels: study.arms.iter().enumerate().map(panel).collect(),
    }
}

/// Whether each point is the best of a policy or not told apart from it; `None` where nothing is better, where seeds
/// are too few, and where all points are inside.
fn inside(study: &Study<'_>, arm: usize, quantity: &Quantity) -> Option<Vec<bool>> {
    let is_known = !(quantity.key.starts_with("regret.") && study.sweep.moves("regret"));
    let better = quantity.better.filter(|_| is_known)?;
    let candidates: Vec<Sample> =
        (0..study.points.len()).map(|point| study.sample(arm, point, &quantity.key)).collect();
    let ranking = rank(&candidates, better)?.ok().filter(|ranking| ranking.value.n >= INTERVAL_SEEDS)?;
    let mut inside = vec![false; candidates.len()];
    inside[ranking.best] = true;
    for (point, difference) in &ranking.others {
        inside[*point] = !is_told_apart(difference);
    }
    inside.contains(&false).then_some(inside)
}

fn at_points(study: &Study<'_>, quantity: &Quantity) -> Chart {
    let row = |(arm, point): (usize, usize)| {
        let found = shown(study, arm, point, &quantity.key)?;
        let beyond = study.beyond(arm, point, &quantity.key);
        let words = beyond.map_or_else(String::new, |(_, words)| format!(" ({words})"));
        Some((format!("{}{words}", study.words(arm, point)), study.arms[arm].label.clone(), interval(&found)))
    };
    Chart::Intervals { value: quantity.axis(), rows: study.combinations().into_iter().filter_map(row).collect() }
}

/// Selections per group in whole runs at every point, a panel for each policy.
pub(super) fn selections(study: &Study<'_>) -> Option<Figure> {
    let runs = || study.arms.iter().flat_map(Arm::all_runs).map(|run| &run.metrics.selections);
    let rows = runs().find(|found| found.rows.len() > 1).map(|found| found.rows.clone())?;
    let is_same = |found: &fedgenie_simulator::metrics::Selections| {
        found.rows.iter().map(|row| (&row.label, row.clients)).eq(rows.iter().map(|row| (&row.label, row.clients)))
    };
    if !runs().all(is_same) {
        return None;
    }
    let (labels, y) = row_words(&study.arms, &rows);
    let panel = |arm: &Arm<'_>| {
        let column = |runs: &BTreeMap<u64, &fedgenie_experiment::experiment::RunSummary>| {
            let mut counts = vec![0; rows.len()];
            for total in runs.values().map(|run| run.metrics.selections.totals()) {
                counts.iter_mut().zip(total).for_each(|(sum, count)| *sum += count);
            }
            ratios(&counts, &rows)
        };
        let columns: Vec<Vec<Option<f64>>> = arm.runs.iter().map(column).collect();
        let cells = (0..rows.len()).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
        Panel { label: arm.label.clone(), cells, contour: Vec::new() }
    };
    // The axis has the paths.
    let of_path = |path: &String| -> Vec<String> {
        let value = |point: &BTreeMap<String, String>| point.get(path).cloned().unwrap_or_default();
        points::values(&study.points.iter().map(value).collect::<Vec<_>>())
    };
    let values: Vec<Vec<String>> = study.points[0].keys().map(of_path).collect();
    let column = |point: usize| values.iter().map(|values| values[point].as_str()).collect::<Vec<_>>().join(", ");
    let columns = (0..study.points.len()).map(column).collect();
    let titles = study.axis_titles();
    Some(Figure {
        id: "selections".to_owned(),
        title: format!("Selections over {}", titles.join(" and ")),
        caption: format!("Selections in all rounds of all seeds, at every point of the sweep. {}", ratio_words()),
        method: String::new(),
        summary: Vec::new(),
        choice: None,
        chart: Chart::Heat {
            x: Shown { label: titles.join(", "), ..linear("", None) },
            columns,
            y,
            rows: labels,
            value: ratio_axis(),
            panels: study.arms.iter().map(panel).collect(),
        },
    })
}

/// Selections over rounds, a panel for each policy and point, where one path was swept over few values.
pub(super) fn selections_over_rounds(study: &Study<'_>) -> Option<Figure> {
    if study.points.len() > MOST_COURSES || study.points[0].len() != 1 {
        return None;
    }
    // Groups that differ between points have no common rows, as the picture over the sweep has none.
    let figure = super::rounds::selections(&study.unfolded(), &mut Vec::new())?;
    Some(Figure { id: "selections-rounds".to_owned(), ..figure })
}

/// The choice of a figure of one point among those of the others.
fn at_point(study: &Study<'_>, point: usize, of: &str, figure: &Figure) -> Option<Choice> {
    let own = figure.choice.as_ref()?;
    Choice::new(of, [("of", &own.of.replace('_', " ")), ("at", study.point_words(point))])
}

/// The metrics that have targets, over virtual time at every point, where there are few.
pub(super) fn courses(study: &Study<'_>) -> Vec<Figure> {
    // Of a single policy the curves of all points stand together.
    if study.points.len() > MOST_COURSES || study.arms.len() < 2 {
        return Vec::new();
    }
    let targets = study.targets();
    let aimed_at = |figure: &Figure| targets.iter().any(|reached| id(&reached.target.metric) == figure.id);
    let of_point = |point: usize| {
        let named = move |figure: Figure| Figure {
            id: format!("{}-p{point}-time", figure.id),
            title: format!("{}, {}", figure.title, study.point_words(point)),
            choice: at_point(study, point, "courses of points", &figure),
            ..figure
        };
        super::course::metrics(&study.at(point)).into_iter().filter(aimed_at).map(named).collect::<Vec<Figure>>()
    };
    (0..study.points.len()).flat_map(of_point).collect()
}

/// The mean regret over rounds at every point, where there are few.
pub(super) fn regrets(study: &Study<'_>) -> Vec<Figure> {
    if study.points.len() > MOST_COURSES {
        return Vec::new();
    }
    let of_point = |point: usize| {
        let figures = super::course::regrets(&study.at(point)).into_iter().filter(|figure| figure.id == "regret");
        let named = move |figure: Figure| Figure {
            id: format!("regret-p{point}-rounds"),
            title: format!("{}, {}", figure.title, study.point_words(point)),
            choice: at_point(study, point, "regret of points", &figure),
            ..figure
        };
        figures.map(named).next()
    };
    (0..study.points.len()).filter_map(of_point).collect()
}
