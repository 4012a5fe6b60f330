//! ProxyRL-FRS: an actor–critic draws clients by their predicted losses, for accuracy and fresh items.
//!
//! # Definition
//! `contribution` chooses the number of each candidate:
//!
//! | `contribution` | a candidate's number | cost |
//! |---|---|---|
//! | `"proxy"` | its `predicted-loss` of the current model, summed over its data | one inference probe of all candidates |
//! | `"inference"` | its `summed-loss` of the current model: the true one | the same |
//! | `"training"` | the losses of the first epoch of a whole job, summed | a whole job as a probe of all candidates, of which `answers` travels up; the rest of it is discarded |
//! | `"last"` | the `predicted-loss` that came with its last update, made from the model that its job was sent | a number of 8 bytes with each update; a probe of all candidates of the first selection |
//!
//! `answers`, of `"training"` alone, is `"loss"`, a number of 8 bytes that travels in no time, or `"update"`, which takes
//! the upload of a whole job in bytes and time.
//!
//! The state is made of these numbers, standardised over the candidates (divisor n, deviation + 1e-8). `actor` says how
//! clients are drawn from it: `"dense"`, one network with an input and an output for each client (up to 50,000 of them);
//! `"shared"`, one network that scores every candidate by itself, from its number, the standardised logarithm of its
//! number of examples, and the rounds since it was selected, at most `window`, over `window`; or
//! `{ softmax = { temperature = 1.0 } }`, which does not learn. Clients are drawn one after the other from the softmax
//! of the logits of those left, and asked in that order. After round `t`
//!
//! ```text
//! r_t = λ·Acc_t − (1 − λ)·Staleness_t                                                         (17)
//! ```
//!
//! with `Acc` the metric `accuracy` (negated where smaller is better) and `Staleness` the metric `item_staleness`,
//! both of the model after the round. Staleness is a share of `staleness_window` rounds: where items are some rounds
//! old and the window is 100 it is some hundredths, beside an accuracy of some tenths. Once the next state is known,
//! actor and critic take a step of Adam each, with `δ = r + γV(s') − V(s)`: on `−δ ln π` and on `δ²/2`. They are
//! two-layer networks of `hidden` ReLU units, with Xavier-uniform weights and biases 0. With `actor_lr = 0` and
//! `critic_lr = 0` they stay as they were drawn.
//!
//! # Inputs
//! Answers to the probe, or reports of training; both metrics in every round, unless nothing is learned or λ leaves one
//! of them out; data sizes and past selections (`shared`). The protocol has rounds of one server, unless nothing is
//! learned: a reward belongs to the one selection of its round.
//!
//! # Explanation
//! With `[record] explain = true`: `state` of each candidate, before it is standardised, `null` where unknown;
//! `rounds_since` the candidate was selected (`shared`); `log_probability` of the ordered draw; `value`, `V(s)`, after
//! the step; `td_error`, δ of the round before, by which that step was taken; `null` in the first round, and where
//! there is no critic. `after`: `reward`. Each run has the weights in files: `policy_initial.safetensors`, as they were
//! drawn, and `policy.safetensors`, as they are in the end.
//!
//! # Source
//! "ProxyRL-FRS", Algorithm 1 and equations (14)–(18); advantage actor–critic in the place of its reference for the
//! update. Draws by Gumbel keys: W. Kool, H. van Hoof, M. Welling, "Stochastic Beams and Where to Find Them", ICML 2019.
//!
//! # Deviations from the source
//! - The source cites TD3, which is for continuous actions.
//! - A number that is not finite, because a model diverged, one of a client that came during the probe, and one unknown
//!   to `"last"` count as the mean of the others: `z = 0`, and `state` is `null`. Such a client may be drawn.
//! - A client that is away has input 0, and is never drawn.
//! - A round without a finite reward teaches nothing; nor does the last round, after which no state comes.
//! - The critic of `"shared"` values the mean over candidates of its hidden layer, for any number of them.
//! - The source says that training before a round yields the local loss, and not what travels. Here only the loss is
//!   used, like the proxy's predicted loss, which the source uploads.
//! - λ, γ, rates and sizes are not given in the source.
//!
//! # Cost
//! `dense`: O(K·hidden) a round, and 96 bytes for each client and hidden unit; `shared`: O(candidates·hidden).
//!
//! # Determinism
//! Stream (policy, server, turn). The first selection draws the weights: actor, then critic, each `W1` row by row, then
//! `W2`, as `a·(2u − 1)` rounded to `f32`. Then, in every selection, one uniform `u` for each candidate, by ascending
//! id, whose key is `ℓ − ln(−ln u)`; equal keys go to the smaller id. Networks are `f64`.

