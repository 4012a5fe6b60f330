//! MAB-FRS: upper confidence bounds of clients' contributions, less the time that they take.
//!
//! # Definition
//! Round `t` ends with jobs of the selected clients, and with the updates of those that arrived in it:
//!
//! ```text
//! R_i ← γ·Δ_i + (1 − γ)·R_i,  Δ_i = Q_i − Q_{t−1}           quality of i's own model less that of the model sent  (9)
//! U_i = exp(−δ_i) if Q_t > Q_{t−1}, else 1 − exp(−δ_i)      δ_i: mean |w_i − w_t|                       (10), (11)
//! D_i = examples × root mean square of the losses; D̃_i: min–max over everybody heard so far                      (12)
//! S_i = a·U_i·R_i + b·D̃_i                                                                                        (13)
//! r_i = S_i − κ·T̃_i,  T̃_i = T_i/T_semi                     the reward of client i                      (Algorithm 1)
//! I_i = μ̂_i + ρ·sqrt(ln t/(n_i + prior_count))              μ̂_i: an estimate of r_i, 0 before the first     (28)
//! ```
//!
//! and the `m` clients with the largest `I` are selected.
//!
//! | parameter | meaning |
//! |---|---|
//! | `reference` | `"aggregated"`: `Q_t` and `w_t` are of the model after this round's aggregation, `Q_{t−1}` of the one sent. `"sent"`: `Q_t` and `w_t` are of the model sent, `Q_{t−1}` of the one that the round before sent; Δ is as above |
//! | `estimate` | `"mean"` of all r; `{ discounted = { factor } }` (20); `{ window = { size } }` (21), the client's own last rewards; `{ contextual = { ridge } }` (19), one ridge regression for all clients on 1 and (24). The bonus keeps the plain number of pulls `n` |
//! | `credit` | `"arm"`: its own r; `"round"`: `Σ S − κ·max T̃` of the round for everybody in it, (25), (27) |
//! | `prior_count` | 1 is (28); 0 is (17), where unseen clients come first |
//! | `selection` | `"index"`: the `m` best. `"joint"`: the set of at most `m` clients that maximises `Σ Ŝ − κ·max T̂`, (16), exactly; `"joint-greedy"`: by the rule below (16). Ŝ is estimated as r is, plus the bonus; T̂ is the client's mean effective latency, before that the declared one |
//!
//! Context (24): `R, Δ, U, D̃`, seconds of computing, seconds of transfer. Each entry is standardised over the
//! available clients (divisor n; 0 where all are alike); values are the last known ones, 0 before that, times the
//! declared ones. λ is added to every feature, the constant 1 included.
//!
//! A client that is late or lost has `S = 0` and the deadline's T̃; the pull counts, R and D stay. One that arrives
//! without an update (no examples), or whose numbers are not finite, has `S = 0` as well. Nothing is learned from a
//! job that was called off, nor from an update that joins a later round.
//!
//! # Inputs
//! Of each update: examples, root mean square of losses, quality, deviation; the quality of each model that the server
//! makes; latencies. Rounds of one server.
//!
//! # Explanation
//! With `[record] explain = true`: `index` of each available client (joint: the estimated S plus bonus), `null` where
//! infinite, the `estimate` in it, and the number of `pulls`. `after`: of those selected `S`, `R`, `U`, `D`, `T`
//! (seconds), `r`, with `D_scaled` (D̃) and `T_scaled` (T̃); of late ones S, T and r, the rest `null`.
//!
//! # Source
//! J. Liu, M. Goudarzi, A. N. Toosi, "An ML-driven participant selection technique for federated recommendation system
//! in edge-cloud computing" (MAB-FRS), 2025. The defaults of γ, a, b, κ, ρ and `T_semi` are this project's: the paper
//! gives none.
//!
//! # Deviations from the source
//! - (25) and (27) credit every selected arm with the whole round's reward, Algorithm 1 with its own; (17) and (28)
//!   have different bonuses. Both ways are here, Algorithm 1 and (28) the defaults.
//! - γ is the memory of (9) and the discount of (20); here they are two numbers.
//! - Q is the task's main measure on validation data, or else test data, which a server need not have.
//! - With `"joint"` clients that were never seen and have an infinite bonus are taken first, smallest ids first, and
//!   the best others fill the places left.
//!
//! # Cost
//! An evaluation of each update and of each model. `evaluation_time` is the server's time per validated update, spent
//! before the next selection. A selection is O(K); `"joint"` O(m·K log K).
//!
//! # Determinism
//! Uses no random stream. Indices within 1e-12 are equal; the smallest ids win, among sets the lexicographically
//! smallest.

