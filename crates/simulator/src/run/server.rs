//! What a server has: a policy, what it remembers of its clients, the global model, what was measured.

use super::engine::Engine;
use super::learning::{Divergence, Learning, Trained};
use super::{RunError, RunSettings};
use crate::metrics::Participation;
use crate::policy::{
    Candidates, Feedback, Policy, PolicyRng, Probe, RoundReport, SelectionRequest, ServerView, TrainingReport,
};
use crate::recorder::{DroppedJob, RoundMark, RoundSummary, Sink};
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::record::{Record, Regret};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};

/// Everything that is not a job under way.
pub(super) struct Server<'w> {
    pub label: String,
    /// Of the server, or of each edge server.
    pub policies: Vec<Box<dyn Policy>>,
    pub settings: RunSettings,
    pub round: Round,
    /// Times each client was selected.
    pub counts: Vec<u32>,
    /// How evenly.
    pub participation: Participation,
    pub learning: Option<Learning<'w>>,
    /// Of the last round, if it was evaluated.
    pub metrics: Vec<(&'static str, f64)>,
    /// Per named group since the last recorded round.
    pub group_selections: Vec<(String, u64)>,
    mark: RoundMark,
}

/// What became of the jobs of a round in which clients are asked again and again.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Everyone who was asked, in dispatch order.
    pub selected: Vec<ClientId>,
    /// In order of arrival.
    pub arrived: Vec<ClientId>,
    pub late: Vec<ClientId>,
    pub dropped: Vec<DroppedJob>,
}

impl Tally {
    pub fn clear(&mut self) {
        self.selected.clear();
        self.arrived.clear();
        self.late.clear();
        self.dropped.clear();
    }

    /// A round with nothing else to say.
    pub fn facts(&self, opened: VirtualTime) -> RoundFacts<'_> {
        let Self { selected, arrived, late, dropped } = self;
        RoundFacts { opened, selected, arrived, late, dropped, ..RoundFacts::default() }
    }
}

/// What a round is recorded as, beside what server and engine know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundFacts<'a> {
    pub opened: VirtualTime,
    pub selected: &'a [ClientId],
    pub arrived: &'a [ClientId],
    pub late: &'a [ClientId],
    pub dropped: &'a [DroppedJob],
    pub joined: &'a [(ClientId, Round)],
    pub lost_late: &'a [(DroppedJob, Round)],
    pub edges: &'a [u32],
    pub is_abandoned: bool,
    pub reward: Option<f64>,
    pub regret: Regret,
}

impl<'w> Server<'w> {
    pub fn new(world: &'w World, label: &str, policies: Vec<Box<dyn Policy>>, settings: RunSettings) -> Self {
        let groups = world.population.groups();
        let named = groups.iter().any(|group| group.name.is_some());
        let name = |(index, group): (usize, &crate::population::Group)| {
            (group.name.clone().unwrap_or_else(|| format!("group {}", index + 1)), 0)
        };
        Self {
            label: label.to_owned(),
            policies,
            settings,
            round: Round(0),
            counts: vec![0; world.population.len()],
            participation: Participation::new(world.population.len()),
            learning: world.learner.as_ref().map(|learner| Learning::new(world, learner)),
            metrics: Vec::new(),
            group_selections: if named { groups.iter().enumerate().map(name).collect() } else { Vec::new() },
            mark: RoundMark::default(),
        }
    }

    /// Counts a selection that is being carried out.
    pub fn count(&mut self, world: &World, selection: &[ClientId]) {
        for &client in selection {
            let count = &mut self.counts[client.index()];
            self.participation.count(*count);
            *count += 1;
            if let Some((_, count)) = self.group_selections.get_mut(world.population.group_of(client)) {
                *count += 1;
            }
        }
    }

