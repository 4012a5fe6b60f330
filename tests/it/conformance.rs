//! Every policy against traces worked out from its definition, the numbers in the comments.
//!
//! Worlds have constant latencies, so that nothing is random: a policy's observation of client k is always τ_k.

mod rpfl;

use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, Round, Turn};
use fedgenie::policy::{
    Bounds, BuildContext, DeclaredDevice, Devices, EdgeAccuracy, Explanation, Feedback, JobReport, Policy,
    PolicyConfig, PolicyRng, Probe, RoundReport, Selection, SelectionRequest, ServerView, TrainingReport, Waited,
};
use fedgenie::record::{Outcome, Record};
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::time::{Span, VirtualTime};
use std::io;
use std::path::Path;

/// Keeps selections and cumulative mean regrets.
#[derive(Default)]
struct Trace(Vec<(Vec<u32>, f64)>);

impl Sink for Trace {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        let selected = summary.jobs.selected.iter().map(|client| client.0).collect();
        self.0.push((selected, summary.regret.mean.unwrap()));
        Ok(())
    }
}

/// Plays a policy in a world of constant latencies: (download, compute) seconds per client, upload at once.
fn trace(clients: &[(f64, f64)], rounds: usize, policy: &str, more: &str) -> Vec<(Vec<u32>, f64)> {
    let each = |values: Vec<f64>| format!("{:?}", values.iter().map(|value| format!("{value} s")).collect::<Vec<_>>());
    let text = format!(
        r#"
        name = "conformance"
        seeds = 1
        stop.rounds = {rounds}
        population.clients = {}
        population.latency.download.constant.each = {}
        population.latency.compute.constant.each = {}
        population.latency.upload.constant = "0 s"
        protocol.synchronous.cohort = 2
        regret.tau_min = "50 ms"
        {more}
        policy.tested = {policy}
        "#,
        clients.len(),
        each(clients.iter().map(|client| client.0).collect()),
        each(clients.iter().map(|client| client.1).collect()),
    );
    let root = tree::parse(Path::new("conformance.toml"), &text).unwrap();
    let experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let policy = world.policy(&experiment.first().arms[0].policy).unwrap();
    let settings = RunSettings {
        evaluate: Evaluations::every(1),
        record_every: 1,
        parallel: false,
        explain: false,
        updates: false,
        battery: false,
    };
    let mut trace = Trace::default();
    let mut run = Run::new(&world, "tested", policy, settings, &mut trace);
    (0..rounds).for_each(|_| run.step().unwrap());
    drop(run);
    trace.0
}

fn selections(clients: &[(f64, f64)], policy: &str, more: &str, expected: &[[u32; 2]]) {
    let found: Vec<Vec<u32>> =
        trace(clients, expected.len(), policy, more).into_iter().map(|(selected, _)| selected).collect();
    assert_eq!(found, expected, "{policy}");
}

/// Total latencies 0.5, 0.1, 0.2, 0.4 s: speeds 0.1, 0.5, 0.25, 0.125.
const FOUR: [(f64, f64); 4] = [(0.1, 0.4), (0.05, 0.05), (0.1, 0.1), (0.1, 0.3)];

/// Total latencies 0.5, 0.1, 0.2, 0.4, 0.25 s: speeds 0.1, 0.5, 0.25, 0.125, 0.2.
const FIVE: [(f64, f64); 5] = [(0.0, 0.5), (0.0, 0.1), (0.0, 0.2), (0.0, 0.4), (0.0, 0.25)];

