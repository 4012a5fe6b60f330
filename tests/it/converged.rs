//! Convergence that is noted: in which round, at what cost and with which metrics, worked out by hand; and the price of
//! computing in jobs and in probes.

use super::support::{PLAIN, SCENARIO, SETTINGS, Seen, Workplace, changed, line_of, world};
use fedgenie::failure::Failure;
use fedgenie::policy::{Answers, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::rng::StreamRng;
use fedgenie::run::{Accounts, Run};
use fedgenie::state::Stateful;
use serde_json::{Value, json};

/// Rounds of 4 s, in each of which two clients move 1,000 B each way and compute for 2 s. The metric is the value of
/// the round.
fn scripted(values: &[f64], more: &str) -> String {
    let task = format!(
        "[task.scripted]\nmetric = \"test_score\"\nbetter = \"higher\"\npayload = \"1 kB\"\nvalues = {values:?}\n\n\
         [protocol.synchronous]"
    );
    format!("{}[evaluate]\n{more}\n", changed(PLAIN, "[protocol.synchronous]", &task))
}

/// Two equal values are no improvement, and the fourth round has the best of the first seven; the ninth is better.
const VALUES: [f64; 12] = [1.0, 1.0, 2.0, 5.0, 4.0, 5.0, 4.5, 3.0, 6.0, 7.0, 8.0, 9.0];

fn converged(more: &str) -> (Value, Value, Workplace) {
    let work = Workplace::with(&scripted(&VALUES, more));
    work.run_into("out", &[]);
    let summary = work.json("out/summary.json");
    (summary["runs"][0].clone(), summary["arms"][0]["values"].clone(), work)
}

#[test]
fn convergence_is_noted_and_the_run_goes_on() {
    let (run, values, work) = converged("converged = { metric = \"test_score\", evaluations = 3 }");
    // Rounds 5, 6 and 7 do not surpass round 4.
    let expected = json!({
        "metric": "test_score", "evaluations": 3, "round": 7, "time_s": 28.0, "down_bytes": 14_000, "up_bytes": 14_000,
        "compute_s": 28.0, "probe_compute_s": 0.0, "metrics": {"test_score": 4.5}
    });
    assert_eq!(run["converged"], expected);
    assert_eq!((&run["rounds"], &run["ended"]), (&json!(12), &json!("rounds")));
    assert_eq!(work.json("out/runs/random-s1/run.json")["converged"], expected);
    for (name, value) in [
        ("rounds_to.convergence", 7.0),
        ("time_to.convergence", 28.0),
        ("bytes_to.convergence", 28_000.0),
        ("compute_to.convergence", 28.0),
        ("reached.convergence", 1.0),
        ("converged.test_score", 4.5),
    ] {
        assert_eq!(values[name]["mean"], value, "{name}");
    }
    let printed = work.fedgenie(&["run", SCENARIO, "--out", "again"]).stdout;
    assert!(printed.contains("s to convergence"), "{printed}");
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

/// With the same rule, [stop] ends the run in the very round that is noted.
#[test]
fn it_is_noted_where_a_plateau_ends_a_run() {
    for (rule, round) in [
        ("evaluations = 1", 2),
        ("evaluations = 2", 6),
        ("evaluations = 3", 7),
        ("evaluations = 4", 8),
        ("evaluations = 3, least = 2", 7),
        ("evaluations = 2, least = 1.5", 3),
        // Nothing surpasses 1 by more than 4 before round 9.
        ("evaluations = 7, least = 4", 8),
    ] {
        let (run, ..) = converged(&format!("converged = {{ metric = \"test_score\", {rule} }}"));
        let plateau = format!("rounds = 12\nplateau = {{ metric = \"test_score\", {rule} }}");
        let work = Workplace::with(&changed(&scripted(&VALUES, ""), "rounds = 12", &plateau));
        work.run_into("out", &[]);
        let stopped = work.json("out/summary.json")["runs"][0].clone();
        assert_eq!((&stopped["ended"], &stopped["rounds"]), (&json!("plateau"), &json!(round)), "{rule}");
        assert_eq!(run["converged"]["round"], round, "{rule}");
        assert_eq!(run["converged"]["time_s"], stopped["virtual_time_s"], "{rule}");
        assert_eq!(run["converged"]["compute_s"], stopped["compute_s"], "{rule}");
        assert_eq!(run["converged"]["metrics"], stopped["final"], "{rule}");
        assert!(stopped.get("converged").is_none(), "nobody asked");
    }
}

/// Of every third round, 2, 5, 6 and 9, each is the best so far; of every second, the third, 5, is not.
#[test]
fn evaluations_count_and_not_rounds() {
    let (run, values, work) = converged("every = 3\nconverged = { metric = \"test_score\", evaluations = 1 }");
    assert_eq!(run["converged"], Value::Null);
    assert!(run.as_object().unwrap().contains_key("converged"), "it was asked");
    assert_eq!(values["reached.convergence"]["mean"], 0.0);
    assert!(values.get("time_to.convergence").is_none());
    assert_eq!(work.json("out/runs/random-s1/run.json")["converged"], Value::Null);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    // A null that is read back is told from an absent setting.
    let again = work.fedgenie(&["run", SCENARIO, "--out", "out", "--resume", "--quiet"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(work.json("out/summary.json")["runs"][0], run);
    let (run, ..) = converged("every = 2\nconverged = { metric = \"test_score\", evaluations = 1 }");
    assert_eq!(run["converged"]["round"], 6);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let known = "this task's metrics are: test_score";
    for (rule, key, said) in [
        ("metric = \"test_loss\", evaluations = 3", "metric", known),
        ("metric = \"test_score\", evaluations = 0", "evaluations", "found 0; expected at least 1"),
        ("metric = \"test_score\", evaluations = 2, least = -1", "least", "found -1; expected a number of at least 0"),
        ("metric = \"test_score\", evaluations = 2, least = nan", "least", "found NaN; expected a number"),
    ] {
        let scenario = scripted(&VALUES, &format!("converged = {{ {rule} }}"));
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        let line = line_of(&scenario, "converged =");
        let place = format!("{SCENARIO}:{line}: evaluate.converged.{key}: ");
        assert!(answer.code == 2 && answer.stderr.contains(&place) && answer.stderr.contains(said), "{answer:?}");
    }
}

// ---------------------------------------------------------------------------------------------- computing

/// Asks everybody before each selection, and chooses the first ones.
#[derive(Clone, Copy, Stateful)]
enum Asking {
    Nothing,
    Losses,
    Training,
}

impl Policy for Asking {
    fn probes(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        let all = ask.available.list().to_vec();
        Ok(match self {
            Self::Nothing => Probe::None,
            Self::Losses => Probe::Losses(all),
            Self::Training => Probe::Training { clients: all, answers: Answers::Loss },
        })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(&ask.available.list()[..ask.cohort]);
        Ok(())
    }
}

/// `K` = 5 clients with as many examples each compute for 2 s in a job of `E` = 4 epochs; an inference pass takes
/// `s` = 1/8 of an epoch, `s·2/E` = 1/16 s.
const EQUAL: &str = "[task.linear-regression]\nfeatures = 2\nexamples = 700\n\
                     [training]\nepochs = 4\ninference_share = 0.125\noptimizer = { sgd = { lr = 0.05 } }\n\n\
                     [protocol.synchronous]";

fn costs(asking: Asking, rounds: u32) -> Accounts {
    let world = world(&changed(PLAIN, "[protocol.synchronous]", EQUAL), 1);
    let mut seen = Seen::default();
    let policy: Box<dyn Policy> = Box::new(asking);
    let mut run = Run::new(&world, "asking", policy, SETTINGS, &mut seen);
    for _ in 0..rounds {
        run.step().unwrap();
    }
    run.finish().unwrap().1
}

/// In a round `m` clients compute in jobs; before it all `K` make an inference pass, or do a whole job in vain. So the
/// ratio of the two kinds of probes, jobs included, is `(K + m)/(s·K/E + m)`.
#[test]
fn computing_of_jobs_and_probes_follows_the_closed_form() {
    const SECOND: u128 = 1_000_000_000;
    let (clients, cohort, epochs, share, job) = (5_u128, 2, 4.0, 0.125, 2 * SECOND);
    for rounds in [1_u32, 7] {
        let found = [Asking::Nothing, Asking::Losses, Asking::Training].map(|asking| costs(asking, rounds));
        let jobs = u128::from(rounds) * cohort * job;
        assert_eq!(found.map(|accounts| accounts.compute.0), [jobs; 3]);
        let whole = u128::from(rounds) * clients * job;
        let inference = (share / epochs * whole as f64) as u128;
        assert_eq!(found.map(|accounts| accounts.probe_compute.0), [0, inference, whole]);
        let sum = |accounts: &Accounts| (accounts.compute.0 + accounts.probe_compute.0) as f64;
        let ratio = (5.0 + 2.0) / (share * 5.0 / epochs + 2.0);
        assert!((sum(&found[2]) / sum(&found[1]) - ratio).abs() < 1e-12);
    }
}

/// The same through the command: power-of-choice asks all five.
#[test]
fn the_summary_has_computing_of_jobs_and_of_probes() {
    let scenario = changed(PLAIN, "[protocol.synchronous]", EQUAL);
    let scenario = changed(&scenario, "[policy.random]", "[policy.power-of-choice]\ncandidates = 5\n[policy.random]");
    let more = "[evaluate]\nclients = true\ntargets = [{ metric = \"client_loss_mean\", at_most = 1e9 }]\n";
    let scenario = format!("{scenario}{more}");
    let work = Workplace::with(&scenario);
    work.run_into("out", &[]);
    let runs = work.json("out/summary.json")["runs"].clone();
    let of = |arm: &str| runs.as_array().unwrap().iter().find(|run| run["arm"] == arm).unwrap().clone();
    let [asking, random] = ["power-of-choice", "random"].map(of);
    assert_eq!((&asking["compute_s"], &asking["probe_compute_s"]), (&json!(12.0 * 4.0), &json!(12.0 * 5.0 / 16.0)));
    assert_eq!((&random["compute_s"], &random["probe_compute_s"]), (&json!(12.0 * 4.0), &json!(0.0)));
    assert_eq!(
        (&asking["reached"][0]["round"], &asking["reached"][0]["probe_compute_s"]),
        (&json!(1), &json!(5.0 / 16.0))
    );
    let arms = work.json("out/summary.json")["arms"].clone();
    assert_eq!(arms[0]["values"]["probe_compute_s"]["mean"], 12.0 * 5.0 / 16.0);
}
