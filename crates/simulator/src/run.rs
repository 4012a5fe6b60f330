//! One run: one policy in one world, round by round.
//!
//! ```text
//! policy.select ─▶ dispatch ─▶ kernel: download ▸ compute ▸ upload ─▶ boundary: who arrived?
//!       ▲                                                                 │
//!       └── feedback ◀── evaluate ◀── aggregate ◀── train what arrived ◀──┘
//! ```
//!
//! A run has three parts. The *engine* plays jobs on the kernel and records what happens; the *server* has the global
//! model and the measurements; the *protocol* has the policies, dispatches jobs and decides when a round ends.
//!
//! Training is lazy: what an update contains depends on the model at dispatch, the client's data and the client's
//! streams, never on the clock. All updates that count are therefore trained in one batch at the boundary; lost jobs
//! and late ones that are called off are never trained, but their virtual time and traffic are accounted.
//!
//! *Classes of simultaneous events*: phases end first, then clients are lost, then timers ring. An update that arrives
//! at the instant of the deadline counts.

mod accounts;
mod audit;
mod budget;
mod buffered;
mod candidates;
mod checkpoint;
mod clusters;
mod cohort;
mod engine;
mod evaluations;
mod hierarchy;
mod hindsight;
mod initial;
mod jobs;
mod learning;
mod probe;
mod question;
mod results;
mod rounds;
mod server;
#[cfg(test)]
mod tests;

pub use crate::world::Metrics;
pub use accounts::Accounts;
pub use evaluations::{End, Evaluations};

use crate::policy::{Policies, Policy, Wants};
use crate::population::LatencyError;
use crate::protocol::Rule;
use crate::recorder::Sink;
use crate::world::World;
use buffered::Buffered;
use engine::Engine;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::limits::CLOCK_SECONDS;
use fedgenie_core::time::{SpanError, VirtualTime};
use hierarchy::Hierarchy;
use rounds::Rounds;
use server::Server;
use std::io;

/// Why a run ended early. What was recorded up to then stands.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A policy's decision breaks the rules.
    #[error("policy {policy}, {turn} in {round}: {what}")]
    BadSelection {
        /// The policy's label, and its server where there are several.
        policy: String,
        /// Which of its selections.
        turn: Turn,
        /// The server's round.
        round: Round,
        /// What is wrong with it.
        what: String,
    },
    /// A law gave an impossible duration.
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// A law gave an impossible duration on a link between the cloud and an edge server.
    #[error("{edge}, {round}, {way} the cloud: {source}")]
    EdgeLink {
        /// The edge server.
        edge: EdgeId,
        /// The cloud's round.
        round: Round,
        /// From or to.
        way: &'static str,
        /// What is wrong with the duration.
        source: SpanError,
    },
    /// The update of a client is not finite.
    #[error(
        "the model diverged: the update of {client} in {round} is not finite; a smaller learning rate, in [training] or in \
         [aggregation], may help, or smaller features (normalize = true)"
    )]
    Diverged {
        /// Whose update.
        client: ClientId,
        /// The round in which it counted.
        round: Round,
    },
    /// The global model is not finite after the server's step.
    #[error(
        "the model diverged: the global model after the aggregation of {round} is not finite; a smaller learning rate in \
         [aggregation] may help"
    )]
    ServerDiverged {
        /// The round of the aggregation.
        round: Round,
    },
    /// The task lacks something that a round needs.
    #[error("{round}: {message}")]
    Task {
        /// The round.
        round: Round,
        /// What is missing, and where.
        message: String,
    },
    /// No client can be chosen, now or later.
    #[error("after {time} no device is available, and none will ever be again")]
    NoClients {
        /// When.
        time: VirtualTime,
    },
    /// The server waits for an update that never arrives.
    #[error("at {time} the server waits for the update of {client}, which never comes; give the protocol a timeout")]
    Stuck {
        /// Whose update.
        client: ClientId,
        /// When.
        time: VirtualTime,
    },
    /// One job after the other ends without an update.
    #[error(
        "at {time} {jobs} jobs in a row have ended without an update that could be used; a longer timeout in the protocol may \
         help"
    )]
    NoUpdates {
        /// When.
        time: VirtualTime,
        /// How many jobs.
        jobs: u32,
    },
    /// Virtual time has passed its end.
    #[error("virtual time has reached {time}, and goes up to {CLOCK_SECONDS} s, 250 years")]
    TooLate {
        /// When.
        time: VirtualTime,
    },
    /// A sum of bytes has left its range.
    #[error("more than {} bytes were {what}, which is the most that is counted", u64::MAX - 1)]
    TooManyBytes {
        /// Which bytes.
        what: &'static str,
    },
    /// A policy waits too long for what it asks before it selects.
    #[error("policy {policy}, {turn} in {round}: waits for more than 300 years before it selects")]
    Probe {
        /// The policy's label, and its server where there are several.
        policy: String,
        /// Which of its selections.
        turn: Turn,
        /// The server's round.
        round: Round,
    },
    /// The budget does not pay for the first selection of a run.
    #[error(
        "policy {policy}, {turn} in {round}: what it asks for before it selects moves {asked} bytes, and of the budget of \
         {budget} bytes too few are left for a round of {least} after it"
    )]
    Budget {
        /// The policy's label.
        policy: String,
        /// Which of its selections.
        turn: Turn,
        /// The server's round.
        round: Round,
        /// Bytes of the budget.
        budget: u64,
        /// Fewest clients of a round.
        least: usize,
        /// Bytes of what it asks.
        asked: u64,
    },
    /// Rounds close, and time does not pass.
    #[error(
        "{rounds} rounds have closed at {time} without any time passing, and no number of rounds ends the run; give \
         stop.rounds, or clients that take time"
    )]
    Standstill {
        /// When.
        time: VirtualTime,
        /// How many rounds.
        rounds: u32,
    },
    /// One of the checks that every run passes did not hold: a defect of the program.
    #[error("a check of the run failed: {what}. Before that:\n  {}", records.join("\n  "))]
    Violated {
        /// What was found.
        what: String,
        /// The last records.
        records: Vec<String>,
    },
    /// Records could not be kept.
    #[error("cannot keep the records: {0}")]
    Io(#[from] io::Error),
}

