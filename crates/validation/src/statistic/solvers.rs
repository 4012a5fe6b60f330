//! Annealing and greedy search against the exact optimum, on the instances that BSFL meets while it runs.
//!
//! BSFL runs with the exact solver. Every so many rounds, once all clients have been seen, the same instance is given
//! to SA, to ALSA with both neighbourhoods and to greedy search; SA and ALSA start from the same random state. *ALSA*
//! is the paper's, whose neighbourhood (19) is symmetric and whose neighbours are equally likely; *ALSA, forward* takes
//! only those neighbours in which the slowest or least gaining member leaves. Numbers are means over seeds.

use super::{Details, Measured, Measurement, runs_of, shown, usage};
use crate::clock::seconds_of;
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{Estimate, estimate};
use fedgenie_core::oracle::annealing::{Annealing, Config as AnnealingConfig, Search};
use fedgenie_core::oracle::greedy::Greedy;
use fedgenie_core::oracle::{Exact, Instance, Solver};
use fedgenie_core::rng::StreamRng;
use fedgenie_experiment::error::Error;
use fedgenie_simulator::policy::PolicyConfig;
use fedgenie_simulator::recorder::NoSink;
use fedgenie_simulator::run::{Run, RunSettings};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// The label of BSFL.
    policy: String,
    /// Rounds between compared instances.
    every: u32,
    /// Steps of annealing.
    steps: u32,
}

const NAMES: [&str; 4] = ["SA", "ALSA", "ALSA, forward", "greedy"];
const SEARCHES: [Search; 3] = [Search::Plain, Search::Symmetric, Search::Forward];
/// Values this near to the optimum are the optimum.
const SOLVED: f64 = 1e-9;

/// Sums over the instances of one run.
#[derive(Clone, Debug, Default)]
struct Tally {
    instances: u32,
    /// Clients, and how many of them are selected.
    size: [usize; 2],
    /// Best value found, per solver.
    solved: [u32; 4],
    gap: [f64; 4],
    seconds: [f64; 5],
    /// Where the annealing ended, per search.
    final_gap: [f64; 3],
    /// The state at which ALSA ended is above that of SA: the paper's ALSA, and that with forward neighbours.
    above: [u32; 2],
    /// The best state that it visited is above, or as high as, that of SA.
    best_above: [u32; 2],
    best_level: [u32; 2],
    /// Mean gap of the current state at the steps of [`marks`], per search.
    course: [Vec<f64>; 3],
}

/// Steps at which the course is shown.
fn marks(steps: u32) -> Vec<usize> {
    let all = [0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000];
    let below = all.into_iter().filter(|&mark| mark < steps);
    below.chain([steps]).map(|mark| mark as usize).collect()
}

/// Solves exactly, and compares the other solvers every few rounds.
struct Comparing {
    exact: Exact,
    annealing: [Annealing; 3],
    greedy: Greedy,
    every: u32,
    calls: u32,
    marks: Vec<usize>,
    tally: Arc<Mutex<Tally>>,
}

impl Solver for Comparing {
    fn solve(&mut self, instance: &Instance<'_>, rng: &mut StreamRng, set: &mut Vec<u32>) -> f64 {
        let (best, seconds) = seconds_of(|| self.exact.maximise(instance, set));
        self.calls += 1;
        let is_seen = instance.speed.iter().all(|speed| speed.is_finite());
        if is_seen && self.calls.is_multiple_of(self.every) {
            self.compare(instance, rng, best, seconds);
        }
        best
    }
}

