//! Why a run ends early.

use crate::population::LatencyError;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::limits::CLOCK_SECONDS;
use fedgenie_core::time::{SpanError, VirtualTime};
use std::fmt;
use std::io;

/// The part of a run that a program may bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A policy: its label in quotes, and its server where there are several.
    Policy(String),
    /// The task.
    Task,
    /// The rule that assigns edge servers to clusters.
    Clusters,
    /// The server's step.
    Algorithm,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => write!(formatter, "policy {name}"),
            Self::Task => formatter.write_str("the task"),
            Self::Clusters => formatter.write_str("the rule of clusters"),
            Self::Algorithm => formatter.write_str("the algorithm"),
        }
    }
}

/// A client's part in a sentence, if there is one.
fn of_client(client: Option<&ClientId>) -> String {
    client.map_or_else(String::new, |client| format!("{client} in "))
}

/// Why a run ended early. The records up to then stand.
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
        /// The violated rule.
        what: String,
    },
    /// A policy, a task or a rule of clusters failed: code from outside, for a reason of its own.
    #[error("{role} failed in {method}, {}{round}: {source}", of_client(client.as_ref()))]
    Outside {
        /// Which of them.
        role: Role,
        /// The method that failed.
        method: &'static str,
        /// The client that it was about, if it is a task's method about one.
        client: Option<ClientId>,
        /// The server's round.
        round: Round,
        /// Its reason, which can be downcast to its own type.
        source: Failure,
    },
    /// The run was stopped in the middle of a round, at the caller's request.
    #[error("stopped in the middle of a round")]
    Halted,
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
        /// The duration's defect.
        source: SpanError,
    },
    /// The update of a client is not finite.
    #[error(
        "the model diverged: the update of {client} in {round} is not finite; a smaller learning rate, in [training] or in \
         [aggregation], may help, or smaller features (normalize = true){why}"
    )]
    Diverged {
        /// Whose update.
        client: ClientId,
        /// The round in which it counted.
        round: Round,
        /// What else may be the cause, after a semicolon; empty if nothing is known.
        why: &'static str,
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
        /// The missing part and its place.
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
    /// A policy waits too long for its probe.
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
        /// Bytes of its probe.
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
        /// The finding.
        what: String,
        /// The last records.
        records: Vec<String>,
    },
    /// Records could not be kept.
    #[error("cannot keep the records: {0}")]
    Io(#[from] io::Error),
}

impl RunError {
    /// The error of a component of a run that could not be saved or loaded.
    pub fn of_state(failure: Failure) -> Self {
        match failure.downcast() {
            Ok(error) => *error,
            Err(failure) => Self::Io(io::Error::other(failure)),
        }
    }
}

/// A method of a policy that failed; who and when is added by the server.
#[derive(Debug)]
pub(in crate::run) struct Failed {
    pub method: &'static str,
    pub source: Failure,
}

impl Failed {
    /// Names the method of a failure.
    pub fn of(method: &'static str) -> impl FnOnce(Failure) -> Self {
        move |source| Self { method, source }
    }

    /// As the error of a run.
    pub fn told(self, role: Role, round: Round) -> RunError {
        let Self { method, source } = self;
        RunError::Outside { role, method, client: None, round, source }
    }
}
