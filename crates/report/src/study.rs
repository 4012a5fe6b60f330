//! Policies of one or several experiments with the same points, ready to be compared.

mod quantities;

use super::folders::Pairing;
use super::model::{Axis, Interval, Scale};
use super::source::Results;
use fedgenie_core::math::statistics::Estimate;
pub(super) use fedgenie_core::metric::Better;
use fedgenie_core::metric::{Metric, MetricId, Names};
use fedgenie_experiment::experiment::answers::questions;
use fedgenie_experiment::experiment::compared::Aim;
use fedgenie_experiment::experiment::controls::{self, INITIAL};
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::{INTERVAL_SEEDS, Reached, RunSummary};
use fedgenie_experiment::scenario::report::Over;
use fedgenie_experiment::scenario::{Sweep, points};
use std::collections::BTreeMap;

/// A policy of an experiment.
pub(super) struct Arm<'a> {
    /// Its label, with the experiment's prefix where there are several.
    pub label: String,
    /// Index of the experiment among all.
    pub folder: usize,
    /// Its name in its experiment.
    pub policy: String,
    /// Indices of the policies that it is compared with, in the study: that of its own world first. Its own index if it
    /// is the reference.
    pub references: Vec<usize>,
    /// Its runs, point by point, by seed.
    pub runs: Vec<BTreeMap<u64, &'a RunSummary>>,
}

impl<'a> Arm<'a> {
    pub fn new(label: String, folder: usize, results: &'a Results, arm: &str) -> Self {
        let of_point = |point| -> BTreeMap<u64, &RunSummary> {
            let runs = results.summary.runs.iter().filter(|run| run.point == point && run.arm == arm);
            runs.map(|run| (run.seed, run)).collect()
        };
        let runs: Vec<_> = (0..results.summary.points.len()).map(of_point).collect();
        let policy = arm.to_owned();
        Self { label, folder, policy, references: Vec::new(), runs }
    }

    /// All runs of all points.
    pub fn all_runs(&self) -> impl Iterator<Item = &'a RunSummary> {
        self.runs.iter().flat_map(|runs| runs.values().copied())
    }
}

/// The difference of a policy to another at a point.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub arm: usize,
    pub against: usize,
    pub point: usize,
    pub estimate: Estimate,
    /// Whether it is of pairs of equal seeds, not of independent samples.
    pub is_paired: bool,
}

/// A number that policies are compared by.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    /// Its name in summaries.
    pub key: String,
    /// In words.
    pub words: String,
    pub unit: Option<&'static str>,
    pub better: Option<Better>,
    /// Whether policies are mainly judged by it: targets, their metrics and that of `quality`, test loss, regret, time.
    pub is_main: bool,
}

impl Quantity {
    fn new(
        key: impl Into<String>,
        words: impl Into<String>,
        unit: Option<&'static str>,
        better: Option<Better>,
    ) -> Self {
        Self { key: key.into(), words: words.into(), unit, better, is_main: false }
    }

    fn main(self) -> Self {
        Self { is_main: true, ..self }
    }

    /// Its words and its unit.
    pub fn heading(&self) -> String {
        self.unit.map_or_else(|| self.words.clone(), |unit| format!("{} [{unit}]", self.words))
    }

    /// An axis that shows it.
    pub fn axis(&self) -> Axis {
        linear(&self.words, self.unit)
    }
}

/// A linear axis whose ends the data decides.
pub(super) fn linear(label: &str, unit: Option<&str>) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.map(str::to_owned),
        scales: vec![Scale::Linear],
        range: [None; 2],
        begins: false,
    }
}

/// Experiments with the same points.
pub(super) struct Study<'a> {
    /// All experiments of the report.
    pub results: &'a [Results],
    pub arms: Vec<Arm<'a>>,
    /// The sweep's points; one without settings if nothing was swept.
    pub points: &'a [BTreeMap<String, String>],
    /// The axes of the sweep, and its reference.
    pub sweep: Sweep,
    /// Their short names, which say how they differ.
    names: Vec<String>,
    /// The same without the path, where one path makes the sweep.
    bare_names: Vec<String>,
}

impl<'a> Study<'a> {
    /// Whether clients have batteries.
    pub fn has_batteries(&self) -> bool {
        self.arms.iter().flat_map(Arm::all_runs).any(|run| run.energy.is_some())
    }

    /// The study of some of the experiments, which have the same points. `labels` are those of all policies of each.
    pub fn new(results: &'a [Results], folders: &[usize], labels: &[Vec<String>]) -> Self {
        let mut arms: Vec<Arm<'a>> = Vec::new();
        for &folder in folders {
            let from = &results[folder];
            let own = arms.len() + from.reference();
            let same = arms.iter().find(|arm| results[arm.folder].shares_world(from)).map(|arm| arm.references[0]);
            // A policy of another world is also compared with its namesake in the first.
            let is_other = !results[folders[0]].shares_world(from);
            let known = arms.len();
            for (label, policy) in labels[folder].iter().zip(&from.labels) {
                let namesake = || {
                    let found = arms[..known].iter().position(|arm| arm.folder == folders[0] && arm.policy == *policy);
                    found.unwrap_or(arms[0].references[0])
                };
                let mut references = vec![same.unwrap_or(own)];
                references.extend(is_other.then(namesake));
                arms.push(Arm { references, ..Arm::new(label.clone(), folder, from, policy) });
            }
        }
        let points = &results[folders[0]].summary.points;
        let sweep = Sweep::of(results[folders[0]].table(), points);
        Self { results, arms, points, sweep, names: points::names(points), bare_names: points::bare_names(points) }
    }

