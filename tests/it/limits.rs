//! Input that is too large is refused before memory is taken for it, in a process that has little.

use crate::support::{Answer, PLAIN, SCENARIO, Workplace, changed, within};
use fedgenie::limits;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

/// The additions of a scenario that follows traces.
const TRACE: &str = "[population.availability.trace]\nfile = \"trace\"\n";

/// Runs the binary with so many MiB of address space.
fn run_within(mib: u64, place: &Workplace, words: &[&str]) -> Answer {
    let mut command = within(mib, env!("CARGO_BIN_EXE_fedgenie"));
    command.args(words).current_dir(place.path(""));
    Answer::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// The scenario is bad input, and the message has these parts and no more than a page.
fn refused_within(mib: u64, place: &Workplace, more: &[&str], parts: &[&str]) {
    let words: Vec<&str> = ["run", SCENARIO].iter().chain(more).copied().collect();
    let Answer { code, stderr, .. } = run_within(mib, place, &words);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.len() < 6_000, "{} bytes", stderr.len());
    for part in parts {
        assert!(stderr.contains(part), "{stderr}\nshould say {part}");
    }
}

fn refused(scenario: &str, parts: &[&str]) {
    refused_within(2_048, &Workplace::with(scenario), &[], parts);
}

/// The scenario runs.
fn runs(scenario: &str) -> Workplace {
    let place = Workplace::with(scenario);
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", SCENARIO, "--out", "out"]);
    assert_eq!(code, 0, "{stderr}");
    place
}

/// A file of a head, a piece many times, and an end, packed.
fn packed(path: &Path, [head, piece, end]: [&str; 3], count: usize) {
    let mut file = GzEncoder::new(BufWriter::new(File::create(path).unwrap()), Compression::fast());
    file.write_all(head.as_bytes()).unwrap();
    let thousand = piece.repeat(1_000);
    (0..count / 1_000).for_each(|_| file.write_all(thousand.as_bytes()).unwrap());
    file.write_all(end.as_bytes()).unwrap();
    file.finish().unwrap();
}

#[test]
fn numbers_of_a_scenario_that_nothing_can_hold() {
    let clients = |count: &str| changed(PLAIN, "clients = 5", &format!("clients = {count}"));
    refused(&clients("1000000000"), &["population.clients", "expected between 1 and 100000000"]);
    refused(&clients("30000000"), &["population.clients", "30000000 clients would take about 5.8 GiB of memory"]);
    let groups = "[[population.group]]\ncount = 9223372036854775807\n".repeat(3);
    refused(&(changed(PLAIN, "clients = 5\n", "") + &groups), &["found 27670116110564327421 clients; expected"]);
    let place = Workplace::with(PLAIN);
    refused_within(
        2_048,
        &place,
        &["--seeds", "4294967295"],
        &["found --seeds 4294967295; expected a whole number from 1 to 100000"],
    );
    refused_within(2_048, &place, &["--threads", "1000000"], &["found 1000000 threads; expected at most 1024"]);
    refused_within(1_024, &place, &["--threads", "1000"], &["1000 threads would take about 2.9 GiB"]);
    let sweep = format!("{PLAIN}[sweep]\n\"stop.rounds\" = [{}]\n", "1, ".repeat(1_000));
    let many = changed(&sweep, "seeds = 1", "seeds = 100000");
    refused(&many, &["policies × seeds × points are 100000000 runs; expected at most 1000000"]);
}

#[test]
fn a_model_that_nothing_can_hold() {
    let task = |hidden: &str| {
        format!(
            "{PLAIN}[task.classification]\ndata = {{ synthetic = {{ train = 10, test = 5 }} }}\n\
             model = {{ mlp = {{ hidden = {hidden} }} }}\n\
             [training]\nbatch = 4\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n"
        )
    };
    refused(&task("[65536, 65536]"), &["task.classification.model", "parameters; expected at most 1073741824"]);
    refused(&task("[16384, 16384]"), &["task.classification.model", "parameters would take about 4."]);
    let linear = format!(
        "{PLAIN}[task.linear-regression]\nexamples = 26000000\n[training]\nbatch = 4\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n"
    );
    refused(&linear, &["26000000 examples with 10 features would take about 2.3 GiB"]);
}

