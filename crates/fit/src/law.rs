//! Laws of one duration, by maximum likelihood: their parameters with intervals, and the choice among them.
//!
//! # Definition
//! Of each family the parameters maximise the likelihood of a sample, cuts included. The family with the smallest
//! BIC, `k·ln n − 2·ln L`, is chosen; `k` counts parameters and `n` observations of either kind. Durations that are all
//! the same are `constant`.
//!
//! *Intervals* are at 95 %: of smooth parameters `exp(θ ± 1.96·s)` in the logarithm θ, with s from the curvature of the
//! likelihood. The smallest duration of a shifted exponential, Pareto's minimum and the ends of a uniform law are seen
//! from one side only; their intervals follow from the law of the smallest (largest) of n durations.
//!
//! # Source
//! J. F. Lawless, *Statistical Models and Methods for Lifetime Data*, 2nd edition, Wiley 2003, chapters 2 to 5;
//! G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6 (1978).

mod estimate;
mod family;

pub use family::Family;

use crate::sample::Sample;
use estimate::estimate;
use fedgenie_core::law::AnyLaw;
use fedgenie_core::math::float::ln;

/// The half width of a 95 % interval in standard errors.
pub(crate) const NORMAL_95: f64 = 1.959_963_984_540_054;

/// A parameter that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its key in a scenario.
    pub name: &'static str,
    /// Its estimate, in seconds if it is a time.
    pub value: f64,
    /// Its 95 % interval; `None` if the sample is too small for one.
    pub interval: Option<[f64; 2]>,
    /// Whether it is a time.
    pub is_time: bool,
}

/// A law that was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct LawFit {
    /// Its family.
    pub family: Family,
    /// Its parameters, in the order of a scenario.
    pub parameters: Vec<Parameter>,
    /// The law.
    pub law: AnyLaw,
    /// `ln L`; infinite for `constant`.
    pub log_likelihood: f64,
    /// `k·ln n − 2·ln L`.
    pub bic: f64,
}

/// The choice among the families.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The family with the smallest BIC.
    pub best: LawFit,
    /// The next one, if others could be fitted.
    pub next: Option<LawFit>,
    /// Durations that were seen.
    pub seen: usize,
    /// Durations that were cut.
    pub cut: usize,
}

/// Fits all families; `None` if no duration was seen.
pub(crate) fn choose(sample: &Sample) -> Option<Choice> {
    choose_among(sample, &Family::VARYING)
}

/// Fits some families, of durations that vary; `None` if no duration was seen.
pub(crate) fn choose_among(sample: &Sample, families: &[Family]) -> Option<Choice> {
    if sample.exact.is_empty() {
        return None;
    }
    let (seen, cut) = (sample.exact.len(), sample.cuts.len());
    if let Some(best) = family_of_equals(sample) {
        return Some(Choice { best, next: None, seen, cut });
    }
    let mut all: Vec<LawFit> = families.iter().filter_map(|&family| fitted(family, sample)).collect();
    all.sort_by(|one, other| one.bic.total_cmp(&other.bic));
    let mut all = all.into_iter();
    Some(Choice { best: all.next()?, next: all.next(), seen, cut })
}

/// The constant law, if all durations are equal up to their rounding and none was cut later.
fn family_of_equals(sample: &Sample) -> Option<LawFit> {
    let (shortest, longest) = sample.range();
    let rounding = 2e-9 + 1e-12 * longest;
    if longest - shortest > rounding || sample.cuts.iter().any(|cut| cut.at > longest + rounding) {
        return None;
    }
    // The middle one, which is one of them.
    let value = sample.exact[sample.exact.len() / 2];
    let law = Family::Constant.law([value, 0.0])?;
    let parameters = vec![Parameter { name: "constant", value, interval: None, is_time: true }];
    let infinite = f64::INFINITY;
    Some(LawFit { family: Family::Constant, parameters, law, log_likelihood: infinite, bic: -infinite })
}

/// A family's most likely law.
pub(crate) fn fitted(family: Family, sample: &Sample) -> Option<LawFit> {
    let parameters = estimate(family, sample)?;
    let numbers = [parameters[0].value, parameters.get(1).map_or(0.0, |second| second.value)];
    let law = family.law(numbers)?;
    let log_likelihood = family.log_densities(numbers, sample) + sample.log_cuts(&law);
    let bic = family.free() as f64 * ln(sample.len() as f64) - 2.0 * log_likelihood;
    bic.is_finite().then_some(LawFit { family, parameters, law, log_likelihood, bic })
}

#[cfg(test)]
mod tests;
