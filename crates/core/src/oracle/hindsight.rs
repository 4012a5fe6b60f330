//! Regret in hindsight: what a round lost against the best set, found by training the clients that were not chosen too.
//!
//! # Definition
//! In round `t` every client `i` that could be chosen, chosen or not, trains from the model that the round sends, with
//! the random numbers that belong to (seed, client, round): its update is, bit for bit, what it would have returned had
//! it been chosen. Let `S_i` be the utility of that update ([`super::utility`]) and `τ_i` what the round would wait for
//! it: its latency of this round, at most the timeout or deadline `T`, and `T` if the client would be lost (always `T`
//! under `full_window`). Then
//!
//! ```text
//! V(S)  = Σ_{i∈S} S_i − κ·max_{i∈S} τ_i / T_semi
//! G_t   = argmax V(S) over all sets S of m clients that could be chosen (all of them, if they are fewer)
//! regret of the round = V(G_t) − V(A_t) ≥ 0,     counterfactual = the sum over rounds
//! ```
//!
//! A client that would be lost or late has an update that never counts, as has one without data, and one whose update
//! diverges: `S_i = 0`. Its `τ_i` counts all the same. `A_t` is what the policy chose; a policy that chooses fewer than
//! `m` clients may be worth more than `G_t`, and the regret of that round negative. A difference within the solver's
//! tie counts as none.
//!
//! `G_t` is the best set of the round for the policy's own past: the model it has reached and, where the utility
//! remembers, what it has seen. It is the best in hindsight, with this round's latencies and this round's mini-batches.
//!
//! With `size = "at-most"` the best is over sets of one to `m` clients; with a `[budget]` of `least` to `m`, and `m` is
//! what the budget pays for. With `every = n` each n-th round is judged, and
//! the others add nothing. A utility may be one of sets instead of a sum: [`super::utility::aggregate`]. In
//! `rounds.jsonl` a judged round has `hindsight`: `best` (ids), `best_value`, `own_value`.
//!
//! Two utilities look at the round when it begins, with what clients keep then: with [`super::utility::local_loss`]
//! nobody trains, and [`super::utility::influence`] is a weighted mean over a set, whose best set [`super::ratio`]
//! finds.
//!
//! *Edge servers* (`hierarchical`): each of their rounds is judged among the server's own clients, from the model that
//! the server sends them. The regret of a round of the cloud is the mean over the servers that selected in it of the
//! sum over their rounds; `hindsight` has lists with one entry per round of an edge server, in the order in which they
//! closed, with `server` and `turn`.
//!
//! *One by one* (`buffered`): each selection is of one client, and is compared with the best single candidate of that
//! moment, from the model that it is sent. What an update is worth is not discounted by the age that it will have. The
//! regret of a round is the sum over the selections made in it; `hindsight` has lists with one entry each, with `turn`.
//!
//! # Inputs
//! Rounds in which all who are asked are waited for (not `over-selection` with `take` below `ask`), late updates are
//! dropped, and there is no quorum; latencies that do not depend on when a job begins (no traced links, nobody goes
//! away in the middle of a job). Everything else is refused.
//!
//! # Source
//! The value is (14)–(16) of MAB-FRS (see [`super::utility::contribution`]), with the latency of the simulated job for
//! (14). That its optimum can be found and measured is this project's.
//!
//! # Deviations from the source
//! The number of clients is fixed to `m`, unless `size = "at-most"`. The paper leaves κ and `T_semi` open: defaults
//! are κ = 0.5, and for `T_semi` the 80th percentile (nearest rank) over clients of the sum of their phases' mean
//! durations, without losses and timeouts.
//!
//! # Cost
//! A round trains and tests all clients that could be chosen, and would arrive, instead of those that were; updates of
//! those that were chosen are trained once, twice where clients are chosen one by one. The solve is O(K log K).
//! Memory: the parameters of all candidates.
//!
//! # Determinism
//! Draws only what the clients' training draws. Nothing else of the run changes: the clock, the accounts, the model and
//! both digests are those of the same run without this meter. The number is in no digest; `rounds.jsonl` has it, and
//! `verify` compares that.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = { contribution = {} }
//! kappa = 0.5
//! t_semi = "2 s"
//! meters = []            # without mean speeds there is no need for tau_min
//! ```

