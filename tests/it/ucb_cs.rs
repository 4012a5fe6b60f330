//! UCB-CS: every mean, bonus, index and set found again from a run's records, cases by hand, and settings that are
//! refused.

use super::fedacs::{ids, numbers, rounds};
use super::refl::is_close;
use super::support::{SCENARIO, Workplace, changed};
use serde_json::Value;

/// Eight clients with different numbers of examples, whose losses fall.
const WORLD: &str = r#"
name = "ucb-cs"
seeds = 1
[stop]
rounds = 30
[population]
clients = 8
interrupted = "run-on"
data_size = { each = [20, 60, 35, 90, 110, 75, 45, 130] }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.linear-regression]
examples = 700
partition = "declared"
[training]
batch = 16
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 3
[policy.ucb-cs]
"#;
const SIZES: [f64; 8] = [20.0, 60.0, 35.0, 90.0, 110.0, 75.0, 45.0, 130.0];

const AWAY: &str = r#"[population.availability.on-off]
start = "on"
on = { constant = { each = ["3 s", "4 s", "2 s", "5 s", "3 s", "2.5 s", "6 s", "4.5 s"] } }
off = { constant = { each = ["3 s", "4 s", "7 s", "5 s", "6 s", "2.5 s", "2 s", "5.5 s"] } }
[task.linear-regression]"#;

/// One update: the client, the selection that it belongs to, its loss, and the deviation of its examples' losses.
struct Update {
    client: usize,
    of: usize,
    loss: f64,
    deviation: f64,
}

/// The updates of a round. Of two updates of a client the first one is the late one of an earlier round.
fn updates(round: &Value, turn: usize) -> Vec<Update> {
    let said = &round["updates"];
    let (clients, arrived) = (ids(&said["clients"]), ids(&round["arrived"]));
    let [losses, roots, examples] = ["loss", "loss_rms", "examples"].map(|key| numbers(&said[key]));
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let joined = round["joined"].as_array().into_iter().flatten();
    let joined: Vec<[usize; 2]> = joined.map(|late| [number(&late["client"]), number(&late["round"])]).collect();
    assert_eq!(clients.len(), arrived.len() + joined.len(), "{round}");
    let of = |(place, &client): (usize, &usize)| {
        assert_eq!(examples[place], SIZES[client]);
        let is_first = !clients[..place].contains(&client);
        let late = joined.iter().find(|late| is_first && late[0] == client);
        assert!(late.is_some() || arrived.contains(&client), "{round}");
        let deviation = (roots[place] * roots[place] - losses[place] * losses[place]).max(0.0).sqrt();
        Update { client, of: late.map_or(turn, |late| late[1]), loss: losses[place], deviation }
    };
    clients.iter().enumerate().map(of).collect()
}

struct Rules {
    gamma: f64,
    seen: Vec<Update>,
    /// Updates that came in a later round than that of their selection.
    late: usize,
    /// Clients that were selected before, and again as ones never heard of.
    again: usize,
    /// Selections of clients with a smaller mean times size than somebody who was not selected.
    explored: usize,
    asked: [bool; 8],
}

impl Rules {
    fn new(gamma: f64) -> Self {
        Self { gamma, seen: Vec::new(), late: 0, again: 0, explored: 0, asked: [false; 8] }
    }

    /// γ to the power of the number of selections between an earlier one and this one.
    fn discount(&self, turn: usize, of: usize) -> f64 {
        (of + 1..turn).map(|_| self.gamma).product()
    }

    /// σ: the largest deviation of the last selection that has updates.
    fn sigma(&self) -> f64 {
        let last = self.seen.iter().map(|update| update.of).max();
        let of_last = self.seen.iter().filter(|update| Some(update.of) == last);
        of_last.map(|update| update.deviation).fold(0.0, f64::max)
    }

    /// Mean, bonus and index of a client.
    fn numbers(&self, client: usize, turn: usize) -> [f64; 3] {
        let (mut losses, mut count) = (0.0, 0.0);
        for update in self.seen.iter().filter(|update| update.client == client) {
            losses += self.discount(turn, update.of) * update.loss;
            count += self.discount(turn, update.of);
        }
        if count == 0.0 {
            return [f64::NAN, f64::NAN, f64::INFINITY];
        }
        let total: f64 = (1..turn).map(|of| self.discount(turn, of)).sum();
        let bonus = (2.0 * self.sigma() * self.sigma() * total.ln() / count).sqrt();
        let share = SIZES[client] / SIZES.iter().sum::<f64>();
        [losses / count, bonus, share * (losses / count + bonus)]
    }

    fn check(&mut self, round: &Value, turn: usize) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        assert!(is_close(said["sigma"].as_f64().unwrap(), self.sigma()), "round {turn}: {}", self.sigma());
        let expected: Vec<[f64; 3]> = candidates.iter().map(|&client| self.numbers(client, turn)).collect();
        for (part, key) in ["mean", "bonus", "index"].into_iter().enumerate() {
            let found = numbers(&said[key]);
            assert_eq!(found.len(), candidates.len(), "round {turn}, {key}");
            for (found, expected) in found.into_iter().zip(&expected) {
                assert!(is_close(found, expected[part]), "round {turn}, {key}: {found}, {}", expected[part]);
            }
        }
        let of = |client: usize| expected[candidates.binary_search(&client).unwrap()];
        let mut ranked = candidates.clone();
        ranked.sort_by(|&one, &other| of(other)[2].total_cmp(&of(one)[2]).then(one.cmp(&other)));
        let (selected, others) = ranked.split_at(ranked.len().min(3));
        assert_eq!(ids(&round["selected"]), selected, "round {turn}");
        let worth = |client: usize| SIZES[client] * of(client)[0];
        let most = others.iter().map(|&client| worth(client)).fold(0.0, f64::max);
        self.explored += selected.iter().filter(|&&client| worth(client) < most).count();
        self.again += selected.iter().filter(|&&client| self.asked[client] && of(client)[2].is_infinite()).count();
        selected.iter().for_each(|&client| self.asked[client] = true);
        let updates = updates(round, turn);
        self.late += updates.iter().filter(|update| update.of < turn).count();
        self.seen.extend(updates);
    }
}