#[test]
fn a_scenario_of_nothing_but_lines() {
    let place = Workplace::new();
    place.write(SCENARIO, vec![b'\n'; 200 << 20]);
    refused_within(2_048, &place, &[], &["has more than 16777216 bytes, which is the most of a scenario"]);
    // As long as may be: it is read, and missing keys are told.
    place.write(SCENARIO, vec![b'\n'; 16 << 20]);
    refused_within(2_048, &place, &[], &["the key \"name\" is missing"]);
    // No file ends a reader that waits for its end.
    refused_within_path("/dev/zero");
}

fn refused_within_path(path: &str) {
    let place = Workplace::new();
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", path]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("has more than 16777216 bytes"), "{stderr}");
}

#[test]
fn bombs_of_gzip() {
    let flash = PLAIN.to_owned() + TRACE + "format = \"flash\"\n";
    let place = Workplace::with(&flash);
    let says = "of memory, and";
    packed(&place.path("trace"), ["{\"a\": [[0, 1]", ",[0,1]", "]}"], 30_000_000);
    refused_within(512, &place, &[], &["trace: its contents would take about", says]);
    let speeds =
        "uplink = { table = { file = \"trace\", format = \"flash-speeds\", column = \"up\", unit = \"kbit/s\" } }";
    let device = format!("[population.device]\nsamples_per_second = 10\ndownlink = \"1 Mbit/s\"\n{speeds}\n\n");
    let latency = &PLAIN[PLAIN.find("[population.latency]").unwrap()..PLAIN.find("[protocol").unwrap()];
    let place = Workplace::with(&changed(PLAIN, latency, &device));
    packed(&place.path("trace"), ["[{}", ",{}", "]"], 30_000_000);
    refused_within(512, &place, &[], &["goes on after byte 8388608"]);
    // A table whose rows are short.
    let place = Workplace::with(&(PLAIN.to_owned() + TRACE));
    packed(&place.path("trace"), ["client,start_s,end_s\n", "a,0,1\n", ""], 1_000);
    refused_within(512, &place, &[], &["trace:3: 999 defects: line 3: column \"start_s\""]);
    let size = "data_size = { table = { file = \"trace\", column = \"n\" } }";
    let place = Workplace::with(&changed(PLAIN, "clients = 5", &format!("clients = 5\n{size}")));
    packed(&place.path("trace"), ["n\n", "1\n", ""], 30_000_000);
    refused_within(512, &place, &[], &["trace: its contents would take about", says]);
    let csv = format!(
        "{PLAIN}[task.softmax-regression]\ndata = {{ csv = {{ train = \"trace\", test_fraction = 0.5, label = \"n\" }} }}\n\
         [training]\nbatch = 4\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n"
    );
    let place = Workplace::with(&csv);
    packed(&place.path("trace"), ["n,m\n", "1,2\n", ""], 30_000_000);
    refused_within(512, &place, &[], &["trace: its contents would take about", says]);
}

#[test]
fn traces_of_more_devices_than_memory() {
    let rows = |path: &Path, head: &str, row: &dyn Fn(usize) -> String| {
        let mut file = BufWriter::new(File::create(path).unwrap());
        file.write_all(head.as_bytes()).unwrap();
        (0..2_500_000).for_each(|device| file.write_all(row(device).as_bytes()).unwrap());
    };
    let place = Workplace::with(&(PLAIN.to_owned() + TRACE));
    rows(&place.path("trace"), "client,start_s,end_s\n", &|device| format!("{device},0,1\n"));
    refused_within(512, &place, &[], &["trace: its contents would take about"]);
    let place = Workplace::with(&(PLAIN.to_owned() + TRACE + "format = \"flhetbench\"\nwindows = \"windows\"\n"));
    place.write("trace", "device,start_s,end_s\n");
    let head = "device,valid,trace_start_s,trace_end_s,n_intervals\n";
    rows(&place.path("windows"), head, &|device| format!("{device},1,0,9,0\n"));
    refused_within(512, &place, &[], &["windows: its contents would take about"]);
}

