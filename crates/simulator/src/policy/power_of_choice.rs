//! Power-of-Choice: of `d` random candidates, the `m` with the highest local loss.
//!
//! # Definition
//! Draw `d` candidates without replacement, in proportion to data size; take the `m` candidates with the largest loss
//! of the current global model on their own data (`fresh`) or on a mini-batch of it (`mini-batch`), with the largest
//! loss they last reported from training (`last-known`; a client that never reported counts as infinite), or with the
//! largest loss of a whole job that each of them does for the selection (`trained`): the mean over its first epoch,
//! each batch as met. Of that job the loss travels up, 8 bytes in no time, or with `answers = "update"` all that a job
//! sends.
//!
//! A mini-batch has `batch` of the client's examples, drawn for this selection without replacement, or all if it has no
//! more; its loss is their mean. The pass takes the batch's share of the time of a pass over all examples.
//!
//! # Inputs
//! Data sizes; local losses, by a probe (`fresh`, `mini-batch`, `trained`) or from feedback (`last-known`).
//!
//! # Explanation
//! With `[record] explain = true`: `loss` of each candidate drawn that is still there, `null` where unknown. `after`:
//! the `loss` that those selected last reported.
//!
//! # Source
//! Y. J. Cho, J. Wang, G. Joshi, "Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice
//! Selection Strategies", 2020 (arXiv 2010.01243); `mini-batch` is their variant cpow-d, `last-known` rpow-d.
//!
//! # Deviations from the source
//! Fresh losses are not free: each candidate downloads the model and makes one pass over its data before the selection,
//! which costs virtual time and traffic (with `mini-batch`, a pass over that); for `trained` each does a whole job,
//! which is forgotten, as other work compares with it. The job of a selected candidate downloads again. A loss that is
//! not a number, or of a job that diverged in its first epoch, counts as infinite; a client without examples comes
//! last. A candidate that goes away while they are asked is not selected; if all do, new ones are drawn, whose losses
//! are not known.
//!
//! # Cost
//! O(K) per round, for `fresh` one evaluation per candidate, for `mini-batch` one of `batch` examples, for `trained` a
//! job per candidate.
//!
//! # Determinism
//! Candidates from stream (policy, 0, round). A mini-batch from stream (batch order, client, 2³² − 1 − turn): a
//! Fisher–Yates shuffle of the client's examples, as far as it is needed. Losses within 1e-12 of the `m`-th largest are
//! equal; among them the smallest ids win.

use super::random::draw_by_weight;
use super::{
    Answers, BuildContext, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, Probe, Selection,
    SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::top_m;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Examples of a mini-batch unless they are given.
const BATCH: usize = 64;

/// Parameters of `power-of-choice`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of candidates `d`, at least the cohort; twice the cohort if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<usize>,
    /// Which losses decide.
    #[serde(default)]
    pub losses: Losses,
    /// `losses = "mini-batch"`: its examples, at least 1; 64 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// `losses = "trained"`: the part of each candidate's job that travels up; the loss unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
}

/// Which losses decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Of the current global model, evaluated by the candidates for this selection.
    #[default]
    Fresh,
    /// The same, on a mini-batch of a candidate's data.
    MiniBatch,
    /// The loss each client reported when it last trained.
    LastKnown,
    /// The loss of a whole job that each candidate does for this selection.
    Trained,
}

