//! Explanations by hand, of several servers, of many rounds and of many candidates.

use super::*;
use crate::recorder::RoundJobs;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::record::Regret;
use fedgenie_core::time::VirtualTime;
use serde_json::json;

const NOW: VirtualTime = VirtualTime(0);

/// Folds one round: the chosen clients, record by record, and the explanation.
fn play(fold: &mut ExplanationFold, round: u32, chosen: &[Record<'_>], explain: &Value) {
    chosen.iter().for_each(|record| fold.record(record));
    let objects: Vec<Map<String, Value>> = serde_json::from_value(explain.clone()).unwrap();
    let summary = RoundSummary {
        round: Round(round),
        opened: NOW,
        closed: NOW,
        jobs: &RoundJobs::default(),
        is_abandoned: false,
        reward: None,
        regret: Regret::default(),
        metrics: &[],
        down_bytes: 0,
        up_bytes: 0,
        edge_bytes: (0, 0),
        group_selections: &[],
        hindsight: &[],
        clusters: None,
        servers: None,
        explain: Some(&objects),
        updates: None,
        shifts: None,
        adversaries: None,
        privacy: None,
        levels_j: None,
    };
    fold.add(&summary);
}

fn opened(round: u32, selected: &[ClientId]) -> Record<'_> {
    Record::Opened { round: Round(round), time: NOW, selected }
}

fn spread(known: u64, unknown: u64, mean: f64, min: f64, max: f64) -> Spread {
    Spread { known, unknown, mean, min, max }
}

/// Two rounds of three candidates; the first candidate, still unknown, is chosen first.
#[test]
fn chosen_and_others_by_hand() {
    let mut fold = ExplanationFold::default();
    let after = json!({ "clients": [4], "speed": [0.5] });
    let object = json!([{ "clients": [4, 2, 9], "index": [null, 1.0, 3.0], "bottleneck": 0.25, "after": after }]);
    play(&mut fold, 1, &[opened(1, &[ClientId(4)])], &object);
    let object = json!([{ "clients": [2, 4, 9], "index": [-1.0, 2.0, 5.0] }]);
    play(&mut fold, 2, &[opened(2, &[ClientId(9), ClientId(4)])], &object);
    let found = fold.finish();
    let [number] = &found.numbers[..] else { panic!("one number") };
    assert_eq!((number.name.as_str(), number.is_of_cloud), ("index", false));
    let first = [spread(0, 1, 0.0, 0.0, 0.0), spread(2, 0, 2.0, 1.0, 3.0)];
    let second = [spread(2, 0, 3.5, 2.0, 5.0), spread(1, 0, -1.0, -1.0, -1.0)];
    assert_eq!(number.windows, [first, second]);
    let kept: Vec<u32> = found.kept.iter().map(|kept| kept.round).collect();
    assert_eq!(kept, [1, 2], "the last round is kept once");
    let decision = &found.kept[0].decisions[0];
    assert_eq!((&decision.clients[..], &decision.is_chosen[..]), (&[4, 2, 9][..], &[true, false, false][..]));
    assert_eq!((decision.candidates, decision.chosen, decision.turn), (3, 1, None));
    assert_eq!(decision.numbers, [("index".to_owned(), vec![None, Some(1.0), Some(3.0)])]);
    assert_eq!(decision.after, [("speed".to_owned(), vec![Some(0.5), None, None])]);
    assert_eq!(decision.scalars, [("bottleneck".to_owned(), Some(0.25))]);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Explanations>(&text).unwrap(), found);
}

/// Selections of several servers in one round are told apart by their server, and taken in their order.
#[test]
fn selections_of_tiers() {
    let mut fold = ExplanationFold::default();
    let edges = [EdgeId(1)];
    let of = |edge, turn, selected| Record::EdgeSelected { edge: EdgeId(edge), turn: Turn(turn), time: NOW, selected };
    let records = [
        Record::CloudOpened { round: Round(1), time: NOW, edges: &edges },
        of(1, 1, &[ClientId(7)]),
        of(0, 1, &[ClientId(0)]),
        of(1, 2, &[ClientId(8)]),
    ];
    let object = |turn: u32, server: Value, clients: [u32; 2], index: [f64; 2]| json!({ "turn": turn, "server": server, "clients": clients, "index": index });
    let said = json!([
        object(1, json!("cloud"), [0, 1], [1.0, 2.0]),
        object(1, json!(1), [7, 8], [3.0, 4.0]),
        object(1, json!(0), [0, 3], [5.0, 6.0]),
        object(2, json!(1), [7, 8], [7.0, 8.0]),
        { "turn": 2, "server": 0, "after": { "clients": [0], "index": [1.0] } },
    ]);
    play(&mut fold, 1, &records, &said);
    let found = fold.finish();
    let numbers: Vec<(bool, [Spread; 2])> =
        found.numbers.iter().map(|number| (number.is_of_cloud, number.windows[0])).collect();
    let cloud = [spread(1, 0, 2.0, 2.0, 2.0), spread(1, 0, 1.0, 1.0, 1.0)];
    let clients = [numbers[1].1[0], numbers[1].1[1]];
    assert_eq!(numbers[0], (true, cloud));
    assert_eq!(clients.map(|spread| (spread.known, spread.min, spread.max)), [(3, 3.0, 8.0), (3, 4.0, 7.0)]);
    let means = clients.map(|spread| spread.mean);
    assert!((means[0] - 16.0 / 3.0).abs() < 1e-12 && (means[1] - 17.0 / 3.0).abs() < 1e-12);
    let [kept] = &found.kept[..] else { panic!("one round") };
    let heads: Vec<_> = kept.decisions.iter().map(|one| (one.turn.unwrap(), one.server.as_deref().unwrap())).collect();
    assert_eq!(heads, [(1, "cloud"), (1, "1"), (1, "0"), (2, "1")]);
    assert_eq!(kept.selections, 4, "nobody was chosen in the last");
}

