//! Columns and cells of tables.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
}

impl Kind {
    /// The name in a Table Schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
        }
    }
}

/// A column: CSV, Parquet and the data dictionary are all written from this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    /// Empty for texts and pure numbers.
    pub unit: &'static str,
    pub meaning: String,
    /// Whether every row has a value.
    pub is_required: bool,
    /// The key of the number in `values` of `summary.json`, if it is one.
    pub quantity: Option<String>,
}

impl Column {
    /// A column that may have empty cells.
    pub fn new(name: &str, kind: Kind, unit: &'static str, meaning: impl Into<String>) -> Self {
        Self { name: name.to_owned(), kind, unit, meaning: meaning.into(), is_required: false, quantity: None }
    }

    /// A text that may be missing.
    pub fn text(name: &str, meaning: impl Into<String>) -> Self {
        Self::new(name, Kind::Text, "", meaning)
    }

    /// The same column with a value in every row.
    pub fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// A cell of a row: empty, or a value of the column's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Empty,
    Text(String),
    Integer(i64),
    Number(f64),
}

impl Cell {
    /// A text; an empty one is an empty cell.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Text(text.to_owned()) }
    }

    /// A count, or an empty cell if there is none or 64 bits with a sign do not hold it.
    pub fn count(count: impl Into<Option<u64>>) -> Self {
        count.into().and_then(|count| i64::try_from(count).ok()).map_or(Self::Empty, Self::Integer)
    }

    /// A finite number, or an empty cell.
    pub fn number(value: impl Into<Option<f64>>) -> Self {
        value.into().filter(|value| value.is_finite()).map_or(Self::Empty, Self::Number)
    }

    /// A number in a column of this type.
    pub fn of_kind(kind: Kind, value: Option<f64>) -> Self {
        match kind {
            Kind::Integer => Self::count(value.filter(|value| *value >= 0.0).map(|value| value as u64)),
            Kind::Number | Kind::Text => Self::number(value),
        }
    }

    /// Whether it can stand in this column.
    pub const fn fits(&self, column: &Column) -> bool {
        match self {
            Self::Empty => !column.is_required,
            Self::Text(_) => matches!(column.kind, Kind::Text),
            Self::Integer(_) => matches!(column.kind, Kind::Integer),
            Self::Number(_) => matches!(column.kind, Kind::Number),
        }
    }
}

pub(super) type Row = Vec<Cell>;
