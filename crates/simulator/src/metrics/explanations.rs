//! Why clients were chosen: the numbers behind decisions, of those who were chosen and of the other candidates.
//!
//! # Definition
//! Of each number that a policy gives per candidate, windows of `2^j` rounds hold, apart for the chosen and for the
//! others: how many values are known, how many are infinite or unknown, and mean, lowest and highest of the known ones.
//! Whenever a 65th window would begin, two neighbours become one. At most [`MOST_NUMBERS`] numbers are followed.
//!
//! Decisions are kept whole of the last round and of at most [`MOST_KEPT`] others, evenly spread from the first one:
//! whenever one more would be kept, every other one is forgotten. Of a round, the first [`MOST_SELECTIONS`] selections
//! are kept; of a selection, up to [`MOST_ROWS`] candidates. Where there are more, half of the rows are for the chosen,
//! in the order of the candidates, and the rest for those with the largest and those with the smallest values of the
//! first number.
//!
//! # Inputs
//! `explain` of each round, and the records of selections, which say who was chosen.

use super::selections::MOST_WINDOWS;
use crate::recorder::RoundSummary;
use fedgenie_core::record::Record;
use fedgenie_core::state::Stateful;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// The most numbers that are followed over rounds, and the most of a decision.
pub const MOST_NUMBERS: usize = 16;
/// The most rounds whose decisions are kept, beside the last.
pub const MOST_KEPT: usize = 6;
/// The most selections of such a round.
pub const MOST_SELECTIONS: usize = 6;
/// The most candidates of a selection.
pub const MOST_ROWS: usize = 100;

/// Values of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
#[serde(from = "(u64, u64, f64, f64, f64)", into = "(u64, u64, f64, f64, f64)")]
pub struct Spread {
    /// How many are known.
    pub known: u64,
    /// How many are infinite or unknown.
    pub unknown: u64,
    /// Mean of the known ones; 0 if there are none, as the others.
    pub mean: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl From<(u64, u64, f64, f64, f64)> for Spread {
    fn from((known, unknown, mean, min, max): (u64, u64, f64, f64, f64)) -> Self {
        Self { known, unknown, mean, min, max }
    }
}

impl From<Spread> for (u64, u64, f64, f64, f64) {
    fn from(spread: Spread) -> Self {
        (spread.known, spread.unknown, spread.mean, spread.min, spread.max)
    }
}

impl Spread {
    /// Takes a value in.
    pub fn add(&mut self, value: Option<f64>) {
        let (known, unknown) = (u64::from(value.is_some()), u64::from(value.is_none()));
        let value = value.unwrap_or(0.0);
        self.merge(&Self { known, unknown, mean: value, min: value, max: value });
    }

    /// Takes the values of another in.
    pub fn merge(&mut self, other: &Self) {
        self.unknown += other.unknown;
        if other.known == 0 {
            return;
        }
        if self.known == 0 {
            *self = Self { unknown: self.unknown, ..*other };
            return;
        }
        let share = other.known as f64 / (self.known + other.known) as f64;
        // A sum of large numbers may be infinite; a mean never is.
        self.mean = self.mean * (1.0 - share) + other.mean * share;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.known += other.known;
    }
}

/// A number that a policy gives per candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct Explained {
    /// Its name.
    pub name: String,
    /// Whether it is of the cloud, whose candidates are edge servers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_cloud: bool,
    /// Its values in each window: of the chosen, and of the others. Windows after the last value are left out.
    pub windows: Vec<[Spread; 2]>,
}

/// One selection with the numbers behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct Decision {
    /// Which selection of its server, where a round has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The edge server or `cloud`, where there are several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How many candidates were compared.
    pub candidates: u64,
    /// How many were chosen.
    pub chosen: u64,
    /// Candidates that are kept.
    pub clients: Vec<u32>,
    /// Which of them were chosen.
    pub is_chosen: Vec<bool>,
    /// Their numbers; none is infinite or unknown.
    pub numbers: Vec<(String, Vec<Option<f64>>)>,
    /// What the policy knew of those it had chosen when it had been told of the round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<(String, Vec<Option<f64>>)>,
    /// Numbers of the decision as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalars: Vec<(String, Option<f64>)>,
}

/// The decisions of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct KeptRound {
    /// The round.
    pub round: u32,
    /// How many selections it had.
    pub selections: u64,
    /// The first of them.
    pub decisions: Vec<Decision>,
}

/// What a run's policy said of its decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
#[state(check = Self::is_sound)]
pub struct Explanations {
    /// Rounds in each window but the last, which may have fewer.
    pub rounds_per_window: u32,
    /// Rounds of the run.
    pub rounds: u32,
    /// What is followed over rounds, in the order in which it was first given.
    pub numbers: Vec<Explained>,
    /// Whether there are more numbers than are followed.
    #[serde(default)]
    pub is_cut: bool,
    /// Decisions of some rounds, ascending.
    pub kept: Vec<KeptRound>,
}

