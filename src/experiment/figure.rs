//! Figures of an experiment as SVG: cumulative regret over rounds, metrics over virtual time, and, of a sweep over numbers, both
//! over the swept value.
//!
//! Lines are means over seeds: regret is interpolated between rounds, a metric keeps its value until the next evaluation, and
//! a run that has ended keeps its last. From four seeds on a band shows the 95 % interval; of fewer, thin lines show the
//! single seeds. Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), distinguishable with colour-blind
//! eyes; a policy of the catalogue has the same one in every figure.

mod draw;

use super::{CurvePoint, Reached, RunSummary, Summary, files};
use crate::error::Error;
use crate::math::statistics::estimate;
use crate::policy;
use draw::{Line, Picture, draw};
use plotters::style::RGBColor;
use std::path::{Path, PathBuf};

const COLOURS: [RGBColor; 8] = [
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(148, 148, 148),
];

/// Points along the horizontal axis.
const STEPS: usize = 400;

/// Seeds from which on an interval is drawn as a band: of fewer, Student's factor makes it many times as wide as the seeds differ.
const BAND_SEEDS: usize = 4;

const REGRETS: [&str; 4] = ["mean", "realised", "expected", "counterfactual"];

/// Place and value of one run.
type Course = Vec<(f64, f64)>;

/// How a value goes on between two points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Straight,
    Steps,
}

/// Writes `regret.svg` and one file per metric into a folder; nothing for a sweep over more than one path or over what are no
/// numbers. Returns what was written.
///
/// # Errors
/// If a file cannot be written.
pub fn write_figures(folder: &Path, summary: &Summary) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    let swept = swept_values(summary);
    if swept.is_none() && summary.points.len() != 1 {
        return Ok(written);
    }
    let title = summary.title.as_deref().unwrap_or(&summary.scenario);
    let mut write = |name: String, value: &str, lines: Vec<Line>, x_title: &str, range: [f64; 2], targets: &[f64]| {
        let heading = format!("{}: {title}", capitalised(value));
        let picture =
            Picture { title: &heading, axes: [x_title, value], lines: &lines, range, targets, dots: swept.is_some() };
        let Some(svg) = draw(&picture) else { return Ok(()) };
        let path = folder.join(name);
        files::write_file(&path, svg.as_bytes())?;
        written.push(path);
        Ok::<_, Error>(())
    };
    for meter in REGRETS {
        let name = if meter == "mean" { "regret.svg".to_owned() } else { format!("regret-{meter}.svg") };
        let range = [if matches!(meter, "mean" | "counterfactual") { 0.0 } else { f64::NEG_INFINITY }, f64::INFINITY];
        let value = format!("cumulative {meter} regret");
        match &swept {
            Some((path, values)) => {
                let lines = swept_lines(summary, values, &format!("regret.{meter}"));
                write(name, &value, lines, path, range, &[])?;
            }
            None => {
                let of_point = |point: &CurvePoint| {
                    point.regret.entries().into_iter().find(|(name, _)| *name == meter).and_then(|(_, value)| value)
                };
                let lines = lines(summary, Between::Straight, |point| f64::from(point.round), of_point);
                write(name, &value, lines, "round", range, &[])?;
            }
        }
    }
    let metrics = summary.runs.first().map(|run| run.final_metrics.keys().cloned().collect::<Vec<_>>());
    for metric in metrics.unwrap_or_default() {
        let range = [0.0, if metric.contains("accuracy") { 1.0 } else { f64::INFINITY }];
        let targets = targets(summary, &metric);
        let (name, words) = (format!("{metric}.svg"), metric.replace('_', " "));
        match &swept {
            Some((path, values)) => {
                let lines = swept_lines(summary, values, &format!("final.{metric}"));
                write(name, &format!("final {words}"), lines, path, range, &targets)?;
            }
            None => {
                let value = |point: &CurvePoint| {
                    point.metrics.iter().find(|(name, _)| *name == metric).map(|&(_, value)| value)
                };
                let lines = lines(summary, Between::Steps, |point| point.time_s, value);
                write(name, &words, lines, "virtual time [s]", range, &targets)?;
            }
        }
    }
    Ok(written)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The values of a metric that are targets.
