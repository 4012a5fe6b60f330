//! A table as Apache Parquet.

use super::column::{Cell, Column, Kind, Row};
use super::sheet::Sheet;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Rows that are held before they are written: a few hundred bytes each.
const GROUP: usize = 65_536;

/// The values of a column that are not written yet, and for each row whether it has one.
struct Held {
    values: Values,
    is_there: Vec<i16>,
    is_required: bool,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
}

pub(super) struct Parquet {
    writer: SerializedFileWriter<File>,
    columns: Vec<Held>,
    rows: usize,
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

impl Parquet {
    pub fn new(file: File, columns: &[&Column]) -> io::Result<Self> {
        let field = |column: &&Column| {
            let (physical, logical) = match column.kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Integer => (Physical::INT64, None),
                Kind::Number => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
            let repetition = if column.is_required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
            field.with_repetition(repetition).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        let held = |column: &&Column| Held {
            values: match column.kind {
                Kind::Text => Values::Text(Vec::new()),
                Kind::Integer => Values::Integer(Vec::new()),
                Kind::Number => Values::Number(Vec::new()),
            },
            is_there: Vec::new(),
            is_required: column.is_required,
        };
        Ok(Self { writer, columns: columns.iter().map(held).collect(), rows: 0 })
    }

    /// Writes the rows that are held.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for Held { values, is_there, is_required } in &mut self.columns {
            let levels = if *is_required { None } else { Some(&is_there[..]) };
            match values {
                Values::Text(values) => column::<ByteArrayType>(&mut group, values, levels)?,
                Values::Integer(values) => column::<Int64Type>(&mut group, values, levels)?,
                Values::Number(values) => column::<DoubleType>(&mut group, values, levels)?,
            }
        }
        group.close()?;
        self.columns.iter_mut().for_each(|held| held.is_there.clear());
        self.rows = 0;
        Ok(())
    }
}

/// Writes a column of a group and empties it.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("a column is missing".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let writer: &mut ColumnWriterImpl<'_, T> = column.typed::<T>();
    writer.write_batch(values, levels, None)?;
    column.close()?;
    values.clear();
    Ok(())
}

impl Sheet for Parquet {
    fn row(&mut self, row: Row) -> io::Result<()> {
        for (cell, Held { values, is_there, .. }) in row.into_iter().zip(&mut self.columns) {
            is_there.push(i16::from(cell != Cell::Empty));
            match (cell, values) {
                (Cell::Text(text), Values::Text(values)) => values.push(text.into_bytes().into()),
                (Cell::Integer(integer), Values::Integer(values)) => values.push(integer),
                (Cell::Number(number), Values::Number(values)) => values.push(number),
                (cell, _) => debug_assert!(cell == Cell::Empty, "{cell:?} is of another kind than its column"),
            }
        }
        self.rows += 1;
        if self.rows < GROUP { Ok(()) } else { self.flush().map_err(failed) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush().map_err(failed)?;
        self.writer.close().map_err(failed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    /// Two groups of rows; every third cell of each column is missing.
    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("fedgenie-{}.parquet", std::process::id()));
        let columns = [("policy", Kind::Text), ("seed", Kind::Integer), ("loss", Kind::Number)];
        let columns = columns.map(|(name, kind)| Column::new(name, kind, "", name));
        let key = Column::new("row", Kind::Integer, "", "row").required();
        let columns: Vec<&Column> = columns.iter().chain([&key]).collect();
        let mut sheet = Box::new(Parquet::new(File::create(&path).unwrap(), &columns).unwrap());
        let rows = GROUP + 5;
        let cells = |row: usize| {
            let all =
                [Cell::Text(format!("=τ{row}")), Cell::Integer(i64::MIN + row as i64), Cell::Number(0.1 * row as f64)];
            all.into_iter()
                .zip(0..)
                .map(move |(cell, column)| if (row + column).is_multiple_of(3) { Cell::Empty } else { cell })
                .chain([Cell::Integer(row as i64)])
        };
        for row in 0..rows {
            sheet.row(cells(row).collect()).unwrap();
        }
        sheet.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(
            (reader.metadata().num_row_groups(), reader.metadata().file_metadata().num_rows()),
            (2, rows as i64)
        );
        for (row, found) in reader.get_row_iter(None).unwrap().enumerate() {
            let found = found.unwrap();
            for (cell, (name, field)) in cells(row).zip(found.get_column_iter()) {
                let expected = match cell {
                    Cell::Empty => Field::Null,
                    Cell::Text(text) => Field::Str(text),
                    Cell::Integer(integer) => Field::Long(integer),
                    Cell::Number(number) => Field::Double(number),
                };
                assert_eq!(*field, expected, "{name} of row {row}");
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}
