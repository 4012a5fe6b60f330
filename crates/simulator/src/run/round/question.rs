//! A server's question to a policy, and the checks of its decision.

mod decision;

use crate::policy::{
    Bounds, Candidates, Explanation, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView,
};
use crate::population::Forecaster;
use crate::run::error::{Failed, Role, RunError};
use crate::run::timeline::Jobs;
use crate::world::World;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{EdgeId, Round, Turn};
use fedgenie_core::rng::{Purpose, StreamRng};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, VirtualTime};

/// The cloud among the servers of explanations.
pub(in crate::run) const CLOUD: &str = "cloud";

/// The server that asks a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Asker {
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

    /// The server in explanations, where there are several.
    pub fn in_explanations(self) -> Option<serde_json::Value> {
        match self {
            Self::Server => None,
            Self::Edge(edge) => Some(edge.0.into()),
            Self::Cloud => Some(CLOUD.into()),
        }
    }

    /// Its policy, in errors.
    pub fn role(self, label: &str) -> Role {
        Role::Policy(self.policy(label))
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
pub(in crate::run) struct Question<'a> {
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
    /// Bounds of the policy's decisions.
    pub bounds: Bounds,
    pub candidates: Candidates<'a>,
    /// Whether clients are selected for rounds, and not one by one.
    pub has_rounds: bool,
    /// Whether the policy is to explain itself.
    pub explain: bool,
}

/// Why a policy decided as it did; `None` where it is not asked.
pub(in crate::run) type Explained = Option<serde_json::Map<String, serde_json::Value>>;

/// The random numbers of one selection. A selection goes on in the policy's stream where its probe stopped.
#[derive(Stateful)]
pub(in crate::run) struct SelectionStreams {
    pub policy: StreamRng,
    solver: StreamRng,
}

impl SelectionStreams {
    /// Those of a server's selection.
    pub fn new(world: &World, asker: Asker, turn: Turn) -> Self {
        let stream = |purpose| world.streams.stream(purpose, asker.entity(), turn.0);
        Self { policy: stream(Purpose::Policy), solver: stream(Purpose::Solver) }
    }

    /// As a policy draws from them.
    pub const fn rng(&mut self) -> PolicyRng<'_> {
        PolicyRng { policy: &mut self.policy, solver: &mut self.solver }
    }
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

    /// The policy's probe before it selects.
    pub fn probe(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        streams: &mut SelectionStreams,
    ) -> Result<Probe, RunError> {
        let probe = policy.probe(&self.request(), view, &mut streams.policy).map_err(self.failed("probe"))?;
        self.check_forecasts(view)?;
        Ok(probe)
    }

    /// Asks, and checks the answer. Returns the policy's explanation.
    pub fn ask(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        streams: &mut SelectionStreams,
        selection: &mut Selection,
    ) -> Result<Explained, RunError> {
        let mut rng = streams.rng();
        selection.clear();
        let request = self.request();
        policy.select(&request, view, &mut rng, selection).map_err(self.failed("select"))?;
        self.check_forecasts(view)?;
        self.check(policy, selection)?;
        if !self.explain {
            return Ok(None);
        }
        let mut explanation = Explanation::default();
        policy.explain(&request, view, selection, &mut explanation).map_err(self.failed("explain"))?;
        Ok(Some(explanation.into_json()))
    }

    /// As [`Question::ask`], where no client can be asked.
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

    /// The error of a method of the policy that failed.
    pub fn failed(&self, method: &'static str) -> impl FnOnce(Failure) -> RunError {
        let Self { asker, label, round, .. } = *self;
        move |source| Failed { method, source }.told(asker.role(label), round)
    }

    /// The error of a decision that breaks the rules.
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