fn targets(summary: &Summary, metric: &str) -> Vec<f64> {
    let of = |reached: &Reached| {
        let target = &reached.target;
        if target.metric == metric { target.at_least.or(target.at_most) } else { None }
    };
    summary.runs.first().map_or_else(Vec::new, |run| run.reached.iter().filter_map(of).collect())
}

/// Each policy's colour: of its place in the catalogue, or else the first that is left.
fn colours(summary: &Summary) -> Vec<(String, RGBColor)> {
    let known = |label: &str| policy::CATALOGUE.iter().position(|entry| entry.name == label);
    let mut labels: Vec<&String> = Vec::new();
    for arm in &summary.arms {
        if !labels.contains(&&arm.arm) {
            labels.push(&arm.arm);
        }
    }
    let taken: Vec<usize> = labels.iter().filter_map(|label| known(label)).map(|place| place % COLOURS.len()).collect();
    let mut left =
        (0..COLOURS.len()).filter(|place| !taken.contains(place)).chain(0..).map(|place| place % COLOURS.len());
    let mut colour = |label: &String| COLOURS[known(label).or_else(|| left.next()).unwrap_or_default() % COLOURS.len()];
    labels.into_iter().map(|label| (label.clone(), colour(label))).collect()
}

/// The swept path and its value at each point, if one path with numbers was swept.
fn swept_values(summary: &Summary) -> Option<(String, Vec<f64>)> {
    let path = match summary.points.first()?.keys().collect::<Vec<_>>()[..] {
        [path] => path.clone(),
        _ => return None,
    };
    let value = |point: &std::collections::BTreeMap<String, String>| point.get(&path)?.parse().ok();
    let values: Option<Vec<f64>> = summary.points.iter().map(value).collect();
    values
        .filter(|values| values.len() > 1 && values.iter().all(|value| value.is_finite()))
        .map(|values| (path, values))
}

/// A value over the swept one.
fn swept_lines(summary: &Summary, values: &[f64], key: &str) -> Vec<Line> {
    let line = |(label, colour): (String, RGBColor)| {
        let mut found: Vec<_> = summary
            .arms
            .iter()
            .filter(|arm| arm.arm == label)
            .filter_map(|arm| Some((values[arm.point], *arm.values.get(key)?)))
            .collect();
        found.sort_by(|one, two| one.0.total_cmp(&two.0));
        let enough = |estimate: &crate::math::statistics::Estimate| estimate.ci95.filter(|_| estimate.n >= BAND_SEEDS);
        Line {
            label,
            colour,
            mean: found.iter().map(|&(place, estimate)| (place, estimate.mean)).collect(),
            band: found.iter().filter_map(|(place, estimate)| Some((*place, enough(estimate)?))).collect(),
            seeds: Vec::new(),
        }
    };
    colours(summary).into_iter().map(line).filter(|line| !line.mean.is_empty()).collect()
}

