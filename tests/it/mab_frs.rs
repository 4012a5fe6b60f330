//! MAB-FRS on full-batch linear regressions, each number of it computed anew: models by their closed-form gradient in
//! double precision, contributions, rewards and indices from them.

use super::support::{Workplace, changed, labelled, world};
use fedgenie::data::Dataset;
use fedgenie::id::ClientId;
use serde_json::Value;

/// Seven clients of different sizes and speeds, two or three a round; one step on all examples each.
const SCENARIO: &str = r#"
name = "mab-frs"
seeds = 1
[stop]
rounds = 14
[population]
clients = 7
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = ["0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "2 s"] }, shift = "0.1 s" } }
upload = { constant = "0.1 s" }
[task.linear-regression]
examples = 700
features = 4
partition = { gamma-sized = { shape = 1.0 } }
[training]
batch = 10_000
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 3
[record]
explain = true
updates = true
[policy.mab-frs]
kappa = 0.125
t_semi = "2 s"
"#;

type Model = Vec<f64>;

/// A client's examples: features, target.
type Rows = Vec<(Vec<f64>, f64)>;

fn rows(data: &Dataset, examples: &[u32]) -> Rows {
    let targets = data.values().expect("numbers are predicted");
    let row = |&example: &u32| {
        let features = data.features().row(example as usize).iter().map(|&value| f64::from(value)).collect();
        (features, f64::from(targets[example as usize]))
    };
    examples.iter().map(row).collect()
}

fn error(model: &Model, (features, target): &(Vec<f64>, f64)) -> f64 {
    let (bias, weights) = model.split_last().unwrap();
    weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum::<f64>() + bias - target
}

fn loss(model: &Model, rows: &Rows) -> f64 {
    rows.iter().map(|row| error(model, row).powi(2)).sum::<f64>() / rows.len() as f64
}

/// One step on the mean squared error of all rows.
fn trained(model: &Model, rows: &Rows) -> Model {
    let mut slope = vec![0.0; model.len()];
    for row in rows {
        let error = 2.0 * error(model, row) / rows.len() as f64;
        slope.iter_mut().zip(row.0.iter().chain([&1.0])).for_each(|(slope, feature)| *slope += error * feature);
    }
    model.iter().zip(slope).map(|(weight, slope)| weight - 0.05 * slope).collect()
}

/// Solves `matrix · x = right` by elimination.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    for pivot in 0..right.len() {
        for other in (0..right.len()).filter(|&other| other != pivot) {
            let times = matrix[other][pivot] / matrix[pivot][pivot];
            let from = matrix[pivot].clone();
            matrix[other].iter_mut().zip(from).for_each(|(entry, from)| *entry -= times * from);
            right[other] -= times * right[pivot];
        }
    }
    (0..right.len()).map(|at| right[at] / matrix[at][at]).collect()
}

