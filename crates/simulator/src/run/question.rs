//! A server's question to a policy, and the checks of its decision.

mod decision;

use super::RunError;
use super::jobs::Jobs;
use crate::policy::{
    Bounds, Candidates, Explanation, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView,
};
use crate::population::Forecaster;
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::rng::{Purpose, StreamRng};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, VirtualTime};

/// Who asks a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The one server.
    Server,
    /// An edge server.
    Edge(EdgeId),
    /// The cloud, which chooses edge servers.
    Cloud,
}

impl Asker {
    /// Whose random numbers these are. The one server has those of the first edge server: there is only one of them.
    const fn entity(self) -> u32 {
        match self {
            Self::Server => 0,
            Self::Edge(edge) => edge.0,
            Self::Cloud => u32::MAX,
        }
    }

    /// Its policy's name in messages.
    pub fn policy(self, label: &str) -> String {
        match self {
            Self::Server => format!("{label:?}"),
            Self::Edge(edge) => format!("{label:?} of {edge}"),
            Self::Cloud => "of the cloud".to_owned(),
        }
    }
}

/// One selection request.
pub(super) struct Question<'a> {
    pub world: &'a World,
    pub label: &'a str,
    pub asker: Asker,
    pub turn: Turn,
    /// The server's round under way.
    pub round: Round,
    pub now: VirtualTime,
    /// The fewest clients, where so many can be chosen.
    pub least: usize,
    /// The usual number of clients.
    pub cohort: usize,
    /// The largest.
    pub most: usize,
    pub take: usize,
    /// What the policy may decide.
    pub bounds: Bounds,
    pub candidates: Candidates<'a>,
    /// Whether clients are selected for rounds, and not one by one.
    pub has_rounds: bool,
    /// Whether the policy is to explain itself.
    pub explain: bool,
}

/// Why a policy decided as it did; none where it is not asked.
pub(super) type Explained = Option<serde_json::Map<String, serde_json::Value>>;

/// The random numbers of one selection. A selection goes on in the policy's stream where its probe stopped.
#[derive(Stateful)]
pub(super) struct SelectionStreams {
    pub policy: StreamRng,
    solver: StreamRng,
}

impl SelectionStreams {
    /// Those of a server's selection.
    pub fn new(world: &World, asker: Asker, turn: Turn) -> Self {
        let stream = |purpose| world.streams.stream(purpose, asker.entity(), turn.0);
        Self { policy: stream(Purpose::Policy), solver: stream(Purpose::Solver) }
    }
}

/// What a server's policy knows of its clients before a selection: no answers to a probe, and no gains, which are
/// worked out per round; the truth, and what it has to declare, only if it says so.
pub(super) fn view<'a>(
    world: &'a World,
    counts: &'a [u32],
    policy: &dyn Policy,
    bounds: Bounds,
    forecaster: Option<&'a Forecaster<'a>>,
) -> ServerView<'a> {
    let declared = policy.capabilities();
    ServerView {
        data_sizes: world.population.data_sizes(),
        shares: &world.shares,
        counts,
        probed: &[],
        answers: &[],
        trained: &[],
        gains: None,
        genie: world.truth.as_ref().filter(|_| policy.sees_truth()).map(|truth| &truth.genie),
        foreseen: None,
        layout: world.task.as_ref().filter(|_| declared.layout).map(|task| task.layout()),
        bounds: declared.bounds.then_some(bounds),
        forecaster,
    }
}

/// What answers a policy's questions about availability, if it declares that it asks any: of a server with these
/// clients, or with all.
pub(super) fn forecaster<'w>(
    world: &'w World,
    policy: &dyn Policy,
    members: Option<&'w [ClientId]>,
) -> Option<Forecaster<'w>> {
    let asks = policy.capabilities().forecast;
    if asks { Forecaster::new(&world.population, &world.streams, members) } else { None }
}

impl Question<'_> {
    pub fn request(&self) -> SelectionRequest<'_> {
        let at_most = self.candidates.at_most();
        let cohort = self.cohort.min(at_most);
        SelectionRequest {
            turn: self.turn,
            round: self.round,
            now: self.now,
            cohort,
            most: self.most.min(at_most),
            take: self.take.min(cohort),
            available: self.candidates,
        }
    }

    /// How many clients the selection is to have, and how many of as many can be asked.
    pub fn offer(&self) -> (usize, usize) {
        (self.cohort, self.candidates.count_to(self.cohort))
    }

    /// What the policy wants to be told before it selects.
    pub fn probe(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        streams: &mut SelectionStreams,
    ) -> Result<Probe, RunError> {
        let probe = policy.probe(&self.request(), view, &mut streams.policy);
        self.check_forecasts(view)?;
        Ok(probe)
    }

    /// Asks, and checks the answer. Returns what the policy says of it.
    pub fn ask(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        streams: &mut SelectionStreams,
        selection: &mut Selection,
    ) -> Result<Explained, RunError> {
        let mut rng = PolicyRng { policy: &mut streams.policy, solver: &mut streams.solver };
        selection.clear();
        let request = self.request();
        policy.select(&request, view, &mut rng, selection);
        self.check_forecasts(view)?;
        self.check(policy, selection)?;
        Ok(self.explain.then(|| {
            let mut explanation = Explanation::default();
            policy.explain(&request, view, selection, &mut explanation);
            explanation.into_json()
        }))
    }

    /// As [`Question::ask`], where nobody can be asked.
    pub fn ask_at_once(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        mut streams: SelectionStreams,
        selection: &mut Selection,
    ) -> Result<Explained, RunError> {
        match self.probe(policy, view, &mut streams)? {
            Probe::None | Probe::Context(Span::ZERO) => self.ask(policy, view, &mut streams, selection),
            _ => Err(self.refuse("asks before it selects, and says that it does not")),
        }
    }

    /// What a policy does that breaks the rules.
    pub fn refuse(&self, what: impl Into<String>) -> RunError {
        let policy = self.asker.policy(self.label);
        RunError::BadSelection { policy, turn: self.turn, round: self.round, what: what.into() }
    }

    /// Refuses a question about availability that has no answer, whatever the policy made of that.
    fn check_forecasts(&self, view: &ServerView<'_>) -> Result<(), RunError> {
        let refused = view.forecaster.and_then(Forecaster::refused);
        refused.map_or(Ok(()), |error| Err(self.refuse(error.to_string())))
    }

    /// Checks that updates which may meet in one aggregation have weights of the same kind. `jobs` are those that are
    /// not settled, the selection's apart.
    pub fn check_alike(&self, jobs: &Jobs, selection: &Selection) -> Result<(), RunError> {
        let has_weights = !selection.weights.is_empty();
        let Some(job) = jobs.unlike(has_weights).filter(|_| !selection.is_empty()) else { return Ok(()) };
        let [gives, other] = if has_weights { ["gave", "has none"] } else { ["gave no", "has one"] };
        let (client, round) = (job.client, job.round);
        Err(self.refuse(format!(
            "{gives} weights, and the update of {client}, selected in {round}, {other} and may join the same \
             aggregation; give weights in all selections, or in none"
        )))
    }
}
