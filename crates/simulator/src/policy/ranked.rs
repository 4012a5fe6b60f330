//! The candidates with the largest values, and the value in the middle.

use fedgenie_core::id::ClientId;

/// At most `count` candidates with the largest values, by falling value; of equal values the smaller id comes first.
/// `values` are parallel to the candidates, and none of them is NaN.
pub(super) fn largest(candidates: &[ClientId], values: &[f64], count: usize) -> Vec<ClientId> {
    let mut ranked: Vec<(f64, ClientId)> = values.iter().copied().zip(candidates.iter().copied()).collect();
    let order = |one: &(f64, ClientId), other: &(f64, ClientId)| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1));
    if count < ranked.len() {
        ranked.select_nth_unstable_by(count, order);
        ranked.truncate(count);
    }
    ranked.sort_unstable_by(order);
    ranked.into_iter().map(|(_, client)| client).collect()
}

/// Of ascending numbers, at least one: the middle one, or the mean of the two in the middle.
pub(super) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] }
}
