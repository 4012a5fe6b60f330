//! One run: one policy in one world, round by round.
//!
//! ```text
//! policy.select ─▶ dispatch ─▶ kernel: download ▸ compute ▸ upload ─▶ boundary: who arrived?
//!       ▲                                                                 │
//!       └── feedback ◀── evaluate ◀── aggregate ◀── train what arrived ◀──┘
//! ```
//!
//! A run has three parts. The *engine* plays jobs on the kernel and records what happens; the *server* has the policy, the
//! global model and the measurements; the *protocol* decides what to dispatch and when updates are aggregated.
//!
//! Training is lazy: what an update contains depends on the model at dispatch, the client's data and the client's streams,
//! never on the clock. All updates that count are therefore trained in one batch at the boundary; a job that was lost or
//! late and called off is never trained, but its virtual time and traffic are accounted.
//!
//! *Classes of simultaneous events*: phases end first, then clients are lost, then timers ring. An update that arrives at
//! the instant of the deadline counts.

mod accounts;
mod audit;
mod buffered;
mod counterfactual;
mod engine;
mod evaluations;
mod hierarchy;
mod jobs;
mod learning;
mod results;
mod rounds;
mod server;

pub use accounts::Accounts;
pub use evaluations::{End, Evaluations};
pub use results::Metrics;

use crate::policy::Cast;
use crate::population::LatencyError;
use crate::protocol::Rule;
use crate::recorder::Sink;
use crate::world::World;
use buffered::Buffered;
use engine::Engine;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::Regret;
use fedgenie_core::time::VirtualTime;
use hierarchy::Hierarchy;
use rounds::Rounds;
use server::Server;
use std::io;

/// Why a run ended early. What was recorded up to then stands.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A policy's decision breaks the rules.
    #[error("policy {policy:?}, {round}: {what}")]
    BadSelection {
        /// The policy's label.
        policy: String,
        /// The round.
        round: Round,
        /// What is wrong with it.
        what: String,
    },
    /// A law gave an impossible duration.
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// Training left the finite numbers.
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
    /// The server's step left the finite numbers.
    #[error(
        "the model diverged: the global model after the aggregation of {round} is not finite; a smaller learning rate in \
         [aggregation] may help"
    )]
    ServerDiverged {
        /// The round of the aggregation.
        round: Round,
    },
    /// Nobody can be chosen, and nobody ever will be.
    #[error("after {time} no device is available, and none will ever be again")]
    Deserted {
        /// When.
        time: VirtualTime,
    },
    /// The server waits for something that never happens.
    #[error("at {time} the server waits for the update of {client}, which never comes; give the protocol a timeout")]
    Stuck {
        /// Whose update.
        client: ClientId,
        /// When.
        time: VirtualTime,
    },
    /// The server gives up on one client after the other.
    #[error(
        "at {time} the server has given up on {jobs} clients since an update last arrived; a longer timeout than that of the \
         protocol may help"
    )]
    Fruitless {
        /// When.
        time: VirtualTime,
        /// How many jobs came to nothing.
        jobs: u32,
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
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// When the global model is evaluated; where its `end` does not say which round is the last, it is by [`Run::finish`].
    pub evaluate: Evaluations,
    /// Rounds between recorded rounds.
    pub record_every: u32,
    /// Whether clients are trained on all cores of the current rayon pool.
    pub parallel: bool,
}

enum Protocol<'w> {
    Rounds(Box<Rounds<'w>>),
    Buffered(Box<Buffered<'w>>),
    Hierarchy(Box<Hierarchy<'w>>),
}

/// A run in progress.
pub struct Run<'w, S> {
    engine: Engine<'w, S>,
    server: Server<'w>,
    protocol: Protocol<'w>,
}

impl<'w, S: Sink> Run<'w, S> {
    /// A run before its first round.
    ///
    /// # Panics
    /// If there is not one policy for each server.
    pub fn new(world: &'w World, label: &str, cast: impl Into<Cast>, settings: RunSettings, sink: S) -> Self {
        let Cast { servers, cloud } = cast.into();
        assert_eq!(servers.len(), world.rule.servers(), "every server has a policy of its own");
        let protocol = match &world.rule {
            Rule::Rounds(rule) => Protocol::Rounds(Box::new(Rounds::new(world, rule))),
            Rule::Buffered(rule) => Protocol::Buffered(Box::new(Buffered::new(world, rule))),
            Rule::Hierarchical(rule) => Protocol::Hierarchy(Box::new(Hierarchy::new(world, rule, cloud))),
        };
        Self { engine: Engine::new(world, sink), server: Server::new(world, label, servers, settings), protocol }
    }

    /// Plays one round: until the global model has changed, or would have.
    ///
    /// # Errors
    /// If the policy's choice breaks the rules, a law gives an impossible duration, nobody can ever be chosen again, or
    /// records cannot be kept.
    pub fn step(&mut self) -> Result<(), RunError> {
        let Self { engine, server, protocol } = self;
        match protocol {
            Protocol::Rounds(rounds) => rounds.step(engine, server),
            Protocol::Buffered(buffered) => buffered.step(engine, server),
            Protocol::Hierarchy(hierarchy) => hierarchy.step(engine, server),
        }
    }

    fn metered(&self) -> (Option<f64>, Regret) {
        match &self.protocol {
            Protocol::Rounds(rounds) => (rounds.reward, rounds.regret),
            Protocol::Buffered(_) | Protocol::Hierarchy(_) => (None, Regret::default()),
        }
    }
}
