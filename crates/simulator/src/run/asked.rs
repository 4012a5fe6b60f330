//! A run whose selections are made by its caller: a step stops at the question, and goes on with the answer.
//!
//! [`Run::ask`] plays up to the next question and shows it, [`Run::tell`] takes the selection and plays to the end of
//! the round. Both are the two halves of [`Run::step`]. The caller knows what a policy that declares `bounds` knows,
//! draws from the policy's stream, and is told the same feedback; it sends no probes.
//!
//! # Example
//! ```
//! # use fedgenie_simulator::run::{Run, RunError, RunSettings};
//! # use fedgenie_simulator::policy::Selection;
//! # use fedgenie_simulator::recorder::NoSink;
//! # use fedgenie_simulator::world::World;
//! /// Selects the first clients, round after round.
//! fn play(world: &World) -> Result<(), RunError> {
//!     let mut run = Run::asking(world, "mine", RunSettings::default(), NoSink).expect("a protocol with rounds");
//!     while let Some(first) = run.ask(|ask, _, _| ask.available.list()[..ask.cohort].to_vec())? {
//!         let mut selection = Selection::default();
//!         selection.extend(first);
//!         let feedback = run.tell(selection)?;
//!         println!("{} reports", feedback.len());
//!     }
//!     Ok(())
//! }
//! ```

use super::round::RunSettings;
use super::{Protocol, Run, RunError};
use crate::policy::{
    Capabilities, Feedback, JobReport, Policy, PolicyRng, RoundReport, Selection, SelectionRequest, ServerView,
    TrainingReport,
};
use crate::protocol::Rule;
use crate::recorder::Sink;
use crate::world::World;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::MetricId;
use fedgenie_core::state::Stateful;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Feedback that is kept.
#[derive(Clone, Debug)]
pub enum Heard {
    /// See [`Feedback::Job`].
    Job(JobReport),
    /// See [`Feedback::Trained`]; without statistics that nobody wants.
    Trained(TrainingReport<'static>),
    /// See [`Feedback::Round`].
    Round {
        /// The report without its lists.
        report: RoundReport<'static>,
        /// [`RoundReport::selected`].
        selected: Vec<ClientId>,
        /// [`RoundReport::metrics`].
        metrics: Vec<(MetricId, f64)>,
    },
}

impl Heard {
    /// Keeps feedback.
    fn of(feedback: &Feedback<'_>) -> Self {
        match *feedback {
            Feedback::Job(report) => Self::Job(report),
            Feedback::Trained(report) => {
                let TrainingReport { client, turn, round, staleness, latency, examples, loss, .. } = report;
                let TrainingReport { loss_rms, quality, deviation, norm, .. } = report;
                let (update, change) = (None, None);
                Self::Trained(TrainingReport {
                    client,
                    turn,
                    round,
                    staleness,
                    latency,
                    examples,
                    loss,
                    loss_rms,
                    quality,
                    deviation,
                    norm,
                    update,
                    change,
                })
            }
            Feedback::Round(report) => {
                let RoundReport { turn, round, duration, down_bytes, up_bytes, quality, edge_accuracy, .. } = report;
                let (selected, metrics): (&[ClientId], &[(MetricId, f64)]) = (&[], &[]);
                Self::Round {
                    selected: report.selected.to_vec(),
                    metrics: report.metrics.to_vec(),
                    report: RoundReport {
                        turn,
                        round,
                        selected,
                        duration,
                        down_bytes,
                        up_bytes,
                        metrics,
                        quality,
                        edge_accuracy,
                    },
                }
            }
        }
    }

    /// As a policy is told it.
    pub fn feedback(&self) -> Feedback<'_> {
        match self {
            Self::Job(report) => Feedback::Job(*report),
            Self::Trained(report) => Feedback::Trained(*report),
            Self::Round { report, selected, metrics } => Feedback::Round(RoundReport { selected, metrics, ..*report }),
        }
    }
}

/// Between the caller and the policy that stands for it.
#[derive(Debug, Default)]
pub(super) struct Desk {
    selection: Option<Selection>,
    heard: Vec<Heard>,
}

pub(super) type SharedDesk = Arc<Mutex<Desk>>;

fn lock(desk: &SharedDesk) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The policy that stands for the caller.
#[derive(Stateful)]
struct Caller {
    #[state(skip = "empty between two rounds")]
    desk: SharedDesk,
}

impl Policy for Caller {
    fn can_be_empty(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let told = lock(&self.desk).selection.take();
        *selection = told.ok_or("no selection was told; Run::tell tells one")?;
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        lock(&self.desk).heard.push(Heard::of(feedback));
        Ok(())
    }
}

impl<'w> Run<'w> {
    /// A run before its first round whose selections are [asked](Run::ask) of the caller.
    ///
    /// # Errors
    /// If the protocol has no rounds of one server: under `buffered` and `hierarchical`, write a [`Policy`].
    pub fn asking(
        world: &'w World,
        label: &str,
        settings: RunSettings,
        sink: impl Sink + 'w,
    ) -> Result<Self, Complaint> {
        if !matches!(world.protocol.rule, Rule::Rounds(_)) {
            let message = "a caller is asked for selections in rounds of one server; under buffered and hierarchical, \
                           write a policy";
            return Err(Complaint::new("protocol", message));
        }
        let desk = SharedDesk::default();
        let policy: Box<dyn Policy> = Box::new(Caller { desk: desk.clone() });
        Ok(Self { desk: Some(desk), ..Self::begin(world, label, policy.into(), settings, Box::new(sink)) })
    }

    /// Plays up to the next question, unless one waits already, and shows it: the same question is shown as often as
    /// this is called, and draws go on. `None` once the run is over: its [end](crate::run::End) is reached, or the
    /// budget pays for no further round.
    ///
    /// # Errors
    /// As [`Run::step`].
    ///
    /// # Panics
    /// If the run has a policy: it was not begun by [`Run::asking`].
    pub fn ask<T>(
        &mut self,
        see: impl FnOnce(&SelectionRequest<'_>, &ServerView<'_>, &mut PolicyRng<'_>) -> T,
    ) -> Result<Option<T>, RunError> {
        let Self { engine, server, protocol, desk } = self;
        assert!(desk.is_some(), "the run asks its policy");
        let Protocol::Rounds(rounds) = protocol else { unreachable!("only rounds are asked") };
        let is_over = server.settings.evaluate.end.is_reached(server.round(), engine.now(), &engine.accounts);
        if !rounds.is_asking() && (is_over || server.is_spent) {
            return Ok(None);
        }
        rounds.ask(engine, server)?;
        Ok(rounds.look(engine, server, see))
    }

    /// Plays to the end of the round with this selection, and returns the feedback, in the order in which a policy is
    /// told it.
    ///
    /// # Errors
    /// As [`Run::step`]. After [`RunError::BadSelection`] another selection can be told.
    ///
    /// # Panics
    /// If no question waits.
    pub fn tell(&mut self, selection: Selection) -> Result<Vec<Heard>, RunError> {
        let waits = matches!(&self.protocol, Protocol::Rounds(rounds) if rounds.is_asking());
        let desk = self.desk.clone().filter(|_| waits).expect("a selection answers a question");
        lock(&desk).selection = Some(selection);
        self.step()?;
        let heard = std::mem::take(&mut lock(&desk).heard);
        Ok(heard)
    }
}
