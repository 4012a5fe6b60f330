//! Whole numbers proportional to weights.

/// Splits `total` in proportion to finite, non-negative weights (Hamilton's largest remainders, ties to the first).
///
/// Every entry gets at least `minimum`: entries whose exact share is below it get the minimum, and the rest is split
/// among the others in proportion to their weights, until no share is below. Weights that are all zero count as equal.
///
/// # Panics
/// If `total` is less than the number of weights times `minimum`.
pub(super) fn apportion(weights: &[f64], total: usize, minimum: usize) -> Vec<usize> {
    assert!(weights.len() * minimum <= total, "the minimum fits");
    let mut sizes = vec![minimum; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).collect();
    while !open.is_empty() {
        let left = total - (weights.len() - open.len()) * minimum;
        let shares = exact_shares(weights, &open, left);
        let enough: Vec<usize> =
            open.iter().zip(&shares).filter(|&(_, &share)| share >= minimum as f64).map(|(&entry, _)| entry).collect();
        // If rounding makes every share fall short, they are all equal to the minimum up to rounding.
        if enough.len() == open.len() || enough.is_empty() {
            for (entry, size) in open.iter().zip(round_shares(&shares, left, minimum)) {
                sizes[*entry] = size;
            }
            break;
        }
        open = enough;
    }
    assert_eq!(sizes.iter().sum::<usize>(), total, "everything is handed out");
    sizes
}

fn exact_shares(weights: &[f64], open: &[usize], total: usize) -> Vec<f64> {
    // Divided by the largest first, so that the sum cannot overflow.
    let largest = open.iter().map(|&entry| weights[entry]).fold(0.0, f64::max);
    let scaled = |entry: usize| if largest > 0.0 { weights[entry] / largest } else { 1.0 };
    let sum: f64 = open.iter().map(|&entry| scaled(entry)).sum();
    open.iter().map(|&entry| scaled(entry) / sum * total as f64).collect()
}

/// Rounds shares of at least `minimum` down and gives the missing units to the largest remainders.
fn round_shares(shares: &[f64], total: usize, minimum: usize) -> Vec<usize> {
    // `as` rounds towards zero, and a share is not negative.
    let mut sizes: Vec<usize> = shares.iter().map(|&share| share as usize).collect();
    let remainder = |entry: &usize| shares[*entry] - shares[*entry] as usize as f64;
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|first, second| remainder(second).total_cmp(&remainder(first)));
    let handed_out: usize = sizes.iter().sum();
    for &entry in order.iter().cycle().take(total.saturating_sub(handed_out)) {
        sizes[entry] += 1;
    }
    // Shares that are whole numbers may have been rounded up by the division; the smallest remainder gives back.
    let mut excess = handed_out.saturating_sub(total);
    for &entry in order.iter().rev() {
        if excess > 0 && sizes[entry] > minimum {
            sizes[entry] -= 1;
            excess -= 1;
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    #[test]
    fn hamiltons_method_by_hand() {
        // Shares 4.5, 3.0, 1.5, 1.0 of 10: one unit is missing and goes to the first of the two halves.
        assert_eq!(apportion(&[4.5, 3.0, 1.5, 1.0], 10, 0), [5, 3, 1, 1]);
        assert_eq!(apportion(&[0.0, 0.0, 0.0], 5, 0), [2, 2, 1]);
    }

    #[test]
    fn the_minimum_is_taken_from_the_others_in_proportion() {
        // 0 and 1 get 2 each; the 12 left are split 1:2.
        assert_eq!(apportion(&[0.0, 0.1, 10.0, 20.0], 16, 2), [2, 2, 4, 8]);
        assert_eq!(apportion(&[1.0, 1e300, 0.0], 3, 1), [1, 1, 1]);
    }

    #[test]
    fn sizes_add_up_and_stay_within_one_of_their_share() {
        let mut rng = Streams::new(9).stream(Purpose::Partition, 0, 0);
        for _ in 0..2_000 {
            let count = 1 + rng.below(40) as usize;
            let total = rng.below(10_000) as usize;
            let weights: Vec<f64> = (0..count).map(|_| rng.uniform() * rng.uniform()).collect();
            let sizes = apportion(&weights, total, 0);
            let sum: f64 = weights.iter().sum();
            for (size, weight) in sizes.iter().zip(&weights) {
                assert!((*size as f64 - weight / sum * total as f64).abs() < 1.0 + 1e-9);
            }
            let minimum = total / count;
            assert!(apportion(&weights, total, minimum).iter().all(|&size| size >= minimum));
        }
    }
}
