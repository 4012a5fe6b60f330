//! EAFL: Oort's clients, preferably those whose batteries are full enough.
//!
//! # Definition
//! Everything is as in `oort`, but that another number stands in the place of the score: where scores are compared with
//! the cut-off, and in proportion to which exploited clients are drawn. With the score `s_i` of `oort`, the level `B_i`
//! and capacity `C_i` of a client's battery, and `E_i` the energy that the declared job draws, the medians of download,
//! compute and upload times the draws of the phases:
//! ```text
//! power_i  = (B_i − E_i)/C_i
//! reward_i = f·s_i/max_j s_j + (1 − f)·power_i       j: the explored candidates
//! ```
//! Unexplored clients have no reward, and are drawn as in `oort`.
//!
//! # Inputs
//! Levels of batteries (`[population.battery] level = "seen"`), with their capacities and draws. Those of `oort`: losses,
//! examples and latencies of updates; data sizes and declared latencies.
//!
//! # Explanation
//! With `[record] explain = true`: the numbers of `oort`; `power` of each candidate, and `reward`, `null` if
//! unexplored. `cutoff` is the smallest reward admitted. `after`: as `oort`.
//!
//! # Source
//! A. Arouj, A. M. Abdelmoniem, "Towards Energy-Aware Federated Learning on Battery-Powered Clients", FedEdge 2022 (arXiv
//! 2208.04505): a weighted sum of Oort's utility and the power that is left.
//!
//! # Deviations from the source
//! - Its text was not at hand: `f` and the scales of the two terms, the largest score and the capacity, are ours.
//! - What a job draws is what the client declares; charging during the job is left out.
//! - A reward below 0, of a client whose job needs more than it has, counts as 0 where clients are drawn; the cut-off
//!   is never above the last rank's reward. If all scores are 0, so is their share.
//! - Rounds, exploration and the pacer: see `oort`.
//!
//! # Cost
//! That of `oort`, and the level of each candidate.
//!
//! # Determinism
//! That of `oort`. Levels are whole numbers of units, read as joules.

use super::oort::config::ranks_as_oort;
use super::oort::{self, Oort};
use super::{
    BuildContext, Capabilities, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, Selection,
    SelectionRequest, ServerView, Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

ranks_as_oort! {
    /// Parameters of `eafl`: `f`, and those of `oort`, whose cut-off is one of rewards.
    Config {
        /// Weight of the score against that of the power, from 0 to 1.
        #[serde(default = "quarter")]
        pub f: f64,
    }
}

const fn quarter() -> f64 {
    0.25
}

impl Config {
    /// The parameters of the ranking.
    const fn ranking(&self) -> oort::Config {
        oort::Config {
            variant: self.variant,
            pacer_step: self.pacer_step,
            pacer_delta: self.pacer_delta,
            threshold: self.threshold,
            cutoff: self.cutoff,
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
        let mut ranking = self.ranking();
        ranking.resolve(known)?;
        let oort::Config { pacer_delta, threshold, cutoff, .. } = ranking;
        (self.pacer_delta, self.threshold, self.cutoff) = (pacer_delta, threshold, cutoff);
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let seconds = |client: ClientId| {
            let declared = context.devices.declared(client);
            let halves = [declared.transfer_seconds / 2.0; 2];
            let [download, upload] = context.devices.links(client).unwrap_or(halves);
            [download, declared.compute_seconds, upload]
        };
        Ok(Box::new(Eafl {
            f: check("f", self.f, 0.0..=1.0, "a number from 0 to 1")?,
            ranking: self.ranking().oort(context)?,
            seconds: (0..context.clients).map(ClientId::from_index).map(seconds).collect(),
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Eafl {
    #[state(skip = "from the scenario")]
    f: f64,
    ranking: Oort,
    /// Declared seconds of download, compute and upload.
    #[state(skip = "from the world")]
    seconds: Vec<[f64; 3]>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    /// Of each candidate.
    power: Vec<f64>,
    /// NaN for unexplored clients.
    reward: Vec<f64>,
}

impl Eafl {
    /// The share of its battery that a client has left after the declared job.
    fn power(&self, view: &ServerView<'_>, client: ClientId) -> Result<f64, Failure> {
        let battery = view.battery(client).ok_or("a candidate shows no battery, though the scenario says so")?;
        let seconds = self.seconds[client.index()];
        let job: f64 = battery.draw_w.iter().zip(seconds).map(|(watts, seconds)| watts * seconds).sum();
        Ok((battery.level_j - job) / battery.capacity_j)
    }
}

impl Policy for Eafl {
    fn wants(&self) -> Wants {
        self.ranking.wants()
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { level: true, ..Capabilities::default() }
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
        self.ranking.rank(ask);
        let clients = self.ranking.candidates().iter();
        let power = clients.map(|&client| self.power(view, client)).collect::<Result<Vec<f64>, _>>()?;
        let scores = self.ranking.scores();
        let largest = scores.iter().copied().fold(0.0, f64::max);
        let share = |score: f64| match largest > 0.0 || score.is_nan() {
            true => score / largest,
            false => 0.0,
        };
        let reward = |(score, power): (&f64, &f64)| self.f * share(*score) + (1.0 - self.f) * power;
        let reward: Vec<f64> = scores.iter().zip(&power).map(reward).collect();
        self.ranking.replace_scores(reward.clone());
        self.made = Decision { power, reward };
        self.ranking.choose(ask, view, rng, selection);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        self.ranking.observe(feedback)
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        self.ranking.explain(ask, view, selection, explanation)?;
        explanation.array("power", self.made.power.iter().copied());
        explanation.array("reward", self.made.reward.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        self.ranking.explain_after(clients, explanation)
    }
}