mod config;

pub use config::{Actor, Config, Contribution, Softmax};

use super::actor_critic::ActorCritic;
use super::{
    Answers, Explanation, Feedback, Policy, PolicyRng, Probe, RoundReport, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::{Better, MetricId, Place, value_of};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::metric::item_staleness::ITEM_STALENESS;
use fedgenie_learning::model::weights::Tensor;

/// The metric that (17) calls staleness.
const STALENESS: MetricId = ITEM_STALENESS.measure.at(Place::Model);

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct ProxyRl {
    #[state(skip = "from the scenario")]
    contribution: Contribution,
    #[state(skip = "from the scenario")]
    answers: Answers,
    #[state(skip = "from the scenario")]
    lambda: f64,
    /// The metric, if there is one, and its better direction.
    #[state(skip = "from the scenario")]
    accuracy: Option<(MetricId, Better)>,
    network: ActorCritic,
    /// Clients asked for this selection, ascending.
    asked: Vec<ClientId>,
    /// `"last"`: whether candidates were asked before the first selection.
    has_asked: bool,
    /// `"last"`: every client's number, NaN if unknown.
    #[state(each)]
    last: Vec<f64>,
    /// Numbers of the last selection's candidates.
    #[state(skip = "read before the next selection")]
    numbers: Vec<f64>,
}

impl ProxyRl {
    fn is_sound(&self) -> bool {
        self.asked.is_sorted()
    }

    /// The numbers of the candidates.
    fn numbers(&mut self, candidates: &[ClientId], view: &ServerView<'_>) -> Vec<f64> {
        let known: Vec<(ClientId, f64)> = match self.contribution {
            Contribution::Training => {
                view.trained.iter().map(|report| (report.client, report.loss * report.examples as f64)).collect()
            }
            _ => self.asked.iter().copied().zip(view.answers.iter().copied()).collect(),
        };
        if self.contribution == Contribution::Last {
            known.iter().for_each(|(client, number)| self.last[client.index()] = *number);
            self.has_asked = true;
            return candidates.iter().map(|client| self.last[client.index()]).collect();
        }
        let place = |client: &ClientId| known.binary_search_by_key(client, |(client, _)| *client);
        candidates.iter().map(|client| place(client).map_or(f64::NAN, |place| known[place].1)).collect()
    }

    /// (17).
    fn reward(&self, report: &RoundReport<'_>) -> f64 {
        let of = |metric| value_of(report.metrics, metric).unwrap_or(f64::NAN);
        let accuracy = self.accuracy.map_or(f64::NAN, |(metric, better)| better.quality(of(metric)));
        // A part of the reward without weight may be missing.
        let weighed = |weight: f64, value: f64| if weight == 0.0 { 0.0 } else { weight * value };
        weighed(self.lambda, accuracy) - weighed(1.0 - self.lambda, of(STALENESS))
    }
}

impl Policy for ProxyRl {
    fn probes(&self) -> bool {
        true
    }

    fn probe_kinds(&self) -> &[&'static str] {
        self.contribution.kinds()
    }

    fn wants_answer(&self) -> Option<&'static str> {
        (self.contribution == Contribution::Last).then_some(config::PREDICTED)
    }

    fn needs_losses(&self) -> bool {
        self.contribution == Contribution::Training
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, rng: &mut StreamRng) -> Result<Probe, Failure> {
        self.network.begin(rng);
        self.asked.clear();
        if self.contribution == Contribution::Last && self.has_asked {
            return Ok(Probe::None);
        }
        self.asked.extend(ask.available.list());
        let clients = self.asked.clone();
        Ok(match self.contribution.kinds() {
            [kind] => Probe::Answers { clients, kind },
            _ => Probe::Training { clients, answers: self.answers },
        })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.numbers = self.numbers(ask.available.list(), view);
        self.network.select(&self.numbers, (ask, view), rng.policy, selection);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Round(report) = feedback {
            self.network.reward(self.reward(report));
        }
        Ok(())
    }

    fn told_answer(&mut self, client: ClientId, _: &'static str, answer: &[f64]) -> Result<(), Failure> {
        if let Some(known) = self.last.get_mut(client.index()) {
            *known = answer[0];
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("state", self.numbers.iter().copied());
        self.network.explain(explanation);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.scalar("reward", self.network.rewarded());
        Ok(())
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.network.tensors()
    }
}