use super::utility::UtilityConfig;
use super::{Exact, Instance, TIE};
use crate::math::sum::CompensatedSum;
use crate::state::Stateful;
use crate::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The regret in hindsight as a scenario asks for it; `t_semi` is none where it follows from the population.
#[derive(Clone, Debug, PartialEq)]
pub struct HindsightPlan {
    /// What an update is worth.
    pub utility: UtilityConfig,
    /// Weight κ of the time that the round takes.
    pub kappa: f64,
    /// The unit of time.
    pub t_semi: Option<Span>,
    /// How many clients a set has.
    pub size: SetSize,
    /// Every so many rounds are judged.
    pub every: u32,
}

/// The regret in hindsight as a world defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// What an update is worth.
    pub utility: UtilityConfig,
    /// Weight κ of the time that the round takes.
    pub kappa: f64,
    /// The unit of time, positive.
    pub t_semi: Span,
    /// How many clients a set has.
    pub size: SetSize,
    /// Every so many rounds are judged.
    pub every: u32,
    /// The fewest clients of a round.
    pub least: usize,
    /// The weight of a set's bytes as a share of these bytes, the budget; none where bytes have no price.
    pub traffic: Option<(f64, u64)>,
}

/// How many clients the sets have that a policy is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SetSize {
    /// As many as the cohort.
    #[default]
    Exactly,
    /// From one, or the fewest of a round, to as many as the cohort.
    AtMost,
}

/// What a round was worth, and what the best set would have been.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Positions of the best set's clients among the candidates, ascending.
    pub best: Vec<u32>,
    /// What it is worth.
    pub best_value: f64,
    /// What the policy's set is worth.
    pub own_value: f64,
}

impl Hindsight {
    /// `−κ·T̃` of a client that the round would wait for so long.
    pub fn speed(&self, latency: Span) -> f64 {
        -self.kappa * (latency.0 as f64 / self.t_semi.0 as f64)
    }

    /// What a set whose jobs move so many bytes is worth in addition.
    pub fn worth_of(&self, bytes: u64) -> f64 {
        self.traffic.map_or(0.0, |(weight, budget)| weight * (bytes as f64 / budget as f64))
    }

    /// How many clients the sets of a round have, of which so many can be chosen.
    pub fn sizes(&self, cohort: usize) -> RangeInclusive<usize> {
        match self.size {
            SetSize::Exactly => cohort..=cohort,
            SetSize::AtMost => self.least.min(cohort)..=cohort,
        }
    }
}

/// The regret in hindsight of a run, round by round.
#[derive(Debug, Default, Stateful)]
pub struct HindsightRegret {
    #[state(skip = "buffers of the solver")]
    exact: Exact,
    /// Of the last round that was judged.
    #[state(skip = "read before the next round is judged")]
    last: Judgement,
    sum: CompensatedSum,
}

impl HindsightRegret {
    /// Adds one round of a utility that is a sum, and returns its regret. `speed` and `utility` have one entry per
    /// candidate, `chosen` are the positions of the selected candidates, ascending; `sizes` says of how many clients
    /// the sets are that it is compared with.
    ///
    /// # Panics
    /// If a number is not finite, the choice is empty or names somebody else, or is one of those sets and worth more
    /// than the best: broken invariants.
    pub fn add(&mut self, speed: &[f64], utility: &[f64], sizes: RangeInclusive<usize>, chosen: &[u32]) -> f64 {
        let of_size = |size: usize| Instance { speed, gain: utility, cohort: size, take: size };
        let is_bounded = sizes.contains(&chosen.len());
        let mut found: Option<(f64, Vec<u32>)> = None;
        for size in sizes {
            let mut set = Vec::new();
            let value = self.exact.maximise(&of_size(size), &mut set);
            let is_better =
                found.as_ref().is_none_or(|(best, first)| value > best + TIE || value >= best - TIE && set < *first);
            if is_better {
                found = Some((value, set));
            }
        }
        let (best_value, best) = found.expect("a cohort has a size");
        let own_value = if chosen == best { best_value } else { of_size(chosen.len()).value(chosen) };
        self.add_judged(Judgement { best, best_value, own_value }, is_bounded)
    }

