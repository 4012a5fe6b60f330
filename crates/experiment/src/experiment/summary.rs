//! The results of an experiment: one row per run, one per policy and point.

mod common;
mod energy;
mod numbers;
mod points;
mod read;

pub(super) use common::Common;
pub use energy::EnergySummary;
pub use numbers::PREFIX_INTERSECTION;
pub use points::PointComparison;
pub(super) use read::read_metrics;

use super::answer::Answer;
use super::asked::Asked;
use super::bounded::BoundedRegret;
use super::controls::{self, Controls};
use super::ended::Ended;
use super::estimates::{FollowUps, differences, estimates, median_differences, medians_of, untils};
use super::heavy::MedianOf;
use super::measured::{Named, by_name, cluster_numbers};
use super::recorded::RecordedRound;
use super::until::{BySeed, Until};
use super::watch::{Converged, Watch, Watched};
use super::{Curve, CurvePoint, Incomplete, Reached, RunId};
use crate::scenario::report::ReportConfig;
use crate::scenario::{Point, Sweep, UntilDecided};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::{Metric, MetricId};
use fedgenie_core::record::Regret;
use fedgenie_learning::algorithm::privacy::PrivacyEntry;
use fedgenie_learning::data::partition::Skew;
use fedgenie_simulator::metrics::{Outcomes, RunMetrics, gini};
use fedgenie_simulator::run::{Run, RunError};
use read::{asked, read_at_bytes, read_controls};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// From the server to clients.
    pub down_bytes: u64,
    /// From clients to the server.
    pub up_bytes: u64,
}

/// The two digests, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestPair {
    /// Events, selections, latencies, regret.
    pub timeline: String,
    /// Trained values.
    pub model: String,
}

/// One run's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The policy's label.
    pub arm: String,
    /// The settings that the policy overrides: path and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, String>,
    /// Whether the policy was shown the truth, as the genie is; `None` in folders of versions without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees_truth: Option<bool>,
    /// The seed.
    pub seed: u64,
    /// Index of the sweep's point.
    pub point: usize,
    /// Rounds played.
    pub rounds: u32,
    /// Virtual time at the end, in seconds.
    pub virtual_time_s: f64,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Digests.
    pub digest: DigestPair,
    /// Metrics of the final model; with cluster models also `active_clusters` and `reassignments`, with `last` of
    /// `[evaluate]` also `server_M_mean_last` and so on.
    #[serde(rename = "final", deserialize_with = "read_metrics")]
    pub final_metrics: BTreeMap<String, f64>,
    /// The best value of each metric of the task over the rounds that were evaluated.
    #[serde(default, skip_serializing_if = "Named::is_empty", deserialize_with = "read_metrics")]
    pub best: Named,
    /// By the bytes of `at_traffic` of `[evaluate]`, the metrics of the last evaluated round by whose end clients had
    /// moved at most these, both ways together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "read_at_bytes")]
    pub at_bytes: BTreeMap<u64, Named>,
    /// Cumulative regret.
    pub regret: Regret,
    /// Bytes moved.
    pub traffic: Traffic,
    /// Bytes that clients may move, both ways together, where they are limited by a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// Bytes moved between the cloud and edge servers, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_traffic: Option<Traffic>,
    /// Virtual seconds that clients spent computing.
    pub compute_s: f64,
    /// Virtual seconds that clients spent computing for probes and for charged evaluations, all clients together; no
    /// part of `compute_s`.
    #[serde(default)]
    pub probe_compute_s: f64,
    /// The part of `compute_s` whose result was never used.
    pub wasted_compute_s: f64,
    /// Bytes sent to clients for jobs whose update was never used.
    #[serde(default)]
    pub wasted_down_bytes: u64,
    /// Bytes that such jobs' clients sent.
    #[serde(default)]
    pub wasted_up_bytes: u64,
    /// Jobs dispatched.
    pub dispatched: u64,
    /// Of the jobs dispatched, those that are not in the log that clients replay; `None` if they replay none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<u64>,
    /// Jobs that arrived in their round.
    pub arrived: u64,
    /// The number of clients; 0 in files without it.
    #[serde(default)]
    pub clients: usize,
    /// Means over selections of cohort, candidates and selected clients, if there were selections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Clients selected at least once.
    pub unique_clients: usize,
    /// Jain's index of selection counts: 1 if all are alike, 1/K if one client gets everything.
    pub jain: f64,
    /// Gini index of selection counts: 0 if all are alike, 1 − 1/K if one client gets everything.
    #[serde(default)]
    pub gini: f64,
    /// The outcomes of the jobs of closed rounds.
    #[serde(default)]
    pub outcomes: Outcomes,
    /// Selections per group, where groups are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_selections: Option<serde_json::Map<String, serde_json::Value>>,
    /// How unevenly the seed's training examples are spread over clients, for a task that trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Skew>,
    /// The accuracy of each server's initial model, where policies ask for the accuracy of its models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_edge_accuracy: Option<Vec<Option<f64>>>,
    /// Each edge server's metrics under its model in the last evaluated round, or their means over the rounds that
    /// `last` of `[evaluate]` asks for: by the metric's name, from server 0 on; `None` without data to measure on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, Vec<Option<f64>>>,
    /// Sizes of the data, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, u64>,
    /// The graph of each client in numbers, where clients have graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<serde_json::Value>,
    /// Metrics that are reached without learning, by the name of the control; in no digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "read_controls")]
    pub controls: BTreeMap<String, BTreeMap<String, f64>>,
    /// When the targets of `[evaluate]` were first reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<Reached>,
    /// When the run converged, if `converged` of `[evaluate]` asks; written as null where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "asked")]
    pub converged: Option<Option<Converged>>,
    /// Settings that the scenario leaves open, or that did not hold for the whole run: path, and the effective value.
    #[serde(default, skip_serializing_if = "common::is_empty")]
    pub effective: Arc<BTreeMap<String, serde_json::Value>>,
    /// Clients whose latencies have an infinite mean or variance, in sentences, where nothing limits the waiting of
    /// rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heavy_tails: Vec<String>,
    /// What the accountant of privacy says at the end, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacyEntry>,
    /// Energy of batteries, where clients have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergySummary>,
    /// Warnings about this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The metrics of the run, as its task declares them; not part of `summary.json`.
    #[serde(default, skip_serializing)]
    pub measured: Vec<Metric>,
    /// Its recorded rounds, if the run was carried out from its beginning with room for them in memory; in no file.
    #[serde(skip)]
    pub recorded: Option<Arc<[RecordedRound]>>,
    /// The run's course, thinned; not part of `summary.json`.
    #[serde(skip)]
    pub curve: Vec<CurvePoint>,
    /// The regret beside the bound that a theorem states of the policy in its world; in no digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundedRegret>,
    /// Sums over its rounds; not part of `summary.json`.
    #[serde(default, skip_serializing)]
    pub metrics: RunMetrics,
}

