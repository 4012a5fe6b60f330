//! How the numbers that clients learn are arranged: named segments of one vector, and updates of some of them.
//!
//! # Definition
//! A model is a vector of `f32` in three parts: dense segments that are trained, tables of rows that are trained, and
//! dense segments that a step updates by itself, such as running means. A dense segment travels whole. Of a table, an
//! update has the rows that the client moved: their ids and values.
//!
//! A segment is *shared*, the same for everybody, or there is one for each *cluster* of edge servers. The vector holds
//! one of each: the model that a client is sent. A run keeps a vector for each cluster; shared segments are equal.
//!
//! The vector does not hold private state of clients: see [`crate::task::PrivateState`].
//!
//! # Example
//! ```
//! use fedgenie_learning::layout::{Layout, Scope, Segment};
//! let layout = Layout::new(vec![
//!     Segment::dense("head", 3, Scope::Shared),
//!     Segment::table("items.weight", 100, 2, Scope::Shared),
//! ]);
//! assert_eq!((layout.len(), layout.rows()), (203, 100));
//! assert_eq!(layout.row(5), 13..15);
//! // Three numbers, and two rows with their ids.
//! assert_eq!(layout.parcel(2).bytes(), 4 * (3 + 2 * (2 + 1)));
//! ```

use fedgenie_core::state::Stateful;
use std::ops::Range;

/// Bytes of a parameter, and of the id of a row.
const NUMBER: u64 = 4;

/// Where a segment has the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody.
    Shared,
    /// The edge servers of a cluster, and their clients.
    Cluster,
}

/// A named part of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name, for messages and files.
    pub name: String,
    /// Where it has the same values.
    pub scope: Scope,
    /// Rows and numbers of a row, for a table; `None` for a dense segment.
    pub table: Option<(usize, usize)>,
    /// Whether gradient descent changes it. Tables are trained.
    pub trained: bool,
    /// Number of parameters.
    pub len: usize,
}

impl Segment {
    /// A dense segment that is trained.
    pub fn dense(name: impl Into<String>, len: usize, scope: Scope) -> Self {
        Self { name: name.into(), scope, table: None, trained: true, len }
    }

    /// A dense segment that a step updates by itself; it is averaged under any server.
    pub fn statistics(name: impl Into<String>, len: usize, scope: Scope) -> Self {
        Self { trained: false, ..Self::dense(name, len, scope) }
    }

    /// A table of which a client moves some rows.
    pub fn table(name: impl Into<String>, rows: usize, width: usize, scope: Scope) -> Self {
        Self { table: Some((rows, width)), ..Self::dense(name, rows * width, scope) }
    }
}

/// A table in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table {
    /// Number of its first row, counted through all tables.
    first_row: usize,
    rows: usize,
    width: usize,
    offset: usize,
    scope: Scope,
}

/// The segments of a model, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    segments: Vec<Segment>,
    tables: Vec<Table>,
    len: usize,
    trained: usize,
    /// The dense parts: trained ones, then the others. Neighbours of one scope are one part.
    dense: Vec<(Range<usize>, Scope)>,
}

impl Layout {
    /// The layout of these segments.
    ///
    /// # Panics
    /// If they are not in the order dense and trained, tables, dense and not trained: a task is built wrongly.
    pub fn new(segments: Vec<Segment>) -> Self {
        let place = |segment: &Segment| match (segment.trained, segment.table) {
            (true, None) => 0,
            (true, Some(_)) => 1,
            (false, _) => 2,
        };
        assert!(segments.is_sorted_by_key(place), "dense segments, then tables, then statistics");
        let (mut len, mut trained, mut rows) = (0, 0, 0);
        let (mut tables, mut dense) = (Vec::new(), Vec::<(Range<usize>, Scope)>::new());
        for segment in &segments {
            let Segment { scope, table, .. } = *segment;
            match (table, dense.last_mut()) {
                (Some((count, width)), _) => {
                    tables.push(Table { first_row: rows, rows: count, width, offset: len, scope });
                    rows += count;
                }
                (None, Some((last, of))) if last.end == len && *of == scope => last.end += segment.len,
                (None, _) => dense.push((len..len + segment.len, scope)),
            }
            len += segment.len;
            if segment.trained {
                trained = len;
            }
        }
        Self { segments, tables, len, trained, dense }
    }

