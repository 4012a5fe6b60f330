//! FedCor: clients whose losses move together with those of many others, by a Gaussian process of loss changes.
//!
//! # Definition
//! The changes of all clients' losses by a round are a draw from `N(0, Σ)`, with a vector `x_i` of `dimension` numbers
//! for each client:
//! ```text
//! Σ_ij = x_i · x_j + noise²·1{i = j}
//! ```
//! The first `warmup` selections, and then each for which `t − 1` is a multiple of `interval`, are uniform. Before such
//! a selection and before the one after it all available clients tell the loss of the model on their data; the
//! differences, of clients that told both, are the observation of round `t`. After each observation the vectors are
//! fitted to those of the last `history + 1` rounds: `iterations` steps of Adam at `rate` (β of 0.9 and 0.999, ε of
//! 1e-8, begun anew each time) against `−Σ gamma^(age in rounds)·ln N(observation; 0, Σ)`; and all discounts `a_i`
//! become 1.
//!
//! In other selections the client is added again and again that has the largest
//! ```text
//! gain_k = a_k/sqrt(Σ_kk)·Σ_i n_i/Σn·Σ_ik        i over the candidates
//! Σ     ← Σ − Σ_·k Σ_k·/Σ_kk                      as if its loss were known
//! ```
//! of equal ones the smaller id. Whoever was selected so has its discount multiplied by `discount`.
//!
//! # Inputs
//! Losses of the model on the data of all available clients, by probes; data sizes. Rounds of one server.
//!
//! # Explanation
//! With `[record] explain = true`: `variance` (`Σ_ii`), `discount` (`a`, before this selection) and `gain` (of the
//! first step; `null` in uniform selections) of each candidate; `uniform`, ids drawn uniformly.
//!
//! # Source
//! M. Tang, X. Ning, Y. Wang, J. Sun, Y. Wang, H. Li, Y. Chen, "FedCor: Correlation-Based Active Client Selection
//! Strategy for Heterogeneous Federated Learning", CVPR 2022 (arXiv 2103.13822); the program that its authors released
//! (`GPR.py`, `federated_main.py`), whose defaults these are.
//!
//! # Deviations from the source
//! - Later observations there are of a further round, trained with clients at random and forgotten; here the round
//!   itself is uniform.
//! - There the losses of all clients are at hand; here each downloads the model and makes a pass over its data, which
//!   is charged. Clients that are away tell nothing.
//! - The program fits for 150 steps in its warm-up, and for 100 later. Kernels that are normalised, a mean that is
//!   fitted and ε-greedy selection, which it has as well, are left out.
//!
//! # Cost
//! An inference pass of every available client before each uniform selection and after it. A fit takes
//! `O(iterations·history·(K·d² + d³))` for `d` dimensions, a selection `O(m·K·(d + m))`.
//!
//! # Determinism
//! Stream (policy, server, turn): at the first selection `dimension` uniforms for each of the server's clients, by
//! ascending id, of which the normal quantile over `sqrt(dimension)` is the vector; then, in uniform selections, a
//! Fisher–Yates shuffle of the candidates, ascending, as far as it is needed. Sums are added up by ascending id.

mod process;

