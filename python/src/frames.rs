//! Tables of results as columns that any data frame reads: the Arrow stream, or arrays of NumPy.

use crate::arrays;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};
use fedgenie::report::{Cells, ExportedColumn, ExportedTable, Texts};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;

/// The type and the words of a column.
fn field(column: &ExportedColumn) -> Field {
    let kind = match column.cells {
        Cells::Text(_) => DataType::Utf8,
        Cells::Integer(_) => DataType::Int64,
        Cells::Number(_) => DataType::Float64,
    };
    let words = [("unit", column.unit), ("meaning", &column.meaning)];
    Field::new(&column.name, kind, !column.is_required).with_metadata(words.into_iter().collect::<Metadata>())
}

fn in_arrow(column: &ExportedColumn) -> ArrayRef {
    match &column.cells {
        Cells::Text(Texts { places, texts, .. }) => {
            let text = |place: &Option<u32>| place.map(|place| texts[place as usize].as_str());
            Arc::new(places.iter().map(text).collect::<StringArray>())
        }
        Cells::Integer(cells) => Arc::new(cells.iter().copied().collect::<Int64Array>()),
        Cells::Number(cells) => Arc::new(cells.iter().copied().collect::<Float64Array>()),
    }
}

/// A table.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Columns(pub ExportedTable);

impl Columns {
    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let words = [("meaning", self.0.meaning)];
        let fields: Vec<Field> = self.0.columns.iter().map(field).collect();
        let schema = Schema::new_with_metadata(fields, words.into_iter().collect::<Metadata>());
        let options = RecordBatchOptions::new().with_row_count(Some(self.0.rows));
        RecordBatch::try_new_with_options(Arc::new(schema), self.0.columns.iter().map(in_arrow).collect(), &options)
    }

    fn column(&self, name: &str) -> PyResult<&ExportedColumn> {
        self.0.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.0.columns.iter().map(|column| column.name.as_str()).collect();
            PyKeyError::new_err(format!("found the column {name:?}; expected one of {}", known.join(", ")))
        })
    }
}

#[pymethods]
impl Columns {
    #[getter]
    const fn meaning(&self) -> &str {
        self.0.meaning
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.columns.iter().map(|column| column.name.as_str()).collect()
    }

    const fn __len__(&self) -> usize {
        self.0.rows
    }

    /// Kind, unit and meaning of a column.
    fn described<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let column = self.column(name)?;
        let kind = match column.cells {
            Cells::Text(_) => "text",
            Cells::Integer(_) => "integer",
            Cells::Number(_) => "number",
        };
        let described = PyDict::new(py);
        described.set_item("kind", kind)?;
        described.set_item("unit", column.unit)?;
        described.set_item("meaning", &column.meaning)?;
        described.set_item("required", column.is_required)?;
        Ok(described)
    }

    /// Values and a mask of the missing ones, if there may be any, as new arrays; of texts the places in a list, −1
    /// where one is missing, and the list.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        fn pair<'py, T: numpy::Element + Copy + Default>(
            py: Python<'py>,
            cells: &[Option<T>],
            is_required: bool,
        ) -> (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>) {
            let values = arrays::own(py, cells.iter().map(|cell| cell.unwrap_or_default()).collect());
            let mask = || arrays::own(py, cells.iter().map(Option::is_none).collect());
            (values, (!is_required).then(mask))
        }
        let column = self.column(name)?;
        match &column.cells {
            Cells::Text(Texts { places, texts, .. }) => {
                let places = places.iter().map(|place| place.map_or(-1, i64::from)).collect();
                Ok((arrays::own(py, places), Some(texts.into_pyobject(py)?.into_any())))
            }
            Cells::Integer(cells) => Ok(pair(py, cells, column.is_required)),
            Cells::Number(cells) => Ok(pair(py, cells, column.is_required)),
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