mod context;
mod estimate;
mod joint;
mod utility;

use super::{
    BuildContext, DeviationFrom, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, Probe, SampleMeans,
    SelectionRequest, ServerView, Wants, in_seconds,
};
use context::Contexts;
use estimate::Estimator;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::oracle::top_m;
use fedgenie_core::oracle::utility::UtilityConfig;
use fedgenie_core::oracle::utility::contribution;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use joint::Joint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utility::{Pull, Utilities};

/// Parameters of `mab-frs`. Where `[regret]` has `utility = { contribution = … }`, it gives the defaults of the first
/// five.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight γ of the latest gain in the reputation, in [0, 1]; 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Weight of relevance × reputation, not negative; 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// Weight of the scaled data quality, not negative; 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// Price κ of the time a client takes, not negative; 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// The unit of time; the 80th percentile over clients of the sum of their phases' mean durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_semi: Option<Duration>,
    /// Exploration ρ, not negative.
    #[serde(default = "one")]
    pub rho: f64,
    /// Added to the number of pulls in the bonus, not negative.
    #[serde(default = "one")]
    pub prior_count: f64,
    /// The estimator of a client's reward in the index.
    #[serde(default)]
    pub estimate: Estimate,
    /// The reward of a pull.
    #[serde(default)]
    pub credit: Credit,
    /// The model with which a round's updates are compared.
    #[serde(default)]
    pub reference: Reference,
    /// How clients are selected.
    #[serde(default)]
    pub selection: Selection,
    /// The server's time per validated update.
    #[serde(default = "no_time")]
    pub evaluation_time: Duration,
}

const fn one() -> f64 {
    1.0
}
const fn no_time() -> Duration {
    Duration(Span::ZERO)
}

/// The estimator of a client's reward in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Estimate {
    /// The mean of its rewards.
    #[default]
    Mean,
    /// Their mean with weights `factor^(rounds since)`, (20).
    Discounted {
        /// Between 0 and 1.
        factor: f64,
    },
    /// The mean of its last rewards, (21).
    Window {
        /// How many.
        size: u32,
    },
    /// A ridge regression on (24), (19).
    Contextual {
        /// λ, positive.
        ridge: f64,
    },
}

/// The reward of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    /// The client's own.
    #[default]
    Arm,
    /// The round's.
    Round,
}

/// The model with which a round's updates are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The model after the round's aggregation.
    #[default]
    Aggregated,
    /// The model that the round sent.
    Sent,
}

