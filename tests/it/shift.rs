//! Data that change over time: models and losses before and after, worked out in double precision; who has which data
//! when; recovery from a concept shift; and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{add, assert_model};
use super::feature_skew::{IMAGES, Image, assert_near, course, drawn, features, job, loss, turned, with_images};
use super::support::{DEVICES, SCENARIO, Workplace, changed, labelled, line_of, play, world};
use fedgenie::data::partition::PartitionConfig;
use fedgenie::failure::Failure;
use fedgenie::id::{ClientId, EdgeId, Round};
use fedgenie::policy::{Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::record::Outcome;
use fedgenie::rng::{Purpose, Streams};
use fedgenie::state::Stateful;
use fedgenie::task::Labelled;
use fedgenie::world::World;
use serde_json::{Value, json};

fn with_shift(text: &str, shift: &str) -> String {
    changed(text, "partition = \"by-column\"", &format!("partition = \"by-column\"\nshift = [{shift}]"))
}

/// What is said to be of class 0 is of class 2, and the other way round; then all is turned by a quarter.
const BOTH: &str = "{ round = 2, concept = [[0, 2], [2, 0]] }, { round = 3, features = { rotation = 90 } }";

/// The images of round `1 + index` under [`BOTH`].
fn after(index: usize, images: &[Image]) -> Vec<Image> {
    let one = |(image, class): &Image| {
        let image = if index >= 2 { turned(image, 90.0) } else { image.clone() };
        (image, if index >= 1 { 2 - class } else { *class })
    };
    images.iter().map(one).collect()
}

fn task_in(world: &World, round: u32) -> &Labelled {
    world.task_in(Round(round)).unwrap().downcast().unwrap()
}

fn class(task: &Labelled, row: u32) -> usize {
    usize::from(task.data.train.classes().unwrap().0[row as usize])
}

/// Everybody in each round. Training data and test data change, and a round says how often they have.
#[test]
fn a_run_is_one_on_data_that_change() {
    let text = changed(&with_shift(IMAGES, BOTH), "rounds = 2", "rounds = 4");
    let (world, [train, test]) = with_images(&text);
    let of = |client: u32| -> Vec<Image> {
        labelled(&world).partition.client(ClientId(client)).iter().map(|&row| train[row as usize].clone()).collect()
    };
    let expected = course(&[&[0, 1, 2][..]; 4], |index, client| after(index, &of(client)));
    let place = Workplace::with(&format!("{text}[evaluate]\nevery = 1\n"));
    place.write("train.csv", drawn(30, 5).1);
    place.write("test.csv", drawn(12, 77).1);
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    for (index, (round, model)) in rounds.iter().zip(&expected).enumerate() {
        let (found, expected) = (round["metrics"]["test_loss"].as_f64().unwrap(), loss(model, &after(index, &test)));
        assert!((found - expected).abs() < 1e-5, "round {}: {found} beside {expected}", index + 1);
        assert_eq!(round["shifts"], index.min(2));
    }
    assert_eq!(place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]).code, 0);
    let rows = crate::fuzz::shared::markup::csv(&place.text("tables/rounds.csv"));
    let column = rows[0].iter().position(|name| name == "shifts").unwrap();
    assert_eq!(rows[1..].iter().map(|row| &*row[column]).collect::<Vec<_>>(), ["0", "1", "2", "2"]);
    let models = super::feddyn::models(&world, &[&[0, 1, 2][..]; 4]);
    for (found, expected) in models.iter().zip(&expected) {
        assert_model(found, expected, 1e-5, "shifted");
    }
    // Without the shift, the same until then; and nothing is said of changes.
    let plain = Workplace::with(&changed(&format!("{IMAGES}[evaluate]\nevery = 1\n"), "rounds = 2", "rounds = 4"));
    plain.write("train.csv", drawn(30, 5).1);
    plain.write("test.csv", drawn(12, 77).1);
    plain.run_into("out", &[]);
    let unchanged = plain.lines("out/runs/random-s1/rounds.jsonl");
    let mut first = rounds[0].clone();
    assert_eq!(first.as_object_mut().unwrap().shift_remove("shifts"), Some(json!(0)));
    assert_eq!(first, unchanged[0]);
    assert_ne!(rounds[1]["metrics"], unchanged[1]["metrics"]);
}

/// Selects the first client that is there.
#[derive(Stateful)]
struct First;

impl Policy for First {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().first());
        Ok(())
    }
}