/// A run's summary with its course, as written to its folder.
#[derive(Debug, Serialize)]
pub struct RunWithCurve<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    curve: Vec<CurvePoint<Map<String, Value>>>,
    measured: &'a [Metric],
    metrics: &'a RunMetrics,
}

impl RunSummary {
    pub(super) fn of(
        id: &RunId,
        label: &str,
        mut run: Run<'_>,
        curve: Curve,
        (ended, watch): (Ended, Watch<'_>),
    ) -> Result<Self, RunError> {
        let (privacy, counts) = (run.privacy(), run.counts());
        let mut summary = Self {
            arm: label.to_owned(),
            with: BTreeMap::new(),
            sees_truth: None,
            seed: id.seed,
            point: id.point,
            rounds: run.round().0,
            virtual_time_s: run.now().seconds(),
            ended: Some(ended),
            digest: DigestPair { timeline: run.digests().timeline.hex(), model: run.digests().model.hex() },
            final_metrics: BTreeMap::new(),
            best: Named::new(),
            at_bytes: BTreeMap::new(),
            regret: run.regret(),
            traffic: Traffic::default(),
            budget_bytes: None,
            edge_traffic: None,
            compute_s: 0.0,
            probe_compute_s: 0.0,
            wasted_compute_s: 0.0,
            wasted_down_bytes: 0,
            wasted_up_bytes: 0,
            dispatched: 0,
            drawn: run.drawn(),
            arrived: 0,
            clients: counts.len(),
            asked: Asked::of(run.offers(), run.accounts(), counts),
            unique_clients: run.participation().unique() as usize,
            jain: run.participation().jain(),
            gini: gini(counts),
            outcomes: Outcomes::default(),
            group_selections: run.total_group_selections(),
            partition: run.skew(),
            initial_edge_accuracy: run.initial_edge_accuracy(),
            servers: BTreeMap::new(),
            data: BTreeMap::new(),
            graph: None,
            controls: BTreeMap::new(),
            reached: Vec::new(),
            converged: None,
            effective: Arc::default(),
            heavy_tails: Vec::new(),
            privacy,
            energy: None,
            warnings: Vec::new(),
            curve: curve.into_points(),
            measured: Vec::new(),
            recorded: None,
            bound: None,
            metrics: RunMetrics { clients: run.clients().map(Box::new), ..RunMetrics::default() },
        };
        let clusters: Vec<_> = cluster_numbers(&run).collect();
        let at = (run.round(), run.now());
        let (metrics, accounts) = run.finish()?;
        let Watched { reached, converged, best, at_bytes } = watch.end(&metrics, at, &accounts);
        (summary.reached, summary.converged, summary.best, summary.at_bytes) = (reached, converged, best, at_bytes);
        let all = metrics.into_iter().chain(clusters);
        summary.final_metrics = by_name(all);
        summary.traffic = Traffic { down_bytes: accounts.down_bytes, up_bytes: accounts.up_bytes };
        let (down_bytes, up_bytes) = (accounts.edge_down_bytes, accounts.edge_up_bytes);
        summary.edge_traffic = (down_bytes > 0 || up_bytes > 0).then_some(Traffic { down_bytes, up_bytes });
        summary.compute_s = accounts.compute.seconds();
        summary.probe_compute_s = accounts.probe_compute.seconds();
        summary.wasted_compute_s = accounts.wasted_compute.seconds();
        (summary.wasted_down_bytes, summary.wasted_up_bytes) = (accounts.wasted_down_bytes, accounts.wasted_up_bytes);
        summary.dispatched = accounts.dispatched;
        summary.drawn = summary.drawn.map(|_| accounts.drawn);
        (summary.arrived, summary.energy) = (accounts.arrived, accounts.energy.map(EnergySummary::from));
        Ok(summary)
    }

    /// The summary with the run's course.
    pub fn with_curve(&self) -> RunWithCurve<'_> {
        let named = |metrics: Vec<(MetricId, f64)>| -> Map<String, Value> {
            metrics.into_iter().map(|(name, value)| (name.to_string(), value.into())).collect()
        };
        RunWithCurve {
            summary: self,
            curve: self.curve.iter().map(|point| point.clone().map_metrics(named)).collect(),
            measured: &self.measured,
            metrics: &self.metrics,
        }
    }

