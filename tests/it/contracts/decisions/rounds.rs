//! Sizes of rounds, rounds without clients, deadlines.

use super::{FOUR, SYNCHRONOUS, decision, play_in, played, told, world_of};
use crate::support::changed;
use serde_json::json;

/// By data size: 2, then (2·4 + 3·6 + 4·8)/9, then (2 + 2·4 + 3·6 + 4·8)/10.
#[test]
fn a_policy_chooses_how_many_up_to_the_most() {
    let decisions =
        [decision(&[0], &[], &[], None), decision(&[1, 2, 3], &[], &[], None), decision(&[0, 1, 2, 3], &[], &[], None)];
    let models = [2.0, 2.0 + 58.0 / 9.0, 2.0 + 58.0 / 9.0 + 6.0];
    played(SYNCHRONOUS, &decisions, 3).assert(&[6.0, 12.0, 18.0], &models);
    let deadline = "[protocol.deadline]\ncohort = 2\nmost = 4\ndeadline = \"20 s\"\n";
    played(deadline, &decisions, 3).assert(&[6.0, 12.0, 18.0], &models);
    // The first two that arrive, in dispatch order: (2·4 + 3·6)/5, and (2 + 2·4)/3.
    let over = "[protocol.over-selection]\nask = 2\ntake = 2\nmost = 4\n";
    played(over, &decisions, 3).assert(&[6.0, 12.0, 18.0], &[2.0, 7.2, 7.2 + 10.0 / 3.0]);
    // Servers choose two of two, where one is usual.
    let edges = "[protocol.hierarchical]\nedges = 2\ncohort = 1\nmost = 2\n";
    played(edges, &[decision(&[0, 1, 2, 3], &[], &[], None)], 1).assert(&[6.0], &[6.0]);
}

#[test]
fn a_round_without_clients_ends_at_once_and_makes_no_model() {
    let decisions = [
        decision(&[0], &[], &[], None),
        decision(&[], &[], &[], None),
        decision(&[], &[], &[], None),
        decision(&[1], &[], &[], None),
    ];
    for protocol in [
        "[protocol.synchronous]\ncohort = 2\nquorum = 1\n",
        "[protocol.over-selection]\nask = 2\ntake = 1\n",
        "[protocol.deadline]\ncohort = 2\ndeadline = \"20 s\"\n",
    ] {
        let course = played(protocol, &decisions, 4);
        course.assert(&[6.0, 6.0, 6.0, 12.0], &[2.0, 6.0]);
        assert_eq!(course.column("selected"), [json!([0]), json!([]), json!([]), json!([1])]);
        assert!(course.column("abandoned").iter().all(serde_json::Value::is_null), "{course:?}");
    }
}

/// Edge server 0 selects nobody in the second of its rounds: its model is that of its first.
#[test]
fn a_round_of_an_edge_server_may_be_empty() {
    let protocol = "[protocol.hierarchical]\nedges = 2\ncohort = 2\nedge_rounds = 3\n";
    let decisions =
        [decision(&[0, 2], &[], &[], None), decision(&[2], &[], &[], None), decision(&[1, 3], &[], &[], None)];
    let course = played(protocol, &decisions, 1);
    course.assert(&[18.0], &[(0.3 * 6.0 + 0.7 * 20.0) as f32]);
}

/// Client 1's update is late at 5 s. It arrives at 12 s, while answers are awaited until 13 s, and that round
/// is empty; it joins the next one.
#[test]
fn late_updates_wait_for_a_round_with_clients() {
    let late = "late = { carry = {} }\n";
    let protocol = format!("[protocol.deadline]\ncohort = 2\ndeadline = \"5 s\"\n{late}");
    let decisions =
        vec![decision(&[0, 1], &[], &[1, 3], None), decision(&[], &[], &[], None), decision(&[2], &[], &[1], None)];
    let world = world_of(&format!("{FOUR}{protocol}"));
    let waiting =
        super::source(Waiting(super::Told { decisions, can_be_empty: true, capabilities: Default::default() }));
    let course = play_in(&world, &waiting, 3).unwrap();
    // Rounds open after 4 s of waiting: 4 + 4, 8 + 4, 12 + 4 + 4.
    assert_eq!(course.column("joined")[1], json!(null));
    assert_eq!(course.column("joined")[2], json!([{ "client": 1, "round": 1 }]));
    course.assert(&[9.0, 13.0, 21.0], &[1.0, 1.0 + (2.0 * 6.0 + 3.0 * 3.0) / 5.0]);
}