fn checked(scenario: &str, gamma: f64) -> Rules {
    let mut rules = Rules::new(gamma);
    rounds(scenario, 1, 30).iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
    rules
}

#[test]
fn every_index_is_found_again() {
    let deadline = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.7 s\"\n";
    let dropped = changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", deadline);
    let carried = changed(&dropped, deadline, &format!("{deadline}late = {{ carry = {{}} }}\n"));
    let plain = checked(WORLD, 0.7);
    assert!(plain.late == 0 && plain.again == 0 && plain.explored > 0, "{} explored", plain.explored);
    assert!(checked(&dropped, 0.7).again > 0, "whoever was not heard is asked again");
    assert!(checked(&carried, 0.7).late > 5);
    checked(&format!("{WORLD}gamma = 0.95\n"), 0.95);
    checked(&format!("{carried}gamma = 0.4\n"), 0.4);
    for scenario in [WORLD, &dropped, &carried] {
        checked(&changed(scenario, "[task.linear-regression]", AWAY), 0.7);
    }
}

/// Four clients, two at a time, with losses that stay and so have no deviation. Client 2 takes twice the deadline.
const BY_HAND: &str = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 6
[population]
clients = 4
data_size = { each = [10, 20, 30, 40] }
[population.latency]
download = { constant = "0 s" }
compute = { constant = { each = ["0.5 s", "0.5 s", "2 s", "0.5 s"] } }
upload = { constant = "0 s" }
[task.scripted]
values = [0.5]
client_losses = [1.0, 2.0, 0.5, 0.4]
[protocol.synchronous]
cohort = 2
[policy.ucb-cs]
"#;

/// Indices are 0.1·1, 0.2·2, 0.3·0.5 and 0.4·0.4 once the clients are heard of. If client 2 is never heard of, its
/// index stays infinite.
#[test]
fn constant_losses_by_hand() {
    let deadline = "[protocol.deadline]\ncohort = 2\ndeadline = \"1 s\"\n";
    let late = changed(BY_HAND, "[protocol.synchronous]\ncohort = 2\n", deadline);
    let cases = [
        (BY_HAND, [0.1, 0.4, 0.15, 0.16], [[0, 1], [2, 3], [1, 3], [1, 3], [1, 3], [1, 3]]),
        (&*late, [0.1, 0.4, f64::NAN, 0.16], [[0, 1], [2, 3], [2, 1], [2, 1], [2, 1], [2, 1]]),
    ];
    for (scenario, index, selections) in cases {
        for ((round, selected), turn) in rounds(scenario, 1, 6).iter().zip(selections).zip(1_usize..) {
            let said = &round["explain"][0];
            assert_eq!(ids(&round["selected"]), selected, "{round}");
            assert_eq!(said["sigma"].as_f64(), Some(0.0), "{round}");
            let heard = [0, 2, 4][(turn - 1).min(2)];
            let expected = (0..4).map(|client| if client < heard { index[client] } else { f64::NAN });
            for (found, expected) in numbers(&said["index"]).into_iter().zip(expected) {
                assert!(is_close(found, expected), "{round}");
            }
        }
    }
}

/// One client at a time, γ = ½: clients 0, 1, 2 in turn, because others are not heard of yet. Before selection 4, N is
/// ¼, ½ and 1, and T = 1¾; σ is that of client 2's update, and √(2·ln 1.75/N) 2.115875, 1.496149 and 1.057937. Before
/// selection 3, N is ½ and 1, T = 1½, √(2·ln 1.5/N) 1.273523 and 0.900517. Before selection 2, ln T = 0.
#[test]
fn bonuses_by_hand() {
    let one = changed(WORLD, "cohort = 3", "cohort = 1");
    let lines = rounds(&format!("{one}gamma = 0.5\n"), 1, 4);
    let mut deviation = 0.0;
    for (round, roots) in
        lines.iter().zip([&[][..], &[0.0], &[1.273_522_84, 0.900_516_64], &[2.115_874_83, 1.496_149_44, 1.057_937_42]])
    {
        let said = &round["explain"][0];
        assert!(is_close(said["sigma"].as_f64().unwrap(), deviation), "{said}");
        for (place, bonus) in numbers(&said["bonus"]).into_iter().enumerate() {
            let expected = roots.get(place).map_or(f64::NAN, |root| root * deviation);
            assert!(bonus.is_nan() && expected.is_nan() || (bonus - expected).abs() < 1e-6 * deviation.max(1.0));
        }
        if roots.len() < 3 {
            let update = updates(round, roots.len() + 1).pop().unwrap();
            assert_eq!(update.client, roots.len(), "in turn");
            deviation = update.deviation;
        }
    }
    assert!(deviation > 0.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (from, to, part) in [
        ("[policy.ucb-cs]\n", "[policy.ucb-cs]\ngamma = 1.5\n", "gamma"),
        ("[policy.ucb-cs]\n", "[policy.ucb-cs]\ngamma = -0.1\n", "gamma"),
        ("client_losses = [1.0, 2.0, 0.5, 0.4]\n", "", "loss_rms"),
    ] {
        let answer = Workplace::with(&changed(BY_HAND, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        assert!(answer.stderr.contains(part) && answer.stderr.contains("ucb-cs"), "{}", answer.stderr);
    }
}