#[test]
fn a_hundred_thousand_rounds_stay_small() {
    let mut fold = ExplanationFold::default();
    for round in 1..=100_000 {
        let value = f64::from(round);
        let said = json!([{ "clients": [0, 1], "index": [value, -value] }]);
        play(&mut fold, round, &[opened(round, &[ClientId(0)])], &said);
    }
    let found = fold.finish();
    assert_eq!((found.rounds_per_window, found.numbers[0].windows.len()), (2_048, 49));
    let kept: Vec<u32> = found.kept.iter().map(|kept| kept.round).collect();
    assert_eq!(kept, [1, 32_769, 65_537, 98_305, 100_000]);
    let third = found.numbers[0].windows[2];
    assert_eq!((third[0].known, third[0].min, third[0].max), (2_048, 4_097.0, 6_144.0));
    assert!((third[0].mean - 5_120.5).abs() < 1e-6 && (third[1].mean + 5_120.5).abs() < 1e-6);
    assert!(serde_json::to_string(&found).unwrap().len() < 10_000);
}

/// Of 3,000 candidates with 70 chosen: 50 of the chosen, 25 others with the largest values, 25 with the smallest.
#[test]
fn of_many_candidates_the_chosen_and_the_extreme_are_kept() {
    let clients: Vec<u32> = (0..3_000).collect();
    // Client 10·k has been chosen; of the others client 1 is unknown.
    let chosen: Vec<ClientId> = (0..70).map(|step| ClientId(10 * step)).collect();
    let value = |client: &u32| if *client == 1 { Value::Null } else { json!(client * 7 % 3_000) };
    let index: Vec<Value> = clients.iter().map(value).collect();
    let mut fold = ExplanationFold::default();
    play(&mut fold, 1, &[opened(1, &chosen)], &json!([{ "clients": clients, "index": index }]));
    let found = fold.finish();
    let decision = &found.kept[0].decisions[0];
    assert_eq!((decision.candidates, decision.chosen, decision.clients.len()), (3_000, 70, MOST_ROWS));
    let is_of =
        |is_chosen: bool| decision.clients.iter().zip(&decision.is_chosen).filter(move |(_, is)| **is == is_chosen);
    assert!(is_of(true).map(|(client, _)| *client).eq((0..50).map(|step| 10 * step)));
    // By brute force: how many others have a larger, or a smaller, value.
    let others: Vec<u32> = clients.iter().copied().filter(|client| !chosen.contains(&ClientId(*client))).collect();
    let rank = |client: u32| if client == 1 { u32::MAX } else { client * 7 % 3_000 };
    for (&client, _) in is_of(false) {
        let above = others.iter().filter(|other| rank(**other) > rank(client)).count();
        let below = others.iter().filter(|other| rank(**other) < rank(client)).count();
        assert!(above < 25 || below < 25, "{client} is one of many");
    }
    assert_eq!(is_of(false).count(), 50);
    assert!(decision.clients.contains(&1), "what is unknown comes first");
    let windows = found.numbers[0].windows[0];
    assert_eq!((windows[0].known, windows[1].known, windows[1].unknown), (70, 2_929, 1));
}

#[test]
fn windows_of_two_runs_can_be_joined() {
    let mut spread = Spread::default();
    [Some(1.0), None, Some(4.0), Some(-2.0)].into_iter().for_each(|value| spread.add(value));
    assert_eq!((spread.known, spread.unknown, spread.min, spread.max), (3, 1, -2.0, 4.0));
    assert!((spread.mean - 1.0).abs() < 1e-12);
    let mut huge = Spread::default();
    (0..3).for_each(|_| huge.add(Some(f64::MAX)));
    assert!(huge.mean.is_finite(), "a file of JSON has no infinite numbers");
    let windows = (1..=5).map(|value| {
        let mut spread = Spread::default();
        spread.add(Some(f64::from(value)));
        [spread, Spread::default()]
    });
    let number = Explained { name: "index".to_owned(), is_of_cloud: false, windows: windows.collect() };
    let mut found = Explanations { rounds_per_window: 1, numbers: vec![number], ..Explanations::default() };
    found.widen(4);
    let means: Vec<f64> = found.numbers[0].windows.iter().map(|window| window[0].mean).collect();
    assert_eq!((found.rounds_per_window, means), (4, vec![2.5, 5.0]));
}