/// The parameters that a case changes; the others are γ = 1/2, a = 1, b = 1/2, κ = 1/8, T_semi = 2 s.
#[derive(Clone, Copy)]
struct Case {
    lines: &'static str,
    rho: f64,
    prior: f64,
    estimate: Estimate,
    of_round: bool,
    sent: bool,
    joint: Option<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Estimate {
    Mean,
    Discounted,
    Window,
    Contextual,
}

const PLAIN: Case =
    Case { lines: "", rho: 1.0, prior: 1.0, estimate: Estimate::Mean, of_round: false, sent: false, joint: None };

/// The lesson about a client.
#[derive(Clone, Default)]
struct Arm {
    /// Turn, r, S, context.
    history: Vec<(u32, f64, f64, Vec<f64>)>,
    latencies: Vec<f64>,
    reputation: f64,
    gain: f64,
    relevance: f64,
    quality: Option<f64>,
    computing: f64,
}

fn scaled(arms: &[Arm]) -> Vec<f64> {
    let heard = || arms.iter().filter_map(|arm| arm.quality);
    let (low, high) = (heard().fold(f64::INFINITY, f64::min), heard().fold(f64::NEG_INFINITY, f64::max));
    let of = |arm: &Arm| match arm.quality {
        Some(quality) if high > low => (quality - low) / (high - low),
        _ => 0.0,
    };
    arms.iter().map(of).collect()
}

/// (24) of all clients, standardised.
fn contexts(arms: &[Arm]) -> Vec<Vec<f64>> {
    let scaled = scaled(arms);
    let raw: Vec<Vec<f64>> = arms
        .iter()
        .zip(scaled)
        .map(|(arm, scaled)| vec![arm.reputation, arm.gain, arm.relevance, scaled, arm.computing, 0.2])
        .collect();
    let standard = |feature: usize, client: usize| {
        let values: Vec<f64> = raw.iter().map(|row| row[feature]).collect();
        let mean = values.iter().sum::<f64>() / 7.0;
        let sd = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
        // The time of transfer is the same for all but for roundings.
        if sd > 1e-12 { (values[client] - mean) / sd } else { 0.0 }
    };
    (0..7).map(|client| [1.0].into_iter().chain((0..6).map(|at| standard(at, client))).collect()).collect()
}

/// The estimate of r, or of S, of each client.
fn estimates(case: &Case, arms: &[Arm], contexts: &[Vec<f64>], turn: u32) -> Vec<f64> {
    let pick = |entry: &(u32, f64, f64, Vec<f64>)| if case.joint.is_some() { entry.2 } else { entry.1 };
    if case.estimate == Estimate::Contextual {
        let mut matrix = vec![vec![0.0; 7]; 7];
        let mut right = vec![0.0; 7];
        (0..7).for_each(|at| matrix[at][at] = 0.5);
        for entry in arms.iter().flat_map(|arm| &arm.history) {
            for one in 0..7 {
                (0..7).for_each(|other| matrix[one][other] += entry.3[one] * entry.3[other]);
                right[one] += pick(entry) * entry.3[one];
            }
        }
        let theta = solved(matrix, right);
        return contexts
            .iter()
            .map(|context| context.iter().zip(&theta).map(|(one, other)| one * other).sum())
            .collect();
    }
    let of = |arm: &Arm| {
        let weight = |at: usize| match case.estimate {
            Estimate::Discounted => 0.8f64.powi((turn - arm.history[at].0) as i32),
            Estimate::Window => f64::from(u8::from(at + 2 >= arm.history.len())),
            _ => 1.0,
        };
        let weights: f64 = (0..arm.history.len()).map(weight).sum();
        let sum: f64 = (0..arm.history.len()).map(|at| weight(at) * pick(&arm.history[at])).sum();
        if weights > 0.0 { sum / weights } else { 0.0 }
    };
    arms.iter().map(of).collect()
}

/// `Σ S − κ·max T̃` of a set.
fn value(set: &[usize], scores: &[f64], times: &[f64]) -> f64 {
    let slowest = set.iter().map(|&client| times[client]).fold(0.0, f64::max);
    set.iter().map(|&client| scores[client]).sum::<f64>() - 0.125 * slowest
}

fn sets() -> impl Iterator<Item = Vec<usize>> {
    (1_u32..128).map(|mask| (0..7).filter(|client| mask >> client & 1 == 1).collect())
}

/// The selected clients.
fn choice(case: &Case, index: &[f64], times: &[f64]) -> Vec<usize> {
    match case.joint {
        Some(false) => {
            let small = sets().filter(|set: &Vec<usize>| set.len() <= 3);
            let best =
                |one: &Vec<usize>, other: &Vec<usize>| value(one, index, times).total_cmp(&value(other, index, times));
            small.max_by(best).unwrap()
        }
        Some(true) => {
            let mut set: Vec<usize> = Vec::new();
            while set.len() < 3 {
                let with = |client: usize| [&set[..], &[client]].concat();
                let others = (0..7).filter(|client| !set.contains(client));
                let next = others.max_by(|&one, &other| {
                    value(&with(one), index, times).total_cmp(&value(&with(other), index, times)).then(other.cmp(&one))
                });
                let before = if set.is_empty() { f64::NEG_INFINITY } else { value(&set, index, times) };
                if value(&with(next.unwrap()), index, times) <= before {
                    break;
                }
                set.push(next.unwrap());
            }
            set.sort_unstable();
            set
        }
        None => {
            let mut order: Vec<usize> = (0..7).collect();
            order.sort_by(|&one, &other| index[other].total_cmp(&index[one]).then(one.cmp(&other)));
            order.truncate(3);
            order.sort_unstable();
            order
        }
    }
}

fn ids(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as usize).collect()
}