    /// Adds one round of any utility, and returns its regret. `is_bounded` says whether the policy's set is one of
    /// those that the best is of.
    ///
    /// # Panics
    /// If a number is not finite, or the policy's set is one of those and worth more than the best: broken invariants.
    pub fn add_judged(&mut self, judgement: Judgement, is_bounded: bool) -> f64 {
        let Judgement { best_value, own_value, .. } = judgement;
        // Where no set is worth a number, none is better.
        let lost = if own_value == best_value { 0.0 } else { best_value - own_value };
        let lost = if is_bounded {
            assert!(
                lost > -1e-9 * (1.0 + best_value.abs()),
                "the best set in hindsight lost {lost} against the policy's"
            );
            lost.max(0.0)
        } else {
            lost
        };
        self.last = judgement;
        self.sum.add(lost);
        lost
    }

    /// The last round that was judged.
    pub const fn last(&self) -> &Judgement {
        &self.last
    }

    /// The sum over rounds so far.
    pub fn cumulative(&self) -> f64 {
        self.sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    /// κ = 1/2 and T_semi = 2 s make −1/4 a second. Clients take 1, 2, 4 s and are worth 0.5, 1, 2: {0, 1} is worth
    /// 1.5 − 0.5, {0, 2} 2.5 − 1, {1, 2} 3 − 1.
    #[test]
    fn three_clients_by_hand() {
        let config = Hindsight {
            utility: UtilityConfig::default(),
            kappa: 0.5,
            t_semi: Span::from_seconds(2.0).unwrap(),
            size: SetSize::Exactly,
            every: 1,
            least: 1,
            traffic: Some((-0.5, 2_000)),
        };
        assert_eq!(config.worth_of(500), -0.125);
        assert_eq!(config.sizes(2), 2..=2);
        let at_most = |least| Hindsight { size: SetSize::AtMost, least, ..config.clone() };
        assert_eq!((at_most(1).sizes(2), at_most(2).sizes(3), at_most(3).sizes(2)), (1..=2, 2..=3, 2..=2));
        let speed = [1.0, 2.0, 4.0].map(|seconds| config.speed(Span::from_seconds(seconds).unwrap()));
        assert_eq!(speed, [-0.25, -0.5, -1.0]);
        let mut regret = HindsightRegret::default();
        let utility = [0.5, 1.0, 2.0];
        assert_eq!(regret.add(&speed, &utility, 2..=2, &[0, 1]), 1.0);
        assert_eq!((&*regret.last().best, regret.last().best_value), (&[1, 2][..], 2.0));
        assert_eq!(regret.add(&speed, &utility, 2..=2, &[0, 2]), 0.5);
        assert_eq!(regret.add(&speed, &utility, 2..=2, &[1, 2]), 0.0);
        assert_eq!(regret.cumulative(), 1.5);
        // {2} alone is worth 2 − 1, {1} 1 − 0.5: still less than {1, 2}; at a tenth of their worth {0} is the best.
        assert_eq!(regret.add(&speed, &utility, 1..=2, &[2]), 1.0);
        let small = utility.map(|utility| utility / 16.0);
        assert_eq!(regret.add(&speed, &small, 1..=2, &[1, 2]), 0.8125 - 0.21875);
        assert_eq!((&*regret.last().best, regret.last().best_value), (&[0][..], -0.21875));
        // Whoever chooses fewer may be better off: {0} of two that would both do harm.
        assert_eq!(regret.add(&speed[..2], &[-1.0, -2.0], 2..=2, &[0]), -3.5 + 1.25);
    }

    #[test]
    fn never_negative_and_the_best_by_enumeration() {
        let mut rng = Streams::new(5).stream(Purpose::Solver, 0, 0);
        let mut regret = HindsightRegret::default();
        for _ in 0..2_000 {
            let candidates = 1 + rng.below(8) as usize;
            let cohort = 1 + rng.below(candidates as u64) as usize;
            let (style, other) = (rng.below(brute::STYLES), rng.below(brute::STYLES));
            let speed: Vec<f64> = (0..candidates).map(|_| -brute::draw(style, &mut rng).abs()).collect();
            let utility: Vec<f64> = (0..candidates).map(|_| brute::draw(other, &mut rng)).collect();
            let instance = Instance { speed: &speed, gain: &utility, cohort, take: cohort };
            let (best, _) = brute::solve(&instance);
            for set in brute::subsets(candidates, cohort) {
                let lost = regret.add(&speed, &utility, cohort..=cohort, &set);
                assert!(lost >= 0.0);
                approx::assert_abs_diff_eq!(lost, best - instance.value(&set), epsilon = 1e-11);
            }
        }
    }
}
