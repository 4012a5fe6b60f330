//! The decision which cluster each edge server belongs to in the next round.

use super::engine::Engine;
use super::learning::{Learning, ServerScope};
use crate::clusters::{AssignmentRequest, ClusterPolicy, Clusters};
use crate::policy::{Feedback, RoundReport};
use crate::recorder::ClusterState;
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::{State, Stateful};

/// The random numbers of the decision: apart from those of edge servers, from 0, and of the cloud, 2^32 − 1.
const ENTITY: u32 = u32::MAX - 1;

/// Who decides, and who belongs where.
pub(super) struct ClusterDecision {
    policy: Box<dyn ClusterPolicy>,
    count: u32,
    state: ClusterState,
}

impl Stateful for ClusterDecision {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { policy, count, state: ClusterState { assignment, reassignments } } = self;
        state.field(&mut **policy);
        state.fields(assignment);
        state.field(reassignments);
        state.require(assignment.iter().all(|cluster| *cluster < *count));
    }
}

impl ClusterDecision {
    pub fn new(clusters: &Clusters) -> Self {
        let state = ClusterState { assignment: clusters.initial.clone(), reassignments: 0 };
        Self { policy: clusters.policy(), count: clusters.count, state }
    }

    /// The cluster of an edge server.
    pub fn of(&self, edge: EdgeId) -> u32 {
        self.state.assignment[edge.index()]
    }

    /// Tells the policy what the cloud's policy is told.
    pub fn observe(&mut self, feedback: &Feedback<'_>) {
        self.policy.observe(feedback);
    }

    /// Decides about the next round.
    ///
    /// # Panics
    /// If the policy names a cluster that is not there: a broken rule.
    pub fn decide(
        &mut self,
        engine: &Engine<'_>,
        learning: Option<&Learning<'_>>,
        report: &RoundReport<'_>,
        scopes: &[ServerScope<'_>],
    ) -> &ClusterState {
        self.policy.observe(&Feedback::Round(*report));
        let Round(round) = report.round;
        let mut rng = engine.world.streams.stream(Purpose::Policy, ENTITY, round);
        let loss = |edge: EdgeId, cluster: u32| {
            learning.map_or(f64::NAN, |learning| learning.loss_of_server(edge, scopes[edge.index()].0, cluster))
        };
        let before = self.state.assignment.clone();
        let ask = AssignmentRequest { round: report.round, clusters: self.count, loss: &loss };
        self.policy.assign(&ask, &mut rng, &mut self.state.assignment);
        let assignment = &self.state.assignment;
        assert!(assignment.iter().all(|&cluster| cluster < self.count), "clusters are numbered from 0: {assignment:?}");
        let moved = before.iter().zip(assignment).filter(|(before, after)| before != after);
        self.state.reassignments += moved.count() as u64;
        &self.state
    }
}