impl PolicySettings for Config {
    fn resolve(&mut self, _: Known<'_>) -> Result<(), Complaint> {
        match self.batch {
            None if self.losses == Losses::MiniBatch => self.batch = Some(BATCH),
            Some(_) if self.losses != Losses::MiniBatch => {
                let message = "is of losses = \"mini-batch\"; take the key out, or take those losses";
                return Err(Complaint::new("batch", message));
            }
            _ => {}
        }
        let trains = self.losses == Losses::Trained;
        Answers::resolve(&mut self.answers, trains, "here losses is not \"trained\"")
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.trains {
            let message = "power-of-choice compares local losses, and with [task.none], or [task.scripted] without \
                           client_losses, there are none; choose a task that trains";
            return Err(Complaint::new("", message));
        }
        let candidates = self.candidates.unwrap_or((2 * context.cohort).min(context.among));
        if candidates < context.cohort || candidates > context.among {
            let message = format!(
                "found {candidates}; expected between the cohort ({}) and the number of clients ({})",
                context.cohort, context.among
            );
            return Err(Complaint::new("candidates", message));
        }
        let batch = self.batch.unwrap_or(BATCH);
        if batch == 0 {
            return Err(Complaint::new("batch", "found 0; expected at least 1"));
        }
        Ok(Box::new(PowerOfChoice {
            candidates,
            batch,
            losses: self.losses,
            answers: self.answers.unwrap_or_default(),
            last_known: vec![f64::INFINITY; context.clients],
            drawn: Vec::new(),
            race: Vec::new(),
            scores: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct PowerOfChoice {
    #[state(skip = "from the scenario")]
    candidates: usize,
    /// Examples of a mini-batch.
    #[state(skip = "from the scenario")]
    batch: usize,
    #[state(skip = "from the scenario")]
    losses: Losses,
    #[state(skip = "from the scenario")]
    answers: Answers,
    last_known: Vec<f64>,
    drawn: Vec<ClientId>,
    #[state(skip = "a buffer of one selection")]
    race: Vec<(f64, ClientId)>,
    #[state(skip = "read before the next selection")]
    scores: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl PowerOfChoice {
    fn draw(&mut self, ask: &SelectionRequest<'_>, view: &ServerView<'_>, rng: &mut StreamRng) {
        self.drawn.clear();
        let available = ask.available.list();
        let count = self.candidates.min(available.len());
        let size = |client: ClientId| f64::from(view.data_sizes[client.index()]);
        draw_by_weight(available, size, count, rng, &mut self.race, &mut self.drawn);
        self.drawn.sort_unstable();
    }
}

impl Policy for PowerOfChoice {
    fn probes(&self) -> bool {
        matches!(self.losses, Losses::Fresh | Losses::MiniBatch | Losses::Trained)
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn needs_batch_losses(&self) -> bool {
        self.losses == Losses::MiniBatch
    }

    fn probe(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut StreamRng,
    ) -> Result<Probe, Failure> {
        self.draw(ask, view, rng);
        Ok(match self.losses {
            Losses::Fresh => Probe::Losses(self.drawn.clone()),
            Losses::MiniBatch => Probe::BatchLosses { clients: self.drawn.clone(), size: self.batch },
            Losses::LastKnown => Probe::None,
            Losses::Trained => Probe::Training { clients: self.drawn.clone(), answers: self.answers },
        })
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("candidates", self.candidates.into())]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.scores.clear();
        match self.losses {
            Losses::Fresh | Losses::MiniBatch => {
                assert!(
                    view.probed.iter().map(|(client, _)| client).eq(&self.drawn),
                    "the probe answers for exactly the candidates asked"
                );
                self.scores.extend(view.probed.iter().map(|&(_, loss)| loss));
            }
            Losses::Trained => {
                let place = |client: &ClientId| view.trained.binary_search_by_key(client, |report| report.client);
                let loss = |client| place(client).map_or(f64::NAN, |place| view.trained[place].loss);
                self.scores.extend(self.drawn.iter().map(loss));
            }
            Losses::LastKnown => self.scores.extend(self.drawn.iter().map(|client| self.last_known[client.index()])),
        }
        // A loss that is not a number comes from a model that diverged: such a client is as bad as any. One without
        // examples has no loss, and teaches nothing.
        for (score, client) in self.scores.iter_mut().zip(&self.drawn).filter(|(score, _)| score.is_nan()) {
            let is_empty = view.data_sizes[client.index()] == 0;
            *score = if is_empty { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        // Some may have gone during the probe.
        let is_there: Vec<bool> = self.drawn.iter().map(|&client| ask.available.contains(client)).collect();
        if !is_there.contains(&true) {
            self.draw(ask, view, rng.policy);
            self.scores.clear();
            self.scores.resize(self.drawn.len(), f64::INFINITY);
        } else if is_there.contains(&false) {
            let mut there = is_there.iter();
            self.drawn.retain(|_| there.next() == Some(&true));
            let mut there = is_there.iter();
            self.scores.retain(|_| there.next() == Some(&true));
        }
        top_m(&self.scores, ask.cohort.min(self.drawn.len()), &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| self.drawn[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(update) = feedback {
            self.last_known[update.client.index()] = update.loss;
        }
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(self.drawn.iter().copied());
        explanation.array("loss", self.scores.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("loss", clients.iter().map(|client| self.last_known[client.index()]));
        Ok(())
    }
}