/// α = 3, β = 1.2, K = 5, m = 2: ρ = 0.4, w = 1.5·sign(x)|x|^1.2 with x = 0.4 − c/t, u = mean + sqrt(3 ln t / c).
///
/// | t | u | w | best sets (value) |
/// |---|---|---|---|
/// | 1 | ∞ ∞ ∞ ∞ ∞ | all 0.49953 | all infinite: smallest ids 0, 1 |
/// | 2 | 1.54203 1.94203 ∞ ∞ ∞ | −0.09464 twice, 0.49953 | unseen 2, 3 |
/// | 3 | 1.91544 2.31544 2.06544 1.94044 ∞ | 0.05818 four times, 0.49953 | one unseen, no set infinite: {1,4} 2.8732, {2,4} 2.6232 |
/// | 4 | 2.13933 1.94203 2.28933 2.16433 2.23933 | 0.15396, −0.09464 for 1 | {2,4} 2.5472, {2,3} 2.4722 |
/// | 5 | 2.29734 2.05376 1.80376 2.32234 1.75376 | 0.21743 for 0 and 3, else 0 | {0,3} 2.7322 |
/// | 6 | 1.7394 2.1394 1.8894 1.7644 1.8394 | all 0.05818 | {1,2} 2.0058, {1,4} 1.9558 |
/// | 7 | 1.80847 1.89496 1.64496 1.83347 1.90847 | 0.11109, −0.02105 for 1 and 2 | {3,4} 2.0557, {0,3} 2.0307 |
/// | 8 | 1.86612 1.94203 1.69203 1.56703 1.64203 | 0.15396 for 0, else 0.01793 | {0,1} 2.0380 |
#[test]
fn bsfl() {
    let expected = [[0, 1], [2, 3], [1, 4], [2, 4], [0, 3], [1, 2], [3, 4], [0, 1]];
    selections(&FIVE, r#"{ kind = "bsfl", alpha = 3.0, beta = 1.2 }"#, "", &expected);
}

/// With quantum 0.1 and client 4 holding half of the data: ρ = 0.25 for the others, 1 for client 4. The mean of client
/// 3, 0.125, is rounded to 0.1, that of client 2, 0.25, away from zero to 0.3; the bonus is not rounded.
///
/// | t | u | w | best sets (value) |
/// |---|---|---|---|
/// | 3 | 1.91544 2.31544 2.11544 1.91544 ∞ | −0.15 four times, 1.5 | {1,4} 3.6654 |
/// | 4 | 2.13933 1.94203 2.33933 2.13933 2.23933 | 0 −0.3 0 0 1.05 | {2,4} 3.2893 |
/// | 5 | 2.29734 2.05376 1.85376 2.29734 1.75376 | 0 −0.15 −0.15 0 0.75 | {0,4} and {3,4} 2.5038: the smaller ids |
/// | 6 | 1.7394 2.1394 1.9394 2.41846 1.53857 | −0.15 −0.15 −0.15 0.15 0.6 | {3,4} 2.2886 |
/// | 7 | 1.80847 2.20847 2.00847 1.80847 1.40807 | 0 0 0 0 0.6 | {1,2} 2.0085, {0,4} 2.0081 |
#[test]
fn bsfl_quantised_with_unequal_data() {
    let expected = [[0, 1], [2, 3], [1, 4], [2, 4], [0, 4], [3, 4], [1, 2]];
    let more = "population.data_size.each = [1, 1, 1, 1, 4]\nregret.quantum = 0.1";
    selections(&FIVE, r#"{ kind = "bsfl" }"#, more, &expected);
}

/// τ_max = 0.5 s: rewards 0, 0.8, 0.6, 0.2; index = mean + sqrt(3 ln t / c).
///
/// t = 3: 1.81544 2.61544 2.41544 2.01544. t = 4: 2.03933 2.24203 2.04203 2.23933. t = 5: 2.19734 2.06864 2.15376
/// 1.75376. t = 6: 1.6394 2.13857 1.93857 1.8394. t = 7: 1.70847 2.00807 1.80807 1.90847. t = 8: 1.76612 1.91699
/// 1.84883 1.64203.
#[test]
fn cs_ucb() {
    let expected = [[0, 1], [2, 3], [1, 2], [1, 3], [0, 2], [1, 2], [1, 3], [1, 2]];
    selections(&FOUR, r#"{ kind = "cs-ucb", tau_max = "0.5 s" }"#, "", &expected);
}

/// Sizes 3, 1, 1, 3: owed 0.375, 0.125, 0.125, 0.375 per round. ŷ = 1 for all while sqrt(2 ln t / c) is large; the
/// queues decide: t = 1: scores 0.5, ids decide. t = 2: D = 0, 0, 0.125, 0.375, scores 0.5 0.5 0.5625 0.6875. t = 3: D
/// = 0.375, 0.125, 0, 0. And so on in turn.
#[test]
fn cs_ucb_q() {
    let expected = [[0, 1], [2, 3], [0, 1], [2, 3], [0, 1], [2, 3]];
    let policy = r#"{ kind = "cs-ucb-q", tau_max = "0.5 s" }"#;
    selections(&FOUR, policy, "population.data_size.each = [3, 1, 1, 3]", &expected);
}

/// V = 5, λ = 1, α = 0.1, β = 0.5·m/K = 0.25. Contexts [compute, in last round, transfer].
///
/// | t | τ̄ | z | best sets (−V·max τ̄ + Σ z) |
/// |---|---|---|---|
/// | 1 | 0 0 0 0 | 0 0 0 0 | all equal: {0,1} |
/// | 2 | 0 0 0 0 | 0 0 0.25 0.25 | {2,3} 0.5 |
/// | 3 | 0.03453 0 0 0 | 0.25 0.25 0 0 | {0,1} 0.3273, {1,2} 0.25 |
/// | 4 | 0.02071 0 0 0.00621 | 0 0 0.25 0.25 | {2,3} 0.4689 |
/// | 5 | 0.09125 0 0 0 | 0.25 0.25 0 0 | {1,2} and {1,3} 0.25: {1,2} |
/// | 6 | 0.09125 0 0.03372 0.0378 | 0.5 0 0 0.25 | {0,3} 0.2938 |
/// | 7 | 0.0634 0 0 0 | 0 0.25 0.25 0 | {1,2} 0.5 |
/// | 8 | 0.13532 0 0.0355 0.06457 | 0.25 0 0 0.25 | {1,3} and {2,3} −0.0729: {1,3} |
#[test]
fn rbcs_f() {
    let expected = [[0, 1], [2, 3], [0, 1], [2, 3], [1, 2], [0, 3], [1, 2], [1, 3]];
    selections(&FOUR, r#"{ kind = "rbcs-f" }"#, "", &expected);
}

/// K = 4, m = 2, α = 3, β = 1.2: ρ = 0.5. t = 1: all w = 0.65291, so the fastest two, {1,2}: 0.25 + 1.30582. t = 2: w =
/// 0.65291 for 0 and 3, 0 for 1 and 2: {0,3} 1.4058, {1,3} 0.7779. Then in turn; the mean regret stays exactly zero.
#[test]
fn genie() {
    let found = trace(&FOUR, 6, r#"{ kind = "genie" }"#, "");
    let expected = [[1, 2], [0, 3], [1, 2], [0, 3], [1, 2], [0, 3]];
    for ((selected, regret), expected) in found.iter().zip(expected) {
        assert_eq!(selected, &expected);
        assert_eq!(*regret, 0.0);
    }
}

/// The circle 0, 1, 2, 3, 4. Under K = 4, rounds 1, 3, 5 find all clients alike: the genie takes {1,2} with bottleneck
/// 0.25, round-robin {0,1} with 0.1, and loses 0.15. Rounds 2, 4, 6 find 2 and 3 unused: both take them.
#[test]
fn round_robin_and_its_mean_regret() {
    selections(&FIVE, r#"{ kind = "round-robin" }"#, "", &[[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1]]);
    let regrets: Vec<f64> =
        trace(&FOUR, 6, r#"{ kind = "round-robin" }"#, "").into_iter().map(|(_, regret)| regret).collect();
    for (found, expected) in regrets.iter().zip([0.15, 0.15, 0.30, 0.30, 0.45, 0.45]) {
        approx::assert_relative_eq!(*found, expected, max_relative = 1e-12);
    }
}

#[derive(Debug)]
struct NoDevices;

impl Devices for NoDevices {
    fn declared(&self, _: ClientId) -> DeclaredDevice {
        DeclaredDevice::default()
    }
    fn slowest_latency(&self, _: f64) -> f64 {
        1.0
    }
    fn usual_latency(&self) -> f64 {
        1.0
    }
}

/// Asks a policy directly, round by round.
struct Asked {
    policy: Box<dyn Policy>,
    round: u32,
    everyone: Vec<ClientId>,
    sizes: Vec<u32>,
}

impl Asked {
    fn new(config: &str, clients: u32) -> Self {
        let config: PolicyConfig = serde_json::from_str(config).unwrap();
        let sizes = vec![1; clients as usize];
        let context = BuildContext {
            seed: 1,
            clients: clients as usize,
            among: clients as usize,
            cohort: 2,
            take: 2,
            per_model: 2,
            bounds: Bounds::of_size(2),
            data_sizes: &sizes,
            in_rounds: true,
            trains: true,
            probes: &[],
            budget: None,
            least: 1,
            has_empty_rounds: false,
            devices: &NoDevices,
            metrics: &[],
            evaluates_every_round: true,
        };
        let policy = config.build(&context).unwrap();
        Self { policy, round: 0, everyone: (0..clients).map(ClientId).collect(), sizes }
    }

    /// Plays a round in which the clients' local losses are `losses`.
    fn select(&mut self, losses: &[f64]) -> Vec<u32> {
        self.round += 1;
        let streams = Streams::new(1);
        let mut policy = streams.stream(Purpose::Policy, 0, self.round);
        let mut solver = streams.stream(Purpose::Solver, 0, self.round);
        let (shares, counts) = (vec![0.25; self.sizes.len()], vec![0; self.sizes.len()]);
        let ask = SelectionRequest {
            turn: Turn(self.round),
            round: Round(self.round),
            now: VirtualTime::START,
            cohort: 2,
            most: 2,
            take: 2,
            available: self.everyone.as_slice().into(),
        };
        let mut view = ServerView {
            data_sizes: &self.sizes,
            shares: &shares,
            counts: &counts,
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: None,
            bounds: None,
            forecaster: None,
            batteries: None,
        };
        let probe = self.policy.probe(&ask, &view, &mut policy).unwrap();
        let probed: Vec<(ClientId, f64)> = match probe {
            Probe::Losses(candidates) => {
                candidates.into_iter().map(|client| (client, losses[client.index()])).collect()
            }
            _ => Vec::new(),
        };
        view.probed = &probed;
        let mut selection = Selection::default();
        let mut rng = PolicyRng { policy: &mut policy, solver: &mut solver };
        self.policy.select(&ask, &view, &mut rng, &mut selection).unwrap();
        for &client in &selection {
            self.policy
                .observe(&Feedback::Job(JobReport {
                    client,
                    turn: Turn(self.round),
                    round: Round(self.round),
                    staleness: 0,
                    outcome: Outcome::Arrived,
                    waited: Waited::Arrived(Span(1)),
                    phases: [Span(0), Span(1), Span(0)],
                }))
                .unwrap();
            self.policy
                .observe(&Feedback::Trained(TrainingReport {
                    client,
                    turn: Turn(self.round),
                    round: Round(self.round),
                    staleness: 0,
                    latency: Span(1),
                    examples: 1,
                    loss: losses[client.index()],
                    loss_rms: None,
                    quality: None,
                    deviation: None,
                    norm: None,
                    update: None,
                    change: None,
                }))
                .unwrap();
        }
        selection.iter().map(|client| client.0).collect()
    }
}

/// All four clients are candidates: the two largest fresh losses win, equal ones by id.
#[test]
fn power_of_choice_with_fresh_losses() {
    let mut asked = Asked::new(r#"{ "power-of-choice": { "candidates": 4 } }"#, 4);
    assert_eq!(asked.select(&[1.0, 2.0, 3.0, 4.0]), [2, 3]);
    assert_eq!(asked.select(&[4.0, 2.0, 3.0, 1.0]), [0, 2]);
    assert_eq!(asked.select(&[1.0, 1.0, 1.0, 1.0]), [0, 1]);
    assert_eq!(asked.select(&[0.5, 0.7, 0.7, 0.7]), [1, 2]);
    assert_eq!(asked.select(&[0.7, 0.7 + 1e-13, 0.1, 0.9]), [0, 3], "within 1e-12 the smaller id wins");
}

/// Losses are those reported when last trained. Rounds 1 and 2: a client that never reported counts as infinite, by id.
/// After them, known losses 1, 2, 6, 7: {2,3}, with new reports 0.5 and 3. Then 1, 2, 0.5, 3: {1,3}, with 4 and 0.1.
/// Then 1, 4, 0.5, 0.1: {0,1}.
#[test]
fn power_of_choice_with_last_known_losses() {
    let mut asked = Asked::new(r#"{ "power-of-choice": { "candidates": 4, "losses": "last-known" } }"#, 4);
    assert_eq!(asked.select(&[1.0, 2.0, 9.0, 9.0]), [0, 1]);
    assert_eq!(asked.select(&[9.0, 9.0, 6.0, 7.0]), [2, 3]);
    assert_eq!(asked.select(&[9.0, 9.0, 0.5, 3.0]), [2, 3]);
    assert_eq!(asked.select(&[9.0, 4.0, 9.0, 0.1]), [1, 3]);
    assert_eq!(asked.select(&[1.0, 1.0, 9.0, 9.0]), [0, 1]);
}

/// Of five clients, only candidates are chosen: with d = 2 = m the losses cannot matter, whatever they are.
#[test]
fn power_of_choice_chooses_among_its_candidates() {
    let mut by_loss = Asked::new(r#"{ "power-of-choice": { "candidates": 2 } }"#, 5);
    let mut against = Asked::new(r#"{ "power-of-choice": { "candidates": 2 } }"#, 5);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let chosen = by_loss.select(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(chosen, against.select(&[5.0, 4.0, 3.0, 2.0, 1.0]));
        seen.extend(chosen);
    }
    assert_eq!(seen.len(), 5, "every client is a candidate now and then");
}

impl Asked {
    /// Closes the round with a change of accuracy, and says α and β of everybody.
    fn learn(&mut self, before: f64, after: f64) -> [Vec<f64>; 2] {
        self.policy
            .observe(&Feedback::Round(RoundReport {
                turn: Turn(self.round),
                round: Round(self.round),
                selected: &[],
                duration: Span(1),
                down_bytes: 0,
                up_bytes: 0,
                metrics: &[],
                quality: None,
                edge_accuracy: (!before.is_nan()).then_some(EdgeAccuracy { before, after }),
            }))
            .unwrap();
        let mut after = Explanation::default();
        self.policy.explain_after(&[], &mut after).unwrap();
        let after = after.into_json();
        let of = |key: &str| after[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        [of("alpha"), of("beta")]
    }
}

/// The x at which a gamma law of a whole shape has the value u: `P = 1 − e^−x Σ_{j<shape} x^j/j!`, by bisection.
fn erlang_quantile(shape: u32, u: f64) -> f64 {
    let below = |x: f64| {
        let (mut term, mut sum) = (1.0, 0.0);
        for j in 1..=shape {
            sum += term;
            term *= x / f64::from(j);
        }
        1.0 - fedgenie::math::float::exp(-x) * sum < u
    };
    let (mut low, mut high) = (0.0, 200.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if below(middle) { low = middle } else { high = middle }
    }
    low
}

/// With gain 1 and accuracies in whole numbers all shapes are whole. Rounds 1 and 2 are warm-up; the cap of 3 is met in
/// round 3; in round 4 accuracy falls by 2, in round 5 it stays, and in round 6 it is unknown.
#[test]
fn thompson() {
    let mut asked = Asked::new(r#"{ "thompson": { "warmup": 2, "gain": 1.0, "cap": 3.0 } }"#, 4);
    let mut random = Asked::new(r#"{ "random": {} }"#, 4);
    let (mut alpha, mut beta) = ([1_u32; 4], [1_u32; 4]);
    let steps = [(0.0, 1.0), (1.0, 3.0), (3.0, 8.0), (8.0, 6.0), (6.0, 6.0), (f64::NAN, 9.0), (9.0, 10.0)];
    for (index, (before, after)) in steps.into_iter().enumerate() {
        let by_chance = random.select(&[0.0; 4]);
        let selected = asked.select(&[0.0; 4]);
        if index < 2 {
            assert_eq!(selected, by_chance);
        } else {
            let mut rng = Streams::new(1).stream(Purpose::Policy, 0, asked.round);
            let mut draws: Vec<(f64, u32)> = (0..4)
                .map(|client: u32| {
                    let shapes = [alpha[client as usize], beta[client as usize]];
                    let [x, y] = shapes.map(|shape| erlang_quantile(shape, rng.uniform()));
                    (x / (x + y), client)
                })
                .collect();
            draws.sort_by(|one, other| other.0.total_cmp(&one.0));
            let mut expected = vec![draws[0].1, draws[1].1];
            expected.sort_unstable();
            assert_eq!(selected, expected, "round {}: {draws:?}", index + 1);
        }
        // Steps of 1, 2, 3 (not 5), 2 the other way, 0, none, 1.
        let (rise, fall) = [(1, 0), (2, 0), (3, 0), (0, 2), (0, 0), (0, 0), (1, 0)][index];
        for &client in &selected {
            alpha[client as usize] += rise;
            beta[client as usize] += fall;
        }
        assert_eq!(asked.learn(before, after), [alpha, beta].map(|shapes| shapes.map(f64::from).to_vec()));
    }
}

/// Clients add 0.5, 0.3, −0.2 and 0.1 on average, a set of n clients pays 1/n and 0.1 for each: {0} is worth −0.6,
/// {0, 1} 0.4 − 0.5 − 0.2 = −0.3, {0, 1, 3} 0.3 − 1/3 − 0.3 ≈ −0.33, all 0.175 − 0.25 − 0.4 = −0.475. Eleven jobs can
/// be paid: five rounds of the best two, and one of one. Where sets have at least three, three rounds of those.
#[test]
fn hindsight() {
    for (least, expected) in
        [(1, vec![vec![0, 1], vec![0, 1], vec![0, 1], vec![0, 1], vec![0, 1], vec![0]]), (3, vec![vec![0, 1, 3]; 3])]
    {
        let text = format!(
            r#"
            name = "conformance"
            seeds = 1
            stop.rounds = 9
            budget = {{ traffic = "2200 B", least = {least} }}
            population.clients = 4
            population.latency.download.constant = "0 s"
            population.latency.compute.constant = "1 s"
            population.latency.upload.constant = "0 s"
            protocol.synchronous.cohort = 4
            task.scripted.metric = "test_score"
            task.scripted.better = "higher"
            task.scripted.payload = "100 B"
            task.scripted.effects = [0.5, 0.3, -0.2, 0.1]
            task.scripted.per_client = -1.0
            regret.meters = []
            regret.counterfactual = true
            regret.utility.aggregate = {{ test_score = 1.0, traffic = -1.1 }}
            regret.size = "at-most"
            policy.hindsight = {{}}
            "#
        );
        let root = tree::parse(Path::new("conformance.toml"), &text).unwrap();
        let experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        let policy = world.policy(&experiment.first().arms[0].policy).unwrap();
        let mut chosen = Chosen::default();
        let mut run = Run::new(&world, "hindsight", policy, super::support::SETTINGS, &mut chosen);
        while !run.is_spent() {
            run.step().unwrap();
            assert_eq!(run.regret().hindsight, Some(0.0));
        }
        drop(run);
        assert_eq!(chosen.0, expected);
    }
}

/// Keeps selections.
#[derive(Default)]
struct Chosen(Vec<Vec<u32>>);

impl Sink for Chosen {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0.push(summary.jobs.selected.iter().map(|client| client.0).collect());
        Ok(())
    }
}

/// Uniform draws reach every pair; draws by size never take a client without data while others are left; both repeat
/// themselves.
#[test]
fn random() {
    let mut uniform = Asked::new(r#"{ "random": {} }"#, 4);
    let mut again = Asked::new(r#"{ "random": {} }"#, 4);
    let mut by_size = Asked::new(r#"{ "random": { "weights": "data-size" } }"#, 4);
    by_size.sizes = vec![1, 0, 5, 1];
    let mut pairs = std::collections::BTreeMap::new();
    for _ in 0..1200 {
        let mut pair = uniform.select(&[0.0; 4]);
        assert_eq!(pair, again.select(&[0.0; 4]));
        assert!(!by_size.select(&[0.0; 4]).contains(&1));
        pair.sort_unstable();
        *pairs.entry(pair).or_insert(0u32) += 1;
    }
    // Six pairs, 200 each expected, standard deviation 13.
    assert!(pairs.len() == 6 && pairs.values().all(|count| count.abs_diff(200) < 65), "{pairs:?}");
}
