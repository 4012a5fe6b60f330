//! Tables of results as columns that any data frame reads: the Arrow stream, or arrays of NumPy.

use crate::arrays;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of a column, in the order of the rows.
pub enum Values {
    /// For each row its place in the list of different texts.
    Text(Vec<Option<u32>>, Vec<String>),
    Integer(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

/// A column with the words of the data dictionary.
pub struct Column {
    pub name: String,
    pub unit: String,
    pub meaning: String,
    /// Whether every row has a value.
    pub is_required: bool,
    pub values: Values,
}

impl Column {
    fn field(&self) -> Field {
        let kind = match self.values {
            Values::Text(..) => DataType::Utf8,
            Values::Integer(_) => DataType::Int64,
            Values::Number(_) => DataType::Float64,
        };
        let words = [("unit", &self.unit), ("meaning", &self.meaning)].map(|(key, text)| (key.to_owned(), text.clone()));
        Field::new(&self.name, kind, !self.is_required).with_metadata(words.into_iter().collect::<Metadata>())
    }

    fn array(&self) -> ArrayRef {
        match &self.values {
            Values::Text(places, texts) => {
                let text = |place: &Option<u32>| place.map(|place| texts[place as usize].as_str());
                Arc::new(places.iter().map(text).collect::<StringArray>())
            }
            Values::Integer(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
            Values::Number(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
        }
    }
}

/// Texts that become places in a list of different ones.
#[derive(Default)]
pub struct Texts {
    places: Vec<Option<u32>>,
    known: BTreeMap<String, u32>,
    texts: Vec<String>,
    /// The text of the row before, which is the usual one.
    last: Option<u32>,
}

impl Texts {
    pub fn push(&mut self, text: Option<&str>) {
        let Some(text) = text else { return self.places.push(None) };
        let last = self.last.filter(|&last| self.texts[last as usize] == text);
        let place = last.or_else(|| self.known.get(text).copied()).unwrap_or_else(|| {
            let place = self.texts.len() as u32;
            self.texts.push(text.to_owned());
            self.known.insert(text.to_owned(), place);
            place
        });
        self.last = Some(place);
        self.places.push(Some(place));
    }

    pub fn values(self) -> Values {
        Values::Text(self.places, self.texts)
    }
}

/// A table.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Columns {
    meaning: String,
    rows: usize,
    columns: Vec<Column>,
}

impl Columns {
    pub const fn new(meaning: String, rows: usize, columns: Vec<Column>) -> Self {
        Self { meaning, rows, columns }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let words = [("meaning".to_owned(), self.meaning.clone())];
        let fields: Vec<Field> = self.columns.iter().map(Column::field).collect();
        let schema = Schema::new_with_metadata(fields, words.into_iter().collect::<Metadata>());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(
            Arc::new(schema),
            self.columns.iter().map(Column::array).collect(),
            &options,
        )
    }

    fn column(&self, name: &str) -> PyResult<&Column> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
            PyKeyError::new_err(format!("found the column {name:?}; expected one of {}", known.join(", ")))
        })
    }
}

/// The values where there are some, and whether each is missing.
fn masked<T: Copy + Default>(values: &[Option<T>]) -> (Vec<T>, Vec<bool>) {
    values.iter().map(|value| (value.unwrap_or_default(), value.is_none())).unzip()
}

#[pymethods]
impl Columns {
    #[getter]
    fn meaning(&self) -> &str {
        &self.meaning
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    const fn __len__(&self) -> usize {
        self.rows
    }

    /// Kind, unit and meaning of a column.
    fn described<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let column = self.column(name)?;
        let kind = match column.values {
            Values::Text(..) => "text",
            Values::Integer(_) => "integer",
            Values::Number(_) => "number",
        };
        let described = PyDict::new(py);
        described.set_item("kind", kind)?;
        described.set_item("unit", &column.unit)?;
        described.set_item("meaning", &column.meaning)?;
        described.set_item("required", column.is_required)?;
        Ok(described)
    }

    /// Values and a mask of the missing ones; of texts the places in a list, −1 where one is missing, and the list.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        fn pair<'py, T: numpy::Element>(
            py: Python<'py>,
            (values, mask): (Vec<T>, Vec<bool>),
        ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
            Ok((arrays::array(py, values)?, arrays::array(py, mask)?))
        }
        match &self.column(name)?.values {
            Values::Text(places, texts) => {
                let places = places.iter().map(|place| place.map_or(-1, i64::from)).collect();
                Ok((arrays::array(py, places)?, texts.into_pyobject(py)?.into_any()))
            }
            Values::Integer(values) => pair(py, masked(values)),
            Values::Number(values) => pair(py, masked(values)),
        }
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish that may be ignored: the reader casts then.
        drop(requested_schema);
        let batch = self.batch().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