    /// One dense, shared segment, of which the first `trained` parameters are trained.
    pub fn dense(parameters: usize, trained: usize) -> Self {
        let mut segments = vec![Segment::dense("model", trained, Scope::Shared)];
        if parameters > trained {
            segments.push(Segment::statistics("statistics", parameters - trained, Scope::Shared));
        }
        Self::new(segments)
    }

    /// The same segments, one of each for every cluster.
    #[must_use]
    pub fn of_clusters(self) -> Self {
        Self::new(self.segments.into_iter().map(|segment| Segment { scope: Scope::Cluster, ..segment }).collect())
    }

    /// The segments, in their order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Length of the vector.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is learned that is shared.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of the part, at the beginning, that gradient descent changes.
    pub const fn trained(&self) -> usize {
        self.trained
    }

    /// The dense parts that gradient descent changes and that belong to clusters, ascending.
    pub fn trained_of_clusters(&self) -> impl Iterator<Item = Range<usize>> {
        let trained = self.trained;
        let parts = self.dense_parts().filter(|(_, scope)| *scope == Scope::Cluster);
        parts.map(move |(range, _)| range.start..range.end.min(trained)).filter(|range| !range.is_empty())
    }

    /// Bytes of the segments of a cluster.
    pub fn bytes_of_cluster(&self) -> u64 {
        let own = self.segments.iter().filter(|segment| segment.scope == Scope::Cluster);
        own.map(|segment| segment.len as u64 * NUMBER).sum()
    }

    /// Whether any segment belongs to a cluster.
    pub fn has_clusters(&self) -> bool {
        self.segments.iter().any(|segment| segment.scope == Scope::Cluster)
    }

    /// The dense parts of the vector, in the order in which an update has them, and their scopes.
    pub fn dense_parts(&self) -> impl Iterator<Item = (Range<usize>, Scope)> {
        self.dense.iter().cloned()
    }

    /// Length of the dense parts together.
    pub fn dense_len(&self) -> usize {
        self.dense.iter().map(|(range, _)| range.len()).sum()
    }

    /// Number of rows of all tables together.
    pub fn rows(&self) -> usize {
        self.tables.last().map_or(0, |table| table.first_row + table.rows)
    }

    fn table_of(&self, row: usize) -> &Table {
        let after = self.tables.partition_point(|table| table.first_row <= row);
        &self.tables[after.checked_sub(1).expect("a layout with rows has tables")]
    }

    /// Where a row lies in the vector. Rows are counted through all tables.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: u32) -> Range<usize> {
        let row = row as usize;
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        let Table { first_row, width, offset, .. } = *self.table_of(row);
        let start = offset + (row - first_row) * width;
        start..start + width
    }

    /// The scope of a row's table.
    pub fn scope_of_row(&self, row: u32) -> Scope {
        self.table_of(row as usize).scope
    }

    /// The parts of an update that has these rows: where each lies in the vector, and its numbers.
    pub fn spread<'a>(
        &'a self,
        rows: &'a [u32],
        numbers: &'a [f32],
    ) -> impl Iterator<Item = (Range<usize>, &'a [f32])> {
        let dense = self.dense.iter().map(|(range, _)| range.clone());
        dense.chain(rows.iter().map(|&row| self.row(row))).scan(numbers, |rest, range| {
            let (part, after) = rest.split_at(range.len());
            *rest = after;
            Some((range, part))
        })
    }

    /// The whole vector, as it travels.
    pub const fn whole(&self) -> Parcel {
        Parcel::plain(self.len as u64, 0)
    }

    /// The dense parts and so many rows of the first table.
    pub fn parcel(&self, rows: usize) -> Parcel {
        let width = self.tables.first().map_or(0, |table| table.width);
        Parcel::plain((self.dense_len() + rows * width) as u64, rows as u64)
    }

    /// The dense parts and these rows.
    pub fn parcel_of(&self, rows: &[u32]) -> Parcel {
        let numbers: usize = rows.iter().map(|&row| self.table_of(row as usize).width).sum();
        Parcel::plain((self.dense_len() + numbers) as u64, rows.len() as u64)
    }
}

