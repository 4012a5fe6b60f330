//! Every edge server moves to the cluster whose model has the smallest loss on its data, if that is clearly smaller.
//!
//! # Definition
//! After each round of the cloud that `every` divides, let `L_k` be the mean loss of cluster `k`'s model on the
//! training examples of a server's clients, and `a` the cluster with the smallest of the others, the smallest index if
//! several have it. The server moves from its cluster `c` to `a` if `L_a < threshold · L_c`, and stays otherwise.
//!
//! A cluster whose loss is not finite is no alternative. A server whose own loss is not finite moves to `a`; it stays
//! if no other loss is finite either.
//!
//! # Inputs
//! `every`: rounds of the cloud between assignments. `threshold`: in (0, 1].
//!
//! # Records
//! `reassign` has `alternative`, `a` of each server.
//!
//! # Cost
//! One pass of each cluster's model over all training examples for each assignment.
//!
//! # Source
//! Ghosh, Chung, Yin, Ramchandran, An Efficient Framework for Clustered Federated Learning (IFCA), NeurIPS 2020, which
//! assigns single clients, in every round and without a threshold.
//!
//! # Example
//! ```toml
//! [clusters]
//! count = 5
//! assign = { loss = { every = 20, threshold = 0.95 } }
//! ```

use super::{AssignmentRequest, ClusterContext, ClusterPolicy, ClusterSettings, Weighed, best_other, check_every};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::EdgeId;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `loss`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rounds of the cloud between assignments.
    #[serde(default = "twenty")]
    pub every: u32,
    /// A server moves if the smallest loss is below its own times this number, in (0, 1].
    #[serde(default = "default_threshold")]
    pub threshold: f64,
}

const fn twenty() -> u32 {
    20
}
const fn default_threshold() -> f64 {
    0.95
}

impl Default for Config {
    fn default() -> Self {
        Self { every: twenty(), threshold: default_threshold() }
    }
}

impl ClusterSettings for Config {
    fn check(&self, _: &ClusterContext<'_>) -> Result<(), Complaint> {
        check_every(self.every)?;
        if self.threshold > 0.0 && self.threshold <= 1.0 {
            return Ok(());
        }
        Err(Complaint::new("threshold", format!("found {}; expected a number in (0, 1]", self.threshold)))
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn every(&self) -> Option<u32> {
        Some(self.every)
    }

    fn build(&self, _: &ClusterContext<'_>) -> Box<dyn ClusterPolicy> {
        Box::new(Loss { config: self.clone(), weighed: None })
    }
}

#[derive(Stateful)]
struct Loss {
    #[state(skip = "from the scenario")]
    config: Config,
    /// The numbers of the last assignment.
    #[state(skip = "read before the next question")]
    weighed: Option<Weighed>,
}

impl ClusterPolicy for Loss {
    fn assign(
        &mut self,
        ask: &AssignmentRequest<'_>,
        _: &mut StreamRng,
        assignment: &mut [u32],
    ) -> Result<(), Failure> {
        self.weighed = None;
        if !ask.is_due(self.config.every) {
            return Ok(());
        }
        let (mut weighed, mut losses) = (Weighed::default(), Vec::new());
        for (server, cluster) in assignment.iter_mut().enumerate() {
            ask.losses(EdgeId::from_index(server), &mut losses);
            let alternative = best_other(&losses, *cluster);
            weighed.alternative.push(alternative);
            let own = losses[*cluster as usize];
            let is_better = |&other: &u32| !own.is_finite() || losses[other as usize] < self.config.threshold * own;
            *cluster = alternative.filter(is_better).unwrap_or(*cluster);
        }
        self.weighed = Some(weighed);
        Ok(())
    }

    fn weighed(&self) -> Option<&Weighed> {
        self.weighed.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, rule};

    const NONE: f64 = f64::NAN;

    #[test]
    fn servers_move_where_the_loss_is_clearly_smaller() {
        let mut rule = rule("{ loss = { every = 2, threshold = 0.5 } }", &[0, 0, 1, 2], 3, Some(9));
        let losses = [[1.0, 0.5, 0.49], [1.0, 0.5, 0.75], [0.2, 1.0, 0.2], [0.5, 0.5, 0.25]];
        let mut assignment = [0, 0, 1, 2];
        assert!(asked(&mut *rule, 1, &losses, &mut assignment).is_none());
        assert_eq!(assignment, [0, 0, 1, 2], "2 does not divide 1");
        let weighed = asked(&mut *rule, 2, &losses, &mut assignment).unwrap();
        // The second server's best is exactly half of its own; the third's best are equal.
        assert_eq!(assignment, [2, 0, 0, 2]);
        assert_eq!(weighed.alternative, [Some(2), Some(1), Some(0), Some(0)]);
        assert!(weighed.context.is_empty() && weighed.scores.is_empty());
    }

    #[test]
    fn what_is_not_finite_is_not_chosen() {
        let mut rule = rule("{ loss = { every = 1, threshold = 1.0 } }", &[0; 5], 3, None);
        let losses = [
            [1.0, NONE, f64::NEG_INFINITY],
            [NONE, 5.0, 4.0],
            [f64::INFINITY, NONE, 7.0],
            [NONE, NONE, NONE],
            [1.0, 1.0, 1.0],
        ];
        let mut assignment = [0; 5];
        let weighed = asked(&mut *rule, 1, &losses, &mut assignment).unwrap();
        assert_eq!(assignment, [0, 2, 2, 0, 0]);
        assert_eq!(weighed.alternative, [None, Some(2), Some(2), None, Some(1)]);
    }
}
