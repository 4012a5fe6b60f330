//! Pictures of choices: clients of a round, clients ever, clusters of edge servers; against records and by hand.

use super::support::{PLAIN, SCENARIO, Workplace, changed, unheard};
use fedgenie::report::{Chart, Figure, Report};
use serde_json::Value;

fn figures(place: &Workplace) -> Vec<Figure> {
    assert_eq!(place.fedgenie(&["run", SCENARIO, "--quiet", "--out", "out"]).code, 0);
    Report::load(&[place.path("out")], &unheard()).unwrap().figures
}

fn find<'a>(figures: &'a [Figure], id: &str) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.id == id)
}

fn random_choice(figures: &[Figure]) -> Option<Vec<(f64, f64)>> {
    let Chart::Lines { lines, .. } = &find(figures, "unique-clients").unwrap().chart else { panic!("lines") };
    let line = lines.iter().find(|line| line.label.as_deref() == Some("uniformly random"))?;
    Some(line.points.clone())
}

/// Two of five clients a round, always: 2, then 5·(1 − 0.6²) = 3.2, then 5·(1 − 0.6³) = 3.92.
#[test]
fn a_uniformly_random_choice_has_a_closed_form() {
    let found = figures(&Workplace::with(PLAIN));
    let expected = [(1.0, 2.0), (2.0, 3.2), (3.0, 3.92)];
    for ((round, value), (at, by_hand)) in random_choice(&found).unwrap().into_iter().zip(expected) {
        assert!(round == at && (value - by_hand).abs() < 1e-9, "round {round}: {value}, by hand {by_hand}");
    }
    assert!(find(&found, "selected").is_none(), "it would be flat");
    assert!(find(&found, "clusters").is_none());
}

/// Five clients, each online for 3 s of 12: not every round finds two.
#[test]
fn clients_of_a_round_are_those_of_the_records() {
    let text =
        changed(PLAIN, "clients = 5\n", "clients = 5\navailability = { on-off = { on = \"3 s\", off = \"9 s\" } }\n");
    let place = Workplace::with(&text);
    let found = figures(&place);
    let Some(Chart::Lines { lines, .. }) = find(&found, "selected").map(|figure| &figure.chart) else {
        panic!("not drawn")
    };
    let recorded: Vec<f64> = place
        .text("out/runs/random-s1/rounds.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["selected"].as_array().unwrap().len() as f64)
        .collect();
    assert!(recorded.iter().any(|&count| count != recorded[0]), "{recorded:?}");
    let drawn: Vec<f64> = lines[0].points.iter().map(|&(_, value)| value).collect();
    assert_eq!(drawn, recorded);
    assert_eq!(random_choice(&found), None, "not every round had a whole cohort");
}

#[test]
fn clusters_are_those_of_the_records() {
    let text = include_str!("../../scenarios/gallery/clusters.toml");
    let text = changed(&text[..text.find("[sweep]").unwrap()], "{ fixed = {} }", "{ random = { every = 3 } }");
    let place = Workplace::with(&text);
    let found = figures(&place);
    assert_eq!(random_choice(&found), None, "each server chooses among its own");
    let Chart::Heat { columns, rows, panels, .. } = &find(&found, "clusters").unwrap().chart else { panic!("a map") };
    assert_eq!((columns.len(), rows.len(), panels.len()), (12, 4, 1));
    let mut before: Option<Vec<u64>> = None;
    let mut moves = 0;
    for (round, line) in place.text("out/runs/random-s1/rounds.jsonl").lines().enumerate() {
        let record: Value = serde_json::from_str(line).unwrap();
        let assignment = record["clusters"]["assignment"].as_array().unwrap().iter();
        let assignment: Vec<u64> = assignment.map(|cluster| cluster.as_u64().unwrap()).collect();
        for (server, &cluster) in assignment.iter().enumerate() {
            assert_eq!(panels[0].cells[server][round], Some(cluster as f64), "server {server}, round {round}");
            let is_moved = before.as_ref().is_some_and(|before| before[server] != cluster);
            assert_eq!(panels[0].contour[server][round], is_moved, "server {server}, round {round}");
            moves += u32::from(is_moved);
        }
        before = Some(assignment);
    }
    assert!(moves > 0);
}

/// The map of edge servers has the numbers of the last round's record, for every policy.
#[test]
fn edge_servers_are_those_of_the_last_record() {
    let place = Workplace::new();
    place.write(SCENARIO, include_str!("../../scenarios/fed_bac/smoke.toml"));
    place.run_into("out", &["--seeds", "1", "--set", "stop.rounds=4", "--set", "record.explain=true"]);
    let found = Report::load(&[place.path("out")], &unheard()).unwrap();
    let Chart::Heat { columns, rows, panels, .. } = &find(&found.figures, "servers").unwrap().chart else {
        panic!("a map")
    };
    assert_eq!((columns.len(), rows.len()), (8, 5));
    for (row, policy) in rows.iter().enumerate() {
        let last = place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl")).pop().unwrap();
        for server in last["servers"].as_array().unwrap() {
            let (index, accuracy) = (server["server"].as_u64().unwrap(), server["accuracy"].as_f64().unwrap());
            let shown = panels[0].cells[row][index as usize].unwrap();
            assert!((shown - accuracy).abs() <= 1e-4 * accuracy, "{policy}, server {index}: {shown}, {accuracy}");
        }
    }
    assert_eq!(found.lead, "server_accuracy_mean-rounds", "accuracy over rounds comes first");
}
