//! Whole populations from their sections, and phases on devices that are sometimes away.

use super::*;
use crate::population::{PopulationConfig, Work};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use std::io::Write;
use std::path::Path;

const S: u64 = 1_000_000_000;

fn build(toml: &str, payload_bytes: u64, streams: &Streams) -> Result<Population, String> {
    let config: PopulationConfig = toml::from_str(toml).map_err(|error| error.to_string())?;
    let again: PopulationConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(config, again, "what is written reads back");
    let sgd = OptimizerConfig::Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let training = LocalTraining::new(1, 32, &sgd).unwrap();
    let work = Work { data_sizes: None, training: &training, payload_bytes };
    config.build(&work, streams).map_err(|error| format!("{}: {}", error.path, error.message))
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &tempfile::NamedTempFile) -> &Path {
    file.path()
}

/// There from 0 to 10 s and from 20 s to 30 s of every 40 s; 8 Mbit/s in even and nothing in odd seconds.
fn world(more: &str) -> (tempfile::NamedTempFile, tempfile::NamedTempFile, String) {
    let there = file("client,start_s,end_s\na,0,10\na,20,30\n");
    let link = file("trace,time_s,mbit_per_s\nx,0,8\nx,1,0\n");
    let toml = format!(
        "clients = 3\n{more}\n[availability.trace]\nfile = {:?}\nwindow = \"40 s\"\n\
         [device]\nsamples_per_second = 4\nuplink = \"1 Mbit/s\"\ndownlink = {{ trace = {{ file = {:?} }} }}\n",
        path(&there),
        path(&link)
    );
    (there, link, toml)
}

/// Half of the model down, a quarter of it up: over links that share of time and bits, by laws all of the time.
#[test]
fn transfers_over_links_take_what_their_bytes_need() {
    let streams = Streams::new(1);
    let (_there, _link, toml) = world("data_size = 12");
    let population = build(&toml, 1_000_000, &streams).unwrap();
    let (client, job) = (ClientId(1), fedgenie_core::id::JobNumber(1));
    let draw = population.draw(&streams, Purpose::Latency, client, job, [0.5, 0.25]).unwrap();
    assert_eq!(draw.phases.map(|span| span.0), [S, 3 * S, 2 * S]);
    assert_eq!(population.need(&draw, client, Phase::Download), Need::Bits { bits: 4e6, link: 1 });
    let cursors = population.availability().cursors(&streams);
    let end = population.finish(&cursors, client, Phase::Download, &draw, VirtualTime(0), Interruption::Pause);
    assert_eq!(end, Some(VirtualTime(S / 2)), "4 Mbit at 8 Mbit/s");
    let laws = "clients = 2\n[latency]\ndownload = { constant = \"2 s\" }\ncompute = { constant = \"3 s\" }\n\
                upload = { constant = \"8 s\" }\n";
    let population = build(laws, 1_000_000, &streams).unwrap();
    assert!(!population.has_links());
    let draw = population.draw(&streams, Purpose::Latency, client, job, [0.5, 0.25]).unwrap();
    assert_eq!(draw.phases.map(|span| span.0), [2 * S, 3 * S, 8 * S]);
}

#[test]
fn phases_end_when_they_have_what_they_need() {
    let streams = Streams::new(1);
    let (_there, _link, toml) = world("data_size = 12");
    // 1 MB: 8 Mbit, 1 s of an even second.
    let population = build(&toml, 1_000_000, &streams).unwrap();
    assert!(population.has_traced_links() && population.has_interruptions());
    let cursors = population.availability().cursors(&streams);
    let client = ClientId(1);
    let draw = population.draw(&streams, Purpose::Latency, client, fedgenie_core::id::JobNumber(1), [1.0; 2]).unwrap();
    assert_eq!(draw.phases.map(|span| span.0), [2 * S, 3 * S, 8 * S], "the download at the mean rate");
    assert_eq!(population.need(&draw, client, Phase::Download), Need::Bits { bits: 8e6, link: 1 });
    assert_eq!(population.need(&draw, client, Phase::Compute), Need::Time(Span(3 * S)));
    let finish = |phase, start: u64, interruption| {
        population.finish(&cursors, client, phase, &draw, VirtualTime(start), interruption).map(|end| end.0)
    };
    use Interruption::{Lose, Pause, RunOn};
    for (phase, start, [pause, other]) in [
        (Phase::Download, 0, [S, S]),
        (Phase::Download, S / 2, [5 * S / 2, 5 * S / 2]),
        (Phase::Download, 17 * S / 2, [41 * S / 2, 21 * S / 2]),
        (Phase::Download, 10 * S, [21 * S, 11 * S]),
        (Phase::Download, 29 * S, [41 * S, 31 * S]),
        (Phase::Compute, 7 * S, [10 * S, 10 * S]),
        (Phase::Compute, 8 * S, [21 * S, 11 * S]),
        (Phase::Compute, 15 * S, [23 * S, 18 * S]),
        (Phase::Upload, 25 * S, [43 * S, 33 * S]),
    ] {
        assert_eq!(finish(phase, start, Pause), Some(pause), "{phase} from {start}");
        assert_eq!(finish(phase, start, Lose), Some(other), "{phase} from {start}");
        assert_eq!(finish(phase, start, RunOn), Some(other), "{phase} from {start}");
    }
    // Available from 0 to 10 s: a phase that ends with the stretch is not lost.
    for (start, end, lost) in [
        (7, Some(10), None),
        (7, Some(11), Some(10)),
        (7, None, Some(10)),
        (10, Some(10), None),
        (10, Some(11), Some(10)),
        (15, Some(30), Some(15)),
        (20, Some(25), None),
    ] {
        let time = |seconds: u64| VirtualTime(seconds * S);
        assert_eq!(interrupted_at(&cursors, client, time(start), end.map(time)), lost.map(time), "{start} to {end:?}");
    }
}

