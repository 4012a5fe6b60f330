//! Ordered draws without replacement from logits: the law of Plackett and Luce.
//!
//! # Definition
//! The key of candidate `i` is `ℓ_i − ln(−ln u_i)`, with a uniform `u_i` of its own; the `m` largest keys are drawn,
//! the largest first. Then each draw is, among those left, in proportion to `e^ℓ`:
//!
//! ```text
//! ln π = Σ_j (ℓ_{a_j} − L_j),   L_j = ln Σ_{i left before draw j} e^{ℓ_i}
//! ∂ ln π/∂ℓ_i = [i was drawn] − Σ_{j: i was left} e^{ℓ_i − L_j}
//! ```
//!
//! # Determinism
//! One uniform for each candidate, in their order. Equal keys go to the candidate that comes first. `L_j` is summed
//! from the last draw to the first, in logarithms, so that no exponential leaves its range.

use fedgenie_core::math::float::{exp, ln, ln_1p};
use fedgenie_core::rng::StreamRng;

/// Writes the places of `count` candidates to `drawn`, in the order of the draws.
pub(super) fn draw(logits: &[f64], count: usize, rng: &mut StreamRng, drawn: &mut Vec<u32>) {
    let key = |(place, logit): (u32, &f64)| (logit - ln(-ln(rng.uniform())), place);
    let mut keys: Vec<(f64, u32)> = (0..).zip(logits).map(key).collect();
    let order = |one: &(f64, u32), other: &(f64, u32)| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1));
    if count < keys.len() {
        keys.select_nth_unstable_by(count, order);
        keys.truncate(count);
    }
    keys.sort_unstable_by(order);
    drawn.clear();
    drawn.extend(keys.into_iter().map(|(_, place)| place));
}

/// `ln(e^a + e^b)`.
fn log_add(one: f64, other: f64) -> f64 {
    let (low, high) = (one.min(other), one.max(other));
    if low == f64::NEG_INFINITY { high } else { high + ln_1p(exp(low - high)) }
}

/// `L_j` of each draw.
fn left(logits: &[f64], drawn: &[u32]) -> Vec<f64> {
    let mut is_left = vec![true; logits.len()];
    drawn.iter().for_each(|&place| is_left[place as usize] = false);
    let never = || logits.iter().zip(&is_left).filter(|(_, is_left)| **is_left).map(|(logit, _)| *logit);
    let highest = never().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = match highest {
        f64::NEG_INFINITY => highest,
        _ => highest + ln(never().map(|logit| exp(logit - highest)).sum()),
    };
    let mut left = vec![0.0; drawn.len()];
    for (left, &place) in left.iter_mut().zip(drawn).rev() {
        sum = log_add(sum, logits[place as usize]);
        *left = sum;
    }
    left
}

/// The logarithm of the probability of these draws in this order.
pub(super) fn log_probability(logits: &[f64], drawn: &[u32]) -> f64 {
    drawn.iter().zip(left(logits, drawn)).map(|(&place, left)| logits[place as usize] - left).sum()
}

/// Its slope by each logit.
pub(super) fn slopes(logits: &[f64], drawn: &[u32]) -> Vec<f64> {
    let mut slopes = vec![0.0; logits.len()];
    // ln Σ e^{−L_j} over the draws up to each one.
    let mut sum = f64::NEG_INFINITY;
    for (left, &place) in left(logits, drawn).into_iter().zip(drawn) {
        sum = log_add(sum, -left);
        slopes[place as usize] = 1.0 - exp(logits[place as usize] + sum);
    }
    let mut is_left = vec![true; logits.len()];
    drawn.iter().for_each(|&place| is_left[place as usize] = false);
    for ((slope, logit), is_left) in slopes.iter_mut().zip(logits).zip(is_left) {
        if is_left {
            *slope = -exp(logit + sum);
        }
    }
    slopes
}