/// Numbers of a model or of an update on their way, and the ids of the rows among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Numbers of the vector.
    pub numbers: u64,
    /// Ids of rows.
    pub ids: u64,
    /// Bytes as the task packs them, where these are not four for each number and id.
    pub packed: Option<u64>,
}

impl Parcel {
    /// Numbers and ids as they are.
    pub const fn plain(numbers: u64, ids: u64) -> Self {
        Self { numbers, ids, packed: None }
    }

    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        match self.packed {
            Some(bytes) => bytes,
            None => NUMBER * (self.numbers + self.ids),
        }
    }
}

/// A client's result: parameters that it sends back, private state, memory, and measures of its training.
#[derive(Clone, Debug, Default, PartialEq, Stateful)]
pub struct Update {
    /// The dense parts of its model after training, in the order of [`Layout::dense_parts`], then the values of `rows`.
    /// Not to be aggregated if it diverged.
    pub parameters: Vec<f32>,
    /// The rows that it moved, ascending.
    pub rows: Vec<u32>,
    /// Its private state after training; empty if it has no such state.
    pub private: Vec<f32>,
    /// Memory that the algorithm leaves with the client, one number for each of `parameters`, in their order, or empty.
    pub memory: Vec<f32>,
    /// What its encoding left over, in the same order; empty where nothing is kept.
    pub error: Vec<f32>,
    /// Mean loss of its examples during the first epoch, each batch as seen before its step.
    pub first_loss: f64,
    /// Mean loss on its examples of the model that it was sent, where the algorithm needs it.
    pub start_loss: Option<f64>,
    /// Root of the mean of their squares, where it was asked for.
    pub loss_rms: Option<f64>,
    /// Whether a parameter or a loss is not finite; training stops at the first such loss.
    pub diverged: bool,
    /// Steps of its optimizer that the job made.
    pub steps: u64,
}

impl Update {
    /// Forgets everything but memory.
    pub fn clear(&mut self) {
        self.parameters.clear();
        self.rows.clear();
        self.private.clear();
        self.memory.clear();
        self.error.clear();
        (self.first_loss, self.start_loss, self.loss_rms) = (0.0, None, None);
        (self.diverged, self.steps) = (false, 0);
    }

    /// The client's whole model: the model that it was sent, with its changes. Copied into `buffer` only where the
    /// update is a part of the model.
    pub fn model<'a>(&'a self, layout: &Layout, start: &[f32], buffer: &'a mut Vec<f32>) -> &'a [f32] {
        if layout.rows() == 0 {
            return &self.parameters;
        }
        buffer.clear();
        buffer.extend_from_slice(start);
        self.parts(layout).for_each(|(range, part)| buffer[range].copy_from_slice(part));
        buffer
    }

    /// Its parts of the model: where each lies in the vector, and its numbers.
    pub fn parts<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = (Range<usize>, &'a [f32])> {
        layout.spread(&self.rows, &self.parameters)
    }

    /// Memory that the algorithm leaves with the client, part by part in the same way; empty if there is no memory.
    pub fn left<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = (Range<usize>, &'a [f32])> {
        let has_some = !self.memory.is_empty();
        has_some.then(|| layout.spread(&self.rows, &self.memory)).into_iter().flatten()
    }

    /// Takes a changed model for the update: its dense parts, and of its tables `self.rows`.
    pub fn take(&mut self, layout: &Layout, model: &[f32]) {
        self.parameters.clear();
        for (range, _) in layout.dense_parts() {
            self.parameters.extend_from_slice(&model[range]);
        }
        for &row in &self.rows {
            self.parameters.extend_from_slice(&model[layout.row(row)]);
        }
    }

