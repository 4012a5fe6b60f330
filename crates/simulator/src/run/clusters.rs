//! The decision which cluster each edge server belongs to in the next round.

use super::RunError;
use super::engine::Engine;
use super::learning::{Learning, ServerScope};
use crate::clusters::{AssignmentRequest, ClusterPolicy, Clusters};
use crate::policy::{Feedback, RoundReport};
use crate::recorder::{ClusterState, Reassignment};
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::math::sum::CompensatedSum;
use fedgenie_core::oracle::assignment::missed;
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::{State, Stateful};
use std::cell::{Cell, RefCell};

/// The random numbers of the decision: apart from those of edge servers, from 0, and of the cloud, 2^32 − 1.
const ENTITY: u32 = u32::MAX - 1;

/// Who decides, and who belongs where.
pub(super) struct ClusterDecision {
    policy: Box<dyn ClusterPolicy>,
    count: u32,
    state: ClusterState,
    /// What assignments lost against the best ones; none before the first, or where it is not metered.
    regret: Option<CompensatedSum>,
}

impl Stateful for ClusterDecision {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { policy, count, state: ClusterState { assignment, reassignments, reassign: _ }, regret } = self;
        state.field(&mut **policy);
        state.fields(assignment);
        state.field(reassignments);
        state.field(regret);
        state.require(assignment.iter().all(|cluster| *cluster < *count));
    }
}

/// Losses of all clusters' models for all edge servers after a round, each measured when it is first asked for.
struct Losses<'a, 'w> {
    learning: Option<&'a Learning<'w>>,
    scopes: &'a [ServerScope<'a>],
    count: u32,
    parallel: bool,
    /// By server, then by cluster; empty before the first question.
    known: RefCell<Vec<Option<f64>>>,
    /// The first that is missing.
    missing: Cell<Option<RunError>>,
}

impl Losses<'_, '_> {
    fn of(&self, edge: EdgeId, cluster: u32) -> f64 {
        let place = edge.index() * self.count as usize + cluster as usize;
        if let Some(Some(loss)) = self.known.borrow().get(place) {
            return *loss;
        }
        let measured = self.learning.map_or(Ok(f64::NAN), |learning| {
            learning.loss_of_server(edge, self.scopes[edge.index()].0, cluster, self.parallel)
        });
        let loss = measured.unwrap_or_else(|error| {
            let before = self.missing.take();
            self.missing.set(Some(before.unwrap_or(error)));
            f64::NAN
        });
        let mut known = self.known.borrow_mut();
        known.resize(self.scopes.len() * self.count as usize, None);
        known[place] = Some(loss);
        loss
    }

    /// Σ_m (n_m/n)(L_m of its cluster − the smallest L_m) of an assignment. Servers without training examples, or whose
    /// own loss is not finite, add nothing; what is not finite is not the smallest.
    fn missed(&self, assignment: &[u32]) -> f64 {
        let examples = |members| self.learning.map_or(0, |learning| learning.examples_of(members)) as f64;
        let sizes: Vec<f64> = self.scopes.iter().map(|(members, _)| examples(members)).collect();
        let total: f64 = sizes.iter().sum();
        let mut sum = 0.0;
        for (server, (&size, &cluster)) in sizes.iter().zip(assignment).enumerate() {
            let loss = |cluster| self.of(EdgeId::from_index(server), cluster);
            let losses: Vec<f64> = (0..self.count).map(loss).collect();
            if size > 0.0 {
                sum += size / total * missed(&losses, cluster as usize);
            }
        }
        sum
    }
}

impl ClusterDecision {
    pub fn new(clusters: &Clusters) -> Self {
        let state = ClusterState { assignment: clusters.initial.clone(), ..ClusterState::default() };
        Self { policy: clusters.policy(), count: clusters.count, state, regret: None }
    }

    /// The cluster of an edge server.
    pub fn of(&self, edge: EdgeId) -> u32 {
        self.state.assignment[edge.index()]
    }

    /// Who belongs where in the next round.
    pub const fn state(&self) -> &ClusterState {
        &self.state
    }

    /// What assignments have lost so far, where that is metered.
    pub fn regret(&self) -> Option<f64> {
        self.regret.as_ref().map(CompensatedSum::value)
    }

    /// Tells the policy what the cloud's policy is told.
    pub fn observe(&mut self, feedback: &Feedback<'_>) {
        self.policy.observe(feedback);
    }

    /// Decides about the next round.
    ///
    /// # Errors
    /// If a loss is looked up, and missing.
    ///
    /// # Panics
    /// If the policy names a cluster that is not there: a broken rule.
    pub fn decide(
        &mut self,
        engine: &Engine<'_>,
        learning: Option<&Learning<'_>>,
        report: &RoundReport<'_>,
        scopes: &[ServerScope<'_>],
        parallel: bool,
    ) -> Result<(), RunError> {
        self.policy.observe(&Feedback::Round(*report));
        let Round(round) = report.round;
        let mut rng = engine.world.streams.stream(Purpose::Policy, ENTITY, round);
        let (known, missing) = (RefCell::default(), Cell::default());
        let losses = Losses { learning, scopes, count: self.count, parallel, known, missing };
        let loss = |edge: EdgeId, cluster: u32| losses.of(edge, cluster);
        let from = self.state.assignment.clone();
        let ask = AssignmentRequest { round: report.round, clusters: self.count, loss: &loss };
        self.policy.assign(&ask, &mut rng, &mut self.state.assignment);
        let assignment = &self.state.assignment;
        assert!(assignment.iter().all(|&cluster| cluster < self.count), "clusters are numbered from 0: {assignment:?}");
        self.state.reassignments += from.iter().zip(assignment).filter(|(from, to)| from != to).count() as u64;
        let weighed = self.policy.weighed();
        if weighed.is_some() && engine.world.assignment_regret {
            self.regret.get_or_insert_default().add(losses.missed(assignment));
        }
        let Losses { known, missing, .. } = losses;
        if let Some(error) = missing.take() {
            return Err(error);
        }
        self.state.reassign = weighed.map(|weighed| {
            let known = known.into_inner();
            let of_servers = known.chunks(self.count as usize).map(<[Option<f64>]>::to_vec);
            Reassignment { losses: of_servers.collect(), weighed: weighed.clone(), from }
        });
        Ok(())
    }
}
