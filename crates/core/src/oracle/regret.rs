//! Regret: the shortfall of a policy's choices against the genie's, under the policy's own history.
//!
//! # Definition
//! `G_t` is the genie's set and `A_t` the policy's, both judged with the generalisation function of the policy's own
//! history `H_t`. Each meter adds up, over rounds, `[speed + gen](G_t) − [speed + gen](A_t)` with
//! `gen(S) = (α/m) Σ_{k∈S} g_k`. `G_t` has as many clients as the round can have: the cohort `m`, or fewer where fewer
//! are available or the rest of a budget pays for fewer. The meters are
//!
//! - `mean`: speed `min_{k∈S} μ_k`. Never negative for a set of the size of `G_t`, which maximises it; a policy that
//!   chooses another number of clients may do better. Theorem 1 bounds this meter.
//! - `realised`: speed `min_{k∈S} τ_min/τ_{k,t}` with this round's latencies, for clients that were not selected as
//!   well.
//! - `expected`: speed `E[min_{k∈S} τ_min/τ_k] = ∫₀¹ Π_{k∈S} P(τ_k ≤ τ_min/v) dv`. May be negative: `G_t` does not
//!   maximise it.
//! - `expected-exact`: as `expected`, against the best of all sets of the size of `G_t` for it, found by enumeration
//!   (at most 10⁶ sets of each size).
//!
//! Latencies are effective ones: the times that the round waits. Under over-selection "min" reads "`take`-th largest".
//!
//! # Source
//! Ben Ami, Cohen, Zhao, IEEE Access 2025, equation (7), which is defined with realised rewards, proved with mean
//! speeds.
//!
//! # Cost
//! Per round: one exact solve; `realised` draws the genie's latencies; `expected` takes O(nodes · m). `expected-exact`
//! enumerates the sets of the cohort once in a world, those of a smaller size once in a run that has such rounds.
//!
//! # Example
//! ```toml
//! [regret]
//! tau_min = "50 ms"
//! meters = ["mean", "realised"]
//! ```

use super::genie::{Genie, GenieSolver};
use super::reward::bottleneck;
use crate::catalogue::{Catalogue, Entry};
use crate::id::ClientId;
use crate::law::ExpectedMinimum;
use crate::math::sum::CompensatedSum;
use crate::record::Regret;
use crate::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Meters that a scenario can name; `counterfactual` and `assignment` are switches of `[regret]`.
pub static CATALOGUE: Catalogue = Catalogue {
    kind: "meter",
    definition: "Meter",
    entries: &[
        Entry { name: "counterfactual", summary: "", source: include_str!("hindsight.rs") },
        Entry { name: "assignment", summary: "", source: include_str!("assignment.rs") },
    ],
    shared: include_str!("regret.rs"),
};

/// Name of a regret meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Meter {
    /// Regret in mean speeds, with Theorem 1 of BSFL as its bound.
    Mean,
    /// Regret in realised speeds: with the latencies of the round.
    Realised,
    /// Regret in the expected minimum speed of a set.
    Expected,
    /// Regret in the expected minimum speed, against the best of all sets for it.
    ExpectedExact,
}

impl Meter {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Realised => "realised",
            Self::Expected => "expected",
            Self::ExpectedExact => "expected-exact",
        }
    }

    /// Its regret; `None` if it is not metered.
    pub const fn of(self, regret: &Regret) -> Option<f64> {
        match self {
            Self::Mean => regret.mean,
            Self::Realised => regret.realised,
            Self::Expected => regret.expected,
            Self::ExpectedExact => regret.expected_exact,
        }
    }
}

/// The largest number of sets that `expected-exact` enumerates.
pub const MOST_SETS: u64 = 1_000_000;

/// Number of `m`-subsets of `k`, or more than [`MOST_SETS`] if there are more.
pub fn subsets(k: usize, m: usize) -> u64 {
    let m = m.min(k - m.min(k));
    let mut count: u128 = 1;
    for i in 0..m {
        count = count * (k - i) as u128 / (i + 1) as u128;
        if count > u128::from(MOST_SETS) {
            return MOST_SETS + 1;
        }
    }
    count as u64
}

/// The largest number of sets of one size, at most `m`, of `k` clients, or more than [`MOST_SETS`] if there are more.
pub fn most_subsets(k: usize, m: usize) -> u64 {
    subsets(k, m.min(k / 2))
}

