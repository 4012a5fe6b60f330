//! A server's step of a program, in the place of the library's.

use super::super::support::{SETTINGS, Seen};
use super::{Broken, PROTOCOLS, Settings, experiment};
use fedgenie::algorithm::{Contribution, FoldRule};
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, RunSummary, Threads};
use fedgenie::failure::Failure;
use fedgenie::run::{Role, Run, RunError};
use fedgenie::task::DataCache;

/// FedAvg with momentum, by hand: `b ← βb + Δ`, `w ← w + b`, with the mean change by data size.
#[derive(Debug)]
struct Momentum {
    beta: f64,
    /// The step that fails.
    fails: f64,
}

impl FoldRule for Momentum {
    fn memory_len(&self, parameters: usize) -> usize {
        parameters + 1
    }

    fn fold(&self, model: &mut [f32], contributions: &[Contribution<'_>], memory: &mut [f64]) -> Result<(), Failure> {
        assert!(contributions.is_sorted_by_key(|one| (one.client, one.number)));
        let (steps, velocity) = memory.split_last_mut().unwrap();
        *steps += 1.0;
        if *steps == self.fails {
            return Err(Broken(*steps as u32).into());
        }
        let weight = |one: &Contribution<'_>| one.examples as f64 * one.staleness_weight;
        let total: f64 = contributions.iter().map(weight).sum();
        for (place, (number, velocity)) in model.iter_mut().zip(velocity).enumerate() {
            let of =
                |one: &Contribution<'_>| weight(one) * (f64::from(one.parameters[place]) - f64::from(one.start[place]));
            let change = contributions.iter().map(of).sum::<f64>() / total;
            *velocity = self.beta * *velocity + change;
            *number = (f64::from(*number) + *velocity) as f32;
        }
        Ok(())
    }
}

fn digests(experiment: &Experiment, threads: usize) -> Vec<(String, String)> {
    let summary = experiment.run(&Threads::new(threads).unwrap()).unwrap();
    let of = |run: &RunSummary| (run.digest.timeline.clone(), run.digest.model.clone());
    summary.runs.iter().map(of).collect()
}

/// The same step has the same bits, from outside and in the library.
#[test]
fn a_step_from_outside_is_the_librarys() {
    let momentum = "[aggregation]\nserver = { momentum = { momentum = 0.5 } }\n";
    for (of, protocol) in [PROTOCOLS[0], PROTOCOLS[1], PROTOCOLS[2], PROTOCOLS[4]] {
        let expected = digests(&experiment(protocol, momentum, Settings::default()), 1);
        let mut experiment = experiment(protocol, "", Settings::default());
        assert!(digests(&experiment, 1) != expected, "{of}: momentum makes a difference");
        experiment.set_algorithm(Momentum { beta: 0.5, fails: 0.0 }).unwrap();
        for threads in [1, 3] {
            assert_eq!(digests(&experiment, threads), expected, "{of}");
        }
    }
}

/// Its memory is saved with the run.
#[test]
fn its_memory_goes_on() {
    let mut experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
    experiment.set_algorithm(Momentum { beta: 0.5, fails: 0.0 }).unwrap();
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let start = || {
        let policies = world.policies(&experiment.first().arms[0].source()).unwrap();
        Run::new(&world, "random", policies, SETTINGS, Seen::default())
    };
    let (mut whole, mut parts) = (start(), start());
    for _ in 0..6 {
        whole.step().unwrap();
        let mut next = start();
        next.load(&parts.save().unwrap()).unwrap();
        next.step().unwrap();
        parts = next;
    }
    assert_eq!(whole.digests().model.hex(), parts.digests().model.hex());
}

#[test]
fn a_step_that_fails_ends_the_run() {
    for (of, protocol) in PROTOCOLS {
        let mut experiment = experiment(protocol, "", Settings::default());
        experiment.set_algorithm(Momentum { beta: 0.5, fails: 3.0 }).unwrap();
        let error = experiment.run(&Threads::new(1).unwrap()).unwrap_err();
        let text = error.to_string();
        assert_eq!(text, "run random-s1 failed: the algorithm failed in fold, round 3: broken part 3", "{of}");
        let Error::Run { source: RunError::Outside { role, source, .. }, .. } = error else { panic!("{error}") };
        assert_eq!((role, source.downcast::<Broken>().unwrap().0), (Role::Algorithm, 3));
    }
    // In a search over sets, of which one is the round's.
    let regret = "[regret]\ncounterfactual = true\nmeters = []\nutility = { aggregate = { test_loss = -1.0 } }\n";
    let mut experiment = experiment(PROTOCOLS[0].1, regret, Settings::default());
    experiment.set_algorithm(Momentum { beta: 0.5, fails: 1.0 }).unwrap();
    let text = experiment.run(&Threads::new(1).unwrap()).unwrap_err().to_string();
    assert_eq!(text, "run random-s1 failed: the algorithm failed in fold, round 1: broken part 1");
}

#[test]
fn what_it_does_not_go_with_is_refused() {
    let rule = || Momentum { beta: 0.5, fails: 0.0 };
    let world = |protocol, more| {
        let mut experiment = experiment(protocol, more, Settings::default());
        experiment.set_algorithm(rule()).unwrap();
        experiment.world(0, 1, &DataCache::default()).unwrap_err().to_string()
    };
    let error = world(PROTOCOLS[0].1, "[algorithm.trimmed-mean]\nfraction = 0.1\n");
    assert!(error.contains("combines updates, and so does the program's algorithm"), "{error}");
    let error = world(PROTOCOLS[4].1, "[clusters]\n");
    assert!(error.contains("there are several models"), "{error}");
    let with = "[aggregation]\nserver = { adam = { lr = 0.1 } }\n";
    let error = experiment(PROTOCOLS[0].1, with, Settings::default()).set_algorithm(rule()).unwrap_err().to_string();
    assert!(error.contains("aggregation.server: found a server"), "{error}");
}
