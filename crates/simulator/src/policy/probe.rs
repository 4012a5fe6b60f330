//! Probes: questions to candidates before a selection.

use super::answers::Answers;
use fedgenie_core::id::ClientId;
use fedgenie_core::time::Span;

/// Information that a policy needs about candidates before it selects. The run charges its virtual time and traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// Nothing.
    None,
    /// Each available client answers a request of negligible size; all answers take this long.
    Context(Span),
    /// Each of these clients downloads the model and evaluates it on its own data:
    /// [`ServerView::probed`](super::ServerView::probed).
    Losses(Vec<ClientId>),
    /// The same on a mini-batch of its data, drawn without replacement: so many examples, or all if it has no more. The
    /// pass takes the batch's share of the time. See [`Policy::needs_batch_losses`](super::Policy::needs_batch_losses).
    BatchLosses {
        /// The clients asked.
        clients: Vec<ClientId>,
        /// Examples of the mini-batch, at least 1.
        size: usize,
    },
    /// Each of these clients downloads the model and measures it on its own data (training data, unless the task says
    /// otherwise): the task's main measure, negated where smaller is better; NaN where it has none.
    /// [`ServerView::probed`](super::ServerView::probed).
    Qualities(Vec<ClientId>),
    /// Each of these clients answers one of the task's questions: [`ServerView::answers`](super::ServerView::answers).
    Answers {
        /// The clients asked.
        clients: Vec<ClientId>,
        /// The question's name, of [`BuildContext::probes`](super::BuildContext::probes) and of
        /// [`Policy::probe_kinds`](super::Policy::probe_kinds).
        kind: &'static str,
    },
    /// Each of these clients does a whole job, whose result is discarded:
    /// [`ServerView::trained`](super::ServerView::trained). A selected one then trains once more, to the same update.
    /// Time and traffic are those of a whole job. Where the policy looks at losses alone, training ends after the first
    /// epoch, which tells them all, if the task says so; whether a job diverges later is then not known.
    Training {
        /// The clients that train.
        clients: Vec<ClientId>,
        /// The part of the job that travels up; with the loss alone, the server knows nothing of the update.
        answers: Answers,
    },
}
