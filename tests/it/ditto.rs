//! Ditto over several rounds, on a table that the test writes: the shared model and each client's own, in double
//! precision beside the run; their measures, time, files, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model};
use super::feddyn::{Examples, TABLE, TURNS, job, job_of, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Script, Workplace, changed};
use fedgenie::policy::Policies;
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::run::{Run, RunSettings};
use std::collections::BTreeMap;
use std::io;

const LAMBDA: f64 = 0.7;

fn with(settings: &str) -> String {
    format!("{TABLE}[algorithm.ditto]\n{settings}\n")
}

/// The private state that rounds left.
#[derive(Default)]
pub struct Kept(pub Vec<(u32, Vec<f32>)>);

impl Sink for Kept {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Record::Private { client, values, .. } = record {
            self.0.push((client.0, values.to_vec()));
        }
        Ok(())
    }

    fn round(&mut self, _: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        Ok(())
    }
}

/// The shared model after each round, and the own models of its clients, ascending.
fn course(clients: &[Examples], steps: usize, lambda: f64) -> (Vec<Change>, Vec<(u32, Change)>) {
    let (mut model, mut own) = (vec![0.0; 3], BTreeMap::<u32, Change>::new());
    let (mut shared, mut kept) = (Vec::new(), Vec::new());
    for turn in TURNS {
        let mut selected = turn.to_vec();
        selected.sort_unstable();
        let mut mean = vec![0.0; 3];
        let size = |client: &u32| clients[*client as usize].len() as f64;
        let total: f64 = turn.iter().map(size).sum();
        for client in selected {
            let examples = &clients[client as usize];
            add(&mut mean, size(&client) / total, &job(&model, examples, |_, _| 0.0));
            let own = own.entry(client).or_insert_with(|| vec![0.0; 3]);
            let change = job_of(steps, own, examples, |place, number| lambda * (number - model[place]));
            add(own, 1.0, &change);
            kept.push((client, own.clone()));
        }
        add(&mut model, 1.0, &mean);
        shared.push(model.clone());
    }
    (shared, kept)
}

#[test]
fn own_models_are_pulled_towards_the_shared_one() {
    let clients = spread();
    for (settings, steps, lambda) in
        [("lambda = 0.7", 3, LAMBDA), ("lambda = 0.7\nepochs = 5", 5, LAMBDA), ("lambda = 0", 3, 0.0)]
    {
        let (shared, own) = course(&clients, steps, lambda);
        let world = table_world(&clients, &with(settings));
        let found = models(&world, &TURNS);
        found.iter().zip(&shared).for_each(|(found, expected)| assert_model(found, expected, 1e-5, "shared"));
        assert_eq!(found, models(&table_world(&clients, TABLE), &TURNS), "the shared model is that of averaging");
        let mut kept = Kept::default();
        let policies = Policies::Server(Box::new(Script::new(&TURNS)));
        let mut run = Run::new(&world, "ditto", policies, RunSettings::default(), &mut kept);
        (0..TURNS.len()).for_each(|_| run.step().unwrap());
        drop(run);
        assert_eq!(kept.0.len(), own.len());
        for ((client, found), (expected_client, expected)) in kept.0.iter().zip(&own) {
            assert_eq!(client, expected_client);
            assert_model(found, expected, 1e-5, settings);
        }
    }
}

fn loss(model: &[f64], examples: &[[f64; 3]]) -> f64 {
    let squares = examples.iter().map(|[a, b, y]| (model[0] * a + model[1] * b + model[2] - y).powi(2));
    squares.sum::<f64>() / examples.len() as f64
}

/// All nine in both rounds. Measures over clients are those of their own models, without a key that asks for them; on
/// test data they are the shared model's.
#[test]
fn clients_are_measured_by_their_own_models() {
    let clients = spread();
    let place = Workplace::with(&changed(&with("lambda = 0.7"), "rounds = 9", "rounds = 1"));
    place.write("table.csv", table(&clients));
    place.run_into("out", &["--models"]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let (shared, own) = course(&clients, 3, LAMBDA);
    let mean = own[..9].iter().map(|(client, own)| loss(own, &clients[*client as usize])).sum::<f64>() / 9.0;
    let of = |name: &str| rounds[0]["metrics"][name].as_f64().unwrap();
    assert!((of("client_loss_mean") - mean).abs() < 1e-5, "{} beside {mean}", of("client_loss_mean"));
    let all: Examples = clients.concat();
    assert!((of("test_loss") - loss(&shared[0], &all)).abs() < 1e-5);
    let of_shared = clients.iter().map(|examples| loss(&shared[0], examples)).sum::<f64>() / 9.0;
    assert!(mean < 0.9 * of_shared, "own models fit their clients better: {mean} beside {of_shared}");
    let file = place.read("out/runs/random-s1/state.safetensors");
    let header = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let header = String::from_utf8_lossy(&file[8..8 + header]).into_owned();
    assert!((0..9).all(|client| header.contains(&format!("\"client.{client}.model."))), "{header}");
}

/// Two seconds for three steps, so that five epochs of the own model, of one step each, take 5/3 of that beside it.
#[test]
fn own_models_take_their_time() {
    let closed = |settings: &str| {
        let place = Workplace::with(&changed(&with(settings), "rounds = 9", "rounds = 1"));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
        (rounds[0]["closed_s"].as_f64().unwrap(), rounds[0]["up_bytes"].as_u64().unwrap())
    };
    assert_eq!(closed("lambda = 0.7"), (6.0, 9 * 12));
    let (longer, bytes) = closed("lambda = 0.7\nepochs = 5");
    assert!((longer - (4.0 + 2.0 * 5.0 / 3.0)).abs() < 1e-8 && bytes == 9 * 12, "{longer}");
}

/// Under every protocol a run goes on to the same end when it is saved after every round.
#[test]
fn own_models_are_kept_under_every_protocol() {
    let beside = ["", "[compression]\nup = \"sign\"\n", "[algorithm.median]\n"];
    let mut kept = 0;
    for (index, protocol) in protocols().into_iter().enumerate() {
        let (beside, weighting) = match beside[index % beside.len()] {
            _ if protocol.contains("polynomial") => ("", "data-size"),
            beside => (beside, "uniform"),
        };
        kept += assert_kept(&format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [aggregation]\nweighting = \"{weighting}\"\n[algorithm.ditto]\n{beside}{protocol}[policy.random]\n"
        ));
    }
    assert!(kept >= 5);
}

#[test]
fn what_is_not_defined_is_refused() {
    let recommendation = format!(
        "{NINE}{DEVICES}[task.recommendation]\nusers = 9\ndata = {{ synthetic = {{ users = 9, items = 30, ratings = 150 }} }}\n\
         cutoffs = [5]\nmodel = {{ mf = {{ dimensions = 3 }} }}\n[algorithm.ditto]\n[protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    for (text, said) in [
        (with("lambda = -1"), "algorithm.ditto.lambda"),
        (with("epochs = 0"), "algorithm.ditto.epochs"),
        (with("[algorithm.scaffold]"), "decides about the job"),
        (recommendation, "labelled examples"),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(said), "{said}: {answer:?}");
    }
}