    /// The study of one point.
    pub fn at(&self, point: usize) -> Self {
        let arm = |arm: &Arm<'a>| Arm {
            label: arm.label.clone(),
            folder: arm.folder,
            policy: arm.policy.clone(),
            references: arm.references.clone(),
            runs: vec![arm.runs[point].clone()],
        };
        Self {
            results: self.results,
            arms: self.arms.iter().map(arm).collect(),
            points: &self.points[point..=point],
            sweep: Sweep::default(),
            names: vec![self.names[point].clone()],
            bare_names: Vec::new(),
        }
    }

    /// Every policy at every point as if it were a policy of its own; nothing is compared between them.
    pub fn unfolded(&self) -> Self {
        let arm = |(arm, point): (usize, usize)| Arm {
            label: self.words(arm, point),
            folder: self.arms[arm].folder,
            policy: self.arms[arm].policy.clone(),
            references: Vec::new(),
            runs: vec![self.arms[arm].runs[point].clone()],
        };
        Self {
            results: self.results,
            arms: self.combinations().into_iter().map(arm).collect(),
            points: &self.points[..1],
            sweep: Sweep::default(),
            names: vec![self.names[0].clone()],
            bare_names: Vec::new(),
        }
    }

    /// One policy at some points, as if it were a policy at each, with these labels; nothing is compared between them.
    pub fn points_of(&self, arm: usize, points: &[usize], label: impl Fn(usize) -> String) -> Self {
        let from = &self.arms[arm];
        let of_point = |&point: &usize| Arm {
            label: label(point),
            folder: from.folder,
            policy: from.policy.clone(),
            references: Vec::new(),
            runs: vec![from.runs[point].clone()],
        };
        let chosen = points.iter().filter(|&&point| !from.runs[point].is_empty());
        Self {
            results: self.results,
            arms: chosen.map(of_point).collect(),
            points: &self.points[..1],
            sweep: Sweep::default(),
            names: vec![self.names[0].clone()],
            bare_names: Vec::new(),
        }
    }

    /// The questions of the first experiment.
    pub fn questions(&self) -> Vec<Aim> {
        self.arms.first().map(|arm| questions(&self.results[arm.folder].summary)).unwrap_or_default()
    }

    pub fn is_sweep(&self) -> bool {
        self.points.len() > 1
    }

    /// A point's short name; empty where nothing was swept.
    pub fn point_words(&self, point: usize) -> &str {
        &self.names[point]
    }

    /// A point's name without the path, where one path makes the sweep.
    pub fn bare_words(&self, point: usize) -> String {
        self.bare_names.get(point).cloned().unwrap_or_default()
    }

    /// A policy, and the point where there are several.
    pub fn words(&self, arm: usize, point: usize) -> String {
        let label = &self.arms[arm].label;
        if self.is_sweep() { format!("{label}, {}", self.point_words(point)) } else { label.clone() }
    }

    /// Every policy at every point that has runs.
    pub fn combinations(&self) -> Vec<(usize, usize)> {
        let all = (0..self.points.len()).flat_map(|point| (0..self.arms.len()).map(move |arm| (arm, point)));
        all.filter(|&(arm, point)| !self.arms[arm].runs[point].is_empty()).collect()
    }

    /// The value of a quantity of a policy at a point, as [`sample`](fedgenie_experiment::experiment::sample) has it.
    pub fn estimate(&self, arm: usize, point: usize, key: &str) -> Option<Estimate> {
        self.sample(arm, point, key).estimate(self.follow_up(point, key))
    }

    /// A quantity of a policy at a point, by seed.
    pub fn sample(&self, arm: usize, point: usize, key: &str) -> Sample {
        Sample::of(key, &self.arms[arm].runs[point]).with_medians(self.is_median(point, key))
    }

    /// How two policies are compared in a quantity.
    pub fn pairing(&self, [arm, against]: [usize; 2], key: &str) -> Pairing {
        let [mine, theirs] = [arm, against].map(|arm| &self.results[self.arms[arm].folder]);
        Pairing::of(mine, theirs, key)
    }

    /// The differences of every policy at every point to its references, as far as they are defined.
    pub fn differences(&self, key: &str) -> Vec<Difference> {
        let mut all = Vec::new();
        for (arm, point) in self.combinations() {
            for &against in self.arms[arm].references.iter().filter(|&&against| against != arm) {
                let pairing = self.pairing([arm, against], key);
                let [mine, theirs] = [arm, against].map(|arm| self.sample(arm, point, key));
                let is_paired = pairing == Pairing::Paired;
                let found = pairing.difference(&mine, &theirs, self.follow_up(point, key));
                all.extend(found.map(|estimate| Difference { arm, against, point, estimate, is_paired }));
            }
        }
        all
    }

    /// Difference of a policy to itself at another point, paired by seed; `None` for regrets if the sweep changes the
    /// reward.
    pub fn between(&self, arm: usize, [point, against]: [usize; 2], key: &str) -> Option<Estimate> {
        if point == against || key.starts_with("regret.") && self.sweep.moves("regret") {
            return None;
        }
        let [mine, theirs] = [point, against].map(|point| self.sample(arm, point, key));
        mine.minus(&theirs, Sample::follow_up([&mine, &theirs]))
    }

    /// The metrics at the end of runs, each once.
    pub fn metrics(&self) -> Vec<MetricId> {
        let declared: Vec<Metric> = self.measured();
        let names = Names::of(&declared);
        let mut metrics: Vec<MetricId> = Vec::new();
        for name in self.arms.iter().filter_map(|arm| arm.all_runs().next()).flat_map(|run| run.final_metrics.keys()) {
            let id = names.read(name);
            if !metrics.contains(&id) {
                metrics.push(id);
            }
        }
        // As the task declares them: metrics of the global model come before those of clients.
        metrics.sort_by_key(|id| declared.iter().position(|metric| metric.id == *id).unwrap_or(usize::MAX));
        metrics
    }

    /// The metrics that tasks declare, each once.
    pub fn measured(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in self.arms.iter().filter_map(|arm| arm.all_runs().next()).flat_map(|run| &run.measured) {
            if metrics.iter().all(|known| known.id != metric.id) {
                metrics.push(metric.clone());
            }
        }
        metrics
    }

    /// Names of the regret meters in use.
    pub fn meters(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for run in self.arms.iter().flat_map(Arm::all_runs) {
            for (name, value) in run.regret.entries() {
                if value.is_some() && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Targets of the scenarios, each once.
    pub fn targets(&self) -> Vec<&'a Reached> {
        let mut targets: Vec<&Reached> = Vec::new();
        for reached in self.arms.iter().filter_map(|arm| arm.all_runs().next()).flat_map(|run| &run.reached) {
            if targets.iter().all(|known| known.target != reached.target) {
                targets.push(reached);
            }
        }
        targets
    }

    /// The controls of a metric that all points share, as means over seeds, by name; but for the initial model, with
    /// which curves begin.
    pub fn controls(&self, metric: MetricId) -> Vec<(String, f64)> {
        let written = metric.to_string();
        let all = controls::of(self.arms.iter().flat_map(Arm::all_runs)).into_iter();
        let value = |(name, metrics): (String, BTreeMap<String, Estimate>)| Some((name, metrics.get(&written)?.mean));
        all.filter(|(name, _)| name != INITIAL).filter_map(value).collect()
    }

    /// Whether traffic is limited, or metrics are asked for at an amount of it.
    pub fn limits_traffic(&self) -> bool {
        let is_limited = |run: &RunSummary| run.limits_traffic() || !run.at_bytes.is_empty();
        self.arms.iter().flat_map(Arm::all_runs).any(is_limited)
    }

    /// The horizontal axis with which pictures of metrics begin, if the first scenario asks for one.
    pub fn over(&self) -> Option<Over> {
        self.results[self.arms.first()?.folder].summary.report.over
    }

    /// The same quantities, the experiment's main question first.
    pub fn quantities_by_question(&self) -> Vec<Quantity> {
        let questions = self.questions();
        let place =
            |quantity: &Quantity| questions.iter().position(|aim| aim.key == quantity.key).unwrap_or(questions.len());
        let mut all = self.quantities();
        all.sort_by_key(place);
        all
    }
}

/// A regret in words.
pub(super) fn regret_words(meter: &str) -> String {
    format!("cumulative {meter} regret")
}

/// A mean, with its interval if there are enough seeds.
pub(super) fn interval(estimate: &Estimate) -> Interval {
    let ci95 = estimate.ci95.filter(|_| estimate.n >= INTERVAL_SEEDS).map(|ends| ends.map(rounded));
    Interval { value: rounded(estimate.mean), ci95 }
}

/// `1 of 3`, if this is the share of runs that reach a target.
pub(super) fn counted(key: &str, estimate: &Estimate) -> Option<String> {
    let reached = estimate.mean * estimate.n as f64;
    key.starts_with("reached.").then(|| format!("{reached:.0} of {}", estimate.n))
}

/// A number to five significant digits.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// A horizontal coordinate, to seven significant digits.
pub(super) fn rounded_x(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// With a capital letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The name of a figure's files: other characters become `-`.
pub(super) fn id(name: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '_') => letter,
        _ => '-',
    };
    let text: String = name.chars().map(letter).collect();
    let parts: Vec<&str> = text.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}
