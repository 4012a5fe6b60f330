//! News of a round, as a deployment tells them, and as a policy hears them.

use super::{Deployed, seconds};
use fedgenie::failure::Failure;
use fedgenie::id::{ClientId, Round};
use fedgenie::oracle::utility::contribution::{deviation, norm};
use fedgenie::policy::{DeviationFrom, Feedback, JobReport, RoundReport, TrainingReport, Waited};
use fedgenie::record::{DropReason, Outcome, Phase, PhaseSpans};
use fedgenie::time::Span;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A round that is over, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct News<'py> {
    jobs: Vec<Job>,
    trained: Vec<Trained<'py>>,
    duration_s: f64,
    down_bytes: u64,
    up_bytes: u64,
    /// All parameters of the model that was sent, in a row; none if the policy wants no models.
    sent: Option<Bound<'py, PyAny>>,
    /// Those of the model that the round made.
    made: Option<Bound<'py, PyAny>>,
}

/// A job that ended, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Job {
    client: u32,
    outcome: String,
    waited_s: f64,
    /// Whether it was called off because enough others had arrived.
    is_called_off: bool,
    /// Seconds in download, compute and upload.
    phases_s: [f64; Phase::ALL.len()],
}

/// An update that was aggregated, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Trained<'py> {
    client: u32,
    latency_s: f64,
    examples: usize,
    loss: f64,
    loss_rms: Option<f64>,
    model: Option<Bound<'py, PyAny>>,
}

/// The same in the kernel's types.
pub struct Read {
    jobs: Vec<(ClientId, Outcome, Waited, PhaseSpans)>,
    trained: Vec<Update>,
    duration: Span,
    bytes: [u64; 2],
    sent: Vec<f32>,
    made: Vec<f32>,
}

struct Update {
    client: ClientId,
    latency: Span,
    examples: usize,
    loss: f64,
    loss_rms: Option<f64>,
    model: Vec<f32>,
}

fn numbers(array: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<f32>> {
    let Some(array) = array else { return Ok(Vec::new()) };
    Ok(array.cast::<PyArray1<f32>>()?.try_readonly()?.as_array().to_vec())
}

impl Job {
    fn read(&self) -> PyResult<(ClientId, Outcome, Waited, PhaseSpans)> {
        let waited = seconds(self.waited_s)?;
        let phases = self.phases_s.map(seconds);
        let [download, compute, upload] = phases;
        let (outcome, waited) = match (&*self.outcome, self.is_called_off) {
            ("arrived", false) => (Outcome::Arrived, Waited::Arrived(waited)),
            ("late", true) => (Outcome::Late, Waited::CalledOff(waited)),
            ("late", false) => (Outcome::Late, Waited::TimedOut(waited)),
            ("dropped", _) => {
                let outcome = Outcome::Dropped { phase: Phase::Compute, reason: DropReason::Hazard };
                (outcome, Waited::TimedOut(waited))
            }
            (other, _) => {
                let message = format!("found the outcome {other:?}; expected arrived, late or dropped");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok((ClientId(self.client), outcome, waited, [download?, compute?, upload?]))
    }
}

impl News<'_> {
    pub fn read(&self) -> PyResult<Read> {
        let trained = self.trained.iter().map(|update| {
            let Trained { client, latency_s, examples, loss, loss_rms, ref model } = *update;
            let (client, latency, model) = (ClientId(client), seconds(latency_s)?, numbers(model.as_ref())?);
            Ok(Update { client, latency, examples, loss, loss_rms, model })
        });
        let read = Read {
            jobs: self.jobs.iter().map(Job::read).collect::<PyResult<_>>()?,
            trained: trained.collect::<PyResult<_>>()?,
            duration: seconds(self.duration_s)?,
            bytes: [self.down_bytes, self.up_bytes],
            sent: numbers(self.sent.as_ref())?,
            made: numbers(self.made.as_ref())?,
        };
        let lengths = read.trained.iter().map(|update| update.model.len());
        match lengths.chain([read.made.len()]).find(|&found| found != 0 && found != read.sent.len()) {
            Some(found) => {
                let message = format!("found a model of {found} numbers; {} were sent", read.sent.len());
                Err(PyValueError::new_err(message))
            }
            None => Ok(read),
        }
    }
}

impl Deployed {
    /// Tells the policy: jobs as they ended, updates by client, then the round.
    pub fn tell(&mut self, round: Round, news: &Read) -> Result<(), Failure> {
        let (turn, staleness) = (self.turn, 0);
        for &(client, outcome, waited, phases) in &news.jobs {
            let report = JobReport { client, turn, round, staleness, outcome, waited, phases };
            self.policy.observe(&Feedback::Job(report))?;
        }
        let wants = self.policy.wants();
        for update in &news.trained {
            let change: Option<Vec<f32>> =
                wants.change.then(|| update.model.iter().zip(&news.sent).map(|(own, sent)| own - sent).collect());
            let from = |from| match from {
                DeviationFrom::Sent => &news.sent,
                DeviationFrom::Aggregated => &news.made,
            };
            self.policy.observe(&Feedback::Trained(TrainingReport {
                client: update.client,
                turn,
                round,
                staleness,
                latency: update.latency,
                examples: update.examples,
                loss: update.loss,
                loss_rms: update.loss_rms.filter(|_| wants.loss_rms),
                quality: None,
                deviation: wants.deviation.map(|wanted| deviation(&update.model, from(wanted))),
                norm: wants.norm.then(|| norm(&update.model, &news.sent)),
                update: wants.update.then_some(&*update.model),
                change: change.as_deref(),
            }))?;
        }
        let [down_bytes, up_bytes] = news.bytes;
        self.policy.observe(&Feedback::Round(RoundReport {
            turn,
            round,
            selected: &self.selected,
            duration: news.duration,
            down_bytes,
            up_bytes,
            metrics: &[],
            quality: None,
            edge_accuracy: None,
        }))
    }
}