#[test]
fn a_jittered_transfer_has_more_bits_and_a_loss_strikes_at_its_share() {
    let streams = Streams::new(1);
    let (_there, _link, toml) = world("");
    let toml = format!("{toml}jitter = {{ download = {{ constant = 2.5 }} }}\n[dropout]\ndownload = \"0.5 /s\"\n");
    let population = build(&toml, 1_000_000, &streams).unwrap();
    let mut losses = 0;
    for round in 1..200 {
        let draw = population
            .draw(&streams, Purpose::Latency, ClientId(2), fedgenie_core::id::JobNumber(round), [1.0; 2])
            .unwrap();
        assert_eq!(draw.phases[0], Span(5 * S));
        assert_eq!(population.need(&draw, ClientId(2), Phase::Download), Need::Bits { bits: 20e6, link: 2 });
        assert_eq!(population.need_until_loss(&draw, ClientId(2), Phase::Upload), None);
        if let Some((_, after)) = draw.loss {
            losses += 1;
            let need = population.need_until_loss(&draw, ClientId(2), Phase::Download);
            let Some(Need::Bits { bits, .. }) = need else { panic!("{need:?}") };
            assert!((bits - 4e6 * after.seconds()).abs() < 1e-3, "{bits}");
        }
    }
    // 1 − exp(−2.5) of them.
    assert!((170..199).contains(&losses), "{losses}");
}

#[test]
fn groups_inherit_and_differ() {
    let streams = Streams::new(1);
    let (_there, _link, toml) = world("interrupted = \"lose\"");
    let toml = toml.replace("clients = 3", "clients = 6")
        + "[[group]]\ncount = 2\n[[group]]\ncount = 1\navailability = \"always\"\n\
           latency = { download = { constant = \"1 s\" }, compute = { constant = \"1 s\" }, upload = { constant = \"1 s\" } }\n\
           [[group]]\ncount = 3\ninterrupted = \"run-on\"\n";
    let population = build(&toml, 1_000_000, &streams).unwrap();
    let of = |client| population.interruption(ClientId(client));
    assert_eq!([0, 2, 3].map(of), [Interruption::Lose, Interruption::Lose, Interruption::RunOn]);
    let cursors = population.availability().cursors(&streams);
    let there = |seconds| {
        let mut out = Vec::new();
        cursors.available_clients(VirtualTime(seconds * S), &mut out);
        out.into_iter().map(|client| client.0).collect::<Vec<_>>()
    };
    assert_eq!((there(5), there(15)), (vec![0, 1, 2, 3, 4, 5], vec![2]));
    let draw =
        population.draw(&streams, Purpose::Latency, ClientId(2), fedgenie_core::id::JobNumber(1), [1.0; 2]).unwrap();
    assert_eq!(population.need(&draw, ClientId(2), Phase::Download), Need::Time(Span(S)));
    let draw =
        population.draw(&streams, Purpose::Latency, ClientId(3), fedgenie_core::id::JobNumber(1), [1.0; 2]).unwrap();
    assert_eq!(population.need(&draw, ClientId(3), Phase::Download), Need::Bits { bits: 8e6, link: 2 });
}

