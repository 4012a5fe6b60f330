//! Regret of assignments: the excess loss of edge servers under their clusters' models over the best models there are.
//!
//! # Definition
//! After a round of the cloud in which a rule of `[clusters]` decides, let `L_m^(k)` be the mean loss of cluster `k`'s
//! model on the training examples of edge server `m`'s clients, `n_m` their number, `n` that of all, and `k_m` the
//! cluster that the server is assigned to.
//!
//! ```text
//! regret of the decision = Σ_m (n_m/n)·(L_m^(k_m) − min_k L_m^(k)) ≥ 0,     assignment = the sum over decisions
//! ```
//!
//! It is the distance of the assignment from the best one for the models of that moment, in the objective of clustered
//! learning. A loss that is not finite is not the smallest. A server adds nothing if its own loss is not finite or its
//! clients have no examples. A rule that never decides, such as `fixed`, has no such regret.
//!
//! # Inputs
//! `[clusters]`, and a task that trains and measures a loss, or `losses` of `[task.scripted]`. The other meters need
//! one server: `meters` defaults to an empty list.
//!
//! # Cost
//! One pass of each cluster's model over all training examples for each decision, which rules that compare losses take
//! anyway.
//!
//! # Determinism
//! Nothing else of the run changes. The number is in no digest; `rounds.jsonl` has it, and `verify` compares that.
//!
//! # Source
//! The gap in `π` of equation (3) of Fed-BAC, arXiv:2605.11815.
//!
//! # Example
//! ```toml
//! [regret]
//! assignment = true
//! ```

/// The unweighted excess loss of an edge server in a decision: the loss of its cluster's model minus the smallest
/// finite one. 0 if its own is not finite.
///
/// # Panics
/// If there is no such cluster.
pub fn missed(losses: &[f64], cluster: usize) -> f64 {
    let own = losses[cluster];
    let smallest = losses.iter().copied().filter(|loss| loss.is_finite()).fold(f64::INFINITY, f64::min);
    if own.is_finite() { own - smallest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::missed;

    #[test]
    fn the_smallest_finite_loss_is_the_best() {
        let losses = [0.75, 0.25, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let found: Vec<f64> = (0..5).map(|cluster| missed(&losses, cluster)).collect();
        assert_eq!(found, [0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(missed(&[f64::NAN; 2], 1), 0.0);
    }
}