    /// Whether bytes are what ended it.
    pub fn limits_traffic(&self) -> bool {
        self.ended.is_some_and(Ended::is_of_bytes)
    }
}

/// A policy at a point, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The policy's label.
    pub arm: String,
    /// The settings that the policy overrides at this point: path and value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, String>,
    /// Index of the sweep's point.
    pub point: usize,
    /// Seeds that completed.
    pub runs: usize,
    /// Means and intervals over seeds, by name: `virtual_time_s`, `regret.mean`, `final.test_loss`, … Spending until a
    /// target (`time_to.TARGET`, …) has restricted means; it is left out where no run arrives.
    pub values: BTreeMap<String, Estimate>,
    /// Medians of times, where runs met latencies of infinite mean or variance; shown in the place of means then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub medians: BTreeMap<String, MedianOf>,
    /// By the names of spending until a target: number of arrivals, horizon, median.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<String, Until>,
    /// Differences to the reference among policies, paired by seed; `None` for the reference itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paired: Option<Comparison>,
}

/// Paired differences between two policies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The policy compared with.
    pub against: String,
    /// Seeds that both have.
    pub pairs: usize,
    /// This policy minus that one, by name.
    pub differences: BTreeMap<String, Estimate>,
    /// Medians of the differences of times, where there are medians of times.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub medians: BTreeMap<String, MedianOf>,
}