#[test]
fn numbers_come_from_columns() {
    let streams = Streams::new(3);
    let table = file("phone,net,latency,rate\na,r,160,8000\nb,r,0,9000\nc,r,320,4000\nd,v,1,1\n");
    let speeds = file(r#"{"u": {"down_u": 9000, "down_sigma": 900, "up_u": 500, "up_sigma": 5}}"#);
    let toml = format!(
        "clients = 5\n[device]\n\
         samples_per_second = {{ table = {{ file = {0:?}, column = \"latency\", unit = \"ms\", per = 32, missing = \"drop\", where = {{ net = \"r\" }} }} }}\n\
         downlink = {{ table = {{ file = {0:?}, column = \"rate\", unit = \"kbit/s\", where = {{ net = \"r\" }} }} }}\n\
         uplink = {{ table = {{ file = {1:?}, format = \"flash-speeds\", column = \"up\", unit = \"kB/s\" }} }}\n",
        path(&table),
        path(&speeds)
    );
    let population = build(&toml, 1_000_000, &streams).unwrap();
    let of = |client, phase| population.law(ClientId(client), phase).clone();
    use fedgenie_core::law::Law;
    // One example at 200 and 100 per second, in turn; 8 Mbit at 8, 9 and 4 Mbit/s.
    let compute = (0..4).map(|client| of(client, Phase::Compute).mean()).collect::<Vec<_>>();
    assert_eq!(compute, [0.005, 0.01, 0.005, 0.01]);
    let download = (0..4).map(|client| of(client, Phase::Download).mean()).collect::<Vec<_>>();
    assert_eq!(download, [1.0, 8.0 / 9.0, 2.0, 1.0]);
    let uploads: Vec<f64> = (0..5).map(|client| of(client, Phase::Upload).mean()).collect();
    assert!(uploads.iter().all(|upload| (upload - 2.0).abs() < 0.1), "{uploads:?}");
    assert!(uploads[0] != uploads[1], "each client draws its own");
    let repeated = |note: &&String| note.ends_with(" rows for 5 clients, repeated");
    assert_eq!((population.notes().len(), population.notes().iter().filter(repeated).count()), (4, 3));
    assert!(
        population.notes()[0].ends_with(": 1 records that are 0 or empty were dropped"),
        "{:?}",
        population.notes()
    );

    let permuted = toml.replace("net = \"r\" } }", "net = \"r\" }, assign = \"permuted\" }");
    let population = build(&permuted, 1_000_000, &streams).unwrap();
    let mut download: Vec<f64> =
        (0..3).map(|client| population.law(ClientId(client), Phase::Download).mean()).collect();
    download.sort_by(f64::total_cmp);
    assert_eq!(download, [8.0 / 9.0, 1.0, 2.0]);

    for (from, to, says) in [
        ("unit = \"ms\", ", "", "a `unit` as well, of a duration"),
        ("\"ms\"", "\"kB\"", "one of ns, us, ms, s, min, h, d as `unit`, not \"kB\""),
        (", per = 32", "", "no unit"),
        ("per = 32", "per = 0", "a number above 0 as per"),
        ("unit = \"kbit/s\"", "unit = \"kbit/s\", per = 2", "no per"),
        ("column = \"latency\", ", "", "a table with a column"),
        ("column = \"up\", ", "", "a column \"down\" or \"up\""),
        ("missing = \"drop\"", "missing = \"error\"", "3: column \"latency\": found \"0\"; expected a number above 0"),
        ("column = \"rate\"", "column = \"rates\"", "device.downlink: "),
        ("missing =", "mising =", "mising"),
        ("net = \"r\" } } }\nup", "nets = \"r\" } } }\nup", "there is no \"nets\""),
    ] {
        assert!(toml.contains(from), "{from}");
        let error = build(&toml.replacen(from, to, 1), 1, &streams).unwrap_err();
        assert!(error.contains(says), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_law_takes_its_parameters_from_a_column() {
    let streams = Streams::new(3);
    let table = file("mean,sd\n100,5\n200,9\n");
    let law = |unit: &str| {
        let parameter = |column: &str| {
            format!("{{ table = {{ file = {:?}, column = {column:?}, unit = {unit:?} }} }}", path(&table))
        };
        let normal =
            format!("truncated-normal = {{ mean = {}, sd = {}, min = \"0 s\" }}", parameter("mean"), parameter("sd"));
        format!(
            "clients = 4\n[latency]\ndownload = {{ constant = \"1 s\" }}\nupload = {{ constant = {{ {normal} }} }}\ncompute = {{ {normal} }}\n"
        )
    };
    use fedgenie_core::law::Law;
    let population = build(&law("ms"), 1, &streams).unwrap();
    let means: Vec<f64> = (0..4).map(|client| population.law(ClientId(client), Phase::Compute).mean()).collect();
    assert!((means[0] - 0.1).abs() < 1e-9 && (means[1] - 0.2).abs() < 1e-9 && means[2] == means[0], "{means:?}");
    // A parameter may be drawn from a law whose parameters are listed.
    let drawn = population.law(ClientId(3), Phase::Upload).mean();
    assert!((drawn - 0.2).abs() < 0.05 && drawn != means[3], "{drawn}");
}

#[test]
fn a_link_that_cannot_be_is_refused() {
    let streams = Streams::new(1);
    let (_there, link, toml) = world("");
    let refused = |from: &str, to: &str, says: &str| {
        assert!(toml.contains(from), "{from}");
        let error = build(&toml.replacen(from, to, 1), 1_000_000, &streams).unwrap_err();
        assert!(error.contains(says), "{error}");
    };
    let name = format!("{:?}", path(&link));
    refused(&name, "\"/nowhere.csv\"", "population.device.downlink: trace: /nowhere.csv: there is no such file");
    refused(&name, &format!("{name}, set = \"oboe\""), "has no sets");
    refused(&name, &format!("{name}, scale = 0"), "found scale = 0; expected a number above 0");
    refused(&name, &format!("{name}, colour = 1"), "colour");
    refused("{ trace =", "{ trac =", "trac");
}
