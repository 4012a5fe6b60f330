//! The cloud's choice of edge servers.
//!
//! A policy chooses clients. This file alone hands it edge servers in their place, under the same numbers.

use crate::clusters::EdgeReport;
use crate::policy::{Bounds, Candidates, Feedback, JobReport, Policy, Selection, ServerView};
use crate::run::error::{Failed, RunError};
use crate::run::round::{Asker, Blamed, CLOUD, Explained, Of, Question, SelectionStreams, Told, numbered};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::{Span, VirtualTime};
use serde_json::Value;

/// The number under which the cloud's policy knows an edge server.
const fn candidate(edge: EdgeId) -> ClientId {
    ClientId(edge.0)
}

/// The edge server behind a client of the cloud's policy.
const fn chosen(client: ClientId) -> EdgeId {
    EdgeId(client.0)
}

/// A policy that chooses edge servers, and its knowledge of them.
#[derive(Stateful)]
pub(super) struct Cloud {
    #[state(with = exchange)]
    policy: Box<dyn Policy>,
    /// The policy's last selection: one in each round.
    turn: Turn,
    /// The longest that a round waits.
    #[state(skip = "from the scenario")]
    timeout: Option<Span>,
    #[state(skip = "from the scenario")]
    candidates: Vec<ClientId>,
    /// Examples of each edge server's clients.
    #[state(skip = "from the scenario")]
    sizes: Vec<u32>,
    #[state(skip = "from the scenario")]
    shares: Vec<f64>,
    #[state(skip = "of the round under way")]
    selection: Selection,
}

/// The policy's state; a failure is its own.
fn exchange(policy: &mut Box<dyn Policy>, state: &mut State<'_>) {
    state.field_of(&mut **policy, |source| Blamed { of: Of::Policy(Asker::Cloud), source }.into());
}

impl Cloud {
    /// Before the first round. `sizes` and `shares` are those of each edge server's clients together.
    pub fn new(policy: Box<dyn Policy>, timeout: Option<Span>, sizes: Vec<u32>, shares: Vec<f64>) -> Self {
        let candidates = (0..sizes.len()).map(|edge| candidate(EdgeId::from_index(edge))).collect();
        Self { policy, turn: Turn(0), timeout, candidates, sizes, shares, selection: Selection::default() }
    }

    pub fn warning(&self) -> Option<String> {
        self.policy.warning()
    }

    pub fn effective(&self) -> Vec<(&'static str, Value)> {
        self.policy.effective()
    }

    /// The last selection.
    pub const fn turn(&self) -> Turn {
        self.turn
    }

    /// Chooses `cohort` edge servers for a round. `counts` says how often each was chosen before.
    pub fn choose(
        &mut self,
        world: &World,
        (round, now, explain): (Round, VirtualTime, bool),
        (cohort, counts): (usize, &[u32]),
    ) -> Result<(Vec<EdgeId>, Explained), RunError> {
        self.turn = self.turn.next();
        let (asker, turn) = (Asker::Cloud, self.turn);
        let bounds = Bounds { deadline: self.timeout, ..Bounds::of_size(cohort) };
        let question = Question {
            world,
            label: "",
            asker,
            turn,
            round,
            now,
            least: 1,
            cohort,
            most: cohort,
            take: cohort,
            bounds,
            candidates: Candidates::from(&*self.candidates),
            has_rounds: true,
            explain,
        };
        let declared = self.policy.capabilities();
        let view = ServerView {
            data_sizes: &self.sizes,
            shares: &self.shares,
            counts,
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: world.task.as_ref().filter(|_| declared.layout).map(|task| task.layout()),
            bounds: declared.bounds.then_some(bounds),
            forecaster: None,
            batteries: None,
        };
        let streams = SelectionStreams::new(world, asker, turn);
        let explained = question.ask_at_once(&mut *self.policy, &view, streams, &mut self.selection)?;
        let explained = explained.map(|object| numbered(object, turn, Some(CLOUD.into())));
        Ok((self.selection.iter().copied().map(chosen).collect(), explained))
    }

    /// Tells the policy how the part of an edge server in a round went.
    pub fn observe(&mut self, report: EdgeReport) -> Result<(), Failed> {
        let EdgeReport { edge, turn, round, staleness, outcome, waited, phases } = report;
        let client = candidate(edge);
        let report = JobReport { client, turn, round, staleness, outcome, waited, phases };
        self.policy.observe(&Feedback::Job(report)).map_err(Failed::of("observe"))
    }

    /// The policy, to be told of a round.
    pub fn told(&mut self) -> Told<'_> {
        Told { policy: &mut *self.policy, turn: self.turn, selected: &self.selection, asker: Asker::Cloud }
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }
}
