//! Statistics by which claims are judged, one file each.

mod bound;
mod contribution_rank;
mod coverage;
mod difference;
mod disagreement;
mod exponent_coverage;
mod genie_loss;
mod groups;
mod growth;
mod laws;
mod overlap_rank;
mod ratio;
mod reach;
mod recovery;
mod sequential;
mod solvers;
mod state_graph;
mod theorem;
mod utility;
mod value;
mod variance_ratio;
mod variance_shares;
mod widening;

use super::laboratory::{Context, Seen};
use fedgenie_core::math::float::{exp, ln};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::{Experiment, RunId, RunSummary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its name among the numbers of the statistic: a policy, a pair, a law.
    pub label: String,
    /// The number.
    pub value: f64,
    /// Its 95 % interval; `None` for a deterministic number.
    pub ci95: Option<[f64; 2]>,
    /// Number of seeds, instances or replications behind it.
    pub n: usize,
    /// Whether the number is deterministic. A deterministic quantity has no interval; its value alone decides the
    /// verdict. A random one without an interval stays undecided.
    pub is_exact: bool,
    /// Of what the interval is Student's, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub student: Option<Student>,
    /// The values that count as no difference, of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<[f64; 2]>,
    /// Note for readers of the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A quantity that a check looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Look {
    /// The scenario's name in the claim.
    pub scenario: String,
    /// The point of its sweep.
    pub point: usize,
    /// Of `summary.json`: `final.test_accuracy`, ….
    pub value: String,
}

impl Look {
    /// Of these.
    pub fn new(scenario: &str, point: usize, value: &str) -> Self {
        Self { scenario: scenario.to_owned(), point, value: value.to_owned() }
    }
}

/// Where the policies are that one is compared with: another scenario, and a point of its sweep.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    scenario: String,
    #[serde(default)]
    point: usize,
}

impl Other {
    const fn place(&self) -> (&str, usize) {
        (self.scenario.as_str(), self.point)
    }

    /// How readers are told of it beside the scenario and point of the policy; `None` where it is the same.
    fn beside(&self, (scenario, point): (&str, usize)) -> Option<String> {
        let at = |of: &str| if self.point == point { of.to_owned() } else { format!("{of}, point {}", self.point) };
        match (self.scenario == scenario, self.point == point) {
            (true, true) => None,
            (true, false) => Some(format!("of point {}", self.point)),
            (false, _) => Some(format!("of {}", at(&self.scenario))),
        }
    }
}

/// Of what an interval is Student's, so that it is known at other levels as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Student {
    /// Of values, or of differences of pairs.
    OfValues,
    /// Of their logarithms.
    OfLogarithms,
}

impl Student {
    /// An interval of half the width times this, around the same middle.
    pub fn narrowed(self, [low, high]: [f64; 2], part: f64) -> [f64; 2] {
        let around = |[low, high]: [f64; 2]| {
            let (middle, half) = ((low + high) / 2.0, part * (high - low) / 2.0);
            [middle - half, middle + half]
        };
        match self {
            Self::OfValues => around([low, high]),
            Self::OfLogarithms => around([ln(low), ln(high)]).map(exp),
        }
    }
}

impl Measured {
    /// With Student's interval of these.
    fn student(self, student: Student) -> Self {
        Self { student: Some(student), ..self }
    }

    fn estimate(label: impl Into<String>, estimate: Estimate) -> Self {
        let Estimate { mean: value, ci95, n } = estimate;
        Self { label: label.into(), value, ci95, n, is_exact: false, student: None, none: None, note: None }
    }

    fn exact(label: impl Into<String>, value: f64, n: usize) -> Self {
        Self { label: label.into(), value, ci95: None, n, is_exact: true, student: None, none: None, note: None }
    }
}

/// A table beside the judged numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// What it shows.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Details {
    fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

/// The result of a statistic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measurement {
    /// The numbers.
    pub measured: Vec<Measured>,
    /// Tables about them.
    pub details: Vec<Details>,
    /// The runs that they come from.
    #[serde(skip)]
    pub seen: BTreeSet<Seen>,
}

impl Measurement {
    /// Numbers, and tables about them.
    const fn new(measured: Vec<Measured>, details: Vec<Details>) -> Self {
        Self { measured, details, seen: BTreeSet::new() }
    }
}

