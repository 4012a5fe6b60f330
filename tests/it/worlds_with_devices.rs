//! Worlds whose devices come and go and whose links change: refusals, messages, and the two scenarios of real phones.

use super::support::{Workplace, changed, line_of};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber};
use fedgenie::population::{Interruption, Need};
use fedgenie::record::Phase;
use fedgenie::rng::Purpose;
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::time::{Span, VirtualTime};
use fedgenie::world::World;
use std::path::{Path, PathBuf};

const GOOD: &str = r#"name = "phones"
seeds = 1

[stop]
rounds = 2

[population]
clients = 6
availability = { on-off = { on = { exponential = { mean = "1 h" } }, off = { constant = "1 h" } } }
interrupted = "run-on"
[population.latency]
download = { constant = "10 ms" }
compute = { constant = "1 s" }
upload = { constant = "20 ms" }

[protocol.synchronous]
cohort = 2
timeout = "1 h"

[regret]
tau_min = "50 ms"

[policy.random]
"#;

fn world(text: &str, base: &Path, data: Option<&Path>) -> Result<World, String> {
    let root = tree::parse(&base.join("scenario.toml"), text).unwrap();
    let experiment = Experiment::from_tree(&root, base, data).map_err(|error| error.to_string())?;
    // The resolved scenario builds the same.
    let again = tree::parse(Path::new("again.toml"), &experiment.first().to_toml()).unwrap();
    Experiment::from_tree(&again, Path::new("/elsewhere"), None).unwrap();
    experiment.world(0, 1, &DataCache::default()).map_err(|error| error.to_string())
}

#[test]
fn regret_needs_speeds_that_do_not_depend_on_the_time() {
    let here = Path::new(".");
    let built = world(GOOD, here, None).unwrap();
    assert_eq!(built.population.interruption(ClientId(3)), Interruption::RunOn);
    assert!(!built.population.availability().is_always() && built.warnings.is_empty());
    for interrupted in ["pause", "lose"] {
        let text = changed(GOOD, "run-on", interrupted);
        let error = world(&text, here, None).unwrap_err();
        let line = line_of(GOOD, "[regret]");
        assert!(error.contains(&format!("scenario.toml:{line}: regret: clients go away")), "{error}");
        assert!(error.contains("interrupted = \"run-on\""), "{error}");
        world(&changed(&text, "[regret]\ntau_min = \"50 ms\"\n", ""), here, None).unwrap();
    }
    // A device that is always there is not interrupted.
    let always = changed(
        &changed(GOOD, "run-on", "pause"),
        "{ on-off = { on = { exponential = { mean = \"1 h\" } }, off = { constant = \"1 h\" } } }",
        "\"always\"",
    );
    assert!(world(&always, here, None).unwrap().population.availability().is_always());

    let place = Workplace::new();
    place.write("link.csv", "trace,time_s,mbit_per_s\nx,0,8\nx,1,0\n");
    let laws = "[population.latency]\ndownload = { constant = \"10 ms\" }\ncompute = { constant = \"1 s\" }\nupload = { constant = \"20 ms\" }\n";
    let device = "[population.device]\nsamples_per_second = 1\ndownlink = \"1 Mbit/s\"\nuplink = { trace = { file = \"link.csv\" } }\n";
    let text = changed(GOOD, laws, device);
    let error = world(&text, &place.path(""), None).unwrap_err();
    assert!(error.contains("regret: a client's link follows a trace"), "{error}");
    let text = changed(&text, "[regret]\ntau_min = \"50 ms\"\n", "");
    assert!(world(&text, &place.path(""), None).unwrap().population.has_traced_links());
    // In the folder of data sets, where one is given, or beside the scenario; expected in the former.
    world(&text, &place.path(""), Some(Path::new("/nowhere"))).unwrap();
    let elsewhere = Workplace::new();
    let text = changed(&text, "link.csv", "links.csv");
    elsewhere.write("links.csv", "trace,time_s,mbit_per_s\nx,0,8\nx,1,0\n");
    world(&text, &place.path(""), Some(&elsewhere.path(""))).unwrap();
    let error = world(&text, &place.path(""), Some(Path::new("/nowhere"))).unwrap_err();
    assert!(error.contains("population.device.uplink: trace: /nowhere/links.csv: there is no such file"), "{error}");
}