/// A model of every update that arrives, and nobody waits. What a client was asked before data changed it trains on the
/// earlier data, although it arrives later.
#[test]
fn a_client_trains_on_the_data_of_when_it_was_asked() {
    let text = changed(&with_shift(IMAGES, "{ round = 4, concept = [[0, 2], [2, 0]] }"), "rounds = 2", "rounds = 9");
    let text = changed(&text, "[protocol.synchronous]\ncohort = 3", "[protocol.buffered]\nconcurrency = 3\nbuffer = 1");
    let text = changed(&text, "{ constant = \"2 s\" }", "{ constant = { each = [\"1 s\", \"2.7 s\", \"9.1 s\"] } }");
    let (world, [train, _]) = with_images(&text);
    let seen = play(&world, Box::new(First), 9).unwrap().seen;
    let arrived: Vec<(u32, u32)> = seen
        .ended
        .iter()
        .filter(|(_, _, outcome)| matches!(outcome, Outcome::Arrived))
        .map(|&(round, client, _)| (round, client))
        .collect();
    let mut models = vec![vec![0.0; 51]];
    models.extend(seen.models.iter().map(|model| model.iter().map(|&number| f64::from(number)).collect::<Vec<f64>>()));
    let mut kinds = [0; 3];
    for (round, &(asked, client)) in (1..=9).zip(&arrived) {
        let images: Vec<Image> = labelled(&world)
            .partition
            .client(ClientId(client))
            .iter()
            .map(|&row| train[row as usize].clone())
            .collect();
        let far = |is_changed: bool| {
            let mut expected = models[round as usize - 1].clone();
            let images = after(usize::from(is_changed), &images);
            add(&mut expected, 1.0, &job(3, &models[asked as usize - 1], &images));
            let pairs = models[round as usize].iter().zip(&expected);
            pairs.map(|(found, expected)| (found - expected).abs()).fold(0.0, f64::max)
        };
        let is_changed = asked >= 4;
        let (right, wrong) = (far(is_changed), far(!is_changed));
        assert!(right < 1e-5 && wrong > 1e-3, "round {round}, asked in {asked}: {right} {wrong}");
        kinds[usize::from(round >= 4) + usize::from(is_changed)] += 1;
    }
    assert!(kinds[0] == 3 && kinds[1] > 0 && kinds[2] > 0, "before, across and after: {kinds:?}");
}

/// Only the rows of some clients are changed, those that they hold out too; test examples if so.
#[test]
fn some_clients_change_alone() {
    let text = with_shift(
        IMAGES,
        "{ round = 2, clients = [1], concept = [[0, 1]] }, \
         { round = 5, share = 0.67, test = true, features = { colour = { contrast = -1, brightness = 1 } } }",
    );
    let text = changed(&text, "[training]", "held_out = 0.3\n[training]") + "[evaluate]\nclients = true\n";
    let (world, [train, test]) = with_images(&text);
    let (whole, _) = with_images(IMAGES);
    let (first, second, third) = (task_in(&world, 1), task_in(&world, 4), task_in(&world, 5));
    let mut all: Vec<u32> = vec![0, 1, 2];
    Streams::new(1).stream(Purpose::Partition, 1, 24).shuffle(&mut all);
    let turned = &all[..2];
    let mut told = turned.to_vec();
    told.sort_unstable();
    let shifts = &world.task.as_ref().unwrap().describe().skew.as_ref().unwrap().shifts;
    let changes: Vec<_> = shifts.iter().map(|shift| (shift.round, shift.count, &shift.clients[..])).collect();
    assert_eq!(changes, [(2, 1, &[1][..]), (5, 2, &told[..])]);
    for client in 0..3 {
        for &row in labelled(&whole).partition.client(ClientId(client)).iter() {
            let said = class(first, row);
            assert_eq!(said, train[row as usize].1);
            assert_eq!(class(second, row), if client == 1 && said == 0 { 1 } else { said });
            assert_eq!(class(third, row), class(second, row));
            let image = &train[row as usize].0;
            assert_near(&features(&second.data.train, row), image, "unchanged");
            let negative: Vec<f64> = image.iter().map(|pixel| 1.0 - pixel).collect();
            let expected = if turned.contains(&client) { &negative } else { image };
            assert_near(&features(&third.data.train, row), expected, "some");
        }
    }
    assert_eq!(first.data.test, second.data.test);
    let negative: Vec<f64> = test[3].0.iter().map(|pixel| 1.0 - pixel).collect();
    assert_near(&features(&third.data.test, 3), &negative, "test");
    assert_eq!(third.data.test.classes(), first.data.test.classes());
}

