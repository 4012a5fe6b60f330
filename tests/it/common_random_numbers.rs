//! Policies of one scenario meet the same world, and none of them changes the world of another.

use super::support::{Workplace, changed, play, world};
use fedgenie::failure::Failure;
use fedgenie::policy::{Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::rng::StreamRng;
use fedgenie::state::Stateful;
use serde_json::Value;
use std::collections::BTreeMap;

const WORLD: &str = r#"
name = "common"
seeds = [3, 4]
[stop]
rounds = 40
[population]
clients = 10
[population.latency]
download = { uniform = ["10 ms", "20 ms"] }
compute = { exponential = { mean = { uniform = ["0.2 s", "1 s"] }, shift = "0.1 s" } }
upload = { constant = "20 ms" }
[population.dropout]
compute = "0.1 /s"
[protocol.synchronous]
cohort = 4
timeout = "3 s"
[regret]
tau_min = "0.1 s"
meters = ["mean", "realised"]
"#;

fn scenario(policies: &str) -> String {
    format!("{WORLD}{policies}")
}

/// Timeline and model digest by run.
fn digests(policies: &str) -> BTreeMap<String, (String, String)> {
    let place = Workplace::with(&scenario(policies));
    place.run_into("out", &[]);
    place.digests("out").into_iter().map(|(name, timeline, model)| (name, (timeline, model))).collect()
}

/// The course of each job, in nanoseconds after its dispatch, by (client, round): the ends of its phases.
fn jobs(events: &[Value]) -> BTreeMap<(u64, u64), Vec<(String, u64)>> {
    let number = |event: &Value, key: &str| event[key].as_u64().unwrap();
    let mut opened = 0;
    let mut jobs: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in events {
        match event["event"].as_str().unwrap() {
            "opened" => {
                opened = number(event, "time_ns");
                for client in event["selected"].as_array().unwrap() {
                    jobs.insert((client.as_u64().unwrap(), number(event, "round")), Vec::new());
                }
            }
            "phase-ended" => {
                let job = jobs.get_mut(&(number(event, "client"), number(event, "round"))).unwrap();
                job.push((event["phase"].as_str().unwrap().to_owned(), number(event, "time_ns") - opened));
            }
            _ => {}
        }
    }
    jobs
}

#[test]
fn policies_meet_the_same_latencies_and_losses() {
    let place = Workplace::with(&scenario("[policy.random]\n[policy.bsfl]\n[policy.cs-ucb]\n"));
    place.run_into("out", &["--events"]);
    for seed in [3, 4] {
        let of = |arm: &str| jobs(&place.events(&format!("out/runs/{arm}-s{seed}")));
        let (random, bsfl, cs_ucb) = (of("random"), of("bsfl"), of("cs-ucb"));
        for other in [&bsfl, &cs_ucb] {
            let common: Vec<_> = random.keys().filter(|job| other.contains_key(job)).collect();
            assert!(common.len() > 30 && common.len() < 150, "{} jobs of 160 in common", common.len());
            for job in common {
                assert_eq!(random[job], other[job], "client and round {job:?}, seed {seed}");
            }
        }
        assert!(random.values().any(|phases| phases.len() < 3), "somebody was lost");
    }
}

#[test]
fn removing_adding_or_reordering_policies_changes_no_other() {
    let [random, bsfl, cs_ucb] = ["[policy.random]\n", "[policy.bsfl]\n", "[policy.cs-ucb]\n"];
    let all = digests(&[random, bsfl, cs_ucb].concat());
    assert_eq!(all.len(), 6);
    for policies in [[cs_ucb, random, bsfl].concat(), [bsfl, random].concat(), cs_ucb.to_owned()] {
        for (run, digest) in digests(&policies) {
            assert_eq!(digest, all[&run], "{run}, with {policies}");
        }
    }
    // Policies with randomness of their own, and solvers with more.
    let more = "[policy.by-size]\nkind = \"random\"\nweights = \"data-size\"\n\
                [policy.annealed]\nkind = \"bsfl\"\nsolver = { alsa = { steps = 50 } }\n[policy.genie]\n";
    let with_more = digests(&[more, random, bsfl, cs_ucb].concat());
    assert_eq!(with_more.len(), 12);
    for (run, digest) in &all {
        assert_eq!(digest, &with_more[run], "{run}");
    }
}

#[test]
fn policies_that_train_change_no_other() {
    let task = "[task.linear-regression]\nexamples = 700\n[training]\noptimizer = { sgd = { lr = 0.01 } }\n";
    let with = |policies: &str| digests(&format!("{task}{policies}"));
    let alone = with("[policy.random]\n");
    let beside = with("[policy.power-of-choice]\n[policy.random]\n[policy.round-robin]\n");
    for (run, digest) in &alone {
        assert_eq!(digest, &beside[run], "{run}");
    }
}

#[test]
fn a_later_seed_or_a_longer_run_changes_nothing_before() {
    let short = Workplace::with(&scenario("[policy.bsfl]\n"));
    short.run_into("out", &[]);
    let long = changed(&scenario("[policy.bsfl]\n"), "rounds = 40", "rounds = 60");
    let long = Workplace::with(&changed(&long, "[3, 4]", "[5, 4, 3]"));
    long.run_into("out", &[]);
    for seed in [3, 4] {
        let file = format!("out/runs/bsfl-s{seed}/rounds.jsonl");
        let (short, long) = (short.text(&file), long.text(&file));
        assert!(long.starts_with(&short) && long.len() > short.len());
    }
}

/// Chooses the clients in turn, and throws away some random numbers in every round.
#[derive(Stateful)]
struct Wasteful {
    #[state(skip = "from the test")]
    draws: u32,
}

impl Policy for Wasteful {
    fn probe(&mut self, _: &SelectionRequest<'_>, _: &ServerView<'_>, rng: &mut StreamRng) -> Result<Probe, Failure> {
        (0..self.draws).for_each(|_| {
            rng.bits();
        });
        Ok(Probe::None)
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        for _ in 0..self.draws {
            rng.policy.uniform();
            rng.solver.uniform();
        }
        let available = ask.available.list();
        let first = ask.round.0 as usize * ask.cohort;
        selection.extend((first..first + ask.cohort).map(|place| available[place % available.len()]));
        Ok(())
    }
}

#[test]
fn what_a_policy_draws_for_itself_shifts_nothing() {
    let task = "[task.linear-regression]\nexamples = 700\n[training]\noptimizer = { sgd = { lr = 0.01 } }\n";
    let world = world(&scenario(&format!("{task}[policy.random]")), 3);
    let played = [0, 1, 1_000].map(|draws| play(&world, Box::new(Wasteful { draws }), 30).unwrap());
    for other in &played[1..] {
        assert_eq!(other.seen.rounds, played[0].seen.rounds);
        assert_eq!((&other.timeline, &other.model), (&played[0].timeline, &played[0].model));
    }
}