    /// Notes a new model, tells the policy what the updates said of their training, and evaluates where that is due.
    pub fn learned<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        trained: Result<Option<Vec<Trained>>, Divergence>,
        opened: VirtualTime,
    ) -> Result<Vec<Trained>, RunError> {
        let round = self.round;
        let trained = trained.map_err(|divergence| divergence.in_round(round))?;
        if let (Some(_), Some(learning)) = (&trained, &self.learning) {
            engine.note(&Record::Model { round, parameters: &learning.model() })?;
        }
        let (plan, now) = (&self.settings.evaluate, engine.now());
        if plan.is_due(round, opened, now) || plan.end.is_reached(round, now, &engine.accounts) {
            self.evaluate(engine)?;
        }
        Ok(trained.unwrap_or_default())
    }

    fn evaluate<S: Sink>(&mut self, engine: &mut Engine<'_, S>) -> Result<(), RunError> {
        let Some(learning) = &self.learning else { return Ok(()) };
        self.metrics = learning.evaluate(self.settings.evaluate.clients, self.settings.parallel);
        self.metrics
            .iter()
            .try_for_each(|&(name, value)| engine.note(&Record::Metric { round: self.round, name, value }))
    }

    /// Tells the policy how updates were trained and how the round went, and records the round.
    pub fn close<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        trained: &[Trained],
        facts: &RoundFacts<'_>,
    ) -> Result<(), RunError> {
        report_training(&mut *self.policies[0], trained);
        let now = engine.now();
        let report = RoundReport {
            round: self.round,
            selected: facts.selected,
            duration: now - facts.opened,
            metrics: &self.metrics,
        };
        self.policies[0].observe(&Feedback::Round(report));
        self.record(engine, facts)
    }

    /// Records a round that is over.
    pub fn record<S: Sink>(&mut self, engine: &mut Engine<'_, S>, facts: &RoundFacts<'_>) -> Result<(), RunError> {
        let (now, round) = (engine.now(), self.round);
        let accounts = engine.accounts;
        let (down_bytes, up_bytes) = (accounts.down_bytes, accounts.up_bytes);
        let &RoundFacts { reward, regret, .. } = facts;
        engine.note(&Record::Closed { round, time: now, reward, regret, down_bytes, up_bytes })?;
        let is_recorded = round.0.is_multiple_of(self.settings.record_every);
        engine.digests.seal(is_recorded && engine.sink.wants_checksums(), &mut self.mark);
        let summary = RoundSummary {
            round,
            opened: facts.opened,
            closed: now,
            selected: facts.selected,
            arrived: facts.arrived,
            late: facts.late,
            dropped: facts.dropped,
            joined: facts.joined,
            lost_late: facts.lost_late,
            edges: facts.edges,
            is_abandoned: facts.is_abandoned,
            reward,
            regret,
            metrics: &self.metrics,
            down_bytes,
            up_bytes,
            edge_bytes: (accounts.edge_down_bytes, accounts.edge_up_bytes),
            group_selections: &self.group_selections,
        };
        engine.sink.round(&summary, is_recorded, &self.mark)?;
        if is_recorded {
            self.group_selections.iter_mut().for_each(|(_, count)| *count = 0);
        }
        engine.accounts.rounds += 1;
        Ok(())
    }
}

pub(super) fn report_training(policy: &mut dyn Policy, trained: &[Trained]) {
    for &Trained { client, round, loss } in trained {
        policy.observe(&Feedback::Trained(TrainingReport { client, round, loss }));
    }
}

/// A question to a policy: for which of its selections, of whom, under what history.
pub(super) struct Question<'a> {
    pub label: &'a str,
    /// Number of the policy's selection: its round in most protocols.
    pub number: Round,
    /// Which of several servers asks, 0 if there is one; decides the random numbers.
    pub server: u32,
    pub now: VirtualTime,
    pub cohort: usize,
    pub take: usize,
    pub candidates: Candidates<'a>,
    pub view: ServerView<'a>,
}

impl Question<'_> {
    /// Asks a policy that must not probe, and checks the answer.
    pub fn ask(&self, world: &World, policy: &mut dyn Policy, selection: &mut Vec<ClientId>) -> Result<(), RunError> {
        let mut policy_rng = world.streams.stream(Purpose::Policy, self.server, self.number.0);
        let mut solver_rng = world.streams.stream(Purpose::Solver, self.server, self.number.0);
        let request = self.request();
        match policy.probe(&request, &self.view, &mut policy_rng) {
            Probe::None | Probe::Context(Span::ZERO) => {}
            _ => return Err(self.refuse("asks clients before it selects, and says that it does not")),
        }
        selection.clear();
        let mut rng = PolicyRng { policy: &mut policy_rng, solver: &mut solver_rng };
        policy.select(&request, &self.view, &mut rng, selection);
        self.check(selection)
    }

    pub fn request(&self) -> SelectionRequest<'_> {
        let cohort = self.cohort.min(self.candidates.at_most());
        SelectionRequest {
            round: self.number,
            now: self.now,
            cohort,
            take: self.take.min(cohort),
            available: self.candidates,
        }
    }

    fn refuse(&self, what: impl Into<String>) -> RunError {
        RunError::BadSelection { policy: self.label.to_owned(), round: self.number, what: what.into() }
    }

    /// Checks a decision: between one and `cohort` clients, all available, none twice.
    pub fn check(&self, selection: &[ClientId]) -> Result<(), RunError> {
        let cohort = self.request().cohort;
        if selection.is_empty() || selection.len() > cohort {
            return Err(self.refuse(format!("selected {} clients; expected between 1 and {cohort}", selection.len())));
        }
        if selection.len() > 1 {
            let mut sorted = selection.to_vec();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(self.refuse(format!("selected {} twice", pair[0])));
            }
        }
        match selection.iter().find(|&&client| !self.candidates.contains(client)) {
            Some(client) => Err(self.refuse(format!("selected {client}, which is not available"))),
            None => Ok(()),
        }
    }
}

/// What a server can know where no reward is metered.
pub(super) fn plain_view<'a>(data_sizes: &'a [u32], shares: &'a [f64], counts: &'a [u32]) -> ServerView<'a> {
    ServerView { data_sizes, shares, counts, probed: &[], gains: None::<(&Reward, &[f64])>, genie: None }
}