fn numbers(value: &Value) -> Vec<Option<f64>> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}")).iter().map(Value::as_f64).collect()
}

/// Losses and weights are kept in single precision by the program.
fn assert_near(found: Option<f64>, expected: f64, context: &str) {
    match found {
        Some(found) => {
            assert!((found - expected).abs() <= 5e-6 * (1.0 + expected.abs()), "{context}: {found}, not {expected}");
        }
        None => assert!(expected.is_infinite() || expected.is_nan(), "{context}: null, not {expected}"),
    }
}

/// Plays a scenario, and all of it again by hand. `deadline` is `None` if everybody arrives.
fn check(case: &Case, protocol: &str, deadline: Option<f64>) {
    let text = changed(SCENARIO, "[protocol.synchronous]\ncohort = 3\n", protocol) + case.lines + "\n";
    let place = Workplace::with(&text);
    place.run_into("out", &[]);
    let world = world(&text, 1);
    let task = labelled(&world);
    let clients: Vec<Rows> =
        (0..7).map(|client| rows(&task.data.train, &task.partition.client(ClientId(client)))).collect();
    let everything: Vec<u32> = (0..task.data.test.examples() as u32).collect();
    let test = rows(&task.data.test, &everything);
    let quality = |model: &Model| -loss(model, &test);
    let means = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0];
    let declared = means.map(|mean: f64| 0.1 + mean * std::f64::consts::LN_2);
    let mut arms: Vec<Arm> = declared.iter().map(|&computing| Arm { computing, ..Arm::default() }).collect();
    let mut model = vec![0.0; 5];
    let (mut before_last, mut late_seen) = (None, 0);
    for (turn, round) in (1..).zip(place.lines("out/runs/mab-frs-s1/rounds.jsonl")) {
        let context = format!("{} in round {turn}", case.lines);
        let explained = &round["explain"][0];
        let contexts = contexts(&arms);
        let estimates = estimates(case, &arms, &contexts, turn - 1);
        let bonus = |arm: &Arm| case.rho * (f64::from(turn).ln() / (arm.history.len() as f64 + case.prior)).sqrt();
        let unseen = |arm: &Arm| case.prior == 0.0 && arm.history.is_empty();
        let of = |(arm, estimate): (&Arm, &f64)| if unseen(arm) { f64::INFINITY } else { estimate + bonus(arm) };
        let index: Vec<f64> = arms.iter().zip(&estimates).map(of).collect();
        for (client, found) in numbers(&explained["index"]).into_iter().enumerate() {
            assert_near(found, index[client], &format!("{context}: index of {client}"));
        }
        let times: Vec<f64> = arms
            .iter()
            .zip(declared)
            .map(|(arm, computing)| {
                let seen = &arm.latencies;
                if seen.is_empty() {
                    (computing + 0.2) / 2.0
                } else {
                    seen.iter().sum::<f64>() / seen.len() as f64 / 2.0
                }
            })
            .collect();
        let selected = ids(&round["selected"]);
        let mut ascending = selected.clone();
        ascending.sort_unstable();
        assert_eq!(ascending, choice(case, &index, &times), "{context}: {index:?}");

        // The round itself.
        let arrived = ids(&round["updates"]["clients"]);
        let latency: Vec<f64> = numbers(&round["updates"]["latency_s"]).into_iter().map(Option::unwrap).collect();
        let own: Vec<Model> = arrived.iter().map(|&client| trained(&model, &clients[client])).collect();
        let size = |client: usize| clients[client].len() as f64;
        let total: f64 = arrived.iter().map(|&client| size(client)).sum();
        let average =
            |at: usize| own.iter().zip(&arrived).map(|(own, &client)| size(client) * own[at]).sum::<f64>() / total;
        let after: Model = if arrived.is_empty() { model.clone() } else { (0..5).map(average).collect() };
        let (before, made) = (quality(&model), quality(&after));
        let has_improved = if case.sent { before_last.is_some_and(|last| before > last) } else { made > before };
        let compared = if case.sent { &model } else { &after };
        for (own, &client) in own.iter().zip(&arrived) {
            let arm = &mut arms[client];
            arm.gain = quality(own) - before;
            arm.reputation = 0.5 * arm.gain + 0.5 * arm.reputation;
            let deviation = own.iter().zip(compared).map(|(one, other)| (one - other).abs()).sum::<f64>() / 5.0;
            arm.relevance = if has_improved { (-deviation).exp() } else { 1.0 - (-deviation).exp() };
            let squares = clients[client].iter().map(|row| error(&model, row).powi(4)).sum::<f64>();
            arm.quality = Some(size(client) * (squares / size(client)).sqrt());
        }
        let scaled = scaled(&arms);
        let place_of = |client: usize| arrived.iter().position(|&other| other == client);
        let score = |client: usize| match place_of(client) {
            Some(_) => arms[client].relevance * arms[client].reputation + 0.5 * scaled[client],
            None => 0.0,
        };
        let scores: Vec<f64> = selected.iter().map(|&client| score(client)).collect();
        let wait = |client: usize| place_of(client).map_or_else(|| deadline.unwrap(), |at| latency[at]);
        let slowest = selected.iter().map(|&client| wait(client) / 2.0).fold(0.0, f64::max);
        let learned = &explained["after"];
        assert_eq!(ids(&learned["clients"]), selected, "{context}");
        for (at, &client) in selected.iter().enumerate() {
            let own = scores[at] - 0.125 * wait(client) / 2.0;
            let reward = if case.of_round { scores.iter().sum::<f64>() - 0.125 * slowest } else { own };
            let known = place_of(client).map(|_| arms[client].clone());
            let of = |number: fn(&Arm) -> f64| known.as_ref().map_or(f64::NAN, number);
            let parts = [of(|arm| arm.reputation), of(|arm| arm.relevance), of(|arm| arm.quality.unwrap())];
            let all = [
                ("S", scores[at]),
                ("R", parts[0]),
                ("U", parts[1]),
                ("D", parts[2]),
                ("T", wait(client)),
                ("r", reward),
            ];
            for (name, expected) in all {
                assert_near(numbers(&learned[name])[at], expected, &format!("{context}: {name} of {client}"));
            }
            late_seen += u32::from(known.is_none());
            arms[client].history.push((turn, reward, scores[at], contexts[client].clone()));
            arms[client].latencies.push(wait(client));
            if known.is_some() {
                arms[client].computing = wait(client) - 0.2;
            }
        }
        before_last = Some(before);
        model = after;
    }
    assert_eq!(late_seen > 2, deadline.is_some(), "{late_seen} jobs were late");
}

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 3\n";

