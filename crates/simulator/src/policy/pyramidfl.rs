//! PyramidFL: clients by Oort's ranking, and more epochs for those who would wait for the slowest.
//!
//! # Definition
//! Clients are selected by `oort` with `variant = "released"`. Of each, `C_i` and `X_i` are the seconds of the compute
//! phase of a job with the usual `E` epochs, and of download and upload: the declared medians, until a job has arrived,
//! and then those of the last one that arrived in time, with `C_i` per epoch. The latency that the ranking knows is
//! that of a job with `E` epochs: `C_i + X_i`; of an update that joined late, its latency without `C_i` of further
//! epochs.
//! ```text
//! T_i    = C_i + X_i
//! D      = the T at the place of the updates that the round waits for, ascending, of those selected
//! work_i = E + min(⌊beta·⌊(D − T_i)·E/C_i⌋⌋, 10·E)   epochs if T_i < D, else E; at most [training] most_epochs
//! ```
//!
//! # Inputs
//! `[training] most_epochs` above `epochs`. Those of `oort`: losses, examples and latencies of updates; data sizes and
//! declared latencies. Times of phases.
//!
//! # Explanation
//! With `[record] explain = true`: the numbers of `oort`; `expected_s` (`T`) of each candidate, and `work` of those
//! selected, `null` of the others; `round_s` (`D`). `after`: `utility` and `latency_s` as the ranking has them.
//!
//! # Source
//! C. Li, X. Zeng, M. Zhang, Z. Cao, "PyramidFL: A Fine-grained Client Selection Framework for Efficient Federated
//! Learning", MobiCom 2022; the program that its authors released, `oort.py` and `param_server.py`, whose defaults
//! these are.
//!
//! # Deviations from the source
//! - A client that is selected also leaves out a share of its parameters, the more the smaller its last gradient is
//!   among those selected: clients here send all of their update, so that this part is left out, and with it what it
//!   saves.
//! - The program counts steps, at most eleven times the usual ones; here work is whole epochs.
//! - It weighs a client's examples by how much they still cost; here all examples count.
//! - It knows how long each job will take; here times are declared or were observed.
//! - It ranks by the mean loss of the last mini-batches; for the rest see `oort`.
//!
//! # Cost
//! That of `oort`.
//!
//! # Determinism
//! That of `oort`. Seconds are read from whole nanoseconds; a number of epochs just below a whole one, by rounding,
//! counts as that one.

use super::oort::{self, Oort};
use super::{
    BuildContext, Capabilities, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, Selection,
    SelectionRequest, ServerView, TrainingReport, Wants, whole,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::record::Outcome;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Further epochs of a job, at most, for each usual one.
const MOST_FURTHER: u32 = 10;

/// Parameters of `pyramidfl`: `beta`, and those of the ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of the epochs for which a client has time that it does, at least 0.
    #[serde(default = "one")]
    pub beta: f64,
    /// Rounds of a window of the ranking.
    #[serde(default = "twenty")]
    pub pacer_step: u32,
    /// Points by which a window changes the threshold, from 0 to 100.
    #[serde(default = "five")]
    pub pacer_delta: f64,
    /// The percentile of latencies that is the preferred duration, at least 0; from 100 on it is infinite.
    #[serde(default = "ten")]
    pub threshold: f64,
    /// Share of the last exploited rank's score that is admitted, from 0 to 1.
    #[serde(default = "of_cutoff")]
    pub cutoff: f64,
    /// Exponent of the penalty of slow clients, at least 0.
    #[serde(default = "two")]
    pub penalty: f64,
    /// Place among the utilities, from 0 to 1, beyond which they are cut.
    #[serde(default = "of_clip")]
    pub clip: f64,
    /// Share that explores before the first decay, from 0 to 1.
    #[serde(default = "of_exploration")]
    pub exploration: f64,
    /// Factor of that share before each selection, above 0 and at most 1.
    #[serde(default = "of_decay")]
    pub exploration_decay: f64,
    /// Where it stops falling, from 0 to 1.
    #[serde(default = "of_least")]
    pub exploration_min: f64,
    /// Updates after which a client is a candidate no more; never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blacklist_rounds: Option<u32>,
}

const fn one() -> f64 {
    1.0
}
const fn twenty() -> u32 {
    20
}
const fn five() -> f64 {
    5.0
}
const fn ten() -> f64 {
    10.0
}
const fn of_cutoff() -> f64 {
    0.7
}
const fn two() -> f64 {
    2.0
}
const fn of_clip() -> f64 {
    0.98
}
const fn of_exploration() -> f64 {
    0.9
}
const fn of_decay() -> f64 {
    0.95
}
const fn of_least() -> f64 {
    0.2
}