/// Asks for something that takes 4 s before each selection.
#[derive(Clone)]
struct Waiting(super::Told);

impl fedgenie::state::Stateful for Waiting {
    fn exchange(&mut self, _: &mut fedgenie::state::State<'_>) {}
}

impl fedgenie::policy::Policy for Waiting {
    fn can_be_empty(&self) -> bool {
        true
    }

    fn probes(&self) -> bool {
        true
    }

    fn probe(
        &mut self,
        _: &fedgenie::policy::SelectionRequest<'_>,
        _: &fedgenie::policy::ServerView<'_>,
        _: &mut fedgenie::rng::StreamRng,
    ) -> Result<fedgenie::policy::Probe, fedgenie::failure::Failure> {
        Ok(fedgenie::policy::Probe::Context(fedgenie::time::Span(4_000_000_000)))
    }

    fn select(
        &mut self,
        ask: &fedgenie::policy::SelectionRequest<'_>,
        view: &fedgenie::policy::ServerView<'_>,
        rng: &mut fedgenie::policy::PolicyRng<'_>,
        selection: &mut fedgenie::policy::Selection,
    ) -> Result<(), fedgenie::failure::Failure> {
        self.0.select(ask, view, rng, selection)
    }
}

/// The window lasts as long as was chosen; a client that needs 8 s is late at 7 s, and not at 8 s.
#[test]
fn a_policy_chooses_the_deadline_of_a_round() {
    let protocol = "[protocol.deadline]\ncohort = 2\ndeadline = \"20 s\"\ndeadline_least = \"3 s\"\n";
    let of = |deadline| decision(&[0, 1], &[], &[1, 3], Some(deadline));
    let course = played(protocol, &[of(7.0), of(8.0), of(3.0), of(20.0)], 4);
    let both = 13.0 / 3.0;
    course.assert(&[7.0, 15.0, 18.0, 26.0], &[1.0, 1.0 + both, 1.0 + 2.0 * both]);
    assert_eq!(course.column("deadline_s"), [json!(7.0), json!(8.0), json!(3.0), json!(20.0)]);
    assert_eq!(course.column("late"), [json!([1]), json!([]), json!([0, 1]), json!([])]);
    let full = format!("{protocol}full_window = true\n");
    played(&full, &[of(7.0), of(8.0), of(3.0), of(10.0)], 4)
        .assert(&[7.0, 15.0, 18.0, 28.0], &[1.0, 1.0 + both, 1.0 + 2.0 * both]);
}

/// Nothing ends a run whose rounds take no time but their number.
#[test]
fn rounds_without_clients_are_a_standstill() {
    let text = changed(FOUR, "rounds = 9", "virtual_time = \"1 h\"");
    let mut experiment = super::experiment_of(&format!("{text}{SYNCHRONOUS}"), std::path::Path::new("."));
    experiment
        .add_policy("nobody", |_| {
            Ok(Box::new(super::Told {
                decisions: vec![decision(&[], &[], &[], None)],
                can_be_empty: true,
                capabilities: Default::default(),
            }))
        })
        .unwrap();
    let id = experiment.runs().iter().find(|id| id.name.starts_with("nobody")).unwrap().clone();
    let world = world_of(&format!("{text}{SYNCHRONOUS}"));
    let threads = fedgenie::experiment::Threads::new(1).unwrap();
    let ended = experiment.run_one(&id, &world, &mut super::Course::default(), &threads, None);
    assert!(ended.unwrap_err().to_string().contains("without any time passing"));
    assert!(play_in(&world, &told(vec![decision(&[0], &[], &[], None)]), 2).is_ok());
}