macro_rules! statistics {
    ($($name:literal => $module:ident :: $variant:ident;)+) => {
        /// A statistic and its parameters.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        pub enum StatisticConfig {
            $(#[doc = concat!("Statistic `", $name, "`.")] #[serde(rename = $name)] $variant($module::Config),)+
        }

        impl StatisticConfig {
            /// Computes the numbers.
            ///
            /// # Errors
            /// If a scenario is wrong, a run fails, or parameters do not fit.
            pub fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
                match self { $(Self::$variant(config) => config.measure(context),)+ }
            }
        }
    };
}

/// What a number is, for readers: a quantity of policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// Of `summary.json`: `final.test_accuracy`, ….
    value: String,
    /// The policy that is compared with others: its value minus, or over, that of each; `None` for levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<(String, Comparison)>,
    /// The policies whose levels these are, or those compared with.
    others: Vec<String>,
    /// What each run's number is less, such as `controls.bias.test_rmse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    less: Option<String>,
    /// Where the others are, if their runs are those of another scenario or point; or between which scenarios a gap is
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

/// How policies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Comparison {
    Minus,
    Over,
}

impl Meaning {
    /// The policies whose levels these are, or those compared with.
    pub(super) fn others(&self) -> &[String] {
        &self.others
    }

    /// The policy of the number with this label, which is empty where there is one.
    pub(super) fn policy<'a>(&'a self, label: &'a str) -> &'a str {
        if label.is_empty() { self.others.first().map_or("", String::as_str) } else { label }
    }

    /// Whether this is the same quantity, compared with others in the same way.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.value, &self.of) == (&other.value, &other.of)
    }

    /// The share of runs that reach a target, if its numbers are such.
    pub(super) fn share(&self) -> Option<&str> {
        Some(&*self.value).filter(|value| self.of.is_none() && value.starts_with("reached."))
    }

    /// Of the number with this label, which is empty where there is one.
    pub fn told(&self, label: &str) -> String {
        let other = self.policy(label);
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        let less = self.less.as_ref().map_or_else(String::new, |less| format!(" − {less}"));
        match &self.of {
            None => format!("{}{less} of {other}{place}", self.value),
            Some((policy, Comparison::Minus)) => format!("{}, {policy} − {other}{place}", self.value),
            Some((policy, Comparison::Over)) => format!("{}, {policy} ÷ {other}{place}", self.value),
        }
    }
}

impl StatisticConfig {
    /// What its numbers are, where they are levels of policies, or compare them.
    pub fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Value(config) => Some(config.meaning()),
            Self::Difference(config) => Some(config.meaning()),
            Self::Ratio(config) => Some(config.meaning()),
            Self::Reach(config) => Some(config.meaning()),
            Self::Widening(config) => Some(config.meaning()),
            _ => None,
        }
    }

    /// Whether its intervals are valid where seeds are added until a number is decided.
    pub fn suits_looks(&self) -> bool {
        match self {
            Self::Value(config) => config.suits_looks(),
            Self::Difference(_) | Self::Ratio(_) | Self::Widening(_) => true,
            _ => false,
        }
    }

    /// The quantities that policies are compared by, where it compares policies at the end of runs.
    pub fn looks(&self) -> Vec<Look> {
        match self {
            Self::Value(config) => config.looks(),
            Self::Difference(config) => config.looks(),
            Self::Ratio(config) => config.looks(),
            Self::Widening(config) => config.looks(),
            _ => Vec::new(),
        }
    }
}

statistics! {
    "value" => value::Value;
    "difference" => difference::Difference;
    "ratio" => ratio::Ratio;
    "reach" => reach::Reach;
    "overlap-rank" => overlap_rank::OverlapRank;
    "recovery" => recovery::Recovery;
    "widening" => widening::Widening;
    "variance-ratio" => variance_ratio::VarianceRatio;
    "variance-shares" => variance_shares::VarianceShares;
    "growth" => growth::Growth;
    "contribution-rank" => contribution_rank::ContributionRank;
    "bound" => bound::Bound;
    "theorem-1" => theorem::Theorem;
    "genie-loss" => genie_loss::GenieLoss;
    "disagreement" => disagreement::Disagreement;
    "solvers" => solvers::Solvers;
    "state-graph" => state_graph::StateGraph;
    "group-selections" => groups::Groups;
    "utility-selection" => utility::Utility;
    "coverage" => coverage::Coverage;
    "exponent-coverage" => exponent_coverage::ExponentCoverage;
    "laws" => laws::Laws;
    "sequential" => sequential::Sequential;
}