/// How a run is carried out, apart from what it computes.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// When the global model is evaluated; where its `end` does not say which round is the last, it is by
    /// [`Run::finish`].
    pub evaluate: Evaluations,
    /// Rounds between recorded rounds.
    pub record_every: u32,
    /// Whether policies explain their decisions in the recorded rounds.
    pub explain: bool,
    /// Whether recorded rounds have statistics of updates, whatever the policy wants.
    pub updates: bool,
    /// Whether clients are trained on all cores of the current rayon pool.
    pub parallel: bool,
}

enum Protocol<'w> {
    Rounds(Box<Rounds<'w>>),
    Buffered(Box<Buffered<'w>>),
    Hierarchy(Box<Hierarchy<'w>>),
}

impl Protocol<'_> {
    /// The edge servers; none where there is one server.
    fn scopes(&self) -> Vec<learning::ServerScope<'_>> {
        match self {
            Self::Rounds(_) | Self::Buffered(_) => Vec::new(),
            Self::Hierarchy(hierarchy) => hierarchy.scopes(),
        }
    }
}

impl RunSettings {
    /// The statistics of updates that a policy wants or the records have.
    fn wants(&self, policy: &dyn Policy) -> Wants {
        let wants = policy.wants();
        Wants { loss_rms: wants.loss_rms || self.updates, ..wants }
    }
}

/// A run in progress.
pub struct Run<'w> {
    engine: Engine<'w>,
    server: Server<'w>,
    protocol: Protocol<'w>,
}

impl<'w> Run<'w> {
    /// A run before its first round. What a sink keeps can be read after the run if it is passed as `&mut sink`.
    ///
    /// # Panics
    /// If the policies are not those of the world's protocol: one of the server, or one of each edge server.
    pub fn new(
        world: &'w World,
        label: &str,
        policies: impl Into<Policies>,
        settings: RunSettings,
        sink: impl Sink + 'w,
    ) -> Self {
        Self::begin(world, label, policies.into(), settings, Box::new(sink))
    }

    fn begin(
        world: &'w World,
        label: &str,
        policies: Policies,
        settings: RunSettings,
        sink: Box<dyn Sink + 'w>,
    ) -> Self {
        let asking: Vec<&dyn Policy> = match &policies {
            Policies::Server(policy) => vec![&**policy],
            Policies::Tiers { edges, .. } => edges.iter().map(|policy| &**policy).collect(),
        };
        let wanted = asking.iter().map(|policy| policy.wants().edge_accuracy).collect();
        let mut engine = Engine::new(world, sink);
        let mut server = Server::new(world, label, settings);
        engine.brings = asking.iter().map(|policy| server.sought(*policy).bytes()).collect();
        let protocol = match (&world.protocol.rule, policies) {
            (Rule::Rounds(rule), Policies::Server(policy)) => {
                Protocol::Rounds(Box::new(Rounds::new(world, rule, policy)))
            }
            (Rule::Buffered(rule), Policies::Server(policy)) => {
                Protocol::Buffered(Box::new(Buffered::new(world, rule, policy)))
            }
            (Rule::Hierarchical(rule), Policies::Tiers { edges, cloud }) => {
                Protocol::Hierarchy(Box::new(Hierarchy::new(world, rule, edges, cloud)))
            }
            _ => panic!("a run has the policies of its protocol"),
        };
        server.measure_accuracies(world, wanted);
        Self { engine, server, protocol }
    }

    /// Plays one round: until the global model has changed, or would have. Where the budget does not pay for a round,
    /// none is played, and [`Run::is_spent`] says so.
    ///
    /// # Errors
    /// If the policy's choice breaks the rules, a law gives an impossible duration, no client can ever be chosen again,
    /// or records cannot be kept.
    pub fn step(&mut self) -> Result<(), RunError> {
        let Self { engine, server, protocol } = self;
        match protocol {
            Protocol::Rounds(rounds) => rounds.step(engine, server),
            Protocol::Buffered(buffered) => buffered.step(engine, server),
            Protocol::Hierarchy(hierarchy) => hierarchy.step(engine, server),
        }
    }
}