impl Explanations {
    const fn is_sound(&self) -> bool {
        self.rounds_per_window > 0
    }

    /// Joins windows until they have so many rounds, if that is a larger power of two.
    pub fn widen(&mut self, rounds_per_window: u32) {
        while self.rounds_per_window > 0 && self.rounds_per_window < rounds_per_window {
            self.rounds_per_window *= 2;
            self.numbers.iter_mut().for_each(|number| halve(&mut number.windows));
        }
    }
}

/// Joins neighbours.
fn halve(windows: &mut Vec<[Spread; 2]>) {
    let joined = |pair: &[[Spread; 2]]| {
        let mut sum = pair[0];
        for other in &pair[1..] {
            sum.iter_mut().zip(other).for_each(|(sum, other)| sum.merge(other));
        }
        sum
    };
    *windows = windows.chunks(2).map(joined).collect();
}

/// Whose selection it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Stateful)]
enum Asker {
    #[default]
    Server,
    Edge(u64),
    Cloud,
}

/// Explanations while a run goes on.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct ExplanationFold {
    found: Explanations,
    /// Who was chosen in the round under way, selection by selection.
    chosen: BTreeMap<Asker, VecDeque<Vec<u32>>>,
    /// Every so many rounds one is kept.
    stride: u32,
    last: KeptRound,
}

impl Default for ExplanationFold {
    fn default() -> Self {
        let found = Explanations { rounds_per_window: 1, ..Explanations::default() };
        Self { found, chosen: BTreeMap::new(), stride: 1, last: KeptRound::default() }
    }
}

impl ExplanationFold {
    const fn is_sound(&self) -> bool {
        self.stride > 0
    }

    /// Sees who is chosen.
    pub fn record(&mut self, record: &Record<'_>) {
        let (asker, ids) = match *record {
            Record::Opened { selected, .. } | Record::Selected { selected, .. } => {
                (Asker::Server, selected.iter().map(|client| client.0).collect())
            }
            Record::EdgeSelected { edge, selected, .. } => {
                (Asker::Edge(edge.0.into()), selected.iter().map(|client| client.0).collect())
            }
            Record::CloudOpened { edges, .. } => (Asker::Cloud, edges.iter().map(|edge| edge.0).collect()),
            _ => return,
        };
        self.chosen.entry(asker).or_default().push_back(ids);
    }

    pub fn add(&mut self, summary: &RoundSummary<'_>) {
        let round = summary.round.0;
        self.found.rounds = round;
        let mut window = (round.saturating_sub(1) / self.found.rounds_per_window) as usize;
        while window >= MOST_WINDOWS {
            self.found.widen(2 * self.found.rounds_per_window);
            window /= 2;
        }
        self.last = KeptRound { round, ..KeptRound::default() };
        for object in summary.explain.unwrap_or_default() {
            let asker = match object.get("server") {
                None => Asker::Server,
                Some(server) => server.as_u64().map_or(Asker::Cloud, Asker::Edge),
            };
            // What a policy learned in a round in which it chose nobody is no decision.
            let Some(chosen) = self.chosen.get_mut(&asker).and_then(VecDeque::pop_front) else { continue };
            let decision = Whole::of(object, &chosen);
            self.follow(&decision, asker == Asker::Cloud, window);
            self.last.selections += 1;
            if self.last.decisions.len() < MOST_SELECTIONS {
                self.last.decisions.push(decision.kept(object, chosen.len()));
            }
        }
        self.chosen.values_mut().for_each(VecDeque::clear);
        if (round.saturating_sub(1)).is_multiple_of(self.stride) {
            let kept = &mut self.found.kept;
            if kept.len() == MOST_KEPT {
                self.stride *= 2;
                let mut is_odd = false;
                kept.retain(|_| {
                    is_odd = !is_odd;
                    is_odd
                });
            }
            if (round.saturating_sub(1)).is_multiple_of(self.stride) {
                kept.push(self.last.clone());
            }
        }
    }

    fn follow(&mut self, decision: &Whole<'_>, is_of_cloud: bool, window: usize) {
        for (name, values) in &decision.numbers {
            let known = &mut self.found.numbers;
            let is_it = |number: &Explained| number.name == *name && number.is_of_cloud == is_of_cloud;
            let index = known.iter().position(is_it).unwrap_or_else(|| {
                known.push(Explained { name: (*name).to_owned(), is_of_cloud, windows: Vec::new() });
                known.len() - 1
            });
            if index >= MOST_NUMBERS {
                known.truncate(MOST_NUMBERS);
                self.found.is_cut = true;
                continue;
            }
            let windows = &mut known[index].windows;
            windows.resize(windows.len().max(window + 1), Default::default());
            for (value, &is_chosen) in values.iter().zip(&decision.is_chosen) {
                windows[window][usize::from(!is_chosen)].add(value.as_f64());
            }
        }
    }

