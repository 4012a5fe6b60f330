//! Three rounds of each algorithm on rows, against their definitions in `f64`: two clients that rate different items,
//! some of which both move.

use super::*;
use crate::learned::tests::Case;
use std::collections::{BTreeMap, BTreeSet};

const D: usize = 3;
const LR: f64 = 0.5;
/// Clients, and the steps that they make in a round.
const CLIENTS: [(u32, u32); 2] = [(2, 1), (5, 3)];
/// All clients.
const ALL: f64 = 12.0;

type Row = [f64; D];
type Rows = BTreeMap<usize, Row>;

fn row(numbers: &[f32]) -> Row {
    std::array::from_fn(|index| f64::from(numbers[index]))
}

/// `one + factor · other`, number by number.
fn plus(one: Row, factor: f64, other: Row) -> Row {
    std::array::from_fn(|index| one[index] + factor * other[index])
}

fn of(rows: &Rows, row: usize) -> Row {
    rows.get(&row).copied().unwrap_or_default()
}

/// The slopes of the mean loss by the rows of items and by the user's.
fn slopes(items: &Rows, user: Row, triplets: &[Triplet]) -> (Rows, Row) {
    let (mut of_items, mut of_user) = (Rows::new(), [0.0; D]);
    for Triplet { positive, negative, .. } in triplets {
        let [positive, negative] = [*positive as usize, *negative as usize];
        let difference = plus(items[&positive], -1.0, items[&negative]);
        let score: f64 = (0..D).map(|index| user[index] * difference[index]).sum();
        let slope = -1.0 / (1.0 + score.exp()) / triplets.len() as f64;
        of_user = plus(of_user, slope, difference);
        of_items.insert(positive, plus(of(&of_items, positive), slope, user));
        of_items.insert(negative, plus(of(&of_items, negative), -slope, user));
    }
    (of_items, of_user)
}

/// A client's steps, each with a correction of all rows of the job. The rows after them, and the user's.
fn train_in_f64(items: &Rows, mut user: Row, triplets: &[Triplet], steps: u32, more: &Rows) -> (Rows, Row) {
    let mut items = items.clone();
    let rows = rows_of(triplets);
    for _ in 0..steps {
        let (of_items, of_user) = slopes(&items, user, triplets);
        for &row in &rows {
            let slope = plus(of(&of_items, row), 1.0, of(more, row));
            items.insert(row, plus(items[&row], -LR, slope));
        }
        user = plus(user, -LR, of_user);
    }
    items.retain(|row, _| rows.contains(row));
    (items, user)
}

fn rows_of(triplets: &[Triplet]) -> BTreeSet<usize> {
    triplets.iter().flat_map(|triplet| [triplet.positive as usize, triplet.negative as usize]).collect()
}

/// What is known of a definition: models and control variates.
#[derive(Default)]
struct Expected {
    items: Rows,
    users: [Row; 2],
    server: Rows,
    clients: [Rows; 2],
}

impl Expected {
    /// A round of what `entries` say.
    fn round(&mut self, entries: &str, triplets: &[Vec<Triplet>; 2]) {
        let mut changes: [Rows; 2] = Default::default();
        let mut after = self.clients.clone();
        for (index, &(_, steps)) in CLIENTS.iter().enumerate() {
            let mut more = Rows::new();
            let moved = rows_of(&triplets[index]);
            if entries.contains("scaffold") {
                let correction = |&row: &usize| (row, plus(of(&self.server, row), -1.0, of(&self.clients[index], row)));
                more = moved.iter().map(correction).collect();
            }
            let before = self.users[index];
            let (items, user) = train_in_f64(&self.items, before, &triplets[index], steps, &more);
            self.users[index] = user;
            changes[index] = items.iter().map(|(row, after)| (*row, plus(*after, -1.0, self.items[row]))).collect();
            let at_start = slopes(&self.items, before, &triplets[index]).0;
            for &row in &moved {
                let mean = plus([0.0; D], -1.0 / (f64::from(steps) * LR), changes[index][&row]);
                let by_steps = plus(plus(of(&self.clients[index], row), -1.0, of(&self.server, row)), 1.0, mean);
                let chosen = if entries.contains("option = 1") { of(&at_start, row) } else { by_steps };
                after[index].insert(row, chosen);
            }
        }
        let tau: f64 = CLIENTS.iter().map(|&(_, steps)| f64::from(steps) / 2.0).sum();
        let touched: BTreeSet<usize> = changes.iter().flat_map(|rows| rows.keys().copied()).collect();
        for &row in &touched {
            for (index, &(_, steps)) in CLIENTS.iter().enumerate() {
                let factor = if entries.contains("fednova") { tau / f64::from(steps) } else { 1.0 };
                let change = plus(self.items[&row], factor / 2.0, of(&changes[index], row));
                self.items.insert(row, change);
                if entries.contains("scaffold") {
                    let change = plus(of(&after[index], row), -1.0, of(&self.clients[index], row));
                    self.server.insert(row, plus(of(&self.server, row), 1.0 / ALL, change));
                }
            }
        }
        self.clients = after;
    }
}

#[test]
fn three_rounds_of_rows_in_f64() {
    let train: Vec<Triplet> = split()
        .part(Part::Train)
        .map(|rating| Triplet { user: rating.user, positive: rating.item, negative: (rating.item + 7) % 40 })
        .collect();
    let given = Triplets { train: train.clone(), ..Triplets::default() };
    let task = task(SMALL, json!("users"), 12, Some(&given));
    let of_client = |client: u32| train.iter().filter(|triplet| triplet.user == client).copied().collect::<Vec<_>>();
    let triplets = CLIENTS.map(|(client, _)| of_client(client));
    let shared = rows_of(&triplets[0]).intersection(&rows_of(&triplets[1])).count();
    assert!(shared > 0 && shared < rows_of(&triplets[0]).len(), "{shared}");
    let sgd = local(Length::Epochs(1)).optimizer.config().clone();
    for entries in
        ["", "[scaffold]\n", "[scaffold]\noption = 1\n", "[fednova]\n", "[trimmed-mean]\n", "[scaffold]\n[fednova]\n"]
    {
        let mut case = Case::new(&task, 12, &sgd, entries);
        let start = case.state.models[0].clone();
        let own = |index: usize| {
            let client = ClientId(CLIENTS[index].0);
            row(&(&task as &dyn Task).private_of(client, None, &Streams::new(1)))
        };
        let mut expected = Expected {
            items: start.chunks(D).map(row).enumerate().collect(),
            users: [own(0), own(1)],
            ..Expected::default()
        };
        for round in 1..=3 {
            case.round(&CLIENTS.map(|(client, steps)| (ClientId(client), steps)));
            expected.round(entries, &triplets);
            for (found, (row, expected)) in case.state.models[0].chunks(D).zip(&expected.items) {
                close(found, *expected, &format!("{entries}, round {round}, item {row}"));
            }
            if entries.contains("scaffold") {
                let server = case.memory(ClientId(CLIENTS[0].0))[1].clone();
                for (index, &(client, _)) in CLIENTS.iter().enumerate() {
                    let own = case.memory(ClientId(client))[0].clone();
                    for (item, (own, server)) in own.chunks(D).zip(server.chunks(D)).enumerate() {
                        let what = format!("{entries}, round {round}, client {client}, row {item}");
                        close(own, of(&expected.clients[index], item), &what);
                        close(server, of(&expected.server, item), &what);
                    }
                }
            }
        }
    }
}

fn close(found: &[f32], expected: Row, what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 2e-6, "{what}: {found}, {expected}");
    }
}