impl Comparison {
    /// The shown difference: of medians where there are any.
    pub fn difference(&self, name: &str) -> Option<Estimate> {
        let median = self.medians.get(name).map(|median| Estimate::from(*median));
        median.or_else(|| self.differences.get(name).copied())
    }
}

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The sweep's points: paths and values.
    pub points: Vec<BTreeMap<String, String>>,
    /// The quantity that counts, if `[report] aim` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<String>,
    /// Which policy or setting is best, in the order in which it is told.
    pub answers: Vec<Answer>,
    /// All runs: of a hundred thousand there is no room for two lists.
    pub runs: Arc<Vec<RunSummary>>,
    /// Runs without results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<Incomplete>,
    /// All policies and points.
    pub arms: Vec<ArmSummary>,
    /// The controls at each point.
    pub controls: Vec<Controls>,
    /// For each policy, every point against the reference among points and against its neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<PointComparison>,
    /// The axes of the sweep, and its reference.
    #[serde(skip)]
    pub sweep: Sweep,
    /// Wishes about reports.
    #[serde(skip)]
    pub report: ReportConfig,
    /// The plan by which seeds are added until the first answer is decided.
    #[serde(skip)]
    pub until: Option<UntilDecided>,
}

impl Summary {
    /// Summarises runs; `labels` gives the order of policies, which are compared with the one called `reference`, or
    /// with the first without it, in the quantity `aim`, if `report` names them. Runs without results are added
    /// elsewhere.
    /// `ask` is [`answers`](super::answers::answers).
    pub fn new(
        (scenario, title): (&str, Option<&str>),
        (points, sweep): (&[Point], Sweep),
        (labels, report, until): (&[String], ReportConfig, Option<UntilDecided>),
        runs: Vec<RunSummary>,
        ask: fn(&Self) -> Vec<Answer>,
    ) -> Self {
        let named = report.reference.as_ref().and_then(|name| labels.iter().find(|label| *label == name));
        let reference = named.or(labels.first());
        let of = |label: &str, point: usize| -> BySeed<'_> {
            let chosen = runs.iter().filter(|run| run.point == point && run.arm == label);
            chosen.map(|run| (run.seed, run)).collect()
        };
        let mut arms = Vec::new();
        for point in 0..points.len() {
            let follow_ups = FollowUps::of(runs.iter().filter(|run| run.point == point));
            let theirs = reference.map(|label| (label, of(label, point)));
            for label in labels {
                let mine = of(label, point);
                if mine.is_empty() {
                    continue;
                }
                let other = theirs.as_ref().filter(|(against, _)| *against != label);
                let paired = other.map(|(against, theirs)| Comparison {
                    against: (*against).clone(),
                    pairs: mine.keys().filter(|&seed| theirs.contains_key(seed)).count(),
                    differences: differences(&mine, theirs, &follow_ups),
                    medians: median_differences(&mine, theirs, &follow_ups),
                });
                let with = mine.values().next().map(|run| run.with.clone()).unwrap_or_default();
                let (values, until) = (estimates(&mine, &follow_ups), untils(&mine, &follow_ups));
                let (arm, runs) = (label.clone(), mine.len());
                let medians = medians_of(&mine, &follow_ups);
                arms.push(ArmSummary { arm, with, point, runs, values, medians, until, paired });
            }
        }
        let mut compared = Vec::new();
        for label in labels.iter().filter(|_| points.len() > 1) {
            for point in 0..points.len() {
                let reference = Some((None, sweep.reference)).filter(|_| point != sweep.reference);
                let before = sweep.before(point).into_iter().map(|(axis, other)| (Some(axis), other));
                for (axis, against) in reference.into_iter().chain(before) {
                    let [mine, theirs] = [point, against].map(|point| of(label, point));
                    let follow_ups = FollowUps::of(mine.values().chain(theirs.values()).copied());
                    let mut differences = differences(&mine, &theirs, &follow_ups);
                    // A changed reward has another unit.
                    differences.retain(|key, _| !(key.starts_with("regret.") && sweep.moves("regret")));
                    let along = axis.map(|axis| sweep.axes[axis].paths.clone());
                    if !differences.is_empty() {
                        let medians = median_differences(&mine, &theirs, &follow_ups);
                        let arm = label.clone();
                        compared.push(PointComparison { arm, point, against, along, differences, medians });
                    }
                }
            }
        }
        let controls =
            (0..points.len()).map(|point| controls::of(runs.iter().filter(|run| run.point == point))).collect();
        let points = points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
        let (scenario, title) = (scenario.to_owned(), title.map(str::to_owned));
        let (aim, answers, incomplete) = (report.aim.clone(), Vec::new(), Vec::new());
        let summary = Self {
            scenario,
            title,
            points,
            aim,
            answers,
            runs: Arc::new(runs),
            incomplete,
            arms,
            controls,
            compared,
            sweep,
            report,
            until,
        };
        Self { answers: ask(&summary), ..summary }
    }
}
