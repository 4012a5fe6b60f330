//! Two small scenarios keep their digests: across versions, processors, compilers and optimisation levels.
//!
//! A change of one of these digests is a category of its own in CHANGELOG.md: it changes the results of everybody's
//! scenarios, and the entry for that version gives the reason.

use super::support::Workplace;

fn assert_digests(scenario: &str, expected: &[[&str; 3]]) {
    let place = Workplace::with(scenario);
    place.run_into("out", &[]);
    let found = place.digests("out");
    let shortened: Vec<[&str; 3]> =
        found.iter().map(|(run, timeline, model)| [run.as_str(), &timeline[..16], &model[..16]]).collect();
    assert_eq!(shortened, expected);
}

/// Every law but `empirical`, dropouts, over-selection, every meter that it allows, every kind of policy that does not
/// train.
#[test]
fn a_bandit_keeps_its_timeline() {
    let scenario = r#"
        name = "golden-bandit"
        seeds = [7]
        stop.rounds = 200
        task.none.payload = "250 kB"
        protocol.over-selection = { ask = 6, take = 4, timeout = "8 s" }
        population.dropout = { download = "0.01 /s", compute = "0.02 /s", upload = "0.01 /s" }
        regret = { tau_min = "0.1 s", meters = ["mean", "realised"] }

        [[population.group]]
        count = 3
        data_size = { uniform = [10, 100] }
        latency.download = { constant = "50 ms" }
        latency.compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }
        latency.upload = { uniform = ["50 ms", "80 ms"] }
        [[population.group]]
        count = 6
        data_size = 30
        data_quality = 0.8
        latency.download = { pareto = { minimum = "40 ms", shape = 2.5 } }
        latency.compute = { gamma = { shape = 2.0, scale = "0.2 s" } }
        latency.upload = { constant = "60 ms" }
        [[population.group]]
        count = 4
        data_size = 30
        latency.download = { constant = "100 ms" }
        latency.compute = { weibull = { shape = 1.5, scale = "0.5 s" } }
        latency.upload = { constant = "100 ms" }
        [[population.group]]
        count = 4
        latency.download = { constant = "100 ms" }
        latency.compute = { truncated-normal = { mean = "0.3 s", sd = "0.1 s", min = "0.1 s", max = "0.9 s" } }
        latency.upload = { constant = "100 ms" }
        [[population.group]]
        count = 4
        latency.download = { pareto = { minimum = "40 ms", shape = 2.5 } }
        latency.compute = { constant = "0.2 s" }
        latency.upload = { constant = "20 ms" }
        [[population.group]]
        count = 4
        latency.download = { constant = "100 ms" }
        latency.compute = { gamma = { shape = 2.0, scale = "0.2 s" } }
        latency.upload = { mixture = [{ weight = 3, constant = "20 ms" }, { weight = 1, exponential = { mean = "1 s" } }] }

        [policy.random]
        [policy.by-size]
        kind = "random"
        weights = "data-size"
        [policy.round-robin]
        [policy.genie]
        [policy.bsfl]
        [policy.annealed]
        kind = "bsfl"
        solver = { alsa = { steps = 100 } }
        [policy.cs-ucb]
        [policy.cs-ucb-q]
        [policy.rbcs-f]
    "#;
    let expected = [
        ["random of seed 7 at point 0", "e462be5293a23581", "0000000000000000"],
        ["by-size of seed 7 at point 0", "b9858927959c3c2f", "0000000000000000"],
        ["round-robin of seed 7 at point 0", "36492b0f3328567c", "0000000000000000"],
        ["genie of seed 7 at point 0", "54e688676da05a66", "0000000000000000"],
        ["bsfl of seed 7 at point 0", "fc16a05ef4bf654a", "0000000000000000"],
        ["annealed of seed 7 at point 0", "fbfd4e83fadd3d7c", "0000000000000000"],
        ["cs-ucb of seed 7 at point 0", "d6d39923514ed619", "0000000000000000"],
        ["cs-ucb-q of seed 7 at point 0", "78bf3381f4e7a57f", "0000000000000000"],
        ["rbcs-f of seed 7 at point 0", "02b0638dc08a47c0", "0000000000000000"],
    ];
    assert_digests(scenario, &expected);
}

/// Training, a sweep, device profiles with jitter, carried updates with staleness weights, probes.
#[test]
fn learning_keeps_its_timeline_and_its_models() {
    let scenario = r#"
        name = "golden-learning"
        seeds = [7]
        stop.rounds = 30
        evaluate.every = 3
        protocol.deadline = { cohort = 4, deadline = "4 s", late = { carry = { staleness = { polynomial = { exponent = 0.5 } } } } }
        task.linear-regression = { features = 6, examples = 1_400, partition = { gamma-sized = { shape = 1.0 } } }
        training = { epochs = 2, batch = 8, optimizer = { sgd = { lr = 0.02 } } }
        regret = { tau_min = "1 ms", quantum = 0.05, meters = ["mean", "realised", "expected"] }
        sweep = { "policy.bsfl.alpha" = [0.5, 3.0] }

        [population]
        clients = 12
        [population.device]
        samples_per_second = { uniform = [40, 200] }
        downlink = "2 kbit/s"
        uplink = { uniform = ["1 kbit/s", "2 kbit/s"] }
        jitter = { compute = { lognormal = { median = 1, sigma = 0.4 } } }

        [policy.bsfl]
        [policy.power-of-choice]
    "#;
    let expected = [
        ["bsfl of seed 7 at point 0", "a3a236c69a2c73b0", "cb11f7354ff7c02b"],
        ["power-of-choice of seed 7 at point 0", "50876e013914fb8d", "de110d8a86dd3767"],
        ["bsfl of seed 7 at point 1", "a87f65f11fe653e8", "9241c5222c7f0f61"],
        ["power-of-choice of seed 7 at point 1", "50876e013914fb8d", "de110d8a86dd3767"],
    ];
    assert_digests(scenario, &expected);
}
