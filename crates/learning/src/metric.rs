//! Metrics, one file each: name, direction, range, unit and formula.
//!
//! # Definition
//! A metric is a [`Definition`]: a [`Measure`] and a [`Formula`]. The formula's variant names its input: sums over
//! examples, scores of classes, errors of predicted numbers, a ranking, or the age of items and updates. A task that
//! has these names the metrics that it measures as a list of definitions; the order of the list is the order of the
//! values. Tasks of labelled rows and of ratings on graphs also measure the metrics that a scenario names in `metrics`:
//! see [`of_rows`] and [`of_known`].
//!
//! [`CATALOGUE`] lists all of them, for `fedgenie list metric` and `fedgenie describe metric/NAME`.

pub mod accuracy;
pub mod auc;
pub mod f1;
pub mod f1_at;
pub mod hr;
mod inputs;
pub mod item_staleness;
pub mod items_updated;
pub mod longtail_updated;
pub mod loss;
pub mod mae;
pub mod ndcg;
pub mod precision;
pub mod proxy_rank_correlation;
pub mod ranked;
pub mod recall;
pub mod rmse;
pub mod rmse_seen;
pub mod rmse_unseen;

pub use inputs::{Errors, Items, Known, Scores};
pub use ranked::{AtCutoff, Ranked};

use crate::model::{Evaluation, Outputs};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::{Better, Measure};

/// A metric: its measure and its formula.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Name, direction, range and unit. A name that ends in `_k` is of a cutoff `k`.
    pub measure: Measure,
    /// How it is worked out.
    pub formula: Formula,
}