#[test]
fn wrong_availability_is_refused_where_it_stands() {
    let place = Workplace::new();
    place.write("bad.csv", "client,start_s,end_s\na,0,10\na,5,20\n");
    let written = "{ on-off = { on = { exponential = { mean = \"1 h\" } }, off = { constant = \"1 h\" } } }";
    let line = line_of(GOOD, "availability =");
    for (with, path, says) in [
        (
            "{ trace = { file = \"bad.csv\" } }",
            "population.availability.trace.file",
            "bad.csv:3: column \"start_s\": found \"5\"",
        ),
        (
            "{ trace = { file = \"bad.csv\", fromat = \"csv\" } }",
            "population.availability.trace.fromat",
            "did you mean \"format\"?",
        ),
        ("{ on-of = {} }", "population.availability.on-of", "did you mean \"on-off\"?"),
        ("\"allways\"", "population.availability", "did you mean \"always\"?"),
        ("{ on-off = { on = { constant = \"1 h\" } } }", "population.availability.on-off", "\"off\" is missing"),
        (
            "{ on-off = { on = { pareto = { shape = 1, minimum = \"1 s\" } }, off = { constant = \"1 s\" } } }",
            "population.availability.on-off.on",
            "infinite",
        ),
        (
            "{ on-off = { on = { constant = { each = [\"1 s\"] } }, off = { constant = \"1 s\" } } }",
            "population.availability.on-off.on",
            "found a list of 1 values; expected 6",
        ),
        (
            "{ diurnal = { hourly = [0.5], mean_on = \"1 h\" } }",
            "population.availability.diurnal.hourly",
            "expected 24",
        ),
    ] {
        let error = world(&changed(GOOD, written, with), &place.path(""), None).unwrap_err();
        assert!(error.contains(&format!("scenario.toml:{line}: {path}: ")) && error.contains(says), "{with}: {error}");
    }
    let error = world(&changed(GOOD, "\"run-on\"", "\"stop\""), &place.path(""), None).unwrap_err();
    assert!(error.contains("population.interrupted") && error.contains("known: pause, lose, run-on"), "{error}");
}

#[test]
fn kinds_of_availability_are_described() {
    let place = Workplace::new();
    let answer = place.fedgenie(&["list", "availability"]);
    assert_eq!((answer.code, answer.stdout.lines().count()), (0, 4), "{answer:?}");
    for (kind, key) in [("always", ""), ("on-off", "start"), ("diurnal", "mean_on"), ("trace", "windows")] {
        let answer = place.fedgenie(&["describe", &format!("availability/{kind}")]);
        assert!(
            answer.code == 0 && answer.stdout.contains("# Definition") && answer.stdout.contains(key),
            "{answer:?}"
        );
        assert!(kind == "always" || answer.stdout.contains("# Parameters"), "{answer:?}");
    }
}

/// The folder of all data sets, or none, with a line that says so.
fn data() -> Option<PathBuf> {
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let has_all = ["fl-traces", "bandwidth", "fashion-mnist"].iter().all(|name| root.join(name).is_dir());
    if !has_all {
        println!("skipped: {} lacks fl-traces/, bandwidth/ or fashion-mnist/; set FEDGENIE_DATA", root.display());
    }
    has_all.then(|| root.canonicalize().unwrap())
}

fn scenario(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/traces").join(name)).unwrap()
}

#[test]
fn the_scenarios_of_real_phones_can_be_built() {
    let Some(data) = data() else { return };
    let small = world(&scenario("phones.toml"), Path::new("."), Some(&data)).unwrap();
    small.warnings.iter().for_each(|warning| println!("{warning}"));
    for part in [
        "844 intervals of no length",
        "290 devices that the source marks",
        "6 devices are never available",
        "19 records that are 0",
    ] {
        assert_eq!(small.warnings.iter().filter(|warning| warning.contains(part)).count(), 1, "{part}");
    }
    assert_eq!(small.population.len(), 710);
    let large = world(&scenario("phones_large.toml"), Path::new("."), Some(&data)).unwrap();
    assert_eq!(large.population.len(), 100_000);
    assert!(large.population.has_traced_links());

    for (world, copies) in [(&small, 1), (&large, 140)] {
        let cursors = world.population.availability().cursors(&world.streams);
        let mut there = Vec::new();
        let mut shares = Vec::new();
        for hour in 0..24 {
            cursors.available_clients(VirtualTime(hour * 3_600_000_000_000), &mut there);
            shares.push(there.len() as f64 / world.population.len() as f64);
        }
        let mean = shares.iter().sum::<f64>() / 24.0;
        println!("{copies} copies, share there by hour: {shares:.3?}");
        // Quartiles of the traces are 1.3 % and 13.1 %, the mean 9.5 %; the night has more.
        assert!((0.02..0.2).contains(&mean) && shares[3] > 1.5 * shares[14], "{shares:?}");
        // Every phase of some jobs ends, and pauses fill the rest of the time.
        let mut ended = 0;
        for &client in there.iter().take(500) {
            let draw = world.population.draw(&world.streams, Purpose::Latency, client, JobNumber(1), [1.0; 2]).unwrap();
            let begin = VirtualTime(23 * 3_600_000_000_000);
            let mut now = begin;
            for phase in Phase::ALL {
                let end = world.population.finish(&cursors, client, phase, &draw, now, Interruption::Pause).unwrap();
                let away = cursors.time_away(client, now, end);
                if let Need::Time(span) = world.population.need(&draw, client, phase) {
                    assert_eq!(end - now, span + away);
                }
                now = end;
            }
            ended += usize::from(now - begin > Span::ZERO);
        }
        assert!(ended > 0 && ended == there.len().min(500));
    }
}
