//! All feedback to a policy, under every protocol, against values worked out by hand.

use super::support::{play, play_policies, world};
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::{Feedback, Policies, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView, Waited};
use fedgenie::rng::StreamRng;
use fedgenie::state::Stateful;
use fedgenie::time::Span;
use std::sync::{Arc, Mutex};

/// Clients as in the tables of the protocols' tests: download, compute and upload take
///
/// ```text
/// client 0: 1 + 10 + 1 s, 1: 2 + 20 + 1 s, 2 and 4: 4 + 4 + 10 s, 3: 20 + 1 + 1 s
/// ```
///
/// Each has 120 examples, and the model has 44 bytes.
const CLIENTS: &str = r#"
name = "told"
seeds = 1
[stop]
rounds = 100
[population]
clients = 5
[population.latency]
download = { constant = { each = ["1 s", "2 s", "4 s", "20 s", "4 s"] } }
compute = { constant = { each = ["10 s", "20 s", "4 s", "1 s", "4 s"] } }
upload = { constant = { each = ["1 s", "1 s", "10 s", "1 s", "10 s"] } }
[task.linear-regression]
examples = 700
[training]
batch = 32
optimizer = { sgd = { lr = 0.01 } }
[policy.random]
"#;

/// Makes given choices, and writes down all questions and feedback.
#[derive(Stateful)]
struct Diary {
    #[state(skip = "from the test")]
    turns: Vec<Vec<u32>>,
    #[state(skip = "from the test")]
    probe: Probe,
    #[state(skip = "read by the test")]
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn begin(turns: &[&[u32]]) -> (Box<dyn Policy>, Arc<Mutex<Vec<String>>>) {
        Self::that_asks(Probe::None, turns)
    }

    fn that_asks(probe: Probe, turns: &[&[u32]]) -> (Box<dyn Policy>, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let turns = turns.iter().map(|turn| turn.to_vec()).collect();
        (Box::new(Self { turns, probe, lines: lines.clone() }), lines)
    }
}

impl Policy for Diary {
    fn probes(&self) -> bool {
        self.probe != Probe::None
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        if self.probes() {
            self.lines.lock().unwrap().push(format!("asks for turn {} at {}", ask.turn.0, ask.now.seconds()));
        }
        Ok(self.probe.clone())
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let line = format!("turn {} round {} at {}", ask.turn.0, ask.round.0, ask.now.seconds());
        let losses = view.probed.iter().map(|(client, loss)| format!(", {} has {loss:.9}", client.0));
        self.lines.lock().unwrap().push(line + &losses.collect::<String>());
        let turn = (ask.turn.0 as usize - 1).min(self.turns.len() - 1);
        selection.extend(self.turns[turn].iter().map(|&client| ClientId(client)));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        let line = match *feedback {
            Feedback::Job(job) => {
                let waited = match job.waited {
                    Waited::Arrived(span) => format!("arrived {}", span.seconds()),
                    Waited::TimedOut(span) => format!("timed out {}", span.seconds()),
                    Waited::CalledOff(span) => format!("called off {}", span.seconds()),
                };
                let (turn, round, phases) = (job.turn.0, job.round.0, job.phases.map(Span::seconds));
                format!("job {} of {turn}, {round}: stale {}, {waited} = {phases:?}", job.client.0, job.staleness)
            }
            Feedback::Trained(update) => {
                assert!(update.loss > 0.0 && update.loss_rms.is_none() && update.update.is_none());
                let (turn, round, stale) = (update.turn.0, update.round.0, update.staleness);
                format!("trained {} of {turn}, {round}: stale {stale}, {} examples", update.client.0, update.examples)
            }
            Feedback::Round(round) => {
                let selected: Vec<u32> = round.selected.iter().map(|client| client.0).collect();
                let (turn, number, seconds) = (round.turn.0, round.round.0, round.duration.seconds());
                format!(
                    "closed {turn}, {number}: {selected:?}, {seconds} s, {} + {} B",
                    round.down_bytes, round.up_bytes
                )
            }
        };
        self.lines.lock().unwrap().push(line);
        Ok(())
    }
}

