//! FedRL: an actor–critic scores every candidate by its training loss, for the gain in accuracy.
//!
//! # Definition
//! Before each selection all candidates do a whole job, which is forgotten. Of it the loss travels up, 8 bytes in no
//! time, or with `answers = "update"` all that a job sends. One network scores each of them by
//! the loss of its job's first epoch (a mean, each batch as met), standardised over the candidates (divisor n, 1e-8
//! added to the deviation), the standardised logarithm of its number of examples, and the rounds since it was selected,
//! at most `window`, over `window`. Clients are drawn one after the other from the softmax of the scores of those left,
//! and asked in that order. After round `t`
//!
//! ```text
//! r_t = Acc_t − Acc_{t−1}
//! ```
//!
//! with `Acc` the metric `accuracy` (negated where smaller is better) of the model after the round. Once the next state
//! is known, actor and critic take a step of Adam each, with `δ = r + γV(s') − V(s)`: on `−δ ln π` and on `δ²/2`. They
//! are two-layer networks of `hidden` ReLU units, with Xavier-uniform weights and biases 0; the critic values the mean
//! over candidates of its hidden layer.
//!
//! # Inputs
//! Reports of the candidates' jobs; `accuracy` in every round; data sizes and past selections. The protocol has rounds
//! of one server.
//!
//! # Explanation
//! With `[record] explain = true`: `loss` of each candidate, before it is standardised, `null` where unknown;
//! `rounds_since` the candidate was selected; `log_probability` of the ordered draw; `value`, `V(s)`, after the step;
//! `td_error`, δ of the round before, by which that step was taken; `null` where no step was. `after`: `reward`. Each
//! run has the weights in files: `policy_initial.safetensors` and `policy.safetensors`.
//!
//! # Source
//! Selection by deep reinforcement learning on the losses of all clients, the baseline FedRL of "ProxyRL-FRS": it trains
//! every client before it selects.
//!
//! # Deviations from the source
//! - The source also makes clients' models by a hypernetwork; here only clients are selected.
//! - The model before the first round is not measured, so that round 1 has no reward. A round without a finite reward
//!   teaches nothing; nor does the last round.
//! - A loss that is not finite, that of a job that diverged in its first epoch, and that of a client that came while
//!   others trained, count as the mean of the others. Such a client may be drawn.
//!
//! # Cost
//! A job per candidate in every round.
//!
//! # Determinism
//! Stream (policy, server, turn). The first selection draws the weights: actor, then critic, each `W1` row by row, then
//! `W2`, as `a·(2u − 1)` rounded to `f32`. Then, in every selection, one uniform `u` for each candidate, by ascending
//! id, whose key is its score `− ln(−ln u)`; equal keys go to the smaller id. Networks are `f64`.

use super::actor_critic::{ActorCritic, Plan, Rule};
use super::{
    Answers, BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Probe, Selection,
    SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::{Better, MetricId, asked, value_of};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::weights::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `fedrl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The part of each candidate's job that travels up.
    #[serde(default)]
    pub answers: Answers,
    /// The metric whose gain rewards.
    #[serde(default = "valid_hr_20")]
    pub accuracy: String,
    /// Discount γ of the next state's value, from 0 to 1.
    #[serde(default = "of_gamma")]
    pub gamma: f64,
    /// Hidden units of the actor and of the critic.
    #[serde(default = "of_hidden")]
    pub hidden: usize,
    /// The actor's learning rate, from 0 to 1; at 0 it stays as it was drawn.
    #[serde(default = "of_rate")]
    pub actor_lr: f64,
    /// The critic's learning rate, from 0 to 1; at 0 it stays as it was drawn.
    #[serde(default = "of_rate")]
    pub critic_lr: f64,
    /// The rounds without a selection after which no more are counted.
    #[serde(default = "of_window")]
    pub window: u32,
}

fn valid_hr_20() -> String {
    "valid_hr_20".to_owned()
}
const fn of_gamma() -> f64 {
    0.9
}
const fn of_hidden() -> usize {
    64
}
const fn of_rate() -> f64 {
    1e-3
}
const fn of_window() -> u32 {
    100
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let plan = Plan {
            rule: Rule::Shared,
            clients: context.clients,
            hidden: self.hidden,
            actor_rate: self.actor_lr,
            critic_rate: self.critic_lr,
            discount: self.gamma,
            window: self.window,
        };
        plan.check()?;
        if !context.trains {
            let message = "fedrl compares losses of clients that train, and there are none; choose a task that trains";
            return Err(Complaint::new("", message));
        }
        plan.check_rounds(context)?;
        let accuracy = asked(context.metrics, "accuracy", &self.accuracy)?;
        Ok(Box::new(FedRl {
            accuracy: (accuracy.id, accuracy.better),
            answers: self.answers,
            before: f64::NAN,
            network: ActorCritic::new(plan),
            losses: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct FedRl {
    #[state(skip = "from the scenario")]
    answers: Answers,
    /// The metric, and its better direction.
    #[state(skip = "from the scenario")]
    accuracy: (MetricId, Better),
    /// Accuracy after the round before; NaN before the first.
    before: f64,
    network: ActorCritic,
    /// Losses of the last selection's candidates.
    #[state(skip = "read before the next selection")]
    losses: Vec<f64>,
}

impl Policy for FedRl {
    fn probes(&self) -> bool {
        true
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, rng: &mut StreamRng) -> Result<Probe, Failure> {
        self.network.begin(rng);
        Ok(Probe::Training { clients: ask.available.list().to_vec(), answers: self.answers })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let place = |client: &ClientId| view.trained.binary_search_by_key(client, |report| report.client);
        let loss = |client: &ClientId| place(client).map_or(f64::NAN, |place| view.trained[place].loss);
        self.losses = ask.available.list().iter().map(loss).collect();
        self.network.select(&self.losses, (ask, view), rng.policy, selection);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Round(report) = feedback {
            let (metric, better) = self.accuracy;
            let now = value_of(report.metrics, metric).map_or(f64::NAN, |value| better.quality(value));
            self.network.reward(now - self.before);
            self.before = now;
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
        explanation.array("loss", self.losses.iter().copied());
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
