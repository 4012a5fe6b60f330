//! The decision which cluster each edge server belongs to in the next round.

use crate::clusters::{AssignmentRequest, ClusterPolicy, Clusters, EdgeFeedback, LossesOn};
use crate::policy::RoundReport;
use crate::recorder::{ClusterState, Reassignment};
use crate::run::error::{Failed, Role, RunError};
use crate::run::learning::{Learning, ServerScope};
use crate::run::round::blamed::{Blamed, Of};
use crate::run::timeline::{Cost, Engine, add};
use fedgenie_core::id::{EdgeId, JobNumber, Round};
use fedgenie_core::math::sum::CompensatedSum;
use fedgenie_core::oracle::assignment::missed;
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::{Span, VirtualTime};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The random numbers of the decision: apart from those of edge servers, from 0, and of the cloud, 2^32 − 1.
const ENTITY: u32 = u32::MAX - 1;

/// The rule, and the cluster of each edge server.
#[derive(Stateful)]
#[state(check = Self::is_sound)]
pub(in crate::run) struct ClusterDecision {
    #[state(with = exchange)]
    policy: Box<dyn ClusterPolicy>,
    #[state(skip = "from the scenario")]
    count: u32,
    #[state(skip = "from the scenario")]
    on: LossesOn,
    /// Whether comparing losses costs traffic and time.
    #[state(skip = "from the scenario")]
    charge: bool,
    /// When models can leave for edge servers: the losses for the assignment have come back.
    ready: VirtualTime,
    state: ClusterState,
    /// Losses of assignments against the best ones; `None` before the first, or if not metered.
    regret: Option<CompensatedSum>,
}

/// The rule's state; a failure is its own.
fn exchange(policy: &mut Box<dyn ClusterPolicy>, state: &mut State<'_>) {
    state.field_of(&mut **policy, |source| Blamed { of: Of::Clusters, source }.into());
}

impl ClusterDecision {
    /// Whether all loaded clusters exist.
    fn is_sound(&self) -> bool {
        self.state.assignment.iter().all(|cluster| *cluster < self.count)
    }
}