    pub fn finish(self) -> Explanations {
        let Self { mut found, last, .. } = self;
        if found.kept.last().is_none_or(|kept| kept.round < last.round) && last.round > 0 {
            found.kept.push(last);
        }
        found
    }
}

/// A decision with all of its candidates.
struct Whole<'a> {
    clients: Vec<u32>,
    is_chosen: Vec<bool>,
    numbers: Vec<(&'a str, &'a [Value])>,
}

impl<'a> Whole<'a> {
    fn of(object: &'a Map<String, Value>, chosen: &[u32]) -> Self {
        let clients = ids(object);
        let mut sorted = chosen.to_vec();
        sorted.sort_unstable();
        let is_chosen = clients.iter().map(|client| sorted.binary_search(client).is_ok()).collect();
        Self { numbers: arrays(object, clients.len()), clients, is_chosen }
    }

    /// What of it is kept.
    fn kept(&self, object: &Map<String, Value>, chosen: usize) -> Decision {
        let rows = self.rows();
        let of_rows = |values: &[Value]| rows.iter().map(|&row| values[row].as_f64()).collect();
        let clients: Vec<u32> = rows.iter().map(|&row| self.clients[row]).collect();
        let after = object.get("after").and_then(Value::as_object).map_or_else(Vec::new, |after| {
            let place: BTreeMap<u32, usize> = ids(after).into_iter().zip(0..).collect();
            let values = |values: &[Value]| clients.iter().map(|client| values[*place.get(client)?].as_f64()).collect();
            let named = arrays(after, place.len()).into_iter().take(MOST_NUMBERS);
            named.map(|(name, of)| (name.to_owned(), values(of))).collect()
        });
        let is_scalar = |(name, value): &(&String, &Value)| {
            !["turn", "server"].contains(&name.as_str()) && (value.is_number() || value.is_null())
        };
        let scalars = object.iter().filter(is_scalar).take(MOST_NUMBERS);
        let server = object.get("server").filter(|server| !server.is_null());
        Decision {
            turn: object.get("turn").and_then(Value::as_u64),
            server: server.map(|server| server.as_str().map_or_else(|| server.to_string(), str::to_owned)),
            candidates: self.clients.len() as u64,
            chosen: chosen as u64,
            is_chosen: rows.iter().map(|&row| self.is_chosen[row]).collect(),
            numbers: self
                .numbers
                .iter()
                .take(MOST_NUMBERS)
                .map(|(name, values)| ((*name).to_owned(), of_rows(values)))
                .collect(),
            after,
            scalars: scalars.map(|(name, value)| (name.clone(), value.as_f64())).collect(),
            clients,
        }
    }

    /// The candidates that are kept, in their order.
    fn rows(&self) -> Vec<usize> {
        let all = 0..self.clients.len();
        if all.len() <= MOST_ROWS {
            return all.collect();
        }
        let (mut rows, mut others): (Vec<usize>, Vec<usize>) = all.partition(|&row| self.is_chosen[row]);
        rows.truncate(MOST_ROWS / 2);
        let room = MOST_ROWS - rows.len();
        if let Some((_, values)) = self.numbers.first() {
            // What is infinite or unknown comes before the largest.
            let key = |row: usize| values[row].as_f64().unwrap_or(f64::INFINITY);
            others.sort_by(|&one, &other| key(other).total_cmp(&key(one)));
        }
        let (largest, smallest) = (room.div_ceil(2), room / 2);
        if others.len() > room {
            others.drain(largest..others.len() - smallest);
        }
        rows.extend(others);
        rows.sort_unstable();
        rows
    }
}

/// The clients that an object is about.
fn ids(object: &Map<String, Value>) -> Vec<u32> {
    let ids = object.get("clients").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    ids.iter().filter_map(Value::as_u64).map(|id| id as u32).collect()
}

/// Lists of clients, which are no numbers of theirs.
const IDS: [&str; 2] = ["clients", "admitted"];

/// Its numbers per client, by name.
fn arrays(object: &Map<String, Value>, clients: usize) -> Vec<(&str, &[Value])> {
    let named = object.iter().filter(|&(name, _)| !IDS.contains(&name.as_str()));
    let listed = named.filter_map(|(name, value)| Some((name.as_str(), value.as_array()?.as_slice())));
    listed.filter(|(_, values)| values.len() == clients).collect()
}

#[cfg(test)]
mod tests;