impl Comparing {
    fn compare(&mut self, instance: &Instance<'_>, rng: &StreamRng, best: f64, seconds: f64) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.instances += 1;
        tally.size = [instance.speed.len(), instance.cohort];
        tally.seconds[4] += seconds;
        let (mut found, mut last) = ([0.0; 4], [0.0; 3]);
        let mut set = Vec::new();
        for (search, annealing) in self.annealing.iter_mut().enumerate() {
            let mut rng = rng.clone();
            let (value, seconds) = seconds_of(|| annealing.solve(instance, &mut rng, &mut set));
            found[search] = value;
            last[search] = annealing.final_value();
            tally.seconds[search] += seconds;
            tally.final_gap[search] += best - last[search];
            let course = &mut tally.course[search];
            course.resize(self.marks.len(), 0.0);
            for (sum, &mark) in course.iter_mut().zip(&self.marks) {
                *sum += best - annealing.trace()[mark];
            }
        }
        let mut rng = rng.clone();
        let (value, seconds) = seconds_of(|| self.greedy.solve(instance, &mut rng, &mut set));
        found[3] = value;
        tally.seconds[3] += seconds;
        for (solver, value) in found.into_iter().enumerate() {
            assert!(value <= best + SOLVED, "{} found {value}, above the optimum {best}", NAMES[solver]);
            tally.solved[solver] += u32::from(value >= best - SOLVED);
            tally.gap[solver] += best - value;
        }
        for alsa in 0..2 {
            let (last, found) = ([last[0], last[1 + alsa]], [found[0], found[1 + alsa]]);
            tally.above[alsa] += u32::from(last[1] > last[0] + SOLVED);
            tally.best_above[alsa] += u32::from(found[1] > found[0] + SOLVED);
            tally.best_level[alsa] += u32::from((found[1] - found[0]).abs() <= SOLVED);
        }
    }
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let experiment = context.experiment(&self.scenario)?;
        let tallies = context.map(&runs_of(&experiment, &self.policy)?, |planned| {
            let scenario = &experiment.points[planned.point].1;
            let world = experiment.world_of(planned, context.laboratory.cache())?;
            let Some(PolicyConfig::Bsfl(config)) = scenario.arms[planned.arm].policy.config() else {
                return usage(format!("{:?} is not of the kind bsfl", self.policy));
            };
            let Some(truth) = &world.truth else { return usage("the scenario needs [regret]") };
            let delta_max = 2.0 * truth.genie.reward.alpha + 1.0;
            let annealing = |search| AnnealingConfig { search, steps: self.steps, delta_max, trace: true };
            let build = |search| Annealing::build(annealing(search)).map_err(|error| Error::Usage(error.to_string()));
            let [plain, symmetric, forward] = SEARCHES.map(build);
            let tally = Arc::new(Mutex::new(Tally::default()));
            let solver = Comparing {
                exact: Exact::new(),
                annealing: [plain?, symmetric?, forward?],
                greedy: Greedy::new(),
                every: self.every.max(1),
                calls: 0,
                marks: marks(self.steps),
                tally: tally.clone(),
            };
            let policy = world.with_context(|context| config.build_with(context, Box::new(solver)));
            let policy = policy.map_err(|error| Error::Usage(error.to_string()))?;
            let settings = RunSettings {
                evaluate: scenario.sections.evaluate.plan(scenario.sections.stop.end()),
                record_every: 1,
                ..RunSettings::default()
            };
            let mut run = Run::new(&world, &self.policy, policy, settings, NoSink);
            let Some(rounds) = scenario.sections.stop.rounds else { return usage("the scenario needs stop.rounds") };
            for _ in 0..rounds {
                run.step().map_err(|source| Error::Run { run: planned.name.clone(), source })?;
            }
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match tally.instances {
                0 => usage("no instance was compared: more rounds, or a smaller `every`, are needed"),
                _ => Ok(tally),
            }
        })?;
        Ok(self.report(&tallies))
    }

    fn report(&self, tallies: &[Tally]) -> Measurement {
        let [clients, selected] = tallies.first().map_or([0; 2], |tally| tally.size);
        let size = format!("{clients} clients, {selected} selected");
        let instances: u32 = tallies.iter().map(|tally| tally.instances).sum();
        let over_seeds = |number: &dyn Fn(&Tally) -> f64| -> Estimate {
            let values: Vec<f64> = tallies.iter().map(|tally| number(tally) / f64::from(tally.instances)).collect();
            estimate(&values).expect("sums over instances are finite")
        };
        let share = |label: &str, number: &dyn Fn(&Tally) -> u32| {
            let mut found = over_seeds(&|tally| f64::from(number(tally)));
            found.ci95 = found.ci95.map(|ends| ends.map(|end| end.clamp(0.0, 1.0)));
            Measured::estimate(label, found)
        };
        let row = |number: &dyn Fn(&Tally) -> f64| shown(over_seeds(number).mean);
        let mut measured = Vec::new();
        for (alsa, name) in NAMES[1..3].iter().enumerate() {
            measured.extend([
                share(&format!("share in which {name} ends above SA"), &|tally| tally.above[alsa]),
                share(&format!("share in which the best of {name} is above SA's"), &|tally| tally.best_above[alsa]),
                share(&format!("share in which the best of {name} is not below SA's"), &|tally| {
                    tally.best_above[alsa] + tally.best_level[alsa]
                }),
            ]);
            for (index, mark) in marks(self.steps).into_iter().enumerate() {
                let nearer = over_seeds(&|tally| tally.course[0][index] - tally.course[1 + alsa][index]);
                measured.push(Measured::estimate(format!("step {mark}: gap of SA less that of {name}"), nearer));
            }
        }
        let columns =
            ["solver", "share solved", "mean gap of the best state", "mean gap of the last state", "µs an instance"];
        let mut details =
            Details::new(format!("{size}, {instances} instances, {} steps of annealing", self.steps), &columns);
        for (solver, name) in NAMES.into_iter().enumerate() {
            let solved = share(&format!("share solved by {name}"), &|tally| tally.solved[solver]);
            details.rows.push(vec![
                name.to_owned(),
                shown(solved.value),
                row(&|tally| tally.gap[solver]),
                if solver < 3 { row(&|tally| tally.final_gap[solver]) } else { String::new() },
                row(&|tally| 1e6 * tally.seconds[solver]),
            ]);
            measured.push(solved);
        }
        let exact = row(&|tally| 1e6 * tally.seconds[4]);
        details.rows.push(vec!["exact".to_owned(), "1".to_owned(), "0".to_owned(), String::new(), exact]);
        let title = format!("{size}: mean gap of the current state to the optimum");
        let mut course = Details::new(title, &["step", NAMES[0], NAMES[1], NAMES[2]]);
        for (index, mark) in marks(self.steps).into_iter().enumerate() {
            let cell = |search: usize| row(&|tally: &Tally| tally.course[search][index]);
            course.rows.push(vec![mark.to_string(), cell(0), cell(1), cell(2)]);
        }
        Measurement::new(measured, vec![details, course])
    }
}
