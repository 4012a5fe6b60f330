//! Selections over time: counts per group of clients in windows of rounds.
//!
//! # Definition
//! Rows are the named groups, if there are any and at most 64; or else single clients, if there are at most 40; or else
//! ten bins of clients, equally large as far as possible. Clients and bins go from the lowest to the highest true mean
//! speed where that is known, by number otherwise. A window has `2^j` rounds; whenever a 65th window would begin, two
//! neighbours become one.

use crate::population::Population;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::state::Stateful;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// The most windows.
pub const MOST_WINDOWS: usize = 64;
/// The most clients that have a row each.
pub const MOST_CLIENTS: usize = 40;
/// The most named groups that have a row each.
const MOST_GROUPS: usize = 64;
/// Bins of more clients.
const TENTHS: usize = 10;

/// Clients that are counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the group, client or bin.
    pub label: String,
    /// How many.
    pub clients: u64,
    /// Its number, if it is a single client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
}

/// Selections of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selections {
    /// The rows, which the runs of a world have in common.
    pub rows: Arc<[Row]>,
    /// Whether rows go from the slowest to the fastest.
    #[serde(default)]
    pub is_by_speed: bool,
    /// Rounds in each window but the last, which may have fewer.
    pub rounds_per_window: u32,
    /// Selections in each window, row by row.
    pub windows: Windows,
}

/// Counts of windows, each with one for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// How many rows; 0 without windows.
    rows: usize,
    /// Window by window, in one list: there are hundreds of thousands of runs.
    counts: Box<[u64]>,
}

impl Windows {
    /// Windows of so many rows; counts beyond the last whole window are dropped.
    fn of(rows: usize, mut counts: Vec<u64>) -> Self {
        counts.truncate(counts.len().checked_div(rows).map_or(0, |windows| windows * rows));
        Self { rows: if counts.is_empty() { 0 } else { rows }, counts: counts.into() }
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.counts.len().checked_div(self.rows).unwrap_or(0)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many rows each window has; 0 without windows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The counts of each window.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u64]> + Clone {
        self.counts.chunks(self.rows.max(1))
    }
}

impl Serialize for Windows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Windows {
    /// Of lists of the same length.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let lists = Vec::<Vec<u64>>::deserialize(deserializer)?;
        let rows = lists.first().map_or(0, Vec::len);
        match lists.iter().all(|list| list.len() == rows) && (rows > 0 || lists.is_empty()) {
            true => Ok(Self::of(rows, lists.concat())),
            false => Err(D::Error::custom("windows have counts of different numbers of rows")),
        }
    }
}

impl Selections {
    /// Selections of each row in all rounds.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.rows.len()];
        self.windows.iter().for_each(|window| add(&mut totals, window));
        totals
    }

    /// Joins windows until they have so many rounds, if that is a larger power of two.
    pub fn widen(&mut self, rounds_per_window: u32) {
        while self.rounds_per_window > 0 && self.rounds_per_window < rounds_per_window {
            self.rounds_per_window *= 2;
            let rows = self.windows.rows;
            let joined = |pair: &[u64]| {
                let (mut sum, other) = (pair[..rows].to_vec(), &pair[rows..]);
                add(&mut sum, other);
                sum
            };
            let counts = self.windows.counts.chunks(2 * rows.max(1)).flat_map(joined).collect();
            self.windows = Windows::of(rows, counts);
        }
    }

    /// Adds the windows of another run, which have the same rows and rounds.
    ///
    /// # Panics
    /// If they have other rows.
    pub fn add(&mut self, other: &Windows) {
        if other.is_empty() {
            return;
        }
        let rows = self.rows.len();
        assert_eq!(other.rows, rows, "windows of other rows");
        let mut counts = std::mem::take(&mut self.windows.counts).into_vec();
        counts.resize(counts.len().max(other.counts.len()), 0);
        add(&mut counts, &other.counts);
        self.windows = Windows::of(rows, counts);
    }
}

/// Adds counts to the first of others.
fn add(sum: &mut [u64], counts: &[u64]) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// The rows, and the row of each client.
#[derive(Clone, Debug, Default)]
pub struct Bins {
    rows: Arc<[Row]>,
    is_by_speed: bool,
    row_of: Vec<u8>,
}

