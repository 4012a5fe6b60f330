//! The graph of states that SA and ALSA walk on: how many neighbours states have, and whether steps lead to the best.
//!
//! Speeds and gains are uniform in [0, 1]; all states are listed and all pairs are looked at, by [`crate::states`].

use super::{Details, Measured, Measurement, shown, usage};
use crate::laboratory::Context;
use crate::states::{Rule, States, leading_to, reversed};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Numbers of clients and of selected ones.
    sizes: Vec<[usize; 2]>,
    /// Instances of each size.
    instances: u32,
}

/// Up to so many clients all pairs of states are looked at.
const MOST_CLIENTS: usize = 12;
const RULES: [Rule; 3] = [Rule::Plain, Rule::Symmetric, Rule::Forward];

/// What an instance came to, by rule.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    states: usize,
    /// Mean number of neighbours of a state.
    mean: [f64; 3],
    /// Neighbours of the state that has fewest, and most.
    range: [[usize; 2]; 3],
    /// Share of states from which steps lead to the best one.
    leading: [f64; 3],
    /// Share of states to which steps lead from the best one.
    reached: [f64; 3],
}

fn find(states: &States) -> Found {
    let count = states.sets.len();
    let mut found = Found { states: count, ..Found::default() };
    for (index, rule) in RULES.into_iter().enumerate() {
        let neighbours = states.neighbours(rule);
        let numbers = || neighbours.iter().map(Vec::len);
        found.mean[index] = numbers().sum::<usize>() as f64 / count as f64;
        found.range[index] = [numbers().min().unwrap_or(0), numbers().max().unwrap_or(0)];
        found.leading[index] = leading_to(count - 1, &neighbours) as f64 / count as f64;
        found.reached[index] = leading_to(count - 1, &reversed(&neighbours)) as f64 / count as f64;
    }
    found
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        if self.sizes.is_empty() || self.instances == 0 {
            return usage("sizes or instances is empty: nothing would be checked");
        }
        for [clients, cohort] in &self.sizes {
            if !(1..*clients).contains(cohort) || *clients > MOST_CLIENTS {
                return usage(format!(
                    "{cohort} of {clients} clients: all states of at most {MOST_CLIENTS} are listed"
                ));
            }
        }
        let numbered: Vec<(u32, [usize; 2])> = (0..).zip(self.sizes.iter().copied()).collect();
        let found = context.map(&numbered, |&(size, [clients, cohort])| {
            let instance = |index| {
                let mut rng = Streams::new(1).stream(Purpose::Solver, size, index);
                find(&States::draw(clients, cohort, &mut rng))
            };
            Ok((0..self.instances).map(instance).collect::<Vec<Found>>())
        })?;
        Ok(self.report(&found))
    }

    fn report(&self, found: &[Vec<Found>]) -> Measurement {
        let mut details = Details::new(
            format!("Neighbours of a state in {} instances: mean [fewest, most]", self.instances),
            &["K, m", "states", "SA", "4(K − m)", "ALSA", "ALSA, forward"],
        );
        let mut ways = Details::new(
            "Steps to the best state, and from it: the least share of states over instances",
            &["K, m", "to it: SA", "ALSA", "ALSA, forward", "from it: SA", "ALSA", "ALSA, forward"],
        );
        let (mut plain, mut symmetric) = ([f64::INFINITY, 0.0], 0.0_f64);
        let (mut leading, mut reached) = ([1.0_f64; 3], [1.0_f64; 3]);
        for (&[clients, cohort], all) in self.sizes.iter().zip(found) {
            let swaps = (cohort * (clients - cohort)) as f64;
            let bound = (4 * (clients - cohort)) as f64;
            let range = |rule: usize| {
                let ends = all.iter().map(|found| found.range[rule]);
                ends.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]).expect("there are instances")
            };
            let mean = |rule: usize| all.iter().map(|found| found.mean[rule]).sum::<f64>() / all.len() as f64;
            let [fewest, most] = range(0).map(|number| number as f64 / swaps);
            plain = [plain[0].min(fewest), plain[1].max(most)];
            symmetric = all.iter().map(|found| found.mean[1] / bound).fold(symmetric, f64::max);
            let least = |share: fn(&Found) -> [f64; 3]| {
                [0, 1, 2].map(|rule| all.iter().map(|found| share(found)[rule]).fold(1.0, f64::min))
            };
            let [to, from] = [least(|found| found.leading), least(|found| found.reached)];
            leading = std::array::from_fn(|rule| leading[rule].min(to[rule]));
            reached = std::array::from_fn(|rule| reached[rule].min(from[rule]));
            let told = |rule: usize| format!("{:.2} {:?}", mean(rule), range(rule));
            let size = format!("{clients}, {cohort}");
            details.rows.push(vec![
                size.clone(),
                all[0].states.to_string(),
                shown(mean(0)),
                shown(bound),
                told(1),
                told(2),
            ]);
            ways.rows.push([size].into_iter().chain(to.into_iter().chain(from).map(shown)).collect());
        }
        let n = self.sizes.len() * self.instances as usize;
        let measured = vec![
            Measured::exact("SA: fewest neighbours over m(K − m)", plain[0], n),
            Measured::exact("SA: most neighbours over m(K − m)", plain[1], n),
            Measured::exact("ALSA: largest mean of neighbours over 4(K − m)", symmetric, n),
            Measured::exact("SA: least share of states that lead to the best", leading[0], n),
            Measured::exact("ALSA: least share of states that lead to the best", leading[1], n),
            Measured::exact("ALSA, forward: least share of states that lead to the best", leading[2], n),
            Measured::exact("ALSA: least share of states that the best leads to", reached[1], n),
            Measured::exact("ALSA, forward: least share of states that the best leads to", reached[2], n),
        ];
        Measurement::new(measured, vec![details, ways])
    }
}