/// Losses of all clusters' models for all edge servers after a round, each measured when it is first asked for.
struct Losses<'a, 'w> {
    learning: Option<&'a Learning<'w>>,
    scopes: &'a [ServerScope<'a>],
    count: u32,
    on: LossesOn,
    parallel: bool,
    /// Losses of all clusters' models by server, measured at once.
    measured: RefCell<BTreeMap<u32, Vec<f64>>>,
    /// Losses that were asked for, by server, then by cluster; empty before the first question.
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
        let found = match self.learning {
            None => Ok(f64::NAN),
            Some(learning) if learning.tells_losses() => learning.told_loss(edge, cluster),
            Some(learning) => {
                let members = self.scopes[edge.index()].0;
                let measure = || learning.losses_of_server(edge, members, self.on, self.parallel);
                Ok(self.measured.borrow_mut().entry(edge.0).or_insert_with(measure)[cluster as usize])
            }
        };
        let loss = found.unwrap_or_else(|error| {
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
    /// own loss is not finite, add nothing. The smallest is among the finite ones.
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

/// Books the cost of comparing losses: the networks of the `others` of all clusters but one travel to every edge
/// server, and, where losses are on training examples, to every client, which then makes an inference pass. Returns how
/// long the slowest takes.
fn charge(
    engine: &mut Engine<'_>,
    scopes: &[ServerScope<'_>],
    on: LossesOn,
    others: u64,
    round: Round,
) -> Result<Span, RunError> {
    let world = engine.world;
    let network = world.task.as_ref().map_or(0, |task| task.layout().bytes_of_cluster());
    let bytes = network.saturating_mul(others);
    add(&mut engine.accounts.edge_down_bytes, bytes.saturating_mul(scopes.len() as u64));
    let (mut longest, mut cost) = (Span::ZERO, Cost::default());
    if on == LossesOn::Train {
        let clients = scopes.iter().flat_map(|(members, _)| members.iter().copied());
        for client in clients.clone() {
            let [_, compute, _] = engine.draw(Purpose::Probe, client, JobNumber(u32::MAX - round.0))?.phases;
            let inference = Span((compute.0 as f64 * world.inference_of_job(client)) as u64);
            longest = longest.max(inference);
            cost.compute += inference;
        }
        cost.down_bytes = bytes.saturating_mul(clients.count() as u64);
        engine.accounts.probe(cost);
        engine.audit.probed(cost);
    }
    Ok(longest)
}

impl ClusterDecision {
    pub fn new(clusters: &Clusters) -> Self {
        let state = ClusterState { assignment: clusters.initial.clone(), ..ClusterState::default() };
        let Clusters { count, losses, charge, .. } = *clusters;
        let (policy, ready) = (clusters.policy(), VirtualTime::default());
        Self { policy, count, on: losses, charge, ready, state, regret: None }
    }

    /// The cluster of an edge server.
    pub fn of(&self, edge: EdgeId) -> u32 {
        self.state.assignment[edge.index()]
    }

    /// The clusters of the next round.
    pub const fn state(&self) -> &ClusterState {
        &self.state
    }

    /// How long models have to wait before they leave for edge servers.
    pub fn wait(&self, now: VirtualTime) -> Span {
        Span(self.ready.0.saturating_sub(now.0))
    }

    /// Losses of assignments so far, if metered.
    pub fn regret(&self) -> Option<f64> {
        self.regret.as_ref().map(CompensatedSum::value)
    }

    /// Tells the policy of an edge server's part in the round.
    pub fn observe(&mut self, feedback: &EdgeFeedback<'_>, round: Round) -> Result<(), RunError> {
        let failed = |failed: Failed| failed.told(Role::Clusters, round);
        self.policy.observe(feedback).map_err(Failed::of("observe")).map_err(failed)
    }

    /// Decides about the next round.
    ///
    /// # Errors
    /// If a loss is looked up, and missing, or the rule or the task fails.
    ///
    /// # Panics
    /// If the policy names a cluster that is not there: a broken rule.
    pub fn decide(
        &mut self,
        engine: &mut Engine<'_>,
        learning: Option<&Learning<'_>>,
        report: &RoundReport<'_>,
        scopes: &[ServerScope<'_>],
        parallel: bool,
    ) -> Result<(), RunError> {
        self.observe(&EdgeFeedback::Round(*report), report.round)?;
        let Round(round) = report.round;
        let mut rng = engine.world.streams.stream(Purpose::Policy, ENTITY, round);
        let (measured, known, missing) = (RefCell::default(), RefCell::default(), Cell::default());
        let (count, on) = (self.count, self.on);
        let losses = Losses { learning, scopes, count, on, parallel, measured, known, missing };
        let loss = |edge: EdgeId, cluster: u32| losses.of(edge, cluster);
        let from = self.state.assignment.clone();
        let ask = AssignmentRequest { round: report.round, clusters: self.count, loss: &loss };
        let assigned = self.policy.assign(&ask, &mut rng, &mut self.state.assignment);
        // A loss that is missing is why the rule fails.
        if let Some(error) = losses.missing.take() {
            return Err(error);
        }
        learning.map_or(Ok(()), |learning| learning.check_work(report.round))?;
        assigned.map_err(Failed::of("assign")).map_err(|failed| failed.told(Role::Clusters, report.round))?;
        let assignment = &self.state.assignment;
        assert!(assignment.iter().all(|&cluster| cluster < self.count), "clusters are numbered from 0: {assignment:?}");
        self.state.reassignments += from.iter().zip(assignment).filter(|(from, to)| from != to).count() as u64;
        if self.charge && self.count > 1 && !losses.known.borrow().is_empty() {
            let others = u64::from(self.count - 1);
            self.ready = engine.now() + charge(engine, scopes, self.on, others, report.round)?;
        }
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
