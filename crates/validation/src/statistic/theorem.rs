//! Theorem 1 on worlds drawn at random: the largest ratio of mean regret and bound over all rounds of all worlds.
//!
//! Each world has 4 to 10 clients and a cohort of 1 to 3; α, β, the quantum and each client's law are drawn, and the
//! law is scaled by bisection until its mean speed lies on the quantum's grid, as the theorem assumes. Every round is
//! compared.

use super::{Details, Measured, Measurement, shown};
use crate::laboratory::Context;
use fedgenie_core::law::{AnyLaw, Exponential, Gamma, Law, Lognormal};
use fedgenie_core::oracle::bound::Bound;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::Experiment;
use fedgenie_experiment::scenario::tree;
use fedgenie_simulator::recorder::NoSink;
use serde::Deserialize;
use std::path::Path;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of worlds.
    worlds: u32,
    /// Rounds of each.
    rounds: u32,
}

/// Download and upload together, in seconds: the shortest latency.
const TRANSFER_S: f64 = 0.05;

fn pick<T: Copy>(rng: &mut StreamRng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

/// The size of a law, in seconds, at which the mean speed is `mean`.
fn scale_for(mean: f64, law: impl Fn(f64) -> AnyLaw) -> f64 {
    let speed = |scale: f64| law(scale).expect(&mut |compute| TRANSFER_S / (TRANSFER_S + compute));
    let (mut low, mut high) = (1e-6_f64, 1e4_f64);
    for _ in 0..200 {
        let middle = fedgenie_core::math::float::sqrt(low * high);
        if speed(middle) > mean { low = middle } else { high = middle }
    }
    fedgenie_core::math::float::sqrt(low * high)
}

/// A client's compute phase with a mean speed on the grid, as a scenario writes it.
fn client(rng: &mut StreamRng, quantum: f64) -> String {
    let steps = (0.95 / quantum) as u64;
    let mean = quantum * (1 + rng.below(steps)) as f64;
    let positive = "sizes of laws are positive";
    match rng.below(3) {
        0 => {
            let scale = scale_for(mean, |mean| Exponential::new(mean, 0.0).expect(positive).into());
            format!("{{ exponential = {{ mean = \"{scale} s\" }} }}")
        }
        1 => {
            let sigma = 0.2 + 0.1 * rng.below(5) as f64;
            let scale = scale_for(mean, |median| Lognormal::new(median, sigma).expect(positive).into());
            format!("{{ lognormal = {{ median = \"{scale} s\", sigma = {sigma} }} }}")
        }
        _ => {
            let shape = 1.0 + rng.below(4) as f64;
            let scale = scale_for(mean, |scale| Gamma::new(shape, scale).expect(positive).into());
            format!("{{ gamma = {{ shape = {shape}, scale = \"{scale} s\" }} }}")
        }
    }
}

/// A world drawn from its number, as a scenario.
fn scenario(world: u32, rounds: u32) -> String {
    let mut rng = Streams::new(1).stream(Purpose::Resampling, world, 0);
    let clients = 4 + rng.below(7);
    let cohort = 1 + rng.below(3);
    let alpha = pick(&mut rng, &[0.5, 1.0, 1.5, 2.0, 3.0]);
    let beta = pick(&mut rng, &[0.5, 1.0, 1.2, 2.0]);
    let quantum = pick(&mut rng, &[0.25, 0.2, 0.125, 0.1]);
    let mut text = format!(
        "name = \"world-{world}\"\nseeds = [{world}]\n[stop]\nrounds = {rounds}\n[protocol.synchronous]\ncohort = {cohort}\n\
         [regret]\ntau_min = \"{TRANSFER_S} s\"\nalpha = {alpha}\nbeta = {beta}\nquantum = {quantum}\n[policy.bsfl]\n[population]\n\
         clients = {clients}\n"
    );
    for _ in 0..clients {
        let compute = client(&mut rng, quantum);
        let half = 0.5 * TRANSFER_S;
        text.push_str(&format!(
            "[[population.group]]\ncount = 1\nlatency = {{ download = {{ constant = \"{half} s\" }}, compute = {compute}, \
             upload = {{ constant = \"{half} s\" }} }}\n"
        ));
    }
    text
}

/// The result for one world.
struct Found {
    cells: Vec<String>,
    /// The largest regret over bound, at any round.
    ratio: f64,
}

/// The first round at which the bound is below the trivial one, `n Δ_max`.
fn first_telling_round(bound: &Bound) -> Option<f64> {
    let says_more = |n: &f64| bound.at(*n).is_some_and(|at| at < bound.delta_max * n);
    (0..400).map(|k| fedgenie_core::math::float::power(10.0, f64::from(k) / 20.0)).find(says_more)
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let worlds: Vec<u32> = (1..=self.worlds).collect();
        let found = context.map(&worlds, |&world| self.one(world, context))?;
        let columns = [
            "world",
            "K",
            "m",
            "α",
            "β",
            "q",
            "Δ_min",
            "Δ_max",
            "R(n)",
            "bound",
            "largest R/bound",
            "bound below n·Δ_max from n",
        ];
        let title = format!("Worlds of {} rounds", self.rounds);
        let details =
            Details { rows: found.iter().map(|found| found.cells.clone()).collect(), ..Details::new(title, &columns) };
        let largest = found.iter().map(|found| found.ratio).fold(0.0, f64::max);
        let measured = Measured::exact("largest ratio of regret and bound", largest, found.len());
        Ok(Measurement::new(vec![measured], vec![details]))
    }

    fn one(&self, number: u32, context: &Context<'_>) -> Result<Found, Error> {
        let text = scenario(number, self.rounds);
        let name = format!("world {number} of the claim");
        let root = tree::parse(Path::new(&name), &text).map_err(fedgenie_experiment::scenario::ScenarioError::from)?;
        let experiment = Experiment::from_tree(&root, Path::new("."), None)?;
        let laboratory = context.laboratory;
        let world = experiment.world(0, u64::from(number), laboratory.cache())?;
        let [planned] = &experiment.runs()[..] else { return super::usage("a world has one run") };
        let run = experiment.run_one(planned, &world, &mut NoSink, laboratory.threads(), None)?;
        let scenario = &experiment.first().sections;
        let Some(truth) = &world.truth else { return super::usage("a world has a genie") };
        let genie = &truth.genie;
        let quantum = genie.reward.quantum.unwrap_or_default();
        for mean in &genie.mean_speeds {
            let steps = mean / quantum;
            assert!(
                (steps - fedgenie_core::math::float::floor(steps + 0.5)).abs() < 1e-6,
                "a mean speed of {mean} is off the grid"
            );
        }
        let cohort = world.protocol.rule.ask();
        let bound = Bound::of(genie, &world.shares, cohort);
        let Some((bound, delta_min)) = bound.and_then(|bound| Some((bound, bound.delta_min?))) else {
            return super::usage(format!("{name} has no bound"));
        };
        let Some(ratio) = run.bound.as_ref().and_then(|bound| bound.ratio) else {
            return super::usage(format!("{name}: the policy states no bound"));
        };
        let end = bound.at(f64::from(run.rounds)).unwrap_or(f64::NAN);
        let cells = vec![
            number.to_string(),
            scenario.population.client_count().unwrap_or_default().to_string(),
            cohort.to_string(),
            shown(genie.reward.alpha),
            shown(genie.reward.beta),
            shown(quantum),
            shown(delta_min),
            shown(bound.delta_max),
            shown(run.regret.mean.unwrap_or(f64::NAN)),
            shown(end),
            shown(ratio),
            first_telling_round(&bound).map_or("never".to_owned(), |n| format!("{n:.0}")),
        ];
        Ok(Found { cells, ratio })
    }
}