/// The expected minimum speed of every set of `m` clients.
#[derive(Debug)]
pub struct AllSets {
    m: usize,
    /// Sets in lexicographic order, `m` ids each.
    sets: Vec<u32>,
    speeds: Vec<f64>,
}

impl AllSets {
    /// Enumerates all `m`-subsets.
    pub fn new(clients: usize, m: usize, expected: &ExpectedMinimum) -> Self {
        let (mut sets, mut speeds) = (Vec::new(), Vec::new());
        let mut set: Vec<usize> = (0..m).collect();
        loop {
            speeds.push(expected.of(&set));
            sets.extend(set.iter().map(|&client| client as u32));
            // The last member that can still move up.
            let Some(last) = (0..m).rev().find(|&index| set[index] < clients - m + index) else { break };
            set[last] += 1;
            for next in last + 1..m {
                set[next] = set[next - 1] + 1;
            }
        }
        Self { m, sets, speeds }
    }

    /// The largest value of expected minimum plus gains over all sets of available clients; `gains` by client, NaN
    /// where a client is not available.
    fn best(&self, gains: &[f64]) -> f64 {
        let sets = self.sets.chunks_exact(self.m).zip(&self.speeds);
        let value = |(set, speed): (&[u32], &f64)| set.iter().fold(*speed, |sum, &client| sum + gains[client as usize]);
        // `max` ignores the NaN of sets that are not available.
        sets.map(value).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The regret meters of one run.
#[derive(Debug, Stateful)]
pub struct Meters {
    #[state(skip = "from the scenario")]
    meters: Vec<Meter>,
    #[state(skip = "buffers of the solver")]
    solver: GenieSolver,
    #[state(skip = "from the world")]
    expected: Option<Arc<ExpectedMinimum>>,
    #[state(skip = "from the world")]
    all_sets: Option<Arc<AllSets>>,
    /// Those of fewer clients, by size, as rounds need them.
    #[state(skip = "follows from the world")]
    smaller: BTreeMap<usize, AllSets>,
    sums: [CompensatedSum; 4],
    #[state(skip = "a buffer of one round")]
    speeds: Vec<f64>,
    #[state(skip = "a buffer of one round")]
    indices: Vec<usize>,
}

/// One round, as the meters see it.
#[derive(Clone, Copy, Debug)]
pub struct MeteredRound<'a> {
    /// The truth.
    pub genie: &'a Genie,
    /// Clients asked per round, `m`.
    pub cohort: usize,
    /// `(α/m)·g_k` of the candidates.
    pub gains: &'a [f64],
    /// The most clients that the round pays for, at most the cohort; fewer may be available.
    pub payable: usize,
    /// Updates that the round waits for.
    pub take: usize,
    /// The candidates, ascending.
    pub available: &'a [ClientId],
    /// The selected clients.
    pub selected: &'a [ClientId],
}

impl MeteredRound<'_> {
    /// `(α/m)·g_k` of each client of a set of candidates.
    ///
    /// # Panics
    /// If one of them is no candidate.
    pub fn gains_of(&self, set: &[ClientId]) -> impl Iterator<Item = f64> {
        set.iter().map(|client| {
            // Its own number is its place where everyone is available.
            let place = match self.available.get(client.index()) {
                Some(there) if there == client => client.index(),
                _ => self.available.binary_search(client).expect("a set of candidates"),
            };
            self.gains[place]
        })
    }
}

impl Meters {
    /// Meters that start at zero. The meters `expected` and `expected-exact` need the tables of the other arguments.
    pub fn new(meters: &[Meter], expected: Option<Arc<ExpectedMinimum>>, all_sets: Option<Arc<AllSets>>) -> Self {
        Self {
            meters: meters.to_vec(),
            solver: GenieSolver::default(),
            expected,
            all_sets,
            smaller: BTreeMap::new(),
            sums: Default::default(),
            speeds: Vec::new(),
            indices: Vec::new(),
        }
    }

