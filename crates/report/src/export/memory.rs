//! A table in memory, column by column.

use super::column::{Cell, Column, Kind};
use std::collections::BTreeMap;

/// A table of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedTable {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub meaning: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// The columns, in their order.
    pub columns: Vec<ExportedColumn>,
}

/// A column, with the words of the data dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedColumn {
    /// Its name.
    pub name: String,
    /// Empty for texts and pure numbers.
    pub unit: &'static str,
    /// What its cells are.
    pub meaning: String,
    /// Whether every row has a value.
    pub is_required: bool,
    /// The cells.
    pub cells: Cells,
}

/// The cells of a column, one for each row; a number or text that is unknown is `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Texts.
    Text(Texts),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
}

/// Texts, each different one kept once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// For each row, the place of its text.
    pub places: Vec<Option<u32>>,
    /// The different texts, in the order of their first row.
    pub texts: Vec<String>,
    known: BTreeMap<String, u32>,
}

impl Texts {
    fn push(&mut self, text: Option<String>) {
        let Some(text) = text else { return self.places.push(None) };
        // Rows of a run follow each other.
        let last = self.places.last().copied().flatten().filter(|&place| self.texts[place as usize] == text);
        let place = last.or_else(|| self.known.get(&text).copied()).unwrap_or_else(|| {
            let place = self.texts.len() as u32;
            self.known.insert(text.clone(), place);
            self.texts.push(text);
            place
        });
        self.places.push(Some(place));
    }
}

impl ExportedTable {
    pub(super) fn new<'a>(
        name: &'static str,
        meaning: &'static str,
        columns: impl Iterator<Item = &'a Column>,
    ) -> Self {
        let column = |column: &Column| ExportedColumn {
            name: column.name.clone(),
            unit: column.unit,
            meaning: column.meaning.clone(),
            is_required: column.is_required,
            cells: match column.kind {
                Kind::Text => Cells::Text(Texts::default()),
                Kind::Integer => Cells::Integer(Vec::new()),
                Kind::Number => Cells::Number(Vec::new()),
            },
        };
        Self { name, meaning, rows: 0, columns: columns.map(column).collect() }
    }
}

impl Cells {
    /// Adds a cell. Returns whether it is of the type, and not empty where that is required.
    #[inline]
    pub(super) fn push(&mut self, cell: Cell, is_required: bool) -> bool {
        // A pair of both would be a copy of the cell, which takes longer than all the rest.
        match cell {
            Cell::Integer(integer) => {
                let Self::Integer(cells) = self else { return false };
                cells.push(Some(integer));
            }
            Cell::Number(number) => {
                let Self::Number(cells) = self else { return false };
                cells.push(Some(number));
            }
            Cell::Text(text) => {
                let Self::Text(texts) = self else { return false };
                texts.push(Some(text));
            }
            Cell::Empty if is_required => return false,
            Cell::Empty => match self {
                Self::Integer(cells) => cells.push(None),
                Self::Number(cells) => cells.push(None),
                Self::Text(texts) => texts.push(None),
            },
        }
        true
    }

    /// Adds the last cell once more.
    pub(super) fn repeat(&mut self) {
        match self {
            Self::Text(texts) => texts.places.extend(texts.places.last().copied()),
            Self::Integer(cells) => cells.extend(cells.last().copied()),
            Self::Number(cells) => cells.extend(cells.last().copied()),
        }
    }
}