#[test]
fn every_number_of_every_variant_by_hand() {
    let discounted =
        "reference = \"sent\"\ncredit = \"round\"\nrho = 0.25\nestimate = { discounted = { factor = 0.8 } }";
    let window = "prior_count = 0\nestimate = { window = { size = 2 } }";
    let cases = [
        PLAIN,
        Case { lines: discounted, estimate: Estimate::Discounted, rho: 0.25, of_round: true, sent: true, ..PLAIN },
        Case { lines: window, estimate: Estimate::Window, prior: 0.0, ..PLAIN },
        Case {
            lines: "rho = 0.25\nestimate = { contextual = { ridge = 0.5 } }",
            estimate: Estimate::Contextual,
            rho: 0.25,
            ..PLAIN
        },
        Case { lines: "rho = 0.1\nselection = \"joint\"", rho: 0.1, joint: Some(false), ..PLAIN },
        Case { lines: "rho = 0.1\nselection = \"joint-greedy\"", rho: 0.1, joint: Some(true), ..PLAIN },
    ];
    for case in &cases {
        check(case, SYNCHRONOUS, None);
    }
}

/// Late updates are dropped: the pull counts, with nothing but the time of the deadline.
#[test]
fn who_is_late_is_judged_by_the_deadline() {
    let protocol = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.75 s\"\n";
    check(&Case { lines: "rho = 0.5", rho: 0.5, ..PLAIN }, protocol, Some(0.75));
}

