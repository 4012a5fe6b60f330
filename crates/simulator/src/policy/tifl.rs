//! TiFL: tiers of clients that are about as fast; the tiers on whose data the model is worst are more likely.
//!
//! # Definition
//! By declared latency, of equal ones by id, the `j`-th of `K` clients (from 0) is in tier `⌊j·tiers/K⌋`. Each
//! selection draws a tier by its probability, takes a credit from it, and draws `m` of its available clients uniformly,
//! or all of them. At first all tiers are as likely. Before each selection `t > 1` for which `t − 1` is a multiple of
//! `interval`: if the accuracy of the tier chosen last is no better than it was `interval` selections ago, the `n`
//! tiers with credits, from the least accurate on, get
//! ```text
//! n/D, (n − 1)/D, …, 1/D,   D = n(n + 1)/2
//! ```
//! and the others 0. Tiers without credits, and those of which nobody is available, are drawn no more; where that
//! leaves only tiers with probability 0, these are as likely. Once no tier has credits, all have.
//!
//! The accuracy of a tier is the mean of the task's main measure of the model about to be sent, on the own data of its
//! clients that are available, weighted by their examples; larger is better.
//!
//! With the credits of the default all tiers have been selected equally often when the rounds end, whatever the
//! accuracies are, which decide when; the last rounds may be of one tier alone. More credits leave the accuracies a
//! choice.
//!
//! # Inputs
//! `credits`, unless `[stop]` has rounds. Declared latencies; accuracies of all available clients, by a probe before
//! the first and then every `interval`-th selection.
//!
//! # Explanation
//! With `[record] explain = true`: `tier` of each candidate; by tier, `tier_p` of this draw, `tier_credits` before it,
//! and `tier_accuracy` where it was asked for; `chosen_tier`.
//!
//! # Source
//! Z. Chai, A. Ali, S. Zawad, S. Truex, A. Anwar, N. Baracaldo, Y. Zhou, H. Ludwig, F. Yan, Y. Cheng, "TiFL: A
//! Tier-based Federated Learning System", HPDC 2020 (arXiv 2001.09249), Algorithm 2.
//!
//! # Deviations from the source
//! - It evaluates each tier in every round, on test data of its clients, and at no cost. Here clients are asked when
//!   that can change something, each downloads the model and makes a pass over its own data, and that is charged.
//! - It profiles clients by some tasks, and leaves out those that do not answer. Here latencies are declared.
//! - It divides ranks by `n(n − 1)/2`, which does not add up to 1.
//! - What follows when credits are spent is open there.
//! - A tier of which nobody answers keeps the accuracy that it had; where it has had none, it is the least accurate.
//!
//! # Cost
//! O(K) per round; every `interval`-th selection an inference pass of every available client.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for the tier, which is the first whose sum of probabilities, over the tiers
//! that can be drawn, exceeds it; then a Fisher–Yates shuffle of its candidates, ascending, as far as it is needed. Of
//! tiers that are as accurate the smaller one counts as less accurate.

