//! Mixtures of classes that owners draw, and whole numbers drawn in proportion to shares.

use super::PartitionError;
use super::dirichlet::TINY;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{exp, ln, ln_gamma};
use fedgenie_core::rng::StreamRng;
use ndarray::{Array1, Array2};

/// Draws each owner's mixture of classes from Dirichlet(α), one uniform for each class, and gives the owners' shares of
/// each class: the mixtures divided by their sums over owners, owners × classes. Each column adds up to 1.
///
/// `quantile` is the quantile function of Gamma(α, 1). All is done in logarithms, with `ln G = (ln u + ln Γ(α + 1))/α`
/// where a variate is too small for `f64`: that is its limit for small G, exact to rounding. So owners share a class in
/// the right proportions also if each of them has next to nothing of it.
///
/// # Errors
/// A variate that is no number; owners are called clients there.
pub(super) fn shares_by_owner(
    rngs: impl ExactSizeIterator<Item = StreamRng>,
    classes: usize,
    alpha: f64,
    quantile: &dyn Fn(f64) -> f64,
) -> Result<Array2<f64>, PartitionError> {
    let mut shares = Array2::zeros((rngs.len(), classes));
    let of_small = ln_gamma(alpha + 1.0);
    for (owner, (mut row, mut rng)) in shares.rows_mut().into_iter().zip(rngs).enumerate() {
        for entry in &mut row {
            let u = rng.uniform();
            let variate = quantile(u);
            if !(variate.is_finite() && variate >= 0.0) {
                return Err(PartitionError::Weight { client: ClientId::from_index(owner), found: variate });
            }
            *entry = if variate > TINY { ln(variate) } else { (ln(u) + of_small) / alpha };
        }
        let sum = ln_sum(row.iter().copied());
        row -= sum;
    }
    for mut column in shares.columns_mut() {
        let sum = ln_sum(column.iter().copied());
        column.mapv_inplace(|entry| exp(entry - sum));
    }
    Ok(shares)
}

/// The logarithm of the sum of numbers whose logarithms these are.
fn ln_sum(logarithms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logarithms.clone().fold(f64::NEG_INFINITY, f64::max);
    largest + ln(logarithms.map(|entry| exp(entry - largest)).sum())
}

/// How often each of some weights comes up in so many draws: a multinomial variate. One uniform of the stream for each
/// draw. Weights are finite and not negative, one at least is positive; one that is 0 never comes up.
pub(super) fn multinomial(weights: &Array1<f64>, draws: usize, rng: &mut StreamRng) -> Vec<usize> {
    let mut sum = 0.0;
    let ends: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    let mut counts = vec![0; weights.len()];
    for _ in 0..draws {
        // A uniform is at most 1 − 2⁻⁵³, so that the product is below the sum even when it is rounded.
        let place = rng.uniform() * sum;
        counts[ends.partition_point(|&end| end <= place)] += 1;
    }
    counts
}
