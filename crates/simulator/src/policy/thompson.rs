//! Thompson sampling of clients by the gain in accuracy of their server's model in the rounds that they took part in.
//!
//! # Definition
//! Each client has Beta(α, β), at first Beta(1, 1). With a(t) the accuracy of the model that the server makes of the
//! updates in round t:
//!
//! ```text
//! r = a(t) − a(t−1),  Δ = min(gain·|r|, cap)                                                  (11)
//! α_i ← α_i + Δ if r > 0, else β_i ← β_i + Δ     for each selected i whose update arrived     (12)
//! ```
//!
//! A selection draws once from each candidate's Beta and takes the largest draws. In the server's first `warmup` rounds
//! clients are selected as by `random`; (12) holds there too. Rounds count as the model that they make does: under
//! `hierarchical` they are the cloud's.
//!
//! a(t) is measured on the server's test examples (`on = "test"`), or on the training examples of its clients
//! (`on = "train"`). Under `hierarchical` the model is the edge server's own average before the cloud's, with the
//! cluster model that it trains; a(0) belongs to the initial model, and if a server takes no part in a round, a(t−1) is
//! the last accuracy that it had. With one server, it is its model after aggregation. A task without accuracy has its
//! main measure instead, negated where smaller is better. Nothing is learned where it is unknown, as for a server
//! without test examples.
//!
//! # Inputs
//! The accuracy of each model that the server makes, and the clients whose updates arrived in the round.
//!
//! # Explanation
//! With `[record] explain = true`: `draw` of each candidate, `null` during warm-up, and `mean`, α/(α + β), of its
//! posterior. `after`: `alpha` and `beta` of all the server's clients, with `accuracy`, a(t), and `change`, r, `null`
//! where unknown.
//!
//! # Source
//! S. Bashir, T. Dagiuklas, M. Iqbal, "Fed-BAC: Federated Bandit-Guided Additive Clustering in Hierarchical Federated
//! Learning", 2026 (arXiv 2605.11815), IV-B2: (11), (12), Algorithm 2. Beta posteriors: D. J. Russo, B. Van Roy, A.
//! Kazerouni, I. Osband, Z. Wen, "A Tutorial on Thompson Sampling", Foundations and Trends in Machine Learning 11 (1),
//! 2018.
//!
//! # Deviations from the source
//! - Every client is credited with the gain that all achieved together. While accuracy rises α alone grows, with
//!   everyone who takes part: with two clients, one place and gain·r = 1 in each round this is a Pólya urn, which is as
//!   likely to end with any share of selections as with any other, whatever the clients are worth.
//! - Clients that were selected and did not arrive are not credited: the source has none.
//! - With several rounds of an edge server in one of the cloud each has its own a(t); under `buffered` a client that
//!   arrives twice in a round is credited once.
//!
//! # Cost
//! An evaluation of each model on its server's data. A selection draws two gamma variates for each candidate, a few
//! microseconds each.
//!
//! # Determinism
//! Stream (policy, server, turn): during warm-up as `random`; then two uniforms for each candidate, by ascending id,
//! see `math/beta.rs`. Draws within 1e-12 of the last one taken are equal; the smallest ids win.

use super::random::{Deck, draw_uniform};
use super::{
    AccuracyOn, BuildContext, EdgeAccuracy, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection,
    SelectionRequest, ServerView, Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::beta::beta_variate;
use fedgenie_core::oracle::top_m;
use fedgenie_core::record::Outcome;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `thompson`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rounds in which clients are selected at random.
    #[serde(default = "ten_rounds")]
    pub warmup: u32,
    /// Factor of a change of accuracy, from 0 to 1000000.
    #[serde(default = "ten")]
    pub gain: f64,
    /// The most that a round adds to α or β, from 0 to 1000.
    #[serde(default = "two")]
    pub cap: f64,
    /// The data on which the accuracy of the server's model is measured.
    #[serde(default)]
    pub on: AccuracyOn,
}