#[test]
fn samples_have_a_limit() {
    let law = changed(PLAIN, "compute = { constant = \"2 s\" }", "compute = { empirical = { file = \"samples\" } }");
    let place = Workplace::with(&law);
    place.write("samples", "1\n".repeat(limits::SAMPLES + 1));
    refused_within(2_048, &place, &[], &["samples, line 8388610: this is more than is read: 8388608 samples"]);
    place.write("samples", vec![b'1'; 1 << 20]);
    refused_within(2_048, &place, &[], &["samples, line 1: this is more than is read"]);
    // One number would keep a job busy for longer than any run: bad input, found before the first file is written.
    place.write("samples", "1\n4e9\n");
    refused_within(2_048, &place, &[], &["population.latency.compute", "found durations of up to 4000000000 s"]);
    let table =
        "compute = { exponential = { mean = { table = { file = \"samples\", column = \"m\", unit = \"s\" } } } }";
    place.write(SCENARIO, changed(PLAIN, "compute = { constant = \"2 s\" }", table));
    place.write("samples", "m\n1\n1e300\n");
    refused_within(2_048, &place, &[], &["durations of which half are longer than 3153600000 s"]);
}

#[test]
fn durations_and_what_they_add_up_to() {
    let compute = |duration: &str| changed(PLAIN, "compute = { constant = \"2 s\" }", &format!("compute = {duration}"));
    let parts = ["population.latency.compute", "expected durations of at most 3153600000 s, 100 years"];
    refused(&compute("{ constant = \"15768000000 s\" }"), &parts);
    refused(&compute("{ uniform = [\"1 s\", \"15768000000 s\"] }"), &parts);
    refused(&changed(PLAIN, "rounds = 12", "virtual_time = \"200000 d\""), &["longer than 100 years"]);
    // Each is possible, and all together are not.
    let place = Workplace::with(&compute("{ constant = \"3153600000 s\" }"));
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", SCENARIO]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("virtual time has reached 9460800") && stderr.contains("250 years"), "{stderr}");
}

#[test]
fn a_thousand_clients_work_for_longer_than_a_clock_holds() {
    let all = changed(PLAIN, "clients = 5", "clients = 1000");
    let all = changed(&changed(&all, "cohort = 2", "cohort = 1000"), "rounds = 12", "rounds = 2000");
    let place = runs(&changed(&all, "compute = { constant = \"2 s\" }", "compute = { constant = \"10000 s\" }"));
    let summary = place.json("out/summary.json");
    // 2·10¹⁰ s are 634 years.
    assert_eq!(summary["runs"][0]["compute_s"], 1_000.0 * 2_000.0 * 10_000.0);
    assert_eq!(summary["runs"][0]["virtual_time_s"], 2_000.0 * 10_002.0);
}

#[test]
fn bytes_never_wrap() {
    let payload = |bytes: &str| format!("{PLAIN}[task.none]\npayload = \"{bytes}\"\n");
    refused(&payload("4e18 B"), &["task.none.payload", "found 4000000000000000000 B", "at most 1000000000000000 B"]);
    let place = runs(&payload("1000 TB"));
    // Twelve rounds of two jobs.
    assert_eq!(place.json("out/summary.json")["runs"][0]["traffic"]["down_bytes"], 24_000_000_000_000_000_u64);
    // 10,000 rounds of two jobs: 2·10¹⁹ bytes, more than are counted.
    let place = Workplace::with(&changed(&payload("1000 TB"), "rounds = 12", "rounds = 10000"));
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", SCENARIO]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("more than 18446744073709551614 bytes were sent to clients"), "{stderr}");
}

#[test]
fn a_heavy_weight_of_generalisation_is_judged_by_its_own_measure() {
    let regret = |alpha: &str| {
        let lognormal = "{ lognormal = { median = { uniform = [\"1 s\", \"9 s\"] }, sigma = 0.5 } }";
        let scenario = changed(PLAIN, "{ constant = \"2 s\" }", lognormal);
        let scenario = changed(&changed(&scenario, "clients = 5", "clients = 12"), "rounds = 12", "rounds = 200");
        format!("{scenario}[policy.bsfl]\n[policy.cs-ucb]\n[regret]\ntau_min = \"2 s\"\nalpha = {alpha}\n")
    };
    for alpha in ["1e15", "1e18", "1e100"] {
        let place = runs(&regret(alpha));
        for run in place.json("out/summary.json")["runs"].as_array().unwrap() {
            assert!(run["regret"]["mean"].as_f64().unwrap().is_finite(), "{alpha}: {run}");
        }
    }
    refused(&regret("1e101"), &["regret.alpha", "expected at most 1e100"]);
}