    /// Adds one round and returns the cumulative regrets. `realised_speed` gives the speed of any client in this round.
    ///
    /// # Errors
    /// Only those of `realised_speed`.
    ///
    /// # Panics
    /// If the mean regret of a set as large as the genie's is below −1e-9 of the gains (and of 1): the genie was not
    /// optimal, a broken invariant.
    pub fn measure<E>(
        &mut self,
        round: &MeteredRound<'_>,
        mut realised_speed: impl FnMut(ClientId) -> Result<f64, E>,
    ) -> Result<Regret, E> {
        if self.meters.is_empty() {
            return Ok(Regret::default());
        }
        let MeteredRound { genie, cohort, gains, payable, take, available, selected } = round;
        let cohort = (*cohort).min(*payable).min(available.len());
        let best = self.solver.best(genie, gains, cohort, (*take).min(cohort), available);
        let gain = |set: &[ClientId]| round.gains_of(set).collect::<CompensatedSum>().value();
        let same = best.len() == selected.len() && selected.iter().all(|client| best.binary_search(client).is_ok());
        let gains_of = if same { [0.0; 2] } else { [gain(best), gain(selected)] };
        let gain_lost = gains_of[0] - gains_of[1];
        // Sums of gains are as exact as they are large.
        let tolerance = 1e-9 * (1.0 + gains_of[0].abs() + gains_of[1].abs());
        for meter in &self.meters {
            let lost = match meter {
                Meter::ExpectedExact => {
                    let expected = self.expected.as_ref().expect("the expected minimum is there when it is metered");
                    let full = self.all_sets.as_ref().expect("all sets are there when they are metered");
                    let fewer = || AllSets::new(genie.means.len(), cohort, expected);
                    let all_sets: &AllSets = match cohort == full.m {
                        true => full,
                        false => self.smaller.entry(cohort).or_insert_with(fewer),
                    };
                    let mut by_client = vec![f64::NAN; genie.means.len()];
                    for (client, gain) in available.iter().zip(*gains) {
                        by_client[client.index()] = *gain;
                    }
                    self.indices.clear();
                    self.indices.extend(selected.iter().map(|client| client.index()));
                    all_sets.best(&by_client) - expected.of(&self.indices) - gain(selected)
                }
                _ if same => 0.0,
                Meter::Mean => {
                    let mut speed = |set: &[ClientId]| {
                        self.speeds.clear();
                        self.speeds.extend(set.iter().map(|client| genie.means[client.index()]));
                        bottleneck(&self.speeds, (*take).min(set.len()))
                    };
                    let lost = speed(best) - speed(selected) + gain_lost;
                    let is_best = lost >= -tolerance || selected.len() != best.len();
                    assert!(is_best, "the genie lost {lost} against the policy");
                    lost
                }
                Meter::Realised => {
                    let mut speed = |set: &[ClientId]| {
                        self.speeds.clear();
                        for &client in set {
                            self.speeds.push(realised_speed(client)?);
                        }
                        Ok(bottleneck(&self.speeds, (*take).min(set.len())))
                    };
                    speed(best)? - speed(selected)? + gain_lost
                }
                Meter::Expected => {
                    let expected = self.expected.as_ref().expect("the expected minimum is there when it is metered");
                    let mut speed = |set: &[ClientId]| {
                        self.indices.clear();
                        self.indices.extend(set.iter().map(|client| client.index()));
                        expected.of(&self.indices)
                    };
                    speed(best) - speed(selected) + gain_lost
                }
            };
            self.sums[*meter as usize].add(lost);
        }
        Ok(self.cumulative())
    }

