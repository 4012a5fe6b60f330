//! Seeds that are added until an answer is decided, on series whose truth is known.
//!
//! A policy's value in a seed is its mean and a standard normal deviate; policies share nothing else. A series is
//! looked at as `seeds = { until = "decided" }` looks at an experiment, and ends when each other policy is told apart
//! from the best. The *effect* is by how much one policy is better than all others, in standard deviations of a
//! difference.
//!
//! | number | of series |
//! |---|---|
//! | `no difference, P policies` | that are decided although all policies are the same |
//! | `any told apart, P policies` | of these, in which a policy is told apart from the best of the runs, at any look |
//! | `wrong, P policies` | in which the policy that is better by a fifth is told to be worse than another |
//! | `seeds, effect E` | their mean seeds, over the fixed number that decides nine of ten series at 95 % |
//!
//! Nine of ten is the usual power of a plan. A fixed number that decides as often as looking does, which is nearly
//! always, would be the largest that any of the series needs, and grow with their number.
//!
//! The second is not what a decision promises: the best of the runs is chosen by the same runs, of policies that are
//! all as good.

use super::{Details, Measured, Measurement, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::math::statistics::{Miss, estimate, proportion};
use fedgenie_core::metric::Better;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::compared::{Ranking, is_told_apart, rank_at};
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::scenario::{Seeds, UntilDecided};
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Series of each kind.
    series: u32,
    /// Most seeds of a series.
    at_most: u32,
    /// Numbers of policies.
    policies: Vec<u32>,
    /// Effects.
    effects: Vec<f64>,
}

/// How much better the one policy is whose mistreatment is counted.
const SMALL: f64 = 0.2;

/// The share of series that the fixed number has to decide.
const POWER: f64 = 0.9;

/// The end of a series.
#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    seeds: u32,
    is_decided: bool,
    /// Whether the first policy was told to be worse than another.
    is_wrong: bool,
    /// Whether any policy was told apart at any look.
    is_apart: bool,
}

/// Values of policies, the first of which is better by so many standard deviations of a difference.
fn drawn(policies: u32, effect: f64, seeds: u32, rng: &mut StreamRng) -> Vec<Vec<f64>> {
    let mut all = vec![Vec::new(); policies as usize];
    for _ in 0..seeds {
        for (policy, values) in all.iter_mut().enumerate() {
            let better = if policy == 0 { effect * sqrt(2.0) } else { 0.0 };
            values.push(better + normal_quantile(rng.uniform()));
        }
    }
    all
}

fn ranked(all: &[Vec<f64>], seeds: usize, miss: Miss) -> Option<Ranking> {
    let of = |values: &Vec<f64>| Sample::of_numbers("value", (1..).zip(values[..seeds].iter().copied()));
    let samples: Vec<Sample> = all.iter().map(of).collect();
    rank_at(&samples, Better::Higher, miss)?.ok()
}

fn is_decided(ranking: &Ranking) -> bool {
    ranking.others.iter().all(|(_, found)| is_told_apart(found))
}

/// Plays a series to its end.
fn play(plan: &UntilDecided, all: &[Vec<f64>]) -> Ended {
    let mut ended = Ended::default();
    for &seeds in &plan.looks {
        ended.seeds = seeds;
        let Some(ranking) = ranked(all, seeds as usize, plan.miss(seeds, all.len() - 1)) else { continue };
        let is_worse = |&(policy, ref found): &(usize, _)| policy == 0 && is_told_apart(found);
        ended.is_apart |= ranking.others.iter().any(|(_, found)| is_told_apart(found));
        ended.is_decided = is_decided(&ranking);
        ended.is_wrong |= ranking.others.iter().any(is_worse);
        if ended.is_decided {
            break;
        }
    }
    ended
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        if self.series == 0 || self.policies.iter().any(|&policies| policies < 2) {
            return usage("a share needs a series, and a comparison two policies");
        }
        let Seeds::Until(plan) = Seeds::Until(UntilDecided::most(self.at_most)).canonical() else {
            return usage("seeds until it is decided stay so");
        };
        let series: Vec<u32> = (0..self.series).collect();
        let play_all = |policies: u32, effect: f64, index: u32| {
            context.map(&series, |&number| {
                let mut rng = Streams::new(3).stream(Purpose::Resampling, number, index);
                let all = drawn(policies, effect, self.at_most, &mut rng);
                Ok((play(&plan, &all), all))
            })
        };
        let share = |ended: &[(Ended, Vec<Vec<f64>>)], is: fn(&Ended) -> bool| {
            let count = ended.iter().filter(|(ended, _)| is(ended)).count() as u64;
            proportion(count, ended.len() as u64)
        };
        let mut measured = Vec::new();
        let title = "Policies that are all the same: shares of series".to_owned();
        let mut of_same = Details::new(title, &["policies", "decided", "any told apart from the best of the runs"]);
        for &policies in &self.policies {
            let same = play_all(policies, 0.0, 2 * policies)?;
            let label = |what: &str| format!("{what}, {policies} policies");
            measured.push(Measured::estimate(label("no difference"), share(&same, |ended| ended.is_decided)));
            measured.push(Measured::estimate(label("any told apart"), share(&same, |ended| ended.is_apart)));
            let cells = measured[measured.len() - 2..].iter().map(|share: &Measured| shown(share.value));
            of_same.rows.push(std::iter::once(policies.to_string()).chain(cells).collect());
            let better = play_all(policies, SMALL, 2 * policies + 1)?;
            measured.push(Measured::estimate(label("wrong"), share(&better, |ended| ended.is_wrong)));
        }
        let title = "Seeds until two policies are told apart".to_owned();
        let columns = ["effect", "decided", "mean seeds", "seeds of the middle series", "fixed number for nine of ten"];
        let mut details = Details::new(title, &columns);
        for (index, &effect) in (1_000..).zip(&self.effects) {
            let ended = play_all(2, effect, index)?;
            let decided = share(&ended, |ended| ended.is_decided).mean;
            let mut seeds: Vec<f64> = ended.iter().map(|(ended, _)| f64::from(ended.seeds)).collect();
            let mean = estimate(&seeds).ok_or_else(|| Error::Usage("there is no series".to_owned()))?;
            let is_enough = |fixed: &u32| {
                let told = |(_, all): &&(Ended, Vec<Vec<f64>>)| {
                    ranked(all, *fixed as usize, Miss::USUAL).is_some_and(|ranking| is_decided(&ranking))
                };
                ended.iter().filter(told).count() as f64 >= POWER * ended.len() as f64
            };
            let fixed = (3..=self.at_most).find(is_enough).unwrap_or(self.at_most);
            let of = |seeds: f64| seeds / f64::from(fixed);
            let found = fedgenie_core::math::statistics::Estimate {
                mean: of(mean.mean),
                ci95: mean.ci95.map(|ends| ends.map(of)),
                n: mean.n,
            };
            measured.push(Measured::estimate(format!("seeds, effect {effect}"), found));
            seeds.sort_by(f64::total_cmp);
            let cells = [effect, decided, mean.mean, seeds[seeds.len() / 2], f64::from(fixed)].map(shown);
            details.rows.push(cells.to_vec());
        }
        Ok(Measurement::new(measured, vec![of_same, details]))
    }
}