use super::random::draw_first;
use super::{
    BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Probe, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use process::{Fit, Observation, Process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of `fedcor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Uniform selections at the beginning, at least 1.
    #[serde(default = "of_warmup")]
    pub warmup: u32,
    /// Selections between two uniform ones, at least 2.
    #[serde(default = "of_interval")]
    pub interval: u32,
    /// Numbers of each client's vector, at least 1.
    #[serde(default = "of_dimension")]
    pub dimension: usize,
    /// Standard deviation of a loss change that is a client's own, above 0.
    #[serde(default = "a_hundredth")]
    pub noise: f64,
    /// Rounds, beside the last one, whose observations are fitted.
    #[serde(default = "ten")]
    pub history: u32,
    /// Weight of an observation from round to round, above 0 and at most 1.
    #[serde(default = "of_gamma")]
    pub gamma: f64,
    /// Steps of a fit.
    #[serde(default = "a_hundred")]
    pub iterations: u32,
    /// Rate of a step, above 0.
    #[serde(default = "a_hundredth")]
    pub rate: f64,
    /// Factor of the gain of a client that was selected, from 0 to 1.
    #[serde(default = "of_discount")]
    pub discount: f64,
}

const fn of_warmup() -> u32 {
    25
}
const fn of_interval() -> u32 {
    5
}
const fn of_dimension() -> usize {
    15
}
const fn a_hundredth() -> f64 {
    0.01
}
const fn ten() -> u32 {
    10
}
const fn of_gamma() -> f64 {
    0.8
}
const fn a_hundred() -> u32 {
    100
}
const fn of_discount() -> f64 {
    0.9
}

impl Default for Config {
    fn default() -> Self {
        Self {
            warmup: of_warmup(),
            interval: of_interval(),
            dimension: of_dimension(),
            noise: a_hundredth(),
            history: ten(),
            gamma: of_gamma(),
            iterations: a_hundred(),
            rate: a_hundredth(),
            discount: of_discount(),
        }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.in_rounds {
            let message = "fedcor compares losses before and after a round of one server, which this protocol does not have; \
                           take synchronous, over-selection or deadline";
            return Err(Complaint::new("", message));
        }
        for (key, found, least) in [
            ("warmup", self.warmup as usize, 1),
            ("interval", self.interval as usize, 2),
            ("dimension", self.dimension, 1),
        ] {
            if found < least {
                return Err(Complaint::new(key, format!("found {found}; expected at least {least}")));
            }
        }
        let above = |key, value| check(key, value, f64::MIN_POSITIVE.., "a number above 0");
        let fit = Fit {
            gamma: check("gamma", self.gamma, f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?,
            iterations: self.iterations,
            rate: above("rate", self.rate)?,
        };
        let noise = above("noise", self.noise)?;
        Ok(Box::new(Fedcor {
            warmup: self.warmup,
            interval: self.interval,
            history: self.history,
            discount: check("discount", self.discount, 0.0..=1.0, "a number from 0 to 1")?,
            fit,
            process: Process::new(context.clients, self.dimension, noise * noise),
            discounts: vec![1.0; context.clients],
            observations: VecDeque::new(),
            told: Vec::new(),
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Fedcor {
    #[state(skip = "from the scenario")]
    warmup: u32,
    #[state(skip = "from the scenario")]
    interval: u32,
    #[state(skip = "from the scenario")]
    history: u32,
    #[state(skip = "from the scenario")]
    discount: f64,
    #[state(skip = "from the scenario")]
    fit: Fit,
    process: Process,
    /// `a`.
    #[state(each)]
    discounts: Vec<f64>,
    observations: VecDeque<Observation>,
    /// Losses told before the last selection, ascending by client, if that was uniform.
    told: Vec<(ClientId, f64)>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    variances: Vec<f64>,
    discounts: Vec<f64>,
    gains: Vec<f64>,
    uniform: Vec<ClientId>,
}

impl Fedcor {
    const fn is_uniform(&self, turn: u32) -> bool {
        turn <= self.warmup || (turn - 1).is_multiple_of(self.interval)
    }

    /// Observes the round of the selection before, and fits the vectors.
    fn observe_round(&mut self, round: u32, now: &[(ClientId, f64)]) {
        let before = std::mem::take(&mut self.told);
        let change = |(client, loss): &(ClientId, f64)| {
            let place = before.binary_search_by_key(client, |(client, _)| *client).ok()?;
            let change = loss - before[place].1;
            change.is_finite().then_some((client.index(), change))
        };
        let changes: Vec<(usize, f64)> = now.iter().filter_map(change).collect();
        if changes.is_empty() {
            return;
        }
        self.observations.push_back(Observation { round, changes });
        self.observations.retain(|observation| observation.round + self.history >= round);
        self.process.fit(&self.fit, &self.observations, round);
        self.discounts.fill(1.0);
    }

    /// The clients with the largest gains, one after the other.
    fn greedy(&mut self, candidates: &[ClientId], shares: &[f64], count: usize) -> Vec<ClientId> {
        let mut posterior = self.process.posterior(candidates, shares);
        let mut chosen = Vec::new();
        let mut is_left = vec![true; candidates.len()];
        for _ in 0..count {
            let gain = |place: usize| {
                let discount = self.discounts[candidates[place].index()];
                discount * posterior.covered[place] / sqrt(posterior.variances[place])
            };
            let left = (0..candidates.len()).filter(|&place| is_left[place] && posterior.variances[place] > 0.0);
            let best = left
                .map(|place| (gain(place), place))
                .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
            // Where nothing is left to be known, smaller ids come first.
            let place = best.map(|(_, place)| place).or_else(|| is_left.iter().position(|is_left| *is_left));
            let Some(place) = place else { break };
            if chosen.is_empty() {
                self.made.gains = (0..candidates.len()).map(gain).collect();
            }
            is_left[place] = false;
            chosen.push(candidates[place]);
            posterior.know(place);
        }
        chosen
    }
}

impl Policy for Fedcor {
    fn probes(&self) -> bool {
        true
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        let turn = ask.turn.0;
        let is_asked = self.is_uniform(turn) || turn > 1 && self.is_uniform(turn - 1);
        Ok(if is_asked { Probe::Losses(ask.available.list().to_vec()) } else { Probe::None })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let turn = ask.turn.0;
        if turn == 1 {
            let scale = sqrt(self.process.dimension() as f64);
            self.process.place(ask.available.scope(), || normal_quantile(rng.policy.uniform()) / scale);
        }
        if turn > 1 && self.is_uniform(turn - 1) {
            self.observe_round(turn - 1, view.probed);
        }
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        self.made = Decision {
            variances: candidates.iter().map(|&client| self.process.variance(client)).collect(),
            discounts: candidates.iter().map(|client| self.discounts[client.index()]).collect(),
            gains: vec![f64::NAN; candidates.len()],
            uniform: Vec::new(),
        };
        if self.is_uniform(turn) {
            self.told = view.probed.to_vec();
            let mut clients = candidates.to_vec();
            draw_first(&mut clients, cohort, rng.policy);
            self.made.uniform.clone_from(&clients);
            selection.extend(clients);
            return Ok(());
        }
        let size = |client: &ClientId| f64::from(view.data_sizes[client.index()]);
        let all: f64 = candidates.iter().map(size).sum();
        let shares: Vec<f64> =
            candidates.iter().map(|client| if all > 0.0 { size(client) / all } else { 0.0 }).collect();
        let chosen = self.greedy(candidates, &shares, cohort);
        chosen.iter().for_each(|client| self.discounts[client.index()] *= self.discount);
        selection.extend(chosen);
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
        explanation.array("variance", self.made.variances.iter().copied());
        explanation.array("discount", self.made.discounts.iter().copied());
        explanation.array("gain", self.made.gains.iter().copied());
        explanation.ids("uniform", self.made.uniform.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