#[test]
fn rounds_that_take_no_time_have_an_end() {
    let at_once = PLAIN.replace("\"1 s\"", "\"0 s\"").replace("\"2 s\"", "\"0 s\"");
    let endless = changed(&at_once, "rounds = 12", "virtual_time = \"1 h\"");
    let place = Workplace::with(&endless);
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", SCENARIO]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("100000 rounds have closed at 0 s without any time passing"), "{stderr}");
    runs(&at_once);
}

#[test]
fn long_lists_and_many_keys_are_read_in_a_walk() {
    let numbers = |count: usize| (0..count).map(|number| format!("\"{number} ms\",\n")).collect::<String>();
    let each = format!("{{ constant = {{ each = [{}] }} }}", numbers(1_000_000));
    refused(&changed(PLAIN, "{ constant = \"2 s\" }", &each), &["found a list of 1000000 values; expected 5"]);
    let keys: String = (0..200_000).map(|key| format!("\"k{key}\": 1,\n")).collect();
    let place = Workplace::new();
    place.write("s.json", format!("{{{keys} \"name\": \"x\"}}"));
    let Answer { code, stderr, .. } = run_within(2_048, &place, &["run", "s.json"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("unknown key \"k0\""), "{stderr}");
    place.write("s.json", format!("{{{keys} \"k7\": 1}}"));
    let Answer { stderr, .. } = run_within(2_048, &place, &["run", "s.json"]);
    assert!(stderr.contains("s.json:200001: ") && stderr.contains("duplicate key \"k7\""), "{stderr}");
    let policies: String = (0..100_000).map(|policy| format!("[policy.p{policy}]\nkind = \"random\"\n")).collect();
    refused(&(PLAIN.to_owned() + &policies), &["policy: found 100001 policies; expected at most 1000"]);
    let with: String = (0..100_000).map(|key| format!("\"training.k{key}\" = 1\n")).collect();
    refused(&format!("{PLAIN}[policy.random.with]\n{with}"), &["found 100000 settings; expected at most 1000"]);
    let axes: String = (0..1_000).map(|key| format!("\"training.k{key}\" = [1]\n")).collect();
    refused(&format!("{PLAIN}[sweep]\n{axes}"), &["sweep: found 1000 paths; expected at most 100"]);
}

#[test]
fn a_message_is_no_longer_than_a_page() {
    let long = "x".repeat(5 << 20);
    refused(&changed(PLAIN, "\"plain\"", &format!("\"{long}!\"")), &["name: found \"xxx", "(5242881 bytes)"]);
    refused(&changed(PLAIN, "clients = 5", &format!("{long} = 5")), &["unknown key \"xxx"]);
    refused(
        &changed(PLAIN, "clients = 5", &format!("clients = \"{long}\"")),
        &["found \"xxx", "expected a whole number"],
    );
    refused(&(PLAIN.to_owned() + &format!("{long} {long}\n")), &["this is not TOML"]);
    refused(&format!("{PLAIN}[policy.{long}]\n"), &["a label has lower-case letters"]);
    refused(&format!("{PLAIN}[policy.a]\nkind = \"{long}\"\n"), &["unknown policy \"xxx"]);
}

/// The rows of a table of the documents that begin with a name in capital letters.
fn documented() -> Vec<(String, u64)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/limits.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells.last()?.strip_prefix('`')?.strip_suffix('`')?;
        let most = cells.get(1)?.split_whitespace().next()?.replace(',', "");
        Some((name.to_owned(), most.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn the_table_of_limits_is_that_of_the_code() {
    let known: Vec<(String, u64)> = limits::ALL.iter().map(|limit| (limit.name.to_owned(), limit.most)).collect();
    assert!(known.len() > 20);
    assert_eq!(documented(), known);
}