/// The same rows are dealt by another partition, with random numbers of their own; each is seen by whom it went to.
#[test]
fn rows_are_dealt_anew() {
    let text = format!(
        "{NINE}{DEVICES}[task.softmax-regression]\nvalidation = 0.2\n\
         partition = {{ feature-skew = {{ rotation = {{ each = [0, 90, 180, 270, 0, 90, 180, 270, 0] }} }} }}\n\
         shift = [{{ round = 4, labels = {{ dirichlet = {{ alpha = 0.1 }} }} }}]\n\
         data = {{ synthetic = {{ height = 4, width = 4, train = 150, test = 40 }} }}\n\
         [protocol.hierarchical]\nedges = 3\ncohort = 2\n[policy.random]\n"
    );
    let world = world(&text, 1);
    let (first, second) = (task_in(&world, 3), task_in(&world, 4));
    assert_eq!(first.partition.rows(), second.partition.rows());
    assert_eq!(first.partition.rows().len(), 120);
    let of_classes = |task: &Labelled| task.partition.skew(&task.data.train).labels.unwrap().mean_distance;
    assert!(of_classes(first) < 0.4 && of_classes(second) > 0.5);
    // The deal of the documented stream, among the rows that are not for validation.
    let anew = Streams::new(Streams::new(1).stream(Purpose::Partition, 0, 25).bits());
    let rows = first.partition.rows();
    let labels = rows.iter().map(|&row| class(first, row) as u8).collect();
    let outline = fedgenie::data::Dataset::new(
        ndarray::Array2::zeros((120, 0)),
        fedgenie::data::Targets::Classes { labels, classes: 10 },
    );
    let config: PartitionConfig = serde_json::from_value(json!({ "dirichlet": { "alpha": 0.1 } })).unwrap();
    let dealt = config.build(&outline, 9, &[], &anew).unwrap().of_rows(&rows);
    assert_eq!(dealt, second.partition);
    let turns = |task: &Labelled, row: u32| {
        let owner = (0..9).find(|&client| task.partition.client(ClientId(client)).contains(&row)).unwrap();
        owner % 4
    };
    // A row that is turned further by as many quarters as its new owner turns more.
    let mut seen = 0;
    for &row in &rows {
        let (before, after) = (features(&first.data.train, row), features(&second.data.train, row));
        let more = (turns(second, row) + 4 - turns(first, row)) % 4;
        assert_near(&after, &turned(&before, 90.0 * f64::from(more)), "seen anew");
        seen += u32::from(more > 0);
    }
    assert!(seen > 20, "{seen}");
    assert_eq!(first.data.test, second.data.test);
    // Test examples of edge servers follow their clients' classes.
    let tests = |changes: usize| {
        let of = |server| world.test_after(changes, EdgeId(server)).unwrap().to_vec();
        let all: Vec<Vec<u32>> = (0..3).map(of).collect();
        assert_eq!(all.concat().len(), 40);
        all
    };
    assert_ne!(tests(0), tests(1));
    // What examples are said to be decides nothing.
    let said = changed(&text, "labels = { dirichlet = { alpha = 0.1 } }", "concept = [[0, 1], [1, 0]], share = 0.5");
    let said = super::support::world(&said, 1);
    assert_eq!(said.test_after(1, EdgeId(1)), said.test_of(EdgeId(1)));
}

/// A model that is right falls to what it takes for right, and learns anew.
#[test]
fn a_model_falls_and_recovers() {
    let text = |shift: &str| {
        format!(
            "name = \"recovers\"\nseeds = 1\n[stop]\nrounds = 40\n[population]\nclients = 6\n[population.latency]\n\
             download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"2 s\" }}\nupload = {{ constant = \"1 s\" }}\n\
             [task.classification]\nmodel = {{ mlp = {{ hidden = [16] }} }}\n{shift}partition = \"iid\"\n\
             data = {{ synthetic = {{ classes = 4, height = 8, width = 8, train = 600, test = 200, noise = 0.1, deformation = 0.5 }} }}\n\
             [training]\nepochs = 2\nbatch = 8\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n[evaluate]\nevery = 1\n\
             [protocol.synchronous]\ncohort = 3\n[policy.random]\n[policy.power-of-choice]\n"
        )
    };
    let run = |shift: &str, policy: &str| {
        let place = Workplace::with(&text(shift));
        place.run_into("out", &["--threads", "2"]);
        place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"))
    };
    const SHIFT: &str = "shift = [{ round = 21, concept = [[0, 1], [1, 2], [2, 3], [3, 0]] }]\n";
    for policy in ["random", "power-of-choice"] {
        let (found, plain) = (run(SHIFT, policy), run("", policy));
        let accuracy = |round: usize| found[round - 1]["metrics"]["test_accuracy"].as_f64().unwrap();
        assert!(accuracy(20) > 0.9 && accuracy(21) < 0.7 && accuracy(40) > 0.9, "{policy}: {}", accuracy(21));
        for (found, plain) in found.iter().zip(&plain).take(20) {
            let mut found: Value = found.clone();
            found.as_object_mut().unwrap().shift_remove("shifts");
            assert_eq!(found, *plain);
        }
    }
}

