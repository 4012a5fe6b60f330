//! The evidence of many jobs about the law of one duration.
//!
//! # Definition
//! A duration that was seen has the factor `f(x)` in the likelihood. One of which only is known that it is longer than
//! `at`, because a deadline, a timeout or a loss cut the job, has the factor `a·P(X > at) + b·E[1(X > at)/(X + o)]`:
//! a = 1, b = 0 for a cut that does not depend on the rest of the job (a deadline, a hazard); other numbers where jobs
//! are lost with a probability, at an instant that is uniform over all of the job (see [`Cut`]).

use fedgenie_core::law::{AnyLaw, Law};
use fedgenie_core::math::float::ln;

/// The shortest duration in seconds that a density is taken at: a nanosecond, to which durations are rounded.
pub(crate) const SHORTEST: f64 = 1e-9;

/// A duration that was cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// How long it had lasted.
    pub at: f64,
    /// The factor of `P(X > at)`.
    pub plain: f64,
    /// The factor of `E[1(X > at)/(X + offset)]`.
    pub inverse: f64,
    /// What the other phases of the job take, of those after this one on average.
    pub offset: f64,
}

impl Cut {
    /// A cut that does not depend on the rest of the job.
    pub const fn plain(at: f64) -> Self {
        Self { at, plain: 1.0, inverse: 0.0, offset: 0.0 }
    }

    /// Its factor in the likelihood.
    pub fn factor(&self, law: &AnyLaw) -> f64 {
        let tail = law.tail(self.at);
        let plain = self.plain * tail;
        if self.inverse == 0.0 { plain } else { plain + self.inverse * inverse_mean(law, self.at, self.offset) }
    }
}

/// Nodes and weights of Gauss and Legendre's rule with 16 points on (0, 1), upper half; the lower half mirrors it.
const LEGENDRE: [(f64, f64); 8] = [
    (0.547_506_254_918_818_8, 0.094_725_305_227_534_25),
    (0.640_801_775_389_629_5, 0.091_301_707_522_461_8),
    (0.729_008_388_828_613_6, 0.084_578_259_697_501_27),
    (0.808_938_122_201_321_9, 0.074_797_994_408_288_37),
    (0.877_702_204_177_501_6, 0.062_314_485_627_766_94),
    (0.932_815_601_193_915_9, 0.047_579_255_841_246_39),
    (0.972_287_511_536_616_3, 0.031_126_761_969_323_946),
    (0.994_700_467_495_825, 0.013_576_229_705_877_047),
];

/// `E[1(X > at)/(X + offset)]`. By parts it is `(P(X > at) − ∫₀¹ P(X > (at + o)/y − o) dy)/(at + o)`.
pub(crate) fn inverse_mean(law: &AnyLaw, at: f64, offset: f64) -> f64 {
    let begin = (at + offset).max(SHORTEST);
    let tail = |y: f64| law.tail(begin / y - offset);
    // Small y are long durations, with tails that are flat at 0: most of the bend lies above.
    let over = |low: f64, high: f64| {
        let at = |node: f64| tail(low + (high - low) * node);
        (high - low) * LEGENDRE.iter().map(|&(node, weight)| weight * (at(node) + at(1.0 - node))).sum::<f64>()
    };
    let integral = over(0.0, 0.3) + over(0.3, 1.0);
    (law.tail(at) - integral).max(0.0) / begin
}

/// Durations in seconds, and the sums that likelihoods need.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Durations that were seen, ascending.
    pub exact: Vec<f64>,
    /// Those that were cut.
    pub cuts: Vec<Cut>,
    /// Sum of those that were seen.
    pub sum: f64,
    /// Sum of their logarithms.
    pub sum_ln: f64,
}

impl Sample {
    pub fn new(mut exact: Vec<f64>, cuts: Vec<Cut>) -> Self {
        exact.sort_unstable_by(f64::total_cmp);
        let sum = exact.iter().sum();
        let sum_ln = exact.iter().map(|&x| ln(x.max(SHORTEST))).sum();
        Self { exact, cuts, sum, sum_ln }
    }

    /// Observations of either kind.
    pub const fn len(&self) -> usize {
        self.exact.len() + self.cuts.len()
    }

    /// The shortest and the longest duration that was seen.
    ///
    /// # Panics
    /// If none was seen; callers look first.
    pub fn range(&self) -> (f64, f64) {
        (self.exact[0], self.exact[self.exact.len() - 1])
    }

    /// Whether the likelihood of every cut is a tail.
    pub fn is_plain(&self) -> bool {
        self.cuts.iter().all(|cut| cut.inverse == 0.0)
    }

    /// The logarithm of the cuts' factors; minus infinity if a law excludes one.
    pub fn log_cuts(&self, law: &AnyLaw) -> f64 {
        self.cuts.iter().map(|cut| ln(cut.factor(law).max(0.0))).sum()
    }

    /// The same durations from an origin on; cuts before it begin there.
    pub fn since(&self, origin: f64) -> Self {
        let moved = |cut: &Cut| Cut { at: (cut.at - origin).max(0.0), offset: cut.offset + origin, ..*cut };
        Self::new(self.exact.iter().map(|x| x - origin).collect(), self.cuts.iter().map(moved).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::law::{Exponential, Uniform};
    use fedgenie_core::math::float::exp;

    /// `E[1(X > a)/(X + o)]` of an exponential law of mean 2 is `e^(o/2)·E₁((a + o)/2)/2`, with E₁ of tables.
    #[test]
    fn the_mean_of_the_inverse_is_the_exponential_integral() {
        let law = AnyLaw::from(Exponential::new(2.0, 0.0).unwrap());
        for (at, offset, integral) in [
            (0.5, 0.1, 0.905_676_651_675_846_7),
            (3.0, 0.0, 0.100_019_582_406_632_7),
            (1.0, 4.0, 0.024_914_917_870_269_74),
        ] {
            let expected = 0.5 * exp(offset / 2.0) * integral;
            let found = inverse_mean(&law, at, offset);
            assert!((found - expected).abs() < 1e-5 * expected, "{at}, {offset}: {found}, {expected}");
        }
        // ∫₁² 1/(x + 1) dx/2 = ln(3/2)/2.
        let uniform = AnyLaw::from(Uniform::new(0.0, 2.0).unwrap());
        let found = inverse_mean(&uniform, 1.0, 1.0);
        assert!((found - 0.5 * ln(1.5)).abs() < 2e-3 * found, "{found}");
    }
}