    /// Whether all its numbers are finite.
    pub fn is_finite(&self) -> bool {
        self.first_loss.is_finite() && are_finite(&self.parameters) && are_finite(&self.private)
    }
}

/// Whether all numbers are finite: several at once, where asking one after the other would take as long as a step.
fn are_finite(numbers: &[f32]) -> bool {
    const SIGN: u32 = 1 << 31;
    // Without the sign, bits are ordered as the numbers are, and none exceed those of infinity but NaN's.
    let largest = |block: &[f32]| {
        block.iter().fold(0, |largest: i32, number| largest.max((number.to_bits() & !SIGN).cast_signed()))
    };
    numbers.chunks(256).all(|block| largest(block) < f32::INFINITY.to_bits().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Layout {
        Layout::new(vec![
            Segment::dense("a", 2, Scope::Shared),
            Segment::dense("b", 1, Scope::Cluster),
            Segment::table("c", 3, 2, Scope::Shared),
            Segment::table("d", 2, 1, Scope::Cluster),
            Segment::statistics("e", 1, Scope::Shared),
        ])
    }

    #[test]
    fn segments_lie_after_each_other() {
        let layout = mixed();
        assert_eq!((layout.len(), layout.trained(), layout.rows(), layout.dense_len()), (12, 11, 5, 4));
        let dense: Vec<_> = layout.dense_parts().collect();
        assert_eq!(dense, [(0..2, Scope::Shared), (2..3, Scope::Cluster), (11..12, Scope::Shared)]);
        assert_eq!([0, 2, 3, 4].map(|row| layout.row(row)), [3..5, 7..9, 9..10, 10..11]);
        assert_eq!([2, 3].map(|row| layout.scope_of_row(row)), [Scope::Shared, Scope::Cluster]);
        assert_eq!(layout.parcel_of(&[1, 4]).bytes(), 4 * (4 + 3 + 2));
        assert!(layout.has_clusters() && !Layout::dense(3, 2).has_clusters());
        assert_eq!(Layout::dense(3, 2).dense_parts().collect::<Vec<_>>(), [(0..3, Scope::Shared)]);
    }

    #[test]
    #[should_panic(expected = "then tables")]
    fn tables_come_after_dense_segments() {
        Layout::new(vec![Segment::table("c", 3, 2, Scope::Shared), Segment::dense("a", 2, Scope::Shared)]);
    }

    #[test]
    fn an_update_is_put_into_the_model_that_was_sent() {
        let layout = mixed();
        let start: Vec<f32> = (0..12_u8).map(f32::from).collect();
        let mut changed = start.clone();
        for index in [0, 2, 7, 8, 10, 11] {
            changed[index] += 100.0;
        }
        let mut update = Update { rows: vec![2, 4], ..Update::default() };
        update.take(&layout, &changed);
        assert_eq!(update.parameters, [100.0, 1.0, 102.0, 111.0, 107.0, 108.0, 110.0]);
        assert_eq!(update.model(&layout, &start, &mut Vec::new()), changed);
        let parts: Vec<_> = update.parts(&layout).collect();
        assert_eq!(parts[..2], [(0..2, &[100.0, 1.0][..]), (2..3, &[102.0][..])]);
        assert_eq!(parts[2..], [(11..12, &[111.0][..]), (7..9, &[107.0, 108.0][..]), (10..11, &[110.0][..])]);
        assert!(update.is_finite());
        update.private.push(f32::NAN);
        assert!(!update.is_finite());
    }
    #[test]
    fn one_number_that_is_not_finite_is_found_at_any_place() {
        assert!(are_finite(&[]) && are_finite(&[f32::MAX, f32::MIN, -0.0, 1e-45]));
        for place in [0, 1, 17, 255, 256, 600] {
            for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut numbers = vec![-1.0; 601];
                assert!(are_finite(&numbers));
                numbers[place] = bad;
                assert!(!are_finite(&numbers), "{bad} at {place}");
            }
        }
    }
}
