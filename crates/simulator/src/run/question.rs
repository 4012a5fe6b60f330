//! A server's question to a policy: whom to select.

use super::RunError;
use crate::policy::{Candidates, Explanation, Policy, PolicyRng, Probe, SelectionRequest, ServerView};
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

/// For which of a policy's selections, when, and of whom.
pub(super) struct Question<'a> {
    pub label: &'a str,
    pub asker: Asker,
    pub turn: Turn,
    /// The server's round under way.
    pub round: Round,
    pub now: VirtualTime,
    /// The fewest clients, where so many can be chosen.
    pub least: usize,
    pub cohort: usize,
    pub take: usize,
    pub candidates: Candidates<'a>,
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
/// worked out per round; the truth only if it says that it sees it.
pub(super) fn view<'a>(world: &'a World, counts: &'a [u32], policy: &dyn Policy) -> ServerView<'a> {
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
    }
}

impl Question<'_> {
    pub fn request(&self) -> SelectionRequest<'_> {
        let cohort = self.cohort.min(self.candidates.at_most());
        SelectionRequest {
            turn: self.turn,
            round: self.round,
            now: self.now,
            cohort,
            take: self.take.min(cohort),
            available: self.candidates,
        }
    }

    /// How many clients the selection is to have, and how many of as many can be asked.
    pub fn offer(&self) -> (usize, usize) {
        (self.cohort, self.candidates.count_to(self.cohort))
    }

    /// Asks, and checks the answer. Returns what the policy says of it.
    pub fn ask(
        &self,
        policy: &mut dyn Policy,
        view: &ServerView<'_>,
        streams: &mut SelectionStreams,
        selection: &mut Vec<ClientId>,
    ) -> Result<Explained, RunError> {
        let mut rng = PolicyRng { policy: &mut streams.policy, solver: &mut streams.solver };
        selection.clear();
        let request = self.request();
        policy.select(&request, view, &mut rng, selection);
        self.check(selection)?;
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
        selection: &mut Vec<ClientId>,
    ) -> Result<Explained, RunError> {
        match policy.probe(&self.request(), view, &mut streams.policy) {
            Probe::None | Probe::Context(Span::ZERO) => self.ask(policy, view, &mut streams, selection),
            _ => Err(self.refuse("asks before it selects, and says that it does not")),
        }
    }

    /// What a policy does that breaks the rules.
    pub fn refuse(&self, what: impl Into<String>) -> RunError {
        let policy = self.asker.policy(self.label);
        RunError::BadSelection { policy, turn: self.turn, round: self.round, what: what.into() }
    }

    /// Checks a decision: between `least` and `cohort` clients, all available, none twice.
    fn check(&self, selection: &[ClientId]) -> Result<(), RunError> {
        let cohort = self.request().cohort;
        // Who can be chosen is listed only where that matters.
        let least = if selection.len() < self.least { self.least.min(self.candidates.list().len()) } else { 1 };
        let least = least.min(cohort);
        if selection.len() < least || selection.len() > cohort {
            let found = selection.len();
            return Err(self.refuse(format!("selected {found} clients; expected between {least} and {cohort}")));
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