/// How clients are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The clients with the largest indices.
    #[default]
    Index,
    /// The best set, (16).
    Joint,
    /// A set by the greedy rule.
    JointGreedy,
}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        let given = known.hindsight.and_then(|plan| match &plan.utility {
            UtilityConfig::Contribution(config) => Some((*config, plan.kappa, plan.t_semi)),
            _ => None,
        });
        let (config, kappa, t_semi) = given.unwrap_or((contribution::Config::default(), 0.5, None));
        self.gamma.get_or_insert(config.gamma);
        self.a.get_or_insert(config.a);
        self.b.get_or_insert(config.b);
        self.kappa.get_or_insert(kappa);
        self.t_semi = self.t_semi.or(t_semi.map(Duration));
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let expected = "mab-frs learns from the rounds of one server; take synchronous, over-selection or deadline";
        if !context.in_rounds {
            return Err(Complaint::new("", expected));
        }
        let known = contribution::Config::default();
        let contribution = contribution::Config {
            gamma: check("gamma", self.gamma.unwrap_or(known.gamma), 0.0..=1.0, "a number between 0 and 1")?,
            a: check("a", self.a.unwrap_or(known.a), 0.0.., "a number of at least 0")?,
            b: check("b", self.b.unwrap_or(known.b), 0.0.., "a number of at least 0")?,
        };
        let t_semi = match self.t_semi {
            Some(Duration(span)) => span.seconds(),
            None => context.devices.usual_latency(),
        };
        if !(t_semi > 0.0 && t_semi.is_finite()) {
            return Err(Complaint::new("t_semi", format!("found {t_semi} s; expected a positive duration")));
        }
        let declared: Vec<_> =
            (0..context.clients).map(|client| context.devices.declared(ClientId::from_index(client))).collect();
        let estimator = self.estimate.estimator(context.clients)?;
        Ok(Box::new(MabFrs {
            kappa: check("kappa", self.kappa.unwrap_or(0.5), 0.0.., "a number of at least 0")?,
            t_semi,
            rho: check("rho", self.rho, 0.0.., "a number of at least 0")?,
            prior_count: check("prior_count", self.prior_count, 0.0.., "a number of at least 0")?,
            credit: self.credit,
            reference: self.reference,
            selection: self.selection,
            evaluation_time: self.evaluation_time.0,
            contexts: Contexts::new(&declared),
            utilities: Utilities::new(contribution, context.clients),
            pulls: vec![0; context.clients],
            worth: estimator.clone(),
            rewards: estimator,
            latencies: SampleMeans::new(context.clients),
            declared: declared.iter().map(|device| device.seconds()).collect(),
            validated: 0,
            round: Vec::new(),
            learned: Vec::new(),
            joint: Joint::default(),
            estimates: Vec::new(),
            scores: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct MabFrs {
    #[state(skip = "from the scenario")]
    kappa: f64,
    /// `T_semi` in seconds.
    #[state(skip = "from the scenario")]
    t_semi: f64,
    #[state(skip = "from the scenario")]
    rho: f64,
    #[state(skip = "from the scenario")]
    prior_count: f64,
    #[state(skip = "from the scenario")]
    credit: Credit,
    #[state(skip = "from the scenario")]
    reference: Reference,
    #[state(skip = "from the scenario")]
    selection: Selection,
    #[state(skip = "from the scenario")]
    evaluation_time: Span,
    contexts: Contexts,
    utilities: Utilities,
    /// `n`.
    pulls: Vec<u32>,
    /// Estimator of `S`, for joint selection.
    worth: Estimator,
    /// Estimator of `r`.
    rewards: Estimator,
    /// Effective latencies in seconds.
    latencies: SampleMeans,
    /// Declared latencies in seconds.
    #[state(skip = "from the world")]
    declared: Vec<f64>,
    /// Updates that were validated in the last round.
    validated: u64,
    /// Pulls of the round under way.
    #[state(empty = "a run is saved between rounds")]
    round: Vec<Pull>,
    /// The numbers of [`LEARNED`], for the clients judged in the last round.
    learned: Vec<(ClientId, [f64; 8])>,

    // Of the last selection.
    #[state(skip = "a buffer of one selection")]
    joint: Joint,
    #[state(skip = "read before the next selection")]
    estimates: Vec<f64>,
    #[state(skip = "read before the next selection")]
    scores: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

/// Names of an explanation's numbers for the selected clients after a round.
const LEARNED: [&str; 8] = ["S", "R", "U", "D", "D_scaled", "T", "T_scaled", "r"];

impl MabFrs {
    fn bonus(&self, client: ClientId, turn: Turn) -> f64 {
        let count = f64::from(self.pulls[client.index()]) + self.prior_count;
        match (self.rho > 0.0, count > 0.0) {
            (false, _) => 0.0,
            (true, false) => f64::INFINITY,
            (true, true) => self.rho * sqrt(ln(f64::from(turn.0)) / count),
        }
    }

    /// `T̂` in units of `T_semi`.
    fn expected_time(&self, client: ClientId) -> f64 {
        let seconds = match self.latencies.of(client) {
            (_, 0) => self.declared[client.index()],
            (mean, _) => mean,
        };
        seconds / self.t_semi
    }

    /// Rewards each pull when the round is over.
    fn learn(&mut self, turn: Turn) {
        let pulls = std::mem::take(&mut self.round);
        let time = |pull: &Pull| pull.waited.seconds() / self.t_semi;
        let sum: f64 = pulls.iter().map(|pull| pull.score).sum();
        let slowest = pulls.iter().map(time).fold(0.0, f64::max);
        let of_round = sum - self.kappa * slowest;
        self.learned.clear();
        for pull in &pulls {
            let (client, seconds, time) = (pull.client, pull.waited.seconds(), time(pull));
            let reward = match self.credit {
                Credit::Arm => pull.score - self.kappa * time,
                Credit::Round => of_round,
            };
            self.pulls[client.index()] += 1;
            self.latencies.observe(client, seconds);
            let context = self.contexts.of(client);
            self.rewards.observe(client, turn, reward, context);
            self.worth.observe(client, turn, pull.score, context);
            self.contexts.learn(pull);
            let [reputation, relevance, quality, scaled] = pull.parts;
            let numbers = [pull.score, reputation, relevance, quality, scaled, seconds, time, reward];
            self.learned.push((client, numbers));
        }
    }
}

impl Policy for MabFrs {
    fn wants(&self) -> Wants {
        let from = match self.reference {
            Reference::Aggregated => DeviationFrom::Aggregated,
            Reference::Sent => DeviationFrom::Sent,
        };
        Wants { loss_rms: true, quality: true, deviation: Some(from), model_quality: true, ..Wants::default() }
    }

    fn probes(&self) -> bool {
        self.evaluation_time > Span::ZERO
    }

    fn probe(&mut self, _: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(match Span(self.evaluation_time.0.saturating_mul(self.validated)) {
            Span::ZERO => Probe::None,
            span => Probe::Context(span),
        })
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("t_semi", in_seconds(self.t_semi))]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut super::Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        self.contexts.prepare(available, &self.utilities);
        let estimator = if self.selection == Selection::Index { &self.rewards } else { &self.worth };
        let estimate = estimator.ready();
        self.estimates.clear();
        self.estimates.extend(available.iter().map(|&client| estimate.of(client, self.contexts.of(client))));
        let scores = available.iter().zip(&self.estimates);
        let scores = scores.map(|(&client, estimate)| estimate + self.bonus(client, ask.turn)).collect();
        self.scores = scores;
        let cohort = ask.sizes(available).0;
        match self.selection {
            Selection::Index => top_m(&self.scores, cohort, &mut self.chosen),
            Selection::Joint | Selection::JointGreedy => {
                let times: Vec<f64> = available.iter().map(|&client| self.expected_time(client)).collect();
                let is_greedy = self.selection == Selection::JointGreedy;
                self.joint.solve(&self.scores, &times, self.kappa, cohort, is_greedy, &mut self.chosen);
            }
        }
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) => {
                // A job that was called off was not observed.
                if let Some(waited) = job.waited.effective() {
                    self.round.push(Pull::new(job, waited));
                }
            }
            Feedback::Trained(report) => {
                let is_its = |pull: &&mut Pull| pull.client == report.client && pull.turn == report.turn;
                if let Some(pull) = self.round.iter_mut().find(is_its) {
                    pull.take(report);
                }
            }
            Feedback::Round(report) => {
                self.validated = self.round.iter().filter(|pull| pull.update.is_some()).count() as u64;
                if let Some(quality) = report.quality {
                    self.utilities.judge(quality, self.reference, &mut self.round);
                }
                self.learn(report.turn);
            }
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
        let available = ask.available.list();
        explanation.clients(available.iter().copied());
        explanation.array("index", self.scores.iter().copied());
        explanation.array("estimate", self.estimates.iter().copied());
        explanation.array("pulls", available.iter().map(|client| f64::from(self.pulls[client.index()])));
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        let learned = |client| self.learned.iter().find(|(judged, _)| judged == client);
        let found: Vec<[f64; 8]> =
            clients.iter().map(|client| learned(client).map_or([f64::NAN; 8], |(_, numbers)| *numbers)).collect();
        for (number, name) in LEARNED.into_iter().enumerate() {
            explanation.array(name, found.iter().map(|numbers| numbers[number]));
        }
        Ok(())
    }
}