const fn ten_rounds() -> u32 {
    10
}
const fn ten() -> f64 {
    10.0
}
const fn two() -> f64 {
    2.0
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Thompson {
            warmup: self.warmup,
            gain: check("gain", self.gain, 0.0..=1e6, "a number from 0 to 1000000")?,
            cap: check("cap", self.cap, 0.0..=1e3, "a number from 0 to 1000")?,
            on: self.on,
            alpha: vec![1.0; context.clients],
            beta: vec![1.0; context.clients],
            members: Vec::new(),
            arrived: Vec::new(),
            accuracy: None,
            deck: Deck::default(),
            draws: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Thompson {
    #[state(skip = "from the scenario")]
    warmup: u32,
    #[state(skip = "from the scenario")]
    gain: f64,
    #[state(skip = "from the scenario")]
    cap: f64,
    #[state(skip = "from the scenario")]
    on: AccuracyOn,
    #[state(each)]
    alpha: Vec<f64>,
    #[state(each)]
    beta: Vec<f64>,
    /// The server's clients; empty before the first selection.
    members: Vec<ClientId>,
    /// Clients whose updates have arrived in the round under way.
    arrived: Vec<ClientId>,
    /// The accuracy of the last round.
    accuracy: Option<EdgeAccuracy>,
    #[state(skip = "a buffer of one selection")]
    deck: Deck,

    // Of the last selection.
    /// NaN during warm-up.
    #[state(skip = "read before the next selection")]
    draws: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl Thompson {
    /// Whether the loaded clients and counts are possible.
    fn is_sound(&self) -> bool {
        let is_known = |client: &ClientId| client.index() < self.alpha.len();
        self.members.iter().chain(&self.arrived).all(is_known)
            && self.alpha.iter().chain(&self.beta).all(|count| (1.0..f64::INFINITY).contains(count))
    }

    /// Closes a round: credits the clients that arrived with the gain in accuracy.
    fn learn(&mut self, accuracy: Option<EdgeAccuracy>) {
        self.accuracy = accuracy;
        self.arrived.sort_unstable();
        self.arrived.dedup();
        if let Some(EdgeAccuracy { before, after }) = accuracy {
            let change = after - before;
            let step = (self.gain * change.abs()).min(self.cap);
            let credited = if change > 0.0 { &mut self.alpha } else { &mut self.beta };
            self.arrived.iter().for_each(|client| credited[client.index()] += step);
        }
        self.arrived.clear();
    }
}

impl Policy for Thompson {
    fn wants(&self) -> Wants {
        Wants { edge_accuracy: Some(self.on), ..Wants::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if self.members.is_empty() {
            self.members = ask.available.scope().to_vec();
        }
        self.draws.clear();
        if ask.round.0 <= self.warmup {
            draw_uniform(&ask.available, ask.cohort, &mut self.deck, rng.policy, selection);
            return Ok(());
        }
        let available = ask.available.list();
        let draw = |client: &ClientId| beta_variate(self.alpha[client.index()], self.beta[client.index()], rng.policy);
        self.draws.extend(available.iter().map(draw));
        top_m(&self.draws, ask.sizes(available).0, &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) if job.outcome == Outcome::Arrived => self.arrived.push(job.client),
            Feedback::Round(report) => self.learn(report.edge_accuracy),
            Feedback::Job(_) | Feedback::Trained(_) => {}
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
        explanation.array("draw", (0..available.len()).map(|index| self.draws.get(index).copied().unwrap_or(f64::NAN)));
        let mean = |client: &ClientId| {
            let (alpha, beta) = (self.alpha[client.index()], self.beta[client.index()]);
            alpha / (alpha + beta)
        };
        explanation.array("mean", available.iter().map(mean));
        Ok(())
    }

    fn explain_after(&self, _: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(self.members.iter().copied());
        explanation.array("alpha", self.members.iter().map(|client| self.alpha[client.index()]));
        explanation.array("beta", self.members.iter().map(|client| self.beta[client.index()]));
        let (accuracy, change) =
            self.accuracy.map_or((f64::NAN, f64::NAN), |EdgeAccuracy { before, after }| (after, after - before));
        explanation.scalar("accuracy", accuracy);
        explanation.scalar("change", change);
        Ok(())
    }
}
