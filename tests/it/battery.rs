//! Batteries: timelines worked out by hand to the nanosecond and millijoule, levels found again by another way, and
//! settings that are refused.

use super::fedacs::ids;
use super::support::{Played, SCENARIO, Script, Workplace, changed, line_of, play, world};
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::{Capabilities, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::population::Energy;
use fedgenie::record::{DropReason, Phase};
use fedgenie::run::RunError;
use fedgenie::state::Stateful;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// Jobs take 10 + 100 + 20 s and draw 20, 500 and 60 J.
const HAND: &str = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 4
[population]
clients = 3
[population.latency]
download = { constant = "10 s" }
compute = { constant = "100 s" }
upload = { constant = "20 s" }
[population.battery]
capacity = "1 kJ"
start = { each = [0.5, 0.3, 1.0] }
reserve = 0.2
idle = "1 W"
receive = "2000 mW"
compute = "5 W"
send = "3 W"
charge = { power = "8 W", hours = [[0.1, 0.2]] }
[task.none]
payload = "1 kB"
[protocol.synchronous]
cohort = 3
timeout = "150 s"
[policy.random]
"#;
const SECOND: u64 = 1_000_000_000;

fn played(scenario: &str, selections: &[&[u32]]) -> Result<(Played, Vec<Vec<u32>>), RunError> {
    let script = Script::new(selections);
    let available = script.available.clone();
    let played = play(&world(scenario, 1), Box::new(script), selections.len() as u32)?;
    let available = available.lock().unwrap().clone();
    Ok((played, available))
}

/// Millijoules.
fn mj(energy: Energy) -> u128 {
    energy.0 / 1_000_000_000_000_000
}

/// | time in s | client 0 | client 1 | client 2 |
/// |---|---|---|---|
/// | 0 | 500 J, job | 300 J, job | 1000 J, job |
/// | 10 | 480 J, computes | 280 J | 980 J |
/// | 66 | | 0 J: lost | |
/// | 106 | 0 J: lost | off | |
/// | 130 | off | | 420 J: arrives |
/// | 150 | round 1 closes | | 400 J, job |
/// | 236 | | | 380 − 5·76 = 0 J: lost |
/// | 300 | round 2 closes, nobody has the reserve | | off |
/// | 360 | chargers go on: 8 − 1 W | | |
/// | 388.571 428 572 | 200 J are there: round 3, job of 0 and 1 | | idle |
/// | 398.571 428 572 | 200.000 000 004 + 6·10 J | the same | |
/// | 518.571 428 572 | 260 + 3·100 + 5·20 J: arrives | the same | full since 114.3 s after round 3 began |
/// | 648.571 428 572 | full | full | arrives, full all the time |
#[test]
fn a_timeline_by_hand() {
    let (played, available) = played(HAND, &[&[0, 1, 2], &[2], &[0, 1], &[2]]).unwrap();
    assert_eq!(available, [&[0, 1, 2][..], &[2], &[0, 1, 2], &[0, 1, 2]]);
    let lost = |client, seconds| (client, Phase::Compute, DropReason::Battery, seconds * SECOND);
    assert_eq!(played.seen.lost, [lost(1, 66), lost(0, 106), lost(2, 236)]);
    let rounds = &played.seen.rounds;
    assert_eq!(
        rounds.iter().map(|round| round.closed).collect::<Vec<_>>(),
        [150 * SECOND, 300 * SECOND, 518_571_428_572, 648_571_428_572]
    );
    assert_eq!(played.seen.selected_at, [0, 150 * SECOND, 388_571_428_572, 518_571_428_572]);
    let arrived: Vec<_> = rounds.iter().map(|round| round.arrived.clone()).collect();
    assert_eq!(arrived, [vec![2], vec![], vec![0, 1], vec![2]]);
    assert_eq!(rounds[0].dropped, [(0, Phase::Compute), (1, Phase::Compute)]);
    let energy = played.accounts.energy.unwrap();
    // Idle: 28.571 428 572 + 130 s each of clients 0 and 1; 20 s more, and from 360 to 518.571 428 572 s, of client 2.
    assert_eq!(energy.energies.drawn.map(mj), [495_714, 140_000, 3_140_000, 240_000]);
    assert_eq!(energy.energies.drawn[0], Energy(495_714_285_716 * 1_000_000_000));
    // 500, 700 and 0 J more than at the beginning, and all that was drawn.
    assert_eq!(energy.energies.charged, Energy(5_215_714_285_716 * 1_000_000_000));
    assert_eq!((mj(energy.wasted), energy.energies.emptied, energy.empty), (1_200_000, 3, 0));
}

/// The same in the files of a result folder, where client 2 has the whole of the work: it is lost at 236 s.
#[test]
fn files_have_levels_and_energy() {
    let scenario = changed(HAND, "[policy.random]\n", "[policy.round-robin]\n[record]\nbattery = true\n");
    let scenario = changed(&scenario, "cohort = 3", "cohort = 1");
    let work = Workplace::with(&scenario);
    work.run_into("out", &[]);
    let rounds = work.lines("out/runs/round-robin-s1/rounds.jsonl");
    let levels = |index: usize| -> Vec<f64> {
        rounds[index]["battery"]["level_j"].as_array().unwrap().iter().map(|level| level.as_f64().unwrap()).collect()
    };
    // Client 0 is lost at 106 s. Client 1 has 150 J at 150 s and is below its reserve, client 2 has 850 J.
    assert_eq!(levels(0), [0.0, 150.0, 850.0]);
    assert_eq!(rounds[0]["dropped"][0]["reason"], "battery");
    // Client 2 works from 150 to 280 s; client 1 is empty at 300 s.
    assert_eq!((levels(1), rounds[1]["closed_s"].as_f64()), (vec![0.0, 20.0, 270.0], Some(280.0)));
    assert_eq!(rounds[1]["arrived"], serde_json::json!([2]));
    // Client 2 works again, below its reserve from 310 s on: 250 J at 290 s, and 0 J at 340 s. 0 and 1 wait for
    // chargers.
    assert_eq!(rounds[2]["dropped"][0]["client"], 2);
    assert_eq!(rounds[2]["closed_s"].as_f64(), Some(430.0));
    assert_eq!(levels(2), [490.0, 490.0, 490.0]);
    for file in ["out/summary.json", "out/runs/round-robin-s1/run.json"] {
        let whole = work.json(file);
        let run = if whole["runs"].is_array() { whole["runs"][0].clone() } else { whole };
        let energy = &run["energy"];
        let keys: Vec<&String> = energy.as_object().unwrap().keys().collect();
        for key in ["idle_j", "receive_j", "compute_j", "send_j", "charged_j", "wasted_j", "emptied"] {
            assert!(keys.contains(&&key.to_owned()), "{key} of {keys:?}");
        }
        assert_eq!((energy["wasted_j"].as_f64(), energy["emptied"].as_u64()), (Some(500.0 + 270.0), Some(3)), "{file}");
    }
    let plain = changed(&scenario, "battery = true\n", "");
    let work = Workplace::with(&plain);
    work.run_into("out", &[]);
    assert!(work.lines("out/runs/round-robin-s1/rounds.jsonl")[0].get("battery").is_none());
}

/// 580 J are enough to the last nanosecond, and not if they are gone when the upload begins.
#[test]
fn a_phase_that_ends_with_the_last_joule_has_ended() {
    let of = |start: &str| {
        let scenario = changed(HAND, "start = { each = [0.5, 0.3, 1.0] }", &format!("start = {start}"));
        played(&scenario, &[&[0]]).unwrap().0
    };
    let enough = of("0.58");
    assert_eq!((&enough.seen.rounds[0].arrived, &enough.seen.lost), (&vec![0], &vec![]));
    assert_eq!(enough.seen.rounds[0].closed, 130 * SECOND);
    assert_eq!(of("0.52").seen.lost, [(0, Phase::Upload, DropReason::Battery, 110 * SECOND)]);
    // 1 nJ more lasts for a third of a nanosecond of sending.
    assert_eq!(of("0.520000000001").seen.lost, [(0, Phase::Upload, DropReason::Battery, 110 * SECOND)]);
    let lasts = of("0.520000003");
    assert_eq!(lasts.seen.lost, [(0, Phase::Upload, DropReason::Battery, 110 * SECOND + 1_000)]);
}

/// The clock of client 1 is 6 minutes ahead: its charger is on from the beginning on.
#[test]
fn hours_are_of_the_clients_day() {
    let phase = "hours = [[0.1, 0.2]], phase = { each = [\"0 s\", \"6 min\", \"0 s\"] }";
    let scenario = changed(HAND, "hours = [[0.1, 0.2]]", phase);
    let (played, _) = played(&scenario, &[&[0, 1]]).unwrap();
    assert_eq!(played.seen.lost, [(0, Phase::Compute, DropReason::Battery, 106 * SECOND)]);
    assert_eq!(played.seen.rounds[0].arrived, [1]);
}

/// Client 0 is away from 50 to 90 s of its job, which draws 1 W in that time: it is lost 40 s later, with 40 J less.
#[test]
fn a_job_that_waits_draws_what_an_idle_phone_draws() {
    let work = Workplace::new();
    work.write("there.csv", "client,start_s,end_s\na,0,50\na,90,1000\nb,0,1000\nc,0,1000\n");
    let there = "clients = 3\ninterrupted = \"pause\"\navailability = { trace = { file = \"there.csv\", window = \"1000 s\" } }";
    let pausing = changed(&changed(HAND, "clients = 3", there), "rounds = 4", "rounds = 1");
    work.write(SCENARIO, pausing);
    work.run_into("out", &["--events"]);
    let events = work.events("out/runs/random-s1");
    let lost: Vec<f64> = events
        .iter()
        .filter(|event| event["event"] == "lost" && event["client"] == 0)
        .map(|event| number(&event["time_ns"]) / 1e9)
        .collect();
    // 480 J at 10 s, 280 J at 50 s, 240 J at 90 s, 48 s of computing.
    assert_eq!(lost.first(), Some(&138.0), "{events:?}");
}

/// Intervals of a file in the place of hours; the second trace has a charger from 5 s on.
#[test]
fn chargers_follow_a_file() {
    let work = Workplace::new();
    work.write("plugs.csv", "client,start_s,end_s\na,200,300\nb,5,300\nc,200,300\n");
    let charge = "charge = { power = \"8 W\", file = \"plugs.csv\", window = \"400 s\" }\n[record]\nbattery = true";
    let scenario = changed(HAND, "charge = { power = \"8 W\", hours = [[0.1, 0.2]] }", charge);
    work.write(SCENARIO, changed(&changed(&scenario, "rounds = 4", "rounds = 1"), "[record]\nbattery = true", ""));
    work.run_into("out", &["--set", "record.battery=true"]);
    let rounds = work.lines("out/runs/random-s1/rounds.jsonl");
    // Client 1: 290 J at 5 s, 320 J at 10 s, 620 J at 110 s, 720 J at 130 s, 860 J at 150 s.
    assert_eq!(rounds[0]["battery"]["level_j"], serde_json::json!([0.0, 860.0, 400.0]));
}

/// Only one of two groups has batteries.
#[test]
fn groups_have_their_own() {
    let one = HAND.find("[population.battery]").unwrap();
    let two = HAND.find("[task.none]").unwrap();
    let battery =
        HAND[one..two].replace("[population.battery]", "[population.group.battery]").replace("0.5, 0.3, 1.0", "0.5");
    let groups = format!("[[population.group]]\ncount = 1\n{battery}[[population.group]]\ncount = 2\n");
    let scenario = format!("{}{groups}{}[record]\nbattery = true\n", &HAND[..one], &HAND[two..]);
    let work = Workplace::with(&changed(&scenario, "rounds = 4", "rounds = 1"));
    work.run_into("out", &[]);
    let rounds = work.lines("out/runs/random-s1/rounds.jsonl");
    assert_eq!(rounds[0]["battery"]["level_j"], serde_json::json!([0.0, null, null]));
    assert_eq!(work.json("out/summary.json")["runs"][0]["energy"]["compute_j"], 480.0);
}

/// Twelve phones whose numbers all differ, over days with two charging times.
const FLEET: &str = r#"
name = "fleet"
seeds = 1
[stop]
rounds = 120
[population]
clients = 12
[population.latency]
download = { uniform = ["5 s", "60 s"] }
compute = { lognormal = { median = { uniform = ["60 s", "20 min"] }, sigma = 0.7 } }
upload = { uniform = ["10 s", "90 s"] }
[population.battery]
capacity = { each = ["3 kJ", "4 kJ", "5 kJ", "6 kJ", "3500 J", "1 Wh", "2 Wh", "4500 J", "5 kJ", "9 kJ", "2 kJ", "7 kJ"] }
start = { each = [1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.25, 0.0] }
reserve = { each = [0.2, 0.1, 0.0, 0.3, 0.2, 0.5, 0.2, 0.2, 0.05, 0.2, 0.2, 0.1] }
idle = "120 mW"
receive = "900 mW"
compute = { each = ["3 W", "2 W", "1 W", "4 W", "2.5 W", "6 W", "2 W", "2 W", "1500 mW", "2 W", "3 W", "2 W"] }
send = "1.2 W"
charge = { power = "1.6 W", hours = [[1.5, 2], [12, 13.25]], phase = { each = [
    "0 h", "2 h", "4 h", "6 h", "8 h", "10 h", "12 h", "14 h", "16 h", "18 h", "20 h", "22 h",
] } }
[task.none]
payload = "1 kB"
[protocol.synchronous]
cohort = 4
timeout = "30 min"
[record]
battery = true
explain = true
[policy.age]
"#;

/// The fleet by another way: in floating point, each client by itself, over all instants at which something changes.
struct Naive {
    level: f64,
    at: f64,
    capacity: f64,
    compute: f64,
    phase: f64,
    emptied: u32,
}

impl Naive {
    /// Brings the level up to a time, in a phase of a job or between jobs.
    fn until(&mut self, time: f64, phase: Option<usize>) {
        let draw = phase.map_or(0.12, |phase| [0.9, self.compute, 1.2][phase]);
        let days = (time / 86_400.0) as i64 + 2;
        let hours = [[1.5, 2.0], [12.0, 13.25]];
        let mut changes: Vec<f64> = (-1..=days)
            .flat_map(|day| hours.iter().flatten().map(move |hour| (day as f64 * 24.0 + hour) * 3600.0))
            .map(|on_clock| on_clock - self.phase)
            .filter(|change| *change > self.at && *change < time)
            .collect();
        changes.push(time);
        for change in changes {
            let clock = ((self.at + change) / 2.0 + self.phase).rem_euclid(86_400.0) / 3600.0;
            let charger = if hours.iter().any(|[from, to]| *from <= clock && clock < *to) { 1.6 } else { 0.0 };
            let before = self.level;
            if before > 1e-9 || charger >= draw {
                self.level = (before + (charger - draw) * (change - self.at)).clamp(0.0, self.capacity);
            }
            self.emptied += u32::from(before > 1e-9 && self.level <= 1e-9);
            self.at = change;
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn levels_are_found_again_by_another_way() {
    let work = Workplace::with(FLEET);
    work.run_into("out", &["--events"]);
    let rounds = work.lines("out/runs/age-s1/rounds.jsonl");
    let events = work.events("out/runs/age-s1");
    let capacity = [3e3, 4e3, 5e3, 6e3, 3.5e3, 3.6e3, 7.2e3, 4.5e3, 5e3, 9e3, 2e3, 7e3];
    let start = [1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.25, 0.0];
    let reserve = [0.2, 0.1, 0.0, 0.3, 0.2, 0.5, 0.2, 0.2, 0.05, 0.2, 0.2, 0.1];
    let compute = [3.0, 2.0, 1.0, 4.0, 2.5, 6.0, 2.0, 2.0, 1.5, 2.0, 3.0, 2.0];
    let of = |client: usize| Naive {
        level: capacity[client] * start[client],
        at: 0.0,
        capacity: capacity[client],
        compute: compute[client],
        phase: 7200.0 * client as f64,
        emptied: 0,
    };
    let mut phones: Vec<Naive> = (0..12).map(of).collect();
    // The phase that each client's job is in.
    let mut phase = [None; 12];
    let (mut lost, mut of_run) = (0, events.iter());
    for round in &rounds {
        let closed = number(&round["closed_s"]);
        for event in of_run.by_ref().take_while(|event| event["event"] != "closed") {
            let time = event["time_ns"].as_f64().unwrap_or(0.0) / 1e9;
            match event["event"].as_str().unwrap() {
                "opened" => {
                    phones.iter_mut().zip(phase).for_each(|(phone, phase)| phone.until(time, phase));
                    let can: Vec<usize> = (0..12)
                        .filter(|&client| phones[client].level >= (reserve[client] * capacity[client] - 1e-6).max(1e-6))
                        .collect();
                    let said: Vec<usize> = ids(&round["explain"][0]["clients"]);
                    assert_eq!(said, can, "at {time}");
                    for client in event["selected"].as_array().unwrap() {
                        let client = client.as_u64().unwrap() as usize;
                        assert!(can.contains(&client), "{client} at {time} has {} J", phones[client].level);
                        phase[client] = Some(0);
                    }
                }
                "phase-ended" => {
                    let client = event["client"].as_u64().unwrap() as usize;
                    phones[client].until(time, phase[client]);
                    phase[client] = phase[client].map(|phase| phase + 1).filter(|phase| *phase < 3);
                }
                "lost" => {
                    let client = event["client"].as_u64().unwrap() as usize;
                    phones[client].until(time, phase[client]);
                    assert!(phones[client].level < 1e-5, "{client} has {} J at {time}", phones[client].level);
                    (phones[client].level, phase[client]) = (0.0, None);
                    assert_eq!(event["reason"], "battery");
                    lost += 1;
                }
                "job-ended" => {
                    let client = event["client"].as_u64().unwrap() as usize;
                    phones[client].until(time, phase[client]);
                    phase[client] = None;
                }
                _ => {}
            }
        }
        let levels = round["battery"]["level_j"].as_array().unwrap();
        for (client, found) in levels.iter().enumerate() {
            phones[client].until(closed, phase[client]);
            let (found, expected) = (number(found), phones[client].level);
            assert!((found - expected).abs() < 1e-4, "{client} at {closed}: {found} J, {expected} J");
        }
    }
    assert!(lost >= 5, "{lost} jobs were lost");
    let days = number(&rounds.last().unwrap()["closed_s"]) / 86_400.0;
    assert!(days > 1.2, "charging times came again: {days} days");
    let emptied: u32 = phones.iter().map(|phone| phone.emptied).sum();
    assert_eq!(work.json("out/summary.json")["runs"][0]["energy"]["emptied"], emptied);
}

/// Policies of one seed share the world, and not the levels.
#[test]
fn levels_belong_to_a_run() {
    let scenario = changed(FLEET, "[policy.age]\n", "[policy.age]\n[policy.round-robin]\n");
    let work = Workplace::with(&scenario);
    work.run_into("both", &[]);
    let energies: Vec<Value> =
        work.json("both/summary.json")["runs"].as_array().unwrap().iter().map(|run| run["energy"].clone()).collect();
    assert_ne!(energies[0], energies[1]);
    let alone = changed(FLEET, "[policy.age]\n", "[policy.round-robin]\n");
    let work = Workplace::with(&alone);
    work.run_into("alone", &[]);
    assert_eq!(work.json("alone/summary.json")["runs"][0]["energy"], energies[1]);
}

/// Levels that a policy saw, by client, in each of its selections.
type Levels = Arc<Mutex<Vec<Vec<Option<f64>>>>>;

/// Selects clients 0 and 2, and notes all levels that it sees.
#[derive(Stateful)]
struct Looking {
    #[state(skip = "from the test")]
    declares: bool,
    #[state(skip = "read by the test")]
    seen: Levels,
}

impl Policy for Looking {
    fn capabilities(&self) -> Capabilities {
        Capabilities { level: self.declares, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let level = |client| view.battery(ClientId(client)).map(|battery| battery.level_j);
        self.seen.lock().unwrap().push((0..3).map(level).collect());
        selection.extend(ask.available.list().iter().take(1));
        Ok(())
    }
}

/// A level is seen by a policy that declares it, of clients without a job, where the scenario does not hide it. The
/// late job of client 0 goes on in round 2.
#[test]
fn levels_are_seen_by_those_who_declare_it() {
    let late = "[protocol.deadline]\ncohort = 1\ndeadline = \"60 s\"\nlate = { carry = {} }\n";
    let scenario = changed(HAND, "[protocol.synchronous]\ncohort = 3\ntimeout = \"150 s\"\n", late);
    let scenario = changed(&scenario, "[0.5, 0.3, 1.0]", "[1.0, 0.3, 1.0]");
    let looked = |declares: bool| {
        let seen = Levels::default();
        play(&world(&scenario, 1), Box::new(Looking { declares, seen: seen.clone() }), 2).unwrap();
        seen.lock().unwrap().clone()
    };
    let expected = [[Some(1000.0), Some(300.0), Some(1000.0)], [None, Some(240.0), Some(940.0)]];
    assert_eq!(looked(true), expected);
    assert_eq!(looked(false), [[None; 3]; 2]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let charge = "charge = { power = \"8 W\", hours = [[0.1, 0.2]] }";
    let regret = "[policy.random]\n[regret]\ntau_min = \"1 s\"\nalpha = 1.0\nbeta = 1.0\n";
    for (from, to, parts) in [
        ("capacity = \"1 kJ\"", "capacity = \"1 kWh\"", &["population.battery.capacity", "units J, kJ, Wh"][..]),
        ("capacity = \"1 kJ\"", "capacity = 40", &["population.battery.capacity", "40 kJ"]),
        ("capacity = \"1 kJ\"", "capacity = \"0 J\"", &["population.battery.capacity", "found 0", "above 0 J"]),
        ("capacity = \"1 kJ\"", "", &["population.battery", "capacity"]),
        ("idle = \"1 W\"", "idle = \"1 J\"", &["population.battery.idle", "units mW, W"]),
        ("idle = \"1 W\"", "idle = \"-1 W\"", &["population.battery.idle", "found -1"]),
        ("compute = \"5 W\"", "compute = \"5000 W\"", &["population.battery.compute", "found 5000", "1000 W"]),
        ("reserve = 0.2", "reserve = 1.5", &["population.battery.reserve", "found 1.5", "from 0 to 1"]),
        ("[0.5, 0.3, 1.0]", "[0.5, -0.3, 1.0]", &["population.battery.start", "found -0.3"]),
        ("[0.5, 0.3, 1.0]", "[0.5, 0.3]", &["population.battery.start", "2 values; expected 3"]),
        (charge, "level = \"open\"", &["population.battery.level", "open", "seen"]),
        (charge, "start_level = 1", &["population.battery", "start_level"]),
        (
            "charge = { power = \"8 W\"",
            "charge = { power = \"1 W\"",
            &["population.battery.charge.power", "idle draws 1 W", "client 0 can never charge"],
        ),
        ("hours = [[0.1, 0.2]]", "hours = []", &["population.battery.charge.hours", "can never charge"]),
        (", hours = [[0.1, 0.2]]", "", &["population.battery.charge.hours", "a file of intervals"]),
        ("[[0.1, 0.2]]", "[[22, 6]]", &["population.battery.charge.hours", "[22, 24], [0, 6]"]),
        ("[[0.1, 0.2]]", "[[1, 3], [2, 4]]", &["population.battery.charge.hours", "overlap"]),
        ("[[0.1, 0.2]]", "[[1, 30]]", &["population.battery.charge.hours", "from 0 to 24"]),
        ("[[0.1, 0.2]]", "[[0.1, 0.2]], file = \"x.csv\"", &["population.battery.charge", "take one of the two out"]),
        ("timeout = \"150 s\"\n", "", &["protocol", "give the protocol a timeout"]),
        ("[policy.random]\n", regret, &["regret", "batteries", "leave [regret] out"]),
        ("[policy.random]\n", "[policy.eafl]\n", &["policy.eafl", "loss_rms"]),
    ] {
        let scenario = changed(HAND, from, to);
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{part:?} is not in {}", answer.stderr);
        }
    }
    let never = changed(&changed(HAND, charge, ""), "[0.5, 0.3, 1.0]", "[0.5, 0.1, 1.0]");
    let answer = Workplace::with(&never).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in ["population.battery.charge", "start (0.1)", "reserve (0.2)", "client 1 can never charge"] {
        assert!(answer.stderr.contains(part), "{part:?} is not in {}", answer.stderr);
    }
}

#[test]
fn levels_are_recorded_where_there_are_any() {
    let battery = HAND.find("[population.battery]").unwrap()..HAND.find("[task.none]").unwrap();
    let without = format!("{}{}[record]\nbattery = true\n", &HAND[..battery.start], &HAND[battery.end..]);
    let many = changed(&format!("{HAND}[record]\nbattery = true\n"), "clients = 3", "clients = 1001");
    let many = changed(&many, "start = { each = [0.5, 0.3, 1.0] }", "");
    for (scenario, part) in [(without, "give [population.battery]"), (many, "up to 1000 clients")] {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        let at = format!("{SCENARIO}:{}", line_of(&scenario, "battery = true"));
        for part in [part, "record.battery", &at] {
            assert!(answer.stderr.contains(part), "{part:?} is not in {}", answer.stderr);
        }
    }
}
