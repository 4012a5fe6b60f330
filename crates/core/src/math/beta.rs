//! Beta variates. The bits are the same on every platform.
//!
//! # Definition
//! `X/(X + Y)` with independent `X ~ Gamma(α, 1)` and `Y ~ Gamma(β, 1)` is Beta(α, β).
//!
//! # Source
//! L. Devroye, *Non-Uniform Random Variate Generation*, Springer 1986, IX.3 (theorem 3.1). The gamma variates are
//! quantiles, by [`gamma_lower_inverse`].
//!
//! # Cost
//! Two quantiles of gamma laws, a few microseconds each; O(√shape) where shapes are large.
//!
//! # Determinism
//! Two uniforms of the stream: of X, then of Y.

use super::special::gamma_lower_inverse;
use crate::rng::StreamRng;

/// A Beta(`alpha`, `beta`) variate, between 0 and 1; both shapes are at least 0.01.
pub fn beta_variate(alpha: f64, beta: f64, rng: &mut StreamRng) -> f64 {
    let x = gamma_lower_inverse(alpha, rng.uniform());
    let y = gamma_lower_inverse(beta, rng.uniform());
    x / (x + y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::sqrt;
    use crate::rng::{Purpose, Streams};

    const DRAWS: usize = 4_000;

    fn sorted(alpha: f64, beta: f64) -> Vec<f64> {
        let streams = Streams::new(5);
        let one = |index| beta_variate(alpha, beta, &mut streams.stream(Purpose::Policy, 7, index));
        let mut draws: Vec<f64> = (0..DRAWS as u32).map(one).collect();
        draws.sort_unstable_by(f64::total_cmp);
        draws
    }

    /// The largest distance of the empirical cdf from `cdf`, in units of 1/√n: above 1.95 with probability 0.1 %.
    fn kolmogorov_smirnov(draws: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
        let count = draws.len() as f64;
        let distance = |(index, &draw): (usize, &f64)| {
            let value = cdf(draw);
            (value - index as f64 / count).max((index + 1) as f64 / count - value)
        };
        draws.iter().enumerate().map(distance).fold(0.0, f64::max) * sqrt(count)
    }

    /// With whole shapes the cdf is a polynomial: that of order statistics of uniform variates.
    #[test]
    fn the_law_is_that_of_closed_forms() {
        type Cdf = fn(f64) -> f64;
        let closed: [(f64, f64, Cdf); 5] = [
            (1.0, 1.0, |x| x),
            (2.0, 1.0, |x| x * x),
            (1.0, 3.0, |x| 1.0 - (1.0 - x) * (1.0 - x) * (1.0 - x)),
            (2.0, 2.0, |x| x * x * (3.0 - 2.0 * x)),
            (3.0, 2.0, |x| x * x * x * (4.0 - 3.0 * x)),
        ];
        for (alpha, beta, cdf) in closed {
            let found = kolmogorov_smirnov(&sorted(alpha, beta), cdf);
            assert!(found < 1.95, "Beta({alpha}, {beta}): {found}");
            let wrong = kolmogorov_smirnov(&sorted(alpha, beta + 0.3), cdf);
            assert!(wrong > 1.95, "the test tells Beta({alpha}, {}) apart: {wrong}", beta + 0.3);
        }
    }

    #[test]
    fn the_law_is_that_of_an_independent_library() {
        for (alpha, beta) in [(1.7, 3.2), (21.0, 1.0), (1.0, 2_001.0), (250.5, 249.5)] {
            let cdf = |x| statrs::function::beta::beta_reg(alpha, beta, x);
            let found = kolmogorov_smirnov(&sorted(alpha, beta), cdf);
            assert!(found < 1.95, "Beta({alpha}, {beta}): {found}");
        }
    }

    /// From Beta(1, 1) the gamma variates are exponential: the first two uniforms by hand.
    #[test]
    fn two_uniforms_make_a_variate() {
        let stream = || Streams::new(9).stream(Purpose::Policy, 1, 2);
        let mut rng = stream();
        let [x, y] = [rng.uniform(), rng.uniform()].map(|u| -crate::math::float::ln_1p(-u));
        approx::assert_relative_eq!(beta_variate(1.0, 1.0, &mut stream()), x / (x + y), max_relative = 1e-12);
        let mut used = stream();
        beta_variate(3.0, 4.0, &mut used);
        assert_eq!(used.bits(), rng.bits());
    }
}
