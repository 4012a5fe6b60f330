//! Parameters of ProxyRL-FRS, and their demands on a scenario.

use super::super::actor_critic::{ActorCritic, Plan, Rule};
use super::super::{Answers, BuildContext, Known, Policy, PolicySettings};
use super::{ProxyRl, STALENESS};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::metric::{asked, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The question for the predicted loss of a client's proxy branch.
pub(super) const PREDICTED: &str = "predicted-loss";

/// Parameters of `proxyrl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The number of each candidate.
    #[serde(default)]
    pub contribution: Contribution,
    /// `contribution = "training"`: the part of each candidate's job that travels up; the loss unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// Weight λ of accuracy in the reward, from 0 to 1; that of staleness is 1 − λ.
    #[serde(default = "of_lambda")]
    pub lambda: f64,
    /// The metric that (17) calls accuracy.
    #[serde(default = "valid_hr_20")]
    pub accuracy: String,
    /// Discount γ of the next state's value, from 0 to 1.
    #[serde(default = "of_gamma")]
    pub gamma: f64,
    /// How clients are drawn.
    #[serde(default)]
    pub actor: Actor,
    /// Hidden units of the actor and of the critic.
    #[serde(default = "of_hidden")]
    pub hidden: usize,
    /// The actor's learning rate, from 0 to 1; at 0 it stays as it was drawn.
    #[serde(default = "of_rate")]
    pub actor_lr: f64,
    /// The critic's learning rate, from 0 to 1; at 0 it stays as it was drawn.
    #[serde(default = "of_rate")]
    pub critic_lr: f64,
    /// `actor = "shared"`: the rounds without a selection after which no more are counted.
    #[serde(default = "of_window")]
    pub window: u32,
}

/// The number of each candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contribution {
    /// The predicted loss of the current model.
    #[default]
    Proxy,
    /// Its true loss.
    Inference,
    /// The losses of the first epoch of a whole job.
    Training,
    /// The predicted loss that came with the last update.
    Last,
}

impl Contribution {
    /// The questions that clients answer; none if they train.
    pub(super) const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Proxy | Self::Last => &[PREDICTED],
            Self::Inference => &["summed-loss"],
            Self::Training => &[],
        }
    }
}

/// How clients are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// By a network with an input and an output for each client.
    #[default]
    Dense,
    /// By a network that scores every candidate by itself.
    Shared,
    /// In proportion to the exponential of the numbers; does not learn.
    Softmax(Softmax),
}

/// Parameters of `softmax`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Divisor of the standardised numbers, at least 1e-6.
    #[serde(default = "one")]
    pub temperature: f64,
}

const fn of_lambda() -> f64 {
    0.6
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
const fn one() -> f64 {
    1.0
}

impl PolicySettings for Config {
    fn resolve(&mut self, _: Known<'_>) -> Result<(), Complaint> {
        let trains = self.contribution == Contribution::Training;
        Answers::resolve(&mut self.answers, trains, "here contribution is not \"training\"")
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        check("lambda", self.lambda, 0.0..=1.0, "a number from 0 to 1")?;
        let rule = match self.actor {
            Actor::Dense => Rule::Dense,
            Actor::Shared => Rule::Shared,
            Actor::Softmax(Softmax { temperature }) => Rule::Softmax { temperature },
        };
        let plan = Plan {
            rule,
            clients: context.clients,
            hidden: self.hidden,
            actor_rate: self.actor_lr,
            critic_rate: self.critic_lr,
            discount: self.gamma,
            window: self.window,
        };
        plan.check()?;
        self.check_contribution(context)?;
        if plan.learns() {
            self.check_reward(context, &plan)?;
        }
        let accuracy = named(context.metrics, &self.accuracy);
        let is_last = self.contribution == Contribution::Last;
        Ok(Box::new(ProxyRl {
            contribution: self.contribution,
            answers: self.answers.unwrap_or_default(),
            lambda: self.lambda,
            accuracy: accuracy.map(|metric| (metric.id, metric.better)),
            network: ActorCritic::new(plan),
            asked: Vec::new(),
            has_asked: false,
            last: if is_last { vec![f64::NAN; context.clients] } else { Vec::new() },
            numbers: Vec::new(),
        }))
    }
}

impl Config {
    /// Checks that clients can say the number.
    fn check_contribution(&self, context: &BuildContext<'_>) -> Result<(), Complaint> {
        let wrong = |message: String| Err(Complaint::new("contribution", message));
        let Some(kind) = self.contribution.kinds().first() else {
            return match context.trains {
                true => Ok(()),
                false => wrong("\"training\" compares losses of clients that train, and there are none".to_owned()),
            };
        };
        match context.probes.iter().find(|known| known.name == *kind) {
            Some(known) if known.numbers == 1 => Ok(()),
            Some(known) => wrong(format!("\"{kind}\" has {} numbers; expected one", known.numbers)),
            None => wrong(format!(
                "asks clients for \"{kind}\", which they do not know; it takes [task.recommendation] with a \
                 task.recommendation.model that knows it, such as {}, or another contribution",
                match self.contribution {
                    Contribution::Inference => "ncf = {}",
                    _ => "proxy-ncf = {}, which has a proxy branch",
                }
            )),
        }
    }

    /// Checks that every round has the parts of (17).
    fn check_reward(&self, context: &BuildContext<'_>, plan: &Plan) -> Result<(), Complaint> {
        plan.check_rounds(context)?;
        if self.lambda > 0.0 {
            asked(context.metrics, "accuracy", &self.accuracy)?;
        }
        let is_measured = context.metrics.iter().any(|metric| metric.id == STALENESS);
        if self.lambda < 1.0 && !is_measured {
            let message = format!(
                "found {}, which weighs {STALENESS}, and this task does not measure that; take lambda = 1",
                self.lambda
            );
            return Err(Complaint::new("lambda", message));
        }
        Ok(())
    }
}