/// `[regret]` gives the defaults of contributions; a server needs time to validate updates.
#[test]
fn defaults_and_the_time_for_validation() {
    let regret = "[regret]\ncounterfactual = true\nmeters = []\nkappa = 0.25\nt_semi = \"3 s\"\n\
                  utility = { contribution = { gamma = 0.75, b = 2.0 } }\n[policy.mab-frs]\n";
    let text = changed(SCENARIO, "[policy.mab-frs]\nkappa = 0.125\nt_semi = \"2 s\"\n", regret);
    let place = Workplace::with(&text);
    place.run_into("out", &[]);
    let resolved = place.text("out/scenario.toml");
    let policy = resolved.split_once("[policy.mab-frs]").unwrap().1;
    for line in ["gamma = 0.75", "a = 1.0", "b = 2.0", "kappa = 0.25", "t_semi = \"3 s\""] {
        assert!(policy.contains(line), "{line}: {policy}");
    }
    let slow = format!("{text}evaluation_time = \"0.5 s\"\n");
    place.write("slow.toml", &slow);
    place.run_file("slow.toml", "slow", &[]);
    let closed = |folder: &str| -> Vec<f64> {
        let lines = place.lines(&format!("{folder}/runs/mab-frs-s1/rounds.jsonl"));
        lines.iter().map(|line| line["closed_s"].as_f64().unwrap()).collect()
    };
    for (turn, (fast, slow)) in closed("out").into_iter().zip(closed("slow")).enumerate() {
        // Three updates a round, validated before the next selection.
        approx::assert_abs_diff_eq!(slow - fast, 1.5 * turn as f64, epsilon = 1e-6);
    }
}