/// The feedback to a policy under a protocol in so many rounds.
fn told(protocol: &str, turns: &[&[u32]], rounds: u32) -> Vec<String> {
    let (diary, lines) = Diary::begin(turns);
    play(&world(&format!("{CLIENTS}{protocol}"), 1), diary, rounds).unwrap();
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn in_synchronous_rounds() {
    let found = told("[protocol.synchronous]\ncohort = 2\n", &[&[1, 0], &[2]], 2);
    let expected = [
        "turn 1 round 1 at 0",
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "job 1 of 1, 1: stale 0, arrived 23 = [2.0, 20.0, 1.0]",
        "trained 0 of 1, 1: stale 0, 120 examples",
        "trained 1 of 1, 1: stale 0, 120 examples",
        "closed 1, 1: [1, 0], 23 s, 88 + 88 B",
        "turn 2 round 2 at 23",
        "job 2 of 2, 2: stale 0, arrived 18 = [4.0, 4.0, 10.0]",
        "trained 2 of 2, 2: stale 0, 120 examples",
        "closed 2, 2: [2], 18 s, 44 + 44 B",
    ];
    assert_eq!(found, expected);
}

/// Client 2 has uploaded for 7 s when its round is over, and delivers 3 s into the next one.
#[test]
fn under_a_deadline_with_updates_that_join_later() {
    let protocol = "[protocol.deadline]\ncohort = 2\ndeadline = \"15 s\"\nlate = { carry = {} }\n";
    let expected = [
        "turn 1 round 1 at 0",
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "job 2 of 1, 1: stale 0, timed out 15 = [4.0, 4.0, 7.0]",
        "trained 0 of 1, 1: stale 0, 120 examples",
        "closed 1, 1: [0, 2], 15 s, 88 + 44 B",
        "turn 2 round 2 at 15",
        "job 0 of 2, 2: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "trained 0 of 2, 2: stale 0, 120 examples",
        "trained 2 of 1, 1: stale 1, 120 examples",
        "closed 2, 2: [0], 12 s, 44 + 88 B",
    ];
    assert_eq!(told(protocol, &[&[0, 2], &[0]], 2), expected);
}

/// Client 1 has computed for 10 s when two others have delivered; 44 B down are complete, none of its up.
#[test]
fn under_over_selection() {
    let protocol = "[protocol.over-selection]\nask = 3\ntake = 2\n";
    let expected = [
        "turn 1 round 1 at 0",
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "job 2 of 1, 1: stale 0, arrived 18 = [4.0, 4.0, 10.0]",
        "job 1 of 1, 1: stale 0, called off 18 = [2.0, 16.0, 0.0]",
        "trained 0 of 1, 1: stale 0, 120 examples",
        "trained 2 of 1, 1: stale 0, 120 examples",
        "closed 1, 1: [1, 0, 2], 18 s, 132 + 88 B",
    ];
    assert_eq!(told(protocol, &[&[1, 0, 2]], 1), expected);
}

/// The timeline of ARCHITECTURE: 0 and 1 begin; 2 takes 0's place at 12 and delivers at 30, one model late; 0 takes 1's
/// place at 23 and delivers at 35; 4 begins at 30.
#[test]
fn without_rounds() {
    let protocol = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";
    let expected = [
        "turn 1 round 1 at 0",
        "turn 2 round 1 at 0",
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "turn 3 round 1 at 12",
        "job 1 of 2, 1: stale 0, arrived 23 = [2.0, 20.0, 1.0]",
        "trained 0 of 1, 1: stale 0, 120 examples",
        "trained 1 of 2, 1: stale 0, 120 examples",
        "closed 3, 1: [0, 1, 2], 23 s, 132 + 88 B",
        "turn 4 round 2 at 23",
        "job 2 of 3, 1: stale 1, arrived 18 = [4.0, 4.0, 10.0]",
        "turn 5 round 2 at 30",
        "job 0 of 4, 2: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "trained 0 of 4, 2: stale 0, 120 examples",
        "trained 2 of 3, 1: stale 1, 120 examples",
        "closed 5, 2: [0, 4], 12 s, 88 + 88 B",
    ];
    assert_eq!(told(protocol, &[&[0], &[1], &[2], &[0], &[4]], 2), expected);
}

/// Links of 1 + 3 s and 2 + 1 s; edge server 0 has clients 0 to 2, edge server 1 clients 3 and 4; two rounds each.
#[test]
fn at_edge_servers_and_in_the_cloud() {
    let protocol = "[protocol.hierarchical]\nedges = 2\ncohort = 1\nedge_rounds = 2\n\
                    [protocol.hierarchical.link]\ndownload = { constant = { each = [\"1 s\", \"2 s\"] } }\n\
                    upload = { constant = { each = [\"3 s\", \"1 s\"] } }\n";
    let world = world(&format!("{CLIENTS}{protocol}"), 1);
    let (first, first_lines) = Diary::begin(&[&[0], &[1]]);
    let (second, second_lines) = Diary::begin(&[&[4], &[3]]);
    let (cloud, cloud_lines) = Diary::begin(&[&[0, 1], &[1]]);
    play_policies(&world, Policies::Tiers { edges: vec![first, second], cloud: Some(cloud) }, 2).unwrap();
    // Edge 0 works from 1 to 13 and to 36, and is back at 39; edge 1 from 2 to 20 and to 42, and is back at 43.
    assert_eq!(
        *first_lines.lock().unwrap(),
        [
            "turn 1 round 1 at 1",
            "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
            "trained 0 of 1, 1: stale 0, 120 examples",
            "closed 1, 1: [0], 12 s, 44 + 44 B",
            "turn 2 round 1 at 13",
            "job 1 of 2, 1: stale 0, arrived 23 = [2.0, 20.0, 1.0]",
            "trained 1 of 2, 1: stale 0, 120 examples",
            "closed 2, 1: [1], 23 s, 44 + 44 B",
        ]
    );
    // In the second round of the cloud, from 43, edge 1 alone takes part: from 45 to 67 and to 89, back at 90.
    assert_eq!(
        *second_lines.lock().unwrap(),
        [
            "turn 1 round 1 at 2",
            "job 4 of 1, 1: stale 0, arrived 18 = [4.0, 4.0, 10.0]",
            "trained 4 of 1, 1: stale 0, 120 examples",
            "closed 1, 1: [4], 18 s, 44 + 44 B",
            "turn 2 round 1 at 20",
            "job 3 of 2, 1: stale 0, arrived 22 = [20.0, 1.0, 1.0]",
            "trained 3 of 2, 1: stale 0, 120 examples",
            "closed 2, 1: [3], 22 s, 44 + 44 B",
            "turn 3 round 2 at 45",
            "job 3 of 3, 2: stale 0, arrived 22 = [20.0, 1.0, 1.0]",
            "trained 3 of 3, 2: stale 0, 120 examples",
            "closed 3, 2: [3], 22 s, 44 + 44 B",
            "turn 4 round 2 at 67",
            "job 3 of 4, 2: stale 0, arrived 22 = [20.0, 1.0, 1.0]",
            "trained 3 of 4, 2: stale 0, 120 examples",
            "closed 4, 2: [3], 22 s, 44 + 44 B",
        ]
    );
    assert_eq!(
        *cloud_lines.lock().unwrap(),
        [
            "turn 1 round 1 at 0",
            "job 0 of 1, 1: stale 0, arrived 39 = [1.0, 35.0, 3.0]",
            "job 1 of 1, 1: stale 0, arrived 43 = [2.0, 40.0, 1.0]",
            "closed 1, 1: [0, 1], 43 s, 88 + 88 B",
            "turn 2 round 2 at 43",
            "job 1 of 2, 2: stale 0, arrived 47 = [2.0, 44.0, 1.0]",
            "closed 2, 2: [1], 47 s, 44 + 44 B",
        ]
    );
}

/// As above, but a context takes 3 s: 0 is selected at 3, 1 at 6, 2 at 18, 0 at 32, 4 at 39.
#[test]
fn who_asks_without_rounds_selects_when_there_are_answers() {
    let protocol = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";
    let context = Probe::Context(Span::from_seconds(3.0).unwrap());
    let (diary, lines) = Diary::that_asks(context, &[&[0], &[1], &[2], &[0], &[4]]);
    play(&world(&format!("{CLIENTS}{protocol}"), 1), diary, 2).unwrap();
    let expected = [
        "asks for turn 1 at 0",
        "turn 1 round 1 at 3",
        "asks for turn 2 at 3",
        "turn 2 round 1 at 6",
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "asks for turn 3 at 15",
        "turn 3 round 1 at 18",
        "job 1 of 2, 1: stale 0, arrived 23 = [2.0, 20.0, 1.0]",
        "trained 0 of 1, 1: stale 0, 120 examples",
        "trained 1 of 2, 1: stale 0, 120 examples",
        "closed 3, 1: [0, 1, 2], 29 s, 132 + 88 B",
        "asks for turn 4 at 29",
        "turn 4 round 2 at 32",
        "job 2 of 3, 1: stale 1, arrived 18 = [4.0, 4.0, 10.0]",
        "asks for turn 5 at 36",
        "turn 5 round 2 at 39",
        "job 0 of 4, 2: stale 0, arrived 12 = [1.0, 10.0, 1.0]",
        "trained 0 of 4, 2: stale 0, 120 examples",
        "trained 2 of 3, 1: stale 1, 120 examples",
        "closed 5, 2: [0, 4], 15 s, 88 + 88 B",
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}

/// Losses take the way down and half of the time for an epoch: 1 + 5 and 2 + 10 s at edge server 0, 20 + 0.5 s at edge
/// server 1. They are of the edge server's own model: edge server 0 sees the same as a single server that works like
/// it.
#[test]
fn who_asks_at_an_edge_server_is_told_of_its_own_model() {
    let clients = CLIENTS.replace("[training]\n", "[training]\ninference_share = 0.5\n");
    let two = Probe::Losses(vec![ClientId(0), ClientId(1)]);
    let alone = {
        let (diary, lines) = Diary::that_asks(two.clone(), &[&[0], &[1]]);
        play(&world(&format!("{clients}[protocol.synchronous]\ncohort = 1\n"), 1), diary, 2).unwrap();
        lines.lock().unwrap().clone()
    };
    let told = |line: &str| line.split_once(", ").unwrap().1.to_owned();
    let [start, later] = [told(&alone[1]), told(&alone[6])];
    assert_ne!(start, later);
    assert_eq!(alone[1], format!("turn 1 round 1 at 12, {start}"));

    let protocol = "[protocol.hierarchical]\nedges = 2\ncohort = 1\nedge_rounds = 2\n";
    let (first, first_lines) = Diary::that_asks(two, &[&[0], &[1]]);
    let (second, second_lines) = Diary::that_asks(Probe::Losses(vec![ClientId(3)]), &[&[4]]);
    let policies = Policies::Tiers { edges: vec![first, second], cloud: None };
    play_policies(&world(&format!("{clients}{protocol}"), 1), policies, 1).unwrap();
    // Both asked clients download 44 B and answer with 8.
    let expected = [
        "asks for turn 1 at 0".to_owned(),
        format!("turn 1 round 1 at 12, {start}"),
        "job 0 of 1, 1: stale 0, arrived 12 = [1.0, 10.0, 1.0]".to_owned(),
        "trained 0 of 1, 1: stale 0, 120 examples".to_owned(),
        "closed 1, 1: [0], 24 s, 132 + 60 B".to_owned(),
        "asks for turn 2 at 24".to_owned(),
        format!("turn 2 round 1 at 36, {later}"),
        "job 1 of 2, 1: stale 0, arrived 23 = [2.0, 20.0, 1.0]".to_owned(),
        "trained 1 of 2, 1: stale 0, 120 examples".to_owned(),
        "closed 2, 1: [1], 35 s, 132 + 60 B".to_owned(),
    ];
    assert_eq!(*first_lines.lock().unwrap(), expected);
    let lines = second_lines.lock().unwrap();
    assert!(lines[1].starts_with("turn 1 round 1 at 20.5, 3 has "), "{lines:?}");
    assert_eq!(lines[4], "closed 1, 1: [4], 38.5 s, 88 + 52 B");
}
