//! Totals of runs: jobs by outcome, computing and traffic used and wasted.

use super::super::model::{Axis, Chart, Choice, Figure};
use super::super::study::{Study, linear, rounded};
use super::MOST_BARS;
use fedgenie_experiment::experiment::{RunSummary, number};

/// A part of a bar: its label, and its length in a run.
type Part = (&'static str, fn(&RunSummary) -> f64);

const OUTCOMES: [Part; 5] = [
    ("arrived", |run| run.outcomes.arrived as f64),
    ("late, joined later", |run| run.outcomes.joined.min(run.outcomes.late) as f64),
    ("late, not used", |run| run.outcomes.late.saturating_sub(run.outcomes.joined) as f64),
    ("lost", |run| run.outcomes.dropped_jobs() as f64),
    ("under way at the end", |run| {
        run.dispatched.saturating_sub(run.outcomes.arrived + run.outcomes.late + run.outcomes.dropped_jobs()) as f64
    }),
];

const COMPUTE: [Part; 3] = [
    ("used", |run| (run.compute_s - run.wasted_compute_s).max(0.0)),
    ("wasted", |run| run.wasted_compute_s),
    ("for probes", |run| run.probe_compute_s),
];

const TRAFFIC: [Part; 4] = [
    ("download, used", |run| run.traffic.down_bytes.saturating_sub(run.wasted_down_bytes) as f64),
    ("download, wasted", |run| run.wasted_down_bytes as f64),
    ("upload, used", |run| run.traffic.up_bytes.saturating_sub(run.wasted_up_bytes) as f64),
    ("upload, wasted", |run| run.wasted_up_bytes as f64),
];

const ENERGY: [Part; 4] = [
    ("idle", |run| run.energy.map_or(0.0, |energy| energy.idle_j)),
    ("download", |run| run.energy.map_or(0.0, |energy| energy.receive_j)),
    ("compute", |run| run.energy.map_or(0.0, |energy| energy.compute_j)),
    ("upload", |run| run.energy.map_or(0.0, |energy| energy.send_j)),
];

const JOBS: [Part; 2] = [
    ("used", |run| run.energy.map_or(0.0, |energy| (energy.of_jobs_j() - energy.wasted_j).max(0.0))),
    ("wasted", |run| run.energy.map_or(0.0, |energy| energy.wasted_j)),
];

const WASTED: &str = "Work is wasted if its update was never used: the job was lost, cancelled, late and not waited for, too stale, part \
                      of an abandoned round, or under way when the run ended.";

/// Outcomes, computing and traffic of every policy.
pub(super) fn totals(study: &Study<'_>, warnings: &mut Vec<String>) -> Vec<Figure> {
    let bars = study.combinations().len();
    if bars > MOST_BARS {
        warnings.push(format!(
            "{bars} combinations of policy and point are too many for bars of outcomes, computing and traffic; summary.json has the \
             numbers"
        ));
        return Vec::new();
    }
    // Runs of early versions have no outcomes.
    let counted =
        study.arms.iter().flat_map(|arm| arm.all_runs()).any(|run| run.outcomes.arrived + run.outcomes.late > 0);
    let outcomes = counted.then(|| {
        let caption = "Outcomes of jobs per run, averaged over seeds.";
        let method = "A late job was under way when its round closed, or its update was too stale. A lost job ended because its \
                      client or its link failed. Jobs are under way at the end if the protocol starts them before the round in \
                      which they count.";
        bars_of(study, "outcomes", "Outcomes of jobs", [caption, method], &OUTCOMES, &linear("jobs per run", None))
    });
    let compute = ["Virtual time of computing per run, summed over clients and averaged over seeds.", WASTED];
    let moved = format!("An interrupted transfer counts the bytes that had moved. {WASTED}");
    let traffic = ["Bytes between server and clients per run, averaged over seeds.", &moved];
    let energy = [
        "Energy that phones drew per run, summed over clients and averaged over seeds.",
        "Idle is what phones drew between jobs, and while jobs waited for devices that were away.",
    ];
    let jobs = ["Energy that jobs drew from batteries per run, summed over clients and averaged over seeds.", WASTED];
    let joules = |words: &str| linear(words, Some("J"));
    let figures = [
        outcomes.flatten(),
        bars_of(study, "compute", "Computing of clients", compute, &COMPUTE, &linear("computing per run", Some("s"))),
        bars_of(study, "traffic", "Traffic of clients", traffic, &TRAFFIC, &linear("traffic per run", Some("B"))),
        bars_of(study, "energy", "Energy of clients", energy, &ENERGY, &joules("energy per run")),
        bars_of(study, "energy-of-jobs", "Energy of jobs", jobs, &JOBS, &joules("energy of jobs per run")),
    ];
    figures.into_iter().flatten().collect()
}

/// `said` is a caption, and its method.
fn bars_of(study: &Study<'_>, id: &str, title: &str, said: [&str; 2], parts: &[Part], axis: &Axis) -> Option<Figure> {
    let combinations = study.combinations();
    let mean = |of: fn(&RunSummary) -> f64, (arm, point): (usize, usize)| {
        let runs = &study.arms[arm].runs[point];
        runs.values().map(|run| of(run)).sum::<f64>() / runs.len() as f64
    };
    let mut found: Vec<(String, Vec<f64>)> = parts
        .iter()
        .map(|&(label, of)| (label.to_owned(), combinations.iter().map(|&combination| mean(of, combination)).collect()))
        .collect();
    found.retain(|(_, lengths)| lengths.iter().any(|&length| length > 0.0));
    let longest = (0..combinations.len())
        .map(|bar| found.iter().map(|(_, lengths)| lengths[bar]).sum::<f64>())
        .fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let (factor, unit) = scaled(longest, axis.unit.as_deref());
    found.iter_mut().flat_map(|(_, lengths)| lengths).for_each(|length| *length = rounded(*length / factor));
    let words = |(bar, &(arm, point)): (usize, &(usize, usize))| {
        let parts: Vec<String> =
            found.iter().map(|(label, lengths)| format!("{label} {}", number(lengths[bar]))).collect();
        let unit = unit.as_deref().map_or_else(String::new, |unit| format!(" [{unit}]"));
        format!("{}: {}{unit}", study.words(arm, point), parts.join(", "))
    };
    let summary = combinations.iter().enumerate().map(words).collect();
    let categories = combinations.iter().map(|&(arm, point)| study.words(arm, point)).collect();
    let value = Axis { unit, range: [Some(0.0), None], ..axis.clone() };
    Some(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: said[0].to_owned(),
        method: said[1].to_owned(),
        summary,
        choice: Choice::new("totals", [("of", title)]),
        chart: Chart::Bars { value, categories, parts: found },
    })
}

/// A unit in which the longest bar is a number that can be read.
fn scaled(longest: f64, unit: Option<&str>) -> (f64, Option<String>) {
    let steps: &[(f64, &str)] = match unit {
        Some("B") => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        Some("s") => &[(3.6e6, "1000 h"), (3.6e4, "h")],
        Some("J") => &[(1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")],
        _ => &[],
    };
    let step = steps.iter().find(|(least, _)| longest >= *least);
    match step {
        Some((_, "h")) => (3.6e3, Some("h".to_owned())),
        Some(&(factor, unit)) => (factor, Some(unit.to_owned())),
        None => (1.0, unit.map(str::to_owned)),
    }
}