fn usage<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Usage(message.into()))
}

/// A number of a run: `regret.mean`, `final.test_loss`, `virtual_time_s`, …, at its end or at a virtual time before.
fn number(run: &RunSummary, value: &str, at_s: Option<f64>) -> Result<f64, Error> {
    if let Some(at) = at_s.filter(|&at| at > run.virtual_time_s) {
        return usage(format!("{at} s is after the end of a run of {} at {} s", run.arm, run.virtual_time_s));
    }
    let found = match at_s {
        None => run.number(value).or_else(|| control(run, value)),
        Some(at) => match value.split_once('.') {
            Some(("regret", meter)) => value_at(run, at, |point| {
                point.regret.entries().into_iter().find(|(name, _)| *name == meter).and_then(|(_, value)| value)
            }),
            Some(("final", metric)) => value_at(run, at, |point| {
                point.metrics.iter().find(|(id, _)| id.is_called(metric)).map(|&(_, value)| value)
            }),
            _ => return usage(format!("{value:?} is not known at a virtual time; regret.METER and final.METRIC are")),
        },
    };
    match (found, at_s) {
        (Some(found), _) => Ok(found),
        (None, Some(at)) if run.number(value).is_some() => {
            usage(format!("{value:?} of {} is not known at {at} s, before the first round that has it", run.arm))
        }
        _ => usage(format!(
            "there is no {value:?}; there are {}",
            run.numbers().into_keys().collect::<Vec<_>>().join(", ")
        )),
    }
}

/// The number of a control: `controls.NAME.METRIC`.
fn control(run: &RunSummary, value: &str) -> Option<f64> {
    let (name, metric) = value.strip_prefix("controls.")?.split_once('.')?;
    run.controls.get(name)?.get(metric).copied()
}

/// Refuses an empty list: such a check would check nothing.
fn some(list: &[String], key: &str) -> Result<(), Error> {
    if list.is_empty() { usage(format!("{key} is empty: nothing would be checked")) } else { Ok(()) }
}

/// The last value up to a virtual time.
fn value_at(
    run: &RunSummary,
    at_s: f64,
    value: impl Fn(&fedgenie_experiment::experiment::CurvePoint) -> Option<f64>,
) -> Option<f64> {
    run.curve.iter().take_while(|point| point.time_s <= at_s).filter_map(value).last()
}

/// Four significant digits.
pub(super) fn shown(value: f64) -> String {
    fedgenie_experiment::experiment::number(value)
}

/// Spending of runs until a target, by seed.
pub(super) fn sample(key: &str, runs: &[&RunSummary]) -> Result<Sample, Error> {
    let found = Sample::of(key, &runs.iter().map(|&run| (run.seed, run)).collect());
    // An unknown target is refused with the known ones.
    if let Some(run) = runs.first().filter(|_| found.is_empty()) {
        number(run, key, None)?;
    }
    Ok(found)
}

/// The upper end of an interval that has none: a number that files can hold.
pub(super) const NO_END: f64 = f64::MAX;

pub(super) fn shown_interval(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, NO_END]) => format!("{} [{}, ∞]", shown(value), shown(low)),
        Some([low, high]) => format!("{} [{}, {}]", shown(value), shown(low), shown(high)),
        None => shown(value),
    }
}

/// The planned runs of one policy of an experiment.
///
/// # Errors
/// If the experiment has no such policy.
fn runs_of(experiment: &Experiment, policy: &str) -> Result<Vec<RunId>, Error> {
    let is_its = |run: &RunId| experiment.points[run.point].1.arms[run.arm].label == policy;
    let runs: Vec<RunId> = experiment.runs().into_iter().filter(is_its).collect();
    if runs.is_empty() {
        return usage(format!("there is no policy {policy:?}"));
    }
    Ok(runs)
}
