//! An answer of an experiment: what is best, and what is not told apart from it.

use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::Better;
use serde::Serialize;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which policy.
    Policy,
    /// Which point of the sweep.
    Setting,
}

/// A candidate: the label of a policy, or the index of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Name {
    /// A policy.
    Label(String),
    /// A point.
    Point(usize),
}

/// A candidate beside the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    /// Which.
    pub name: Name,
    /// Its value minus the best's.
    pub difference: f64,
    /// The 95 % interval of the difference; `None` for a single seed. Where seeds are added until an answer is decided,
    /// the interval with which that is decided, which misses less often: see [`Looked::miss`].
    pub ci95: Option<[f64; 2]>,
    /// Its value divided by the best's; `None` unless both are above 0.
    pub ratio: Option<f64>,
    /// About how many seeds would tell the two apart, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds_needed: Option<u64>,
    /// Its seeds, if it got no more since it was surely worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u32>,
    /// Its difference to the best in another quantity: the metric of a target, or the time of as many rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// The difference with the number of pairs.
    #[serde(skip)]
    pub found: Estimate,
}

/// A difference in a quantity beside the one that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The quantity: a key of `values`.
    pub by: String,
    /// The quantity in words.
    pub quantity: String,
    /// The candidate's value minus the best's.
    #[serde(flatten)]
    pub found: Estimate,
}

/// A candidate without a full set of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partial {
    /// Which.
    pub name: Name,
    /// Its runs that arrive, or have the quantity.
    pub arrived: usize,
    /// Its runs.
    pub runs: usize,
}

/// Who comes nearest to a target that no run reaches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// The policy.
    pub policy: String,
    /// Its point.
    pub point: usize,
    /// The target, as in `by`.
    #[serde(skip)]
    pub target: String,
    /// The best value of the target's metric: a key of `values`.
    pub by: String,
    /// That in words.
    pub quantity: String,
    /// Its mean over seeds.
    pub value: Estimate,
}

/// How far seeds were added until an answer is decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Looked {
    /// The number of the look, from 1.
    pub look: usize,
    /// The most looks.
    pub of: usize,
    /// Seeds so far.
    pub seeds: u32,
    /// The share of intervals that may miss, of each difference at this look.
    pub miss: f64,
    /// The largest difference that counts as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Whether each other is told apart from the best, equal to it, or was dropped.
    pub decided: bool,
}

/// An answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What is asked for.
    pub question: Question,
    /// The point at which policies are compared; `None` without a sweep, and for settings.
    pub point: Option<usize>,
    /// The policy whose settings are compared; `None` for policies.
    pub policy: Option<String>,
    /// Where only candidates that are not told apart in another quantity are compared: that quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<String>,
    /// That quantity in words.
    #[serde(skip)]
    pub among_words: String,
    /// The quantity: a key of `values`.
    pub by: String,
    /// Whether `by` is the time to the level of a metric that all these runs reach, which is no target of the scenario:
    /// `values` has the key if it is made one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_common_level: bool,
    /// The quantity in words.
    pub quantity: String,
    /// Its unit, empty for a pure number.
    pub unit: &'static str,
    /// Which values are better.
    pub better: Better,
    /// Whether candidates are ranked.
    pub ranked: bool,
    /// Why they are not.
    pub reason: Option<String>,
    /// Settings for `--set` under which they could be.
    pub remedy: Vec<String>,
    /// The best.
    pub best: Option<Name>,
    /// Its mean over seeds.
    pub value: Option<Estimate>,
    /// The end of the shortest watch of a run without arrival, with which such runs count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Whether the best setting is the `least` or the `most` that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<&'static str>,
    /// Who comes nearest, where the quantity is the time to a target that no run reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    /// Candidates that are not told apart from the best; where seeds are added until an answer is decided and a margin
    /// is given, those whose difference lies within it.
    pub equal: Vec<Name>,
    /// How often the runs were looked at, where seeds are added until an answer is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looked>,
    /// All others with as many seeds, the nearest first.
    pub others: Vec<Other>,
    /// Candidates of which not all runs arrive, or have the quantity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Partial>,
    /// Policies that see the truth, which are no candidates in a regret, and their means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sees_truth: Vec<(String, Option<Estimate>)>,
}