/// In a run that is saved after each round, under every protocol; and on several threads.
#[test]
fn the_same_bits_always() {
    let shift = "shift = [{ round = 2, share = 0.5, features = { noise = 0.3, rotation = 40 } }, \
                 { round = 4, labels = { label-shards = {} }, concept = [[0, 1]] }, { round = 6, features = { rotation = 90 } }]";
    let of = |protocol: &str, more: &str| {
        format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\nnormalize = true\n{shift}\n\
             partition = {{ feature-skew = {{ noise = 0.1 }} }}\nvalidation = 0.1\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n{protocol}{more}[policy.random]\n[policy.oort]\n"
        )
    };
    let mut kept: usize = protocols().into_iter().map(|protocol| assert_kept(&of(protocol, ""))).sum();
    let edges = "[protocol.hierarchical]\nedges = 3\ncohort = 2\n";
    kept += assert_kept(&of(edges, "[clusters]\ncount = 2\nassign = { loss = { every = 2 } }\n"));
    kept += assert_kept(&of(edges, "[algorithm.ditto]\n"));
    assert!(kept >= 8);
    let place = Workplace::with(&of("[protocol.synchronous]\ncohort = 3\n", ""));
    place.run_into("one", &["--threads", "1"]);
    place.run_into("two", &["--threads", "2"]);
    assert_eq!(place.digests("one"), place.digests("two"));
    assert_eq!(place.fedgenie(&["verify", "two"]).code, 0);
}

#[test]
fn what_is_not_defined_is_refused() {
    let of = |shift: &str, keys: &str, more: &str| {
        format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\n{keys}\nshift = [{shift}]\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n{more}\n\
             [protocol.hierarchical]\nedges = 3\ncohort = 2\n[policy.random]\n"
        )
    };
    const CONCEPT: &str = "{ round = 2, concept = [[0, 1]] }";
    let linear = format!(
        "{NINE}{DEVICES}[task.linear-regression]\nshift = [{CONCEPT}]\n[protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    for (text, said) in [
        (of(CONCEPT, "drift = { round = 3, rotate = 1 }", ""), "classification.shift: is not defined where data move"),
        (of(CONCEPT, "partition = { overlapping = { size = 9 } }", ""), "another partition than overlapping"),
        (of("{ round = 2, labels = \"iid\" }", "held_out = 0.2", "[evaluate]\nclients = true"), "take held_out out"),
        (of(CONCEPT, "", "[adversary]\nshare = 0.3\nattack = \"label-flip\""), "take shift out"),
        (
            of(CONCEPT, "", "[controls]\ncentralised = { epochs = 2 }"),
            "controls.centralised: is trained on the data of",
        ),
        (of("{ round = 2, concept = [[0, 12]] }", "", ""), "shift.0.concept: names class 12; there are 10"),
        (
            of("{ round = 2, concept = [[0, 1]], clients = [9] }", "", ""),
            "shift.0.clients: names client 9; there are 9",
        ),
        (of("{ round = 2, concept = [[0, 1]], share = 0.01 }", "", ""), "shift.0.share: found 0.01: of 9 clients"),
        (
            of("{ round = 2, labels = { dirichlet = { alpha = 1.0, minimum = 50 } } }", "", ""),
            "shift.0.labels: 9 clients with at least 50",
        ),
        (of("{ round = 2, features = { colour = {} } }", "", ""), "shift.0.features: changes nothing"),
        (of("{ round = 0, concept = [[0, 1]] }", "", ""), "shift.0.round: found 0"),
        (of("{ round = 2 }", "", ""), "shift.0: changes nothing"),
        (of("{ round = 2, concepts = [[0, 1]] }", "", ""), "concepts"),
        (linear, "shift"),
    ] {
        let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(said), "{said}: {answer:?}");
        if said.contains("shift.0") {
            let place = format!("{SCENARIO}:{}: task.classification.", line_of(&text, "shift = ["));
            assert!(answer.stderr.contains(&place), "{place}: {answer:?}");
        }
    }
}

#[test]
fn a_change_that_no_run_sees_is_warned_of() {
    let warned = |round: u32| {
        let place = Workplace::with(&with_shift(IMAGES, &format!("{{ round = {round}, concept = [[0, 1]] }}")));
        place.write("train.csv", drawn(30, 5).1);
        place.write("test.csv", drawn(12, 77).1);
        place.fedgenie(&["run", SCENARIO, "--quiet"]).stderr.contains("after the last round of [stop]")
    };
    assert!(warned(3) && !warned(2), "a run has two rounds");
}