use super::random::draw_first;
use super::{
    BuildContext, Explanation, Known, Policy, PolicyRng, PolicySettings, Probe, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `tifl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of tiers, at least 1 and at most as many as clients.
    #[serde(default = "default_tiers")]
    pub tiers: usize,
    /// Selections between two looks at accuracies, at least 1.
    #[serde(default = "default_interval")]
    pub interval: u32,
    /// Selections of each tier; the rounds of `[stop]` over the tiers, rounded up, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<u32>,
}

const fn default_tiers() -> usize {
    5
}
const fn default_interval() -> u32 {
    10
}

impl Default for Config {
    fn default() -> Self {
        Self { tiers: default_tiers(), interval: default_interval(), credits: None }
    }
}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        if self.credits.is_some() || self.tiers == 0 {
            return Ok(());
        }
        let Some(rounds) = known.rounds else {
            let message = "has no default where [stop] has no rounds; give the selections of each tier";
            return Err(Complaint::new("credits", message));
        };
        self.credits = Some(rounds.div_ceil(u32::try_from(self.tiers).unwrap_or(u32::MAX)).max(1));
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !(1..=context.among).contains(&self.tiers) {
            let message =
                format!("found {}; expected between 1 and the number of clients ({})", self.tiers, context.among);
            return Err(Complaint::new("tiers", message));
        }
        let credits = self.credits.unwrap_or(1);
        for (key, found) in [("interval", self.interval), ("credits", credits)] {
            if found == 0 {
                return Err(Complaint::new(key, "found 0; expected at least 1"));
            }
        }
        if !context.trains || !context.metrics.iter().any(|metric| metric.main) {
            let message = "tifl compares how accurate the model is on the data of clients, and this task measures nothing \
                           there; take another task";
            return Err(Complaint::new("", message));
        }
        let declared = |index: usize| context.devices.declared(ClientId::from_index(index)).seconds();
        Ok(Box::new(Tifl {
            interval: self.interval,
            declared: (0..context.clients).map(declared).collect(),
            tiers: Vec::new(),
            p: vec![1.0 / self.tiers as f64; self.tiers],
            credits: vec![credits; self.tiers],
            accuracy: vec![f64::NAN; self.tiers],
            chosen: None,
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
#[state(check = Self::is_sound)]
struct Tifl {
    #[state(skip = "from the scenario")]
    interval: u32,
    /// Seconds of a job that each client declares.
    #[state(skip = "from the world")]
    declared: Vec<f64>,
    /// The tier of each client of the server; empty before they are first asked for.
    #[state(skip = "from the world")]
    tiers: Vec<usize>,
    #[state(each)]
    p: Vec<f64>,
    #[state(each)]
    credits: Vec<u32>,
    /// As it was when clients were last asked; NaN where nobody has answered yet.
    #[state(each)]
    accuracy: Vec<f64>,
    /// The tier chosen last.
    chosen: Option<usize>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    p: Vec<f64>,
    credits: Vec<u32>,
    accuracy: Vec<f64>,
    chosen: usize,
}

impl Tifl {
    /// Whether the loaded tier is one of them.
    fn is_sound(&self) -> bool {
        self.chosen.is_none_or(|chosen| chosen < self.p.len())
    }

    const fn is_due(&self, turn: Turn) -> bool {
        (turn.0 - 1).is_multiple_of(self.interval)
    }

    /// Puts the clients of a server into tiers, when they are first seen.
    fn divide(&mut self, scope: &[ClientId]) {
        if self.tiers.is_empty() {
            let latency = |client: &ClientId| self.declared[client.index()];
            let mut order = scope.to_vec();
            order.sort_by(|one, other| latency(one).total_cmp(&latency(other)).then(one.cmp(other)));
            self.tiers = vec![0; self.declared.len()];
            for (place, client) in order.iter().enumerate() {
                self.tiers[client.index()] = place * self.p.len() / order.len();
            }
        }
    }

    /// The accuracy of each tier, from the answers of its clients.
    fn accuracies(&self, view: &ServerView<'_>) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.p.len()];
        for &(client, accuracy) in view.probed.iter().filter(|(_, accuracy)| !accuracy.is_nan()) {
            let (sum, all) = &mut sums[self.tiers[client.index()]];
            let examples = f64::from(view.data_sizes[client.index()]);
            (*sum, *all) = (*sum + examples * accuracy, *all + examples);
        }
        let known = sums.iter().zip(&self.accuracy);
        known.map(|(&(sum, all), &before)| if all > 0.0 { sum / all } else { before }).collect()
    }

    /// Changes the probabilities, if the tier chosen last has not become better.
    fn reconsider(&mut self, accuracy: &[f64]) {
        let Some(chosen) = self.chosen else { return };
        // Where nobody has answered, it is the least.
        let known = |accuracy: f64| if accuracy.is_nan() { f64::NEG_INFINITY } else { accuracy };
        if known(accuracy[chosen]) > known(self.accuracy[chosen]) {
            return;
        }
        let mut order: Vec<usize> = (0..self.p.len()).filter(|&tier| self.credits[tier] > 0).collect();
        let order_of = |one: usize, other: usize| known(accuracy[one]).total_cmp(&known(accuracy[other]));
        order.sort_by(|&one, &other| order_of(one, other).then(one.cmp(&other)));
        let count = order.len();
        self.p.fill(0.0);
        for (rank, tier) in order.into_iter().enumerate() {
            self.p[tier] = (count - rank) as f64 / (count * (count + 1) / 2) as f64;
        }
    }

    /// The probability of each tier in the next draw.
    fn shares(&self, has_somebody: &[bool]) -> Vec<f64> {
        let has_credits = |tier: &usize| self.credits[*tier] > 0;
        let there: Vec<usize> = (0..self.p.len()).filter(|&tier| has_somebody[tier]).collect();
        let paid: Vec<usize> = there.iter().copied().filter(has_credits).collect();
        let open = if paid.is_empty() { there } else { paid };
        let all: f64 = open.iter().map(|&tier| self.p[tier]).sum();
        let mut shares = vec![0.0; self.p.len()];
        for &tier in &open {
            shares[tier] = if all > 0.0 { self.p[tier] / all } else { 1.0 / open.len() as f64 };
        }
        shares
    }
}

impl Policy for Tifl {
    fn probes(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(if self.is_due(ask.turn) { Probe::Qualities(ask.available.list().to_vec()) } else { Probe::None })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.divide(ask.available.scope());
        self.made.accuracy = vec![f64::NAN; self.p.len()];
        if self.is_due(ask.turn) {
            if !view.probed.is_empty() && view.probed.iter().all(|(_, accuracy)| accuracy.is_nan()) {
                return Err("tifl compares how accurate the model is on the data of clients, and this task measures nothing there; \
                            take another task"
                    .into());
            }
            let accuracy = self.accuracies(view);
            self.reconsider(&accuracy);
            self.made.accuracy.clone_from(&accuracy);
            self.accuracy = accuracy;
        }
        let candidates = ask.available.list();
        let mut of_tier = vec![Vec::new(); self.p.len()];
        candidates.iter().for_each(|&client| of_tier[self.tiers[client.index()]].push(client));
        let has_somebody: Vec<bool> = of_tier.iter().map(|clients| !clients.is_empty()).collect();
        let shares = self.shares(&has_somebody);
        let mut left = rng.policy.uniform();
        let passed = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        // Rounding may leave a little after the last.
        let chosen = passed.or_else(|| shares.iter().rposition(|share| *share > 0.0)).unwrap_or(0);
        self.made = Decision {
            p: shares,
            credits: self.credits.clone(),
            accuracy: std::mem::take(&mut self.made.accuracy),
            chosen,
        };
        self.credits[chosen] = self.credits[chosen].saturating_sub(1);
        self.chosen = Some(chosen);
        let mut clients = std::mem::take(&mut of_tier[chosen]);
        draw_first(&mut clients, ask.cohort, rng.policy);
        selection.extend(clients);
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let Decision { p, credits, accuracy, chosen } = &self.made;
        explanation.clients(candidates.iter().copied());
        explanation.array("tier", candidates.iter().map(|client| self.tiers[client.index()] as f64));
        explanation.array("tier_p", p.iter().copied());
        explanation.array("tier_credits", credits.iter().map(|&credits| f64::from(credits)));
        explanation.array("tier_accuracy", accuracy.iter().copied());
        explanation.scalar("chosen_tier", *chosen as f64);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