impl Bins {
    /// The rows of a population; `speeds` are true mean speeds, if known.
    pub fn new(population: &Population, speeds: Option<&[f64]>) -> Self {
        let groups = population.groups();
        if groups.len() > MOST_GROUPS || groups.iter().all(|group| group.name.is_none()) {
            return Self::of_clients(population.len(), speeds);
        }
        let row = |(index, group): (usize, &crate::population::Group)| Row {
            label: group.name.clone().unwrap_or_else(|| format!("group {}", index + 1)),
            clients: group.count as u64,
            client: None,
        };
        let row_of = |client| population.group_of(ClientId::from_index(client)) as u8;
        Self {
            rows: groups.iter().enumerate().map(row).collect(),
            is_by_speed: false,
            row_of: (0..population.len()).map(row_of).collect(),
        }
    }

    /// The number of clients.
    pub const fn clients(&self) -> usize {
        self.row_of.len()
    }

    fn of_clients(clients: usize, speeds: Option<&[f64]>) -> Self {
        let is_by_speed = speeds.is_some();
        let mut order: Vec<u32> = (0..clients as u32).collect();
        if let Some(speeds) = speeds {
            order.sort_by(|&one, &two| speeds[one as usize].total_cmp(&speeds[two as usize]));
        }
        let count = if clients <= MOST_CLIENTS { clients } else { TENTHS };
        let mut rows: Vec<Row> =
            (0..count).map(|row| Row { label: name(row, count, clients, is_by_speed), ..Row::default() }).collect();
        let mut row_of = vec![0; clients];
        for (rank, &client) in order.iter().enumerate() {
            let row = rank * count / clients;
            row_of[client as usize] = row as u8;
            rows[row].clients += 1;
            rows[row].client = (count == clients).then_some(client);
        }
        Self { rows: rows.into(), is_by_speed, row_of }
    }
}

fn name(row: usize, rows: usize, clients: usize, is_by_speed: bool) -> String {
    let what = if rows == clients { "" } else { " tenth" };
    match row {
        0 if is_by_speed => format!("slowest{what}"),
        _ if is_by_speed && row + 1 == rows => format!("fastest{what}"),
        _ if is_by_speed => {
            let (from_below, from_above) = (row + 1, rows - row);
            let (rank, end) = if from_below <= from_above { (from_below, "slowest") } else { (from_above, "fastest") };
            format!("{rank}{} {end}{what}", ["th", "st", "nd", "rd"][ending(rank)])
        }
        _ if rows == clients => format!("client {row}"),
        _ => {
            let first = |row: usize| (row * clients).div_ceil(rows);
            format!("clients {}–{}", first(row), first(row + 1) - 1)
        }
    }
}

/// The ending of an ordinal number.
const fn ending(number: usize) -> usize {
    match (number % 100, number % 10) {
        (11..=13, _) => 0,
        (_, last @ 1..=3) => last,
        _ => 0,
    }
}

/// Selections while a run goes on.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct SelectionFold {
    #[state(skip = "from the scenario")]
    bins: Bins,
    /// Rounds in a window: two to this power.
    power: u32,
    /// Window by window.
    #[state(each)]
    counts: Vec<u64>,
    last: usize,
}

impl SelectionFold {
    const fn is_sound(&self) -> bool {
        self.power < u32::BITS && self.last < MOST_WINDOWS
    }

    pub fn new(bins: Bins) -> Self {
        let counts = vec![0; MOST_WINDOWS * bins.rows.len()];
        Self { bins, power: 0, counts, last: 0 }
    }

    pub fn add(&mut self, round: Round, selected: &[ClientId]) {
        let rows = self.bins.rows.len();
        let mut window = (round.0.saturating_sub(1) >> self.power) as usize;
        while window >= MOST_WINDOWS {
            for new in 0..MOST_WINDOWS / 2 {
                for row in 0..rows {
                    let old = 2 * new * rows + row;
                    self.counts[new * rows + row] = self.counts[old] + self.counts[old + rows];
                }
            }
            self.counts[MOST_WINDOWS / 2 * rows..].fill(0);
            self.power += 1;
            window /= 2;
        }
        self.last = window;
        let counts = &mut self.counts[window * rows..(window + 1) * rows];
        for client in selected {
            counts[usize::from(self.bins.row_of[client.index()])] += 1;
        }
    }