#[test]
fn elsewhere_they_are_refused() {
    for (policy, protocol) in [
        ("mab-frs", "[protocol.buffered]\nconcurrency = 3\nbuffer = 2\n"),
        ("rpfl", "[protocol.hierarchical]\nedges = 2\ncohort = 2\n"),
    ] {
        let text = changed(SCENARIO, SYNCHRONOUS, protocol);
        let text =
            changed(&text, "[policy.mab-frs]\nkappa = 0.125\nt_semi = \"2 s\"\n", &format!("[policy.{policy}]\n"));
        let answer = Workplace::with(&text).fedgenie(&["run", "scenario.toml"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        let message = format!("{policy} learns from the rounds of one server");
        assert!(answer.stderr.contains(&message), "{answer:?}");
    }
    for (line, message) in [
        ("gamma = 1.5", "gamma: found 1.5"),
        ("rho = -1.0", "rho: found -1"),
        ("t_semi = \"0 s\"", "t_semi: found 0 s"),
        ("estimate = { window = { size = 0 } }", "estimate.window.size: found 0"),
        ("estimate = { discounted = { factor = 1.0 } }", "estimate.discounted.factor: found 1"),
        ("estimate = { contextual = { ridge = 0.0 } }", "estimate.contextual.ridge: found 0"),
        ("selection = \"greedy\"", "joint-greedy"),
    ] {
        let text = changed(SCENARIO, "kappa = 0.125\nt_semi = \"2 s\"\n", &format!("{line}\n"));
        let answer = Workplace::with(&text).fedgenie(&["run", "scenario.toml"]);
        assert!(answer.code == 2 && answer.stderr.contains(message), "{line}: {answer:?}");
    }
}

/// Three kinds of clients, whose targets differ by a constant: once all were heard, one of each is selected.
#[test]
fn rpfl_selects_one_client_of_each_kind() {
    let text = changed(SCENARIO, "[policy.mab-frs]\nkappa = 0.125\nt_semi = \"2 s\"\n", "[policy.rpfl]\n");
    let text = changed(
        &text,
        "[task.linear-regression]\nexamples = 700\nfeatures = 4\npartition = { gamma-sized = { shape = 1.0 } }\n",
        "[task.linear-regression]\ndata = { csv = { train = \"a.csv\", test = \"a.csv\", target = \"y\", group = \"g\" } }\n\
         partition = { by-column = {} }\n",
    );
    let place = Workplace::with(&text);
    let mut table = String::from("g,x,y\n");
    for client in 0..7 {
        for row in 0..(6 + client) {
            let x = f64::from(row % 5) / 5.0;
            table.push_str(&format!("{client},{x},{}\n", 10.0 * f64::from(client % 3) + x));
        }
    }
    place.write("a.csv", &table);
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/rpfl-s1/rounds.jsonl");
    // Seven clients, three a round: all are selected after three rounds, and 6 leaves two seats to clusters.
    let firsts: Vec<Vec<usize>> = rounds[..3].iter().map(|round| ids(&round["selected"])).collect();
    assert_eq!((&firsts[..2], firsts[2][0]), (&[vec![0, 1, 2], vec![3, 4, 5]][..], 6));
    let kinds: Vec<usize> = firsts[2][1..].iter().map(|client| client % 3).collect();
    assert_ne!(kinds[0], kinds[1], "{firsts:?}");
    for round in &rounds[3..] {
        let explained = &round["explain"][0];
        let cluster: Vec<f64> =
            explained["cluster"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap()).collect();
        let mut kinds: Vec<usize> = ids(&round["selected"]).iter().map(|client| client % 3).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [0, 1, 2], "{round}");
        assert!((0..7).all(|client| cluster[client] == cluster[client % 3]), "{cluster:?}");
    }
}

/// Of the eight devices of the smoke world, some need longer than 43 ms in every round. They are asked once; then the
/// seats go to those that were heard.
#[test]
fn rpfl_gives_no_seats_to_clients_that_are_always_late() {
    let text = std::fs::read_to_string("scenarios/mab_frs/smoke.toml").unwrap();
    let (world, _) = text.split_once("[regret]").unwrap();
    let deadline = "[protocol.deadline]\ncohort = 4\ndeadline = \"43 ms\"\nlate = \"drop\"\n";
    let text = changed(&changed(world, SYNCHRONOUS_OF_SMOKE, deadline), "rounds = 12", "rounds = 20");
    let place = Workplace::with(&(text + "[policy.rpfl]\n"));
    assert_eq!(place.fedgenie(&["run", "scenario.toml", "--out", "out", "--quiet"]).code, 0);
    let rounds = place.lines("out/runs/rpfl-s1/rounds.jsonl");
    let arrived = |round: &Value| round["arrived"].as_array().unwrap().len();
    let aggregating = rounds.iter().filter(|round| arrived(round) > 0).count();
    assert!(aggregating >= 15, "{aggregating} of 20 rounds aggregate");
}

const SYNCHRONOUS_OF_SMOKE: &str = "[protocol.synchronous]\ncohort = 4\n";
