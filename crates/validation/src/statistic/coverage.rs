//! How often 95 % intervals contain the truth, on simulations whose truth is known in closed form.
//!
//! Twenty clients whose latency is 0.12 s plus an exponential time of mean 0.4 s; rounds of five wait for the slowest,
//! whose expectation is `0.12 + 0.4·(1 + 1/2 + 1/3 + 1/4 + 1/5)` s for every selection. So the mean virtual time of a
//! run is known, and the difference between two policies is zero. Each replication has its own seeds. The true
//! proportion is `1 − e^{−1}`: the share of exponential times below their mean.

use super::{Measured, Measurement, usage};
use crate::laboratory::Context;
use fedgenie_core::math::float::exp;
use fedgenie_core::math::statistics::{Estimate, estimate, paired_difference, proportion};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::Experiment;
use fedgenie_experiment::scenario::tree;
use fedgenie_simulator::recorder::NoSink;
use fedgenie_simulator::run::{Run, RunSettings};
use serde::Deserialize;
use std::path::Path;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    replications: u32,
    /// Seeds per replication.
    seeds: u32,
    /// Rounds per run.
    rounds: u32,
}

const SCENARIO: &str = r#"
name = "coverage"
seeds = 1
[stop]
rounds = 1
[population]
clients = 20
[population.latency]
download = { constant = "10 ms" }
compute = { exponential = { mean = "0.4 s", shift = "0.1 s" } }
upload = { constant = "10 ms" }
[task.none]
[protocol.synchronous]
cohort = 5
[policy.random]
[policy.round-robin]
"#;

const MEAN_ROUND_S: f64 = 0.12 + 0.4 * (1.0 + 0.5 + 1.0 / 3.0 + 0.25 + 0.2);

fn contains(found: Option<Estimate>, truth: f64) -> bool {
    found.and_then(|found| found.ci95).is_some_and(|[low, high]| low <= truth && truth <= high)
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let root =
            tree::parse(Path::new("coverage"), SCENARIO).map_err(fedgenie_experiment::scenario::ScenarioError::from)?;
        let experiment = Experiment::from_tree(&root, Path::new("."), None)?;
        if self.seeds < 2 || self.replications == 0 {
            return usage("an interval needs two seeds, and a share a replication");
        }
        let replications: Vec<u32> = (0..self.replications).collect();
        let found = context.map(&replications, |&replication| {
            let (mut random, mut in_turn) = (Vec::new(), Vec::new());
            for seed in 0..self.seeds {
                let seed = u64::from(replication) * u64::from(self.seeds) + u64::from(seed) + 1;
                let world = experiment.world(0, seed, context.laboratory.cache())?;
                for (arm, times) in [(0, &mut random), (1, &mut in_turn)] {
                    let scenario = experiment.first();
                    let policy = world.policy(&scenario.arms[arm].policy);
                    let policy = policy.map_err(|error| Error::Usage(error.message))?;
                    let evaluate = scenario.sections.evaluate.plan(scenario.sections.stop.end());
                    let settings = RunSettings {
                        evaluate,
                        record_every: 1,
                        parallel: false,
                        explain: false,
                        updates: false,
                        battery: false,
                    };
                    let mut run = Run::new(&world, "", policy, settings, NoSink);
                    for _ in 0..self.rounds {
                        run.step().map_err(|source| Error::Run { run: "coverage".to_owned(), source })?;
                    }
                    times.push(run.now().seconds());
                }
            }
            let truth = MEAN_ROUND_S * f64::from(self.rounds);
            let mut rng = Streams::new(2).stream(Purpose::Resampling, replication, 0);
            let below = 1.0 - exp(-1.0);
            let successes = (0..200).filter(|_| rng.uniform() < below).count() as u64;
            Ok([
                contains(estimate(&random), truth),
                contains(paired_difference(&random, &in_turn), 0.0),
                contains(Some(proportion(successes, 200)), below),
            ])
        })?;
        let labels = ["mean over seeds", "paired difference", "proportion"];
        let measured = labels.into_iter().enumerate().map(|(index, label)| {
            let hits = found.iter().filter(|hits| hits[index]).count() as u64;
            Measured::estimate(label, proportion(hits, u64::from(self.replications)))
        });
        Ok(Measurement::new(measured.collect(), Vec::new()))
    }
}