    pub fn finish(self) -> Selections {
        let Self { bins: Bins { rows, is_by_speed, .. }, power, counts, last } = self;
        let mut counts = counts;
        counts.truncate((last + 1) * rows.len());
        let windows = Windows::of(rows.len(), counts);
        Selections { rows, is_by_speed, rounds_per_window: 1 << power, windows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(bins: Bins, rounds: u32, selected: impl Fn(u32) -> Vec<u32>) -> Selections {
        let mut fold = SelectionFold::new(bins);
        for round in 1..=rounds {
            let selected: Vec<ClientId> = selected(round).into_iter().map(ClientId).collect();
            fold.add(Round(round), &selected);
        }
        fold.finish()
    }

    /// Two clients, the second in every third round: of 130 rounds, windows have four rounds each.
    #[test]
    fn windows_double() {
        let select = |round: u32| if round.is_multiple_of(3) { vec![0, 1] } else { vec![0] };
        let found = folded(Bins::of_clients(2, None), 130, select);
        assert_eq!((found.rounds_per_window, found.windows.len()), (4, 33));
        assert_eq!(
            [0, 2, 32].map(|window| found.windows.iter().nth(window).unwrap().to_vec()),
            [vec![4, 1], vec![4, 2], vec![2, 1]]
        );
        assert_eq!(found.totals(), [130, 43]);
        let short = folded(Bins::of_clients(2, None), 64, select);
        assert_eq!((short.rounds_per_window, short.windows.len()), (1, 64));
        let mut wide = short.clone();
        wide.widen(4);
        assert!(wide.windows.iter().eq(found.windows.iter().take(16)));
        let mut both = wide.clone();
        both.add(&found.windows);
        assert_eq!((both.windows.len(), both.totals()), (33, vec![194, 64]));
        assert_eq!(folded(Bins::of_clients(2, None), 65, select).rounds_per_window, 2);
        assert_eq!(short.totals(), wide.totals());
    }

    #[test]
    fn a_million_rounds_have_at_most_64_windows() {
        let mut fold = SelectionFold::new(Bins::of_clients(3, None));
        (1..=1_000_000).for_each(|round| fold.add(Round(round), &[ClientId(round % 3)]));
        let found = fold.finish();
        assert_eq!((found.rounds_per_window, found.windows.len()), (16_384, 62));
        assert_eq!(found.totals(), [333_333, 333_334, 333_333]);
    }

    #[test]
    fn rows_go_from_slow_to_fast() {
        let bins = Bins::of_clients(4, Some(&[0.9, 0.1, 0.5, 0.5]));
        let rows: Vec<(&str, Option<u32>)> = bins.rows.iter().map(|row| (row.label.as_str(), row.client)).collect();
        assert_eq!(
            rows,
            [("slowest", Some(1)), ("2nd slowest", Some(2)), ("2nd fastest", Some(3)), ("fastest", Some(0))]
        );
        assert_eq!(bins.row_of, [3, 0, 1, 2]);
        let speeds: Vec<f64> = (0..41).map(|client| f64::from(client * 7 % 41)).collect();
        let bins = Bins::of_clients(41, Some(&speeds));
        let sizes: Vec<u64> = bins.rows.iter().map(|row| row.clients).collect();
        assert_eq!(sizes, [5, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!((bins.rows[0].label.as_str(), bins.rows[9].label.as_str()), ("slowest tenth", "fastest tenth"));
        assert_eq!(
            (bins.rows[4].label.as_str(), bins.rows[5].label.as_str()),
            ("5th slowest tenth", "5th fastest tenth")
        );
        assert_eq!(bins.rows[0].client, None);
        assert_eq!(bins.row_of[40], (40 * 7 % 41 * 10 / 41) as u8);
        let ordinals = [1, 2, 3, 4, 11, 12, 13, 21, 22, 40].map(ending);
        assert_eq!(ordinals, [1, 2, 3, 0, 0, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn bins_of_numbers_say_which() {
        let bins = Bins::of_clients(1_000_003, None);
        let sizes: u64 = bins.rows.iter().map(|row| row.clients).sum();
        assert_eq!((bins.rows.len(), sizes), (10, 1_000_003));
        for row in 0..10 {
            let first = bins.row_of.iter().position(|&of| usize::from(of) == row).unwrap();
            let last = bins.row_of.iter().rposition(|&of| usize::from(of) == row).unwrap();
            assert_eq!(bins.rows[row].label, format!("clients {first}–{last}"));
        }
        assert_eq!(Bins::of_clients(3, None).rows[2].label, "client 2");
    }
}