impl Config {
    /// The parameters of the ranking.
    fn ranking(&self) -> oort::Config {
        oort::Config {
            variant: oort::Variant::Released,
            pacer_step: self.pacer_step,
            pacer_delta: Some(oort::Step::Points(self.pacer_delta)),
            threshold: Some(self.threshold),
            cutoff: Some(self.cutoff),
            penalty: self.penalty,
            clip: self.clip,
            exploration: self.exploration,
            exploration_decay: self.exploration_decay,
            exploration_min: self.exploration_min,
            blacklist_rounds: self.blacklist_rounds,
        }
    }
}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        self.ranking().resolve(known)
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let bounds = context.bounds;
        let Some((usual, most)) = bounds.epochs.zip(bounds.most_epochs).filter(|(usual, most)| most > usual) else {
            let message = "pyramidfl gives fast clients more epochs, and no job may have others here; give [training] \
                           epochs, one number, and most_epochs above it";
            return Err(Complaint::new("", message));
        };
        let device = |client| context.devices.declared(client);
        let clients = || (0..context.clients).map(ClientId::from_index);
        Ok(Box::new(Pyramidfl {
            beta: check("beta", self.beta, 0.0.., "a number of at least 0")?,
            usual,
            most: most.min(usual.saturating_mul(1 + MOST_FURTHER)),
            ranking: self.ranking().oort(context)?,
            compute: clients().map(|client| device(client).compute_seconds).collect(),
            transfer: clients().map(|client| device(client).transfer_seconds).collect(),
            work: vec![usual; context.clients],
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Pyramidfl {
    #[state(skip = "from the scenario")]
    beta: f64,
    /// Usual epochs of a job, `E`.
    #[state(skip = "from the scenario")]
    usual: u32,
    /// Most epochs of a job.
    #[state(skip = "from the scenario")]
    most: u32,
    ranking: Oort,
    /// `C` in seconds.
    #[state(each)]
    compute: Vec<f64>,
    /// `X` in seconds.
    #[state(each)]
    transfer: Vec<f64>,
    /// Epochs of each client's last job.
    #[state(each)]
    work: Vec<u32>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    /// `D` in seconds.
    round: f64,
    /// `T` of each candidate.
    expected: Vec<f64>,
}

impl Pyramidfl {
    fn expected(&self, client: ClientId) -> f64 {
        self.compute[client.index()] + self.transfer[client.index()]
    }

    /// Epochs of a client in a round of this length.
    fn epochs(&self, client: ClientId, round: f64) -> u32 {
        let slack = round - self.expected(client);
        if slack <= 0.0 {
            return self.usual;
        }
        let room = slack * f64::from(self.usual) / self.compute[client.index()];
        // Where an epoch takes no time there is room for any number.
        let further = if room.is_finite() { whole(self.beta * whole(room) as f64) } else { usize::MAX };
        let further = u32::try_from(further).unwrap_or(u32::MAX);
        self.usual.saturating_add(further).min(self.most)
    }

    /// The report, with the latency of a job with the usual epochs.
    fn usual_report<'a>(&self, report: &TrainingReport<'a>) -> Result<TrainingReport<'a>, Failure> {
        let client = report.client.index();
        let further = f64::from(self.work[client]) / f64::from(self.usual) - 1.0;
        let latency = Span::from_seconds((report.latency.seconds() - further * self.compute[client]).max(0.0))?;
        Ok(TrainingReport { latency, ..*report })
    }
}

impl Policy for Pyramidfl {
    fn wants(&self) -> Wants {
        self.ranking.wants()
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bounds: true, ..Capabilities::default() }
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        self.ranking.effective()
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.ranking.select(ask, view, rng, selection)?;
        let mut times: Vec<f64> = selection.iter().map(|&client| self.expected(client)).collect();
        times.sort_unstable_by(f64::total_cmp);
        let waits_for = ask.take.min(times.len()).max(1);
        let round = times.get(waits_for - 1).copied().unwrap_or(0.0);
        let expected = self.ranking.candidates().iter().map(|&client| self.expected(client)).collect();
        self.made = Decision { round, expected };
        let clients: Vec<ClientId> = selection.to_vec();
        for client in clients {
            let epochs = self.epochs(client, round);
            self.work[client.index()] = epochs;
            selection.work.push(epochs);
        }
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) if job.outcome == Outcome::Arrived => {
                let client = job.client.index();
                let [download, compute, upload] = job.phases.map(Span::seconds);
                self.compute[client] = compute * f64::from(self.usual) / f64::from(self.work[client]);
                self.transfer[client] = download + upload;
                self.ranking.observe(feedback)
            }
            Feedback::Trained(report) => self.ranking.observe(&Feedback::Trained(self.usual_report(report)?)),
            Feedback::Job(_) | Feedback::Round(_) => self.ranking.observe(feedback),
        }
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        self.ranking.explain(ask, view, selection, explanation)?;
        let work = |client: &ClientId| match selection.contains(client) {
            true => f64::from(self.work[client.index()]),
            false => f64::NAN,
        };
        explanation.array("expected_s", self.made.expected.iter().copied());
        explanation.array("work", self.ranking.candidates().iter().map(work));
        explanation.scalar("round_s", self.made.round);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        self.ranking.explain_after(clients, explanation)
    }
}