    /// The regrets so far.
    pub fn cumulative(&self) -> Regret {
        let value = |meter: Meter| self.meters.contains(&meter).then(|| self.sums[meter as usize].value());
        Regret {
            mean: value(Meter::Mean),
            realised: value(Meter::Realised),
            expected: value(Meter::Expected),
            expected_exact: value(Meter::ExpectedExact),
            hindsight: None,
            assignment: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::brute;
    use super::super::reward::{History, Reward};
    use super::*;
    use crate::id::Turn;
    use crate::law::{AnyLaw, Constant, Exponential, JobLatency};
    use crate::rng::{Purpose, Streams};
    use crate::time::Span;

    #[test]
    fn binomials() {
        assert_eq!(subsets(20, 5), 15_504);
        assert_eq!(subsets(5, 5), 1);
        assert_eq!(subsets(500, 25), MOST_SETS + 1);
        assert_eq!(most_subsets(9, 3), 84);
        assert_eq!(most_subsets(9, 8), 126, "four of nine are the most");
    }

    /// Of six clients five are available, and a round may pay for fewer than the cohort of three. The best set of each
    /// size is found by enumeration, and each set of each size is metered against it.
    #[test]
    fn the_best_set_has_as_many_clients_as_the_round_can_have() {
        let available: Vec<ClientId> = [0, 1, 3, 4, 5].map(ClientId).to_vec();
        let reward = Reward { tau_min: Span(50_000_000), alpha: 1.5, beta: 1.3, quantum: None };
        let link = AnyLaw::from(Constant::new(0.02).unwrap());
        let mut gained = 0;
        for index in 0..30 {
            let mut rng = Streams::new(33).stream(Purpose::Solver, 0, index);
            let laws: Vec<AnyLaw> =
                (0..6).map(|_| Exponential::new(0.05 + rng.uniform(), 0.02).unwrap().into()).collect();
            let jobs: Vec<_> = laws
                .iter()
                .map(|law| JobLatency { phases: [&link, law, &link], hazards: [0.0; 3], cut: None })
                .collect();
            let means: Vec<f64> = jobs.iter().map(|job| job.mean_speed(0.05)).collect();
            let expected = Arc::new(ExpectedMinimum::new(0.05, &jobs, &means).unwrap());
            let full = Arc::new(AllSets::new(6, 3, &expected));
            let genie = Genie::new(reward, means.clone());
            let counts: Vec<u32> = (0..6).map(|_| rng.below(5) as u32).collect();
            let history = History { turn: Turn(5), cohort: 3, shares: &[1.0 / 6.0; 6], counts: &counts };
            let mut gains = Vec::new();
            genie.reward.gains(&history, &available, &mut gains);
            let sum = |set: &[u32]| set.iter().map(|&place| gains[place as usize]).sum::<f64>();
            let index_of = |place: &u32| available[*place as usize].index();
            let by_mean =
                |set: &[u32]| set.iter().map(|place| means[index_of(place)]).fold(f64::INFINITY, f64::min) + sum(set);
            let by_minimum = |set: &[u32]| expected.of(&set.iter().map(index_of).collect::<Vec<_>>()) + sum(set);
            let best = |size: usize, value: &dyn Fn(&[u32]) -> f64| {
                brute::subsets(5, size).iter().map(|set| value(set)).fold(f64::NEG_INFINITY, f64::max)
            };
            for payable in 1..=4 {
                let size = payable.min(3);
                for set in brute::subsets(5, size) {
                    let selected: Vec<ClientId> = set.iter().map(|&place| available[place as usize]).collect();
                    let metered = MeteredRound {
                        genie: &genie,
                        cohort: 3,
                        gains: &gains,
                        payable,
                        take: 3,
                        available: &available,
                        selected: &selected,
                    };
                    let mut meters =
                        Meters::new(&[Meter::Mean, Meter::ExpectedExact], Some(expected.clone()), Some(full.clone()));
                    let regret = meters.measure(&metered, |_| Ok::<_, ()>(0.0)).unwrap();
                    let found = [regret.mean.unwrap(), regret.expected_exact.unwrap()];
                    let lost = [best(size, &by_mean) - by_mean(&set), best(size, &by_minimum) - by_minimum(&set)];
                    for (found, lost) in found.into_iter().zip(lost) {
                        approx::assert_abs_diff_eq!(found, lost, epsilon = 1e-12);
                        assert!(found >= -1e-12, "{found}");
                    }
                    gained += usize::from(by_mean(&set) > best(3, &by_mean));
                }
            }
            // Two are available, and both are selected.
            let two = &available[..2];
            let metered = MeteredRound {
                genie: &genie,
                cohort: 3,
                gains: &gains[..2],
                payable: 3,
                take: 3,
                available: two,
                selected: two,
            };
            let mut meters = Meters::new(&[Meter::ExpectedExact], Some(expected), Some(full));
            let regret = meters.measure(&metered, |_| Ok::<_, ()>(0.0)).unwrap();
            assert!(regret.expected_exact.unwrap().abs() < 1e-12, "{regret:?}");
        }
        assert!(gained > 20, "some smaller sets are better than the best full one: {gained}");
    }
}