/// A metric's formula; the variant names its input.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// From sums over examples.
    Sums(fn(&Evaluation) -> f64),
    /// From the scores of all classes for each example.
    Scores(fn(&Scores<'_>) -> f64),
    /// From sums over the errors of predicted numbers.
    Errors(fn(&Errors) -> f64),
    /// The same, of ratings of items with a training rating.
    Seen(fn(&Errors) -> f64),
    /// The same, of ratings of items without one.
    Unseen(fn(&Errors) -> f64),
    /// From the places of a user's relevant items among all candidates.
    Ranking(fn(&Ranked<'_>) -> f64),
    /// From the relevant items among the first `k` candidates.
    Cutoff(fn(&AtCutoff<'_>) -> f64),
    /// From the rounds in which rows of items were last moved.
    Items(fn(&Items<'_>) -> f64),
    /// From two lists of numbers of the same clients.
    Pairs(fn(&[f64], &[f64]) -> f64),
}

/// Declares [`CATALOGUE`], one line for each metric.
macro_rules! metrics {
    ($($module:ident::$name:ident in $file:literal;)+) => {
        /// All metrics.
        pub static CATALOGUE: &[Listed] =
            &[$(Listed { definition: &$module::$name, source: include_str!($file) },)+];
    };
}

metrics! {
    loss::LOSS in "metric/loss.rs";
    accuracy::ACCURACY in "metric/accuracy.rs";
    f1::F1 in "metric/f1.rs";
    rmse::RMSE in "metric/rmse.rs";
    rmse_seen::RMSE_SEEN in "metric/rmse_seen.rs";
    rmse_unseen::RMSE_UNSEEN in "metric/rmse_unseen.rs";
    mae::MAE in "metric/mae.rs";
    auc::AUC in "metric/auc.rs";
    hr::HR in "metric/hr.rs";
    ndcg::NDCG in "metric/ndcg.rs";
    recall::RECALL in "metric/recall.rs";
    precision::PRECISION in "metric/precision.rs";
    f1_at::F1 in "metric/f1_at.rs";
    item_staleness::ITEM_STALENESS in "metric/item_staleness.rs";
    items_updated::ITEMS_UPDATED in "metric/items_updated.rs";
    longtail_updated::LONGTAIL_UPDATED in "metric/longtail_updated.rs";
    proxy_rank_correlation::PROXY_RANK_CORRELATION in "metric/proxy_rank_correlation.rs";
}

/// A metric of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The metric.
    pub definition: &'static Definition,
    /// Source of its file, which opens with its documentation.
    pub source: &'static str,
}

impl Listed {
    /// Direction, range and unit in a sentence, then the metric's input in another.
    pub fn properties(&self) -> String {
        let Definition { measure, formula } = self.definition;
        let better = match measure.better {
            Better::Lower => "Smaller values are better",
            Better::Higher => "Larger values are better",
        };
        let range = match measure.range {
            (least, most) if least.is_finite() && most.is_finite() => format!(", from {least} to {most}"),
            (least, _) if least.is_finite() => format!(", from {least} on"),
            _ => String::new(),
        };
        let unit = if measure.unit.is_empty() { String::new() } else { format!(", in {}", measure.unit) };
        format!("{better}{range}{unit}. Needs {}.", formula.needs())
    }
}

impl Formula {
    /// Its input.
    pub const fn needs(&self) -> &'static str {
        match self {
            Self::Sums(_) => "sums over examples",
            Self::Scores(_) => "scores of all classes for each example",
            Self::Errors(_) => "errors of predicted numbers",
            Self::Seen(_) => "errors of predicted ratings, of items with a training rating",
            Self::Unseen(_) => "errors of predicted ratings, of items without a training rating",
            Self::Ranking(_) => "a ranking of all candidates for each user",
            Self::Cutoff(_) => "a ranking of all candidates for each user, and a cutoff k",
            Self::Items(_) => "the rounds in which rows of items were last moved",
            Self::Pairs(_) => "two lists of numbers of the same clients",
        }
    }
}

impl Definition {
    /// The measure at a cutoff: `hr_20` of `hr_k`.
    pub fn at(&self, cutoff: usize) -> Measure {
        let name = self.measure.name;
        self.measure.named(&format!("{}{cutoff}", name.strip_suffix('k').unwrap_or(name)))
    }

    /// Whether it needs a model's outputs for each example, and not only sums.
    pub const fn needs_outputs(&self) -> bool {
        matches!(self.formula, Formula::Scores(_) | Formula::Errors(_))
    }

    /// The value on examples; NaN if these lack its input. `outputs` are present if some metric needs them.
    pub fn of_examples(&self, sums: &Evaluation, outputs: Option<&Outputs>) -> f64 {
        match (self.formula, outputs) {
            (Formula::Sums(value), _) => value(sums),
            (Formula::Scores(value), Some(outputs)) => {
                Scores::of(outputs).map_or(f64::NAN, |scores| one_nan(value(&scores)))
            }
            (Formula::Errors(value), Some(outputs)) => one_nan(value(&Errors::of_outputs(outputs))),
            _ => f64::NAN,
        }
    }

    /// The value of errors of predicted ratings; NaN of another metric.
    pub fn of_ratings(&self, errors: &Known) -> f64 {
        one_nan(match self.formula {
            Formula::Errors(value) => value(&errors.all),
            Formula::Sums(value) => value(&errors.all.squared()),
            Formula::Seen(value) => value(&errors.seen),
            Formula::Unseen(value) => value(&errors.unseen),
            _ => f64::NAN,
        })
    }

    /// The value of a user's ranking; NaN of another metric.
    pub fn of_ranking(&self, ranked: &Ranked<'_>) -> f64 {
        if let Formula::Ranking(value) = self.formula { value(ranked) } else { f64::NAN }
    }

    /// The value of a user's ranking at a cutoff; NaN of another metric.
    pub fn at_cutoff(&self, at: &AtCutoff<'_>) -> f64 {
        if let Formula::Cutoff(value) = self.formula { value(at) } else { f64::NAN }
    }

    /// The value of rows of items; NaN of another metric.
    pub fn of_items(&self, items: &Items<'_>) -> f64 {
        if let Formula::Items(value) = self.formula { value(items) } else { f64::NAN }
    }

    /// The value of two lists; NaN of another metric.
    pub fn of_pairs(&self, one: &[f64], other: &[f64]) -> f64 {
        if let Formula::Pairs(value) = self.formula { value(one, other) } else { f64::NAN }
    }
}

/// The bits of a NaN that comes out of an operation are not defined; records have one and the same.
const fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// The metric of the catalogue that a user names.
pub fn named(name: &str) -> Option<&'static Definition> {
    CATALOGUE.iter().map(|listed| listed.definition).find(|definition| definition.measure.name == name)
}

/// The metrics that a scenario may add to those of a task of labelled rows with classes, or with numbers.
pub fn of_rows(classifies: bool) -> impl Iterator<Item = &'static Definition> {
    let fits = move |definition: &&'static Definition| match definition.formula {
        Formula::Scores(_) => classifies,
        Formula::Errors(_) => !classifies,
        _ => false,
    };
    CATALOGUE.iter().map(|listed| listed.definition).filter(fits)
}

/// The metrics that a scenario may add to those of ratings on graphs: of items that are known, and of others.
pub fn of_known() -> impl Iterator<Item = &'static Definition> {
    let fits = |definition: &&'static Definition| matches!(definition.formula, Formula::Seen(_) | Formula::Unseen(_));
    CATALOGUE.iter().map(|listed| listed.definition).filter(fits)
}

/// The metrics that a scenario adds by their names, of those that it may add.
///
/// # Errors
/// A complaint about a name that is not among these, or listed twice.
pub fn added(
    names: &[String],
    among: impl Iterator<Item = &'static Definition>,
) -> Result<Vec<&'static Definition>, Complaint> {
    let among: Vec<&'static Definition> = among.collect();
    let mut found: Vec<&'static Definition> = Vec::new();
    for name in names {
        let known = |metric: &&'static Definition| metric.measure.name == name;
        let Some(metric) = among.iter().copied().find(known) else {
            let known: Vec<&str> = among.iter().map(|metric| metric.measure.name).collect();
            let message = format!("found {name:?}; expected names among {}", known.join(", "));
            return Err(Complaint::new("metrics", message));
        };
        if found.iter().any(known) {
            return Err(Complaint::new("metrics", format!("{name:?} is listed twice")));
        }
        found.push(metric);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_a_cutoff_stands_behind_them() {
        let names: Vec<&str> = CATALOGUE.iter().map(|listed| listed.definition.measure.name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} is listed twice");
            let definition = named(name).unwrap();
            assert_eq!(definition.measure.name, *name);
            assert_eq!(name.ends_with("_k"), matches!(definition.formula, Formula::Cutoff(_)), "{name}");
        }
        assert_eq!(hr::HR.at(20).name, "hr_20");
        assert!(named("nothing").is_none());
        let losses = CATALOGUE.iter().filter(|listed| listed.definition.measure.is_loss);
        assert_eq!(losses.map(|listed| listed.definition.measure.name).collect::<Vec<_>>(), ["loss"]);
    }

    #[test]
    fn properties_are_sentences() {
        let of = |name: &str| {
            CATALOGUE.iter().find(|listed| listed.definition.measure.name == name).map(Listed::properties).unwrap()
        };
        assert_eq!(of("loss"), "Smaller values are better, from 0 on. Needs sums over examples.");
        let f1 = "Larger values are better, from 0 to 1. Needs scores of all classes for each example.";
        assert_eq!(of("f1"), f1);
        assert!(of("rmse").starts_with("Smaller values are better, from 0 on, in units of the number. Needs errors"));
        assert!(of("proxy_rank_correlation").contains("from -1 to 1"));
    }

    #[test]
    fn metrics_of_rows_are_those_of_their_targets() {
        let has = |classifies, name| of_rows(classifies).any(|found| found.measure.name == name);
        assert_eq!(
            ["f1", "rmse", "mae", "loss", "accuracy"].map(|name| has(true, name)),
            [true, false, false, false, false]
        );
        assert_eq!(
            ["f1", "rmse", "mae", "loss", "auc"].map(|name| has(false, name)),
            [false, true, true, false, false]
        );
    }
}