/// A value over rounds or virtual time.
fn lines(
    summary: &Summary,
    between: Between,
    place: impl Fn(&CurvePoint) -> f64,
    value: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<Line> {
    let course = |run: &RunSummary| -> Course {
        let points = run.curve.iter().filter_map(|point| Some((place(point), value(point)?)));
        points.filter(|point| point.1.is_finite()).collect()
    };
    let line = |(label, colour): (String, RGBColor)| {
        let runs = summary.runs.iter().filter(|run| run.arm == label).map(course);
        let runs: Vec<Course> = runs.filter(|run| !run.is_empty()).collect();
        line_of(label, colour, &runs, between)
    };
    colours(summary).into_iter().map(line).filter(|line| !line.mean.is_empty()).collect()
}

fn line_of(label: String, colour: RGBColor, runs: &[Course], between: Between) -> Line {
    let (mut mean, mut band) = (Vec::new(), Vec::new());
    for x in places(runs) {
        let values: Vec<f64> = runs.iter().map(|run| value_at(run, x, between)).collect();
        if let Some(found) = estimate(&values) {
            mean.push((x, found.mean));
            band.extend(found.ci95.filter(|_| runs.len() >= BAND_SEEDS).map(|interval| (x, interval)));
        }
    }
    let seeds = if (2..BAND_SEEDS).contains(&runs.len()) { runs.to_vec() } else { Vec::new() };
    if between == Between::Straight {
        return Line { label, colour, mean, band, seeds };
    }
    let seeds = seeds.iter().map(|seed| staircase(seed)).collect();
    Line { label, colour, mean: staircase(&mean), band: staircase(&band), seeds }
}

/// Where the mean is taken: from where all runs have a value to where the last has its last one, both included.
fn places(runs: &[Course]) -> Vec<f64> {
    let start = runs.iter().filter_map(|run| run.first()).map(|first| first.0).fold(f64::NEG_INFINITY, f64::max);
    let mut all: Vec<f64> = runs.iter().flatten().map(|point| point.0).filter(|&place| place >= start).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    match all.last() {
        Some(&end) if all.len() > STEPS => {
            let place = |step| start + (end - start) * step as f64 / STEPS as f64;
            (0..STEPS).map(place).chain([end]).collect()
        }
        _ => all,
    }
}

/// The value of a run at a place, its first before and its last after all that is known.
fn value_at(run: &[(f64, f64)], x: f64, between: Between) -> f64 {
    let after = run.partition_point(|&(place, _)| place <= x);
    let before = run[after.saturating_sub(1)];
    match run.get(after) {
        Some(next) if between == Between::Straight && next.0 > before.0 && x > before.0 => {
            before.1 + (next.1 - before.1) * (x - before.0) / (next.0 - before.0)
        }
        _ => before.1,
    }
}

/// The corners of a line that keeps each value until the next.
fn staircase<T: Copy>(points: &[(f64, T)]) -> Vec<(f64, T)> {
    let corner = |pair: &[(f64, T)]| [(pair[1].0, pair[0].1), pair[1]];
    points.first().copied().into_iter().chain(points.windows(2).flat_map(corner)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_the_last_value_of_the_longest_run() {
        // 0.1·3 is above 0.3: a grid that is computed falls short of it.
        let long: Course = (0..1_000).map(|step| (0.1 * f64::from(step), f64::from(step))).collect();
        let short: Course = long[..500].to_vec();
        let runs = [long.clone(), short];
        for between in [Between::Straight, Between::Steps] {
            let line = line_of("a".to_owned(), COLOURS[0], &runs, between);
            assert_eq!(line.mean.last(), Some(&(0.1 * 999.0, (999.0 + 499.0) / 2.0)));
            assert!(line.band.is_empty() && line.seeds.len() == 2, "two seeds are shown one by one");
        }
        let runs = vec![long; 4];
        let line = line_of("a".to_owned(), COLOURS[0], &runs, Between::Straight);
        assert!(line.band.len() == line.mean.len() && line.seeds.is_empty());
    }

    #[test]
    fn between_points_regret_is_straight_and_a_metric_stays() {
        let run = [(1.0, 0.0), (3.0, 1.0)];
        assert_eq!(value_at(&run, 2.0, Between::Straight), 0.5);
        assert_eq!(value_at(&run, 2.0, Between::Steps), 0.0);
        assert_eq!(value_at(&run, 9.0, Between::Straight), 1.0);
        assert_eq!(staircase(&run), [(1.0, 0.0), (3.0, 0.0), (3.0, 1.0)]);
    }
}
