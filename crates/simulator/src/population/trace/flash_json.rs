//! FLASH's ready spans in JSON, device by device.
//!
//! A device's list is read straight into numbers: as values of JSON, two bytes of a file would take 32 or more.

use super::columns::NAME_BYTES;
use super::flash::Spans;
use super::{RECORDS_MAX, TEXT_MAX};
use fedgenie_core::limits::Budget;
use fedgenie_core::text::quoted;
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use fedgenie_learning::data::bytes::ByteReader;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

/// Reads the spans of each device, as they stand in the file.
pub(super) fn read(path: &Path) -> Result<Vec<Spans>, DataError> {
    let mut reader = ByteReader::open(path)?;
    let state = State { path, kept: RefCell::default() };
    let text = BufReader::new(Read::take(&mut reader, TEXT_MAX + 1));
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = json.deserialize_map(Devices(&state)).and_then(|all| json.end().map(|()| all));
    drop(json);
    read.map_err(|error| match state.kept.into_inner().refused {
        Some(refused) => refused,
        None if reader.position > TEXT_MAX => {
            DataError::TooMany { path: path.to_owned(), limit: TEXT_MAX as usize, what: "bytes" }
        }
        None if error.is_io() => reader.unreadable(error.into()),
        None => DataError::Table {
            path: path.to_owned(),
            line: error.line() as u64,
            message: format!("is no JSON object of devices: {error}"),
        },
    })
}

/// Records kept so far, and the reason why the parser was stopped, which it cannot return itself.
struct State<'a> {
    path: &'a Path,
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    spans: usize,
    budget: Budget,
    refused: Option<DataError>,
}

impl State<'_> {
    fn stop<E: Error>(&self, refused: DataError) -> E {
        self.kept.borrow_mut().refused = Some(refused);
        E::custom("stopped")
    }

    fn keep<E: Error>(&self, spans: usize, bytes: u64) -> Result<(), E> {
        let mut kept = self.kept.borrow_mut();
        kept.spans += spans;
        let is_over = kept.spans > RECORDS_MAX;
        let room = kept.budget.take(bytes);
        drop(kept);
        if is_over {
            return Err(self.stop(DataError::TooMany {
                path: self.path.to_owned(),
                limit: RECORDS_MAX,
                what: "spans",
            }));
        }
        room.map_err(|source| self.stop(DataError::memory(self.path, source)))
    }
}

/// All devices.
struct Devices<'a>(&'a State<'a>);

impl<'de> Visitor<'de> for Devices<'_> {
    type Value = Vec<Spans>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of devices")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Spans>, A::Error> {
        let (mut all, mut places) = (Vec::new(), BTreeMap::new());
        while let Some(name) = map.next_key::<String>()? {
            self.0.keep(0, NAME_BYTES + name.len() as u64)?;
            let spans = match map.next_value_seed(Device(self.0))? {
                Ok(spans) => spans,
                Err(index) => {
                    let name = quoted(&name);
                    let message = format!("device {name}: span {} is not a pair of seconds [start, end]", index + 1);
                    return Err(self.0.stop(DataError::Table { path: self.0.path.to_owned(), line: 1, message }));
                }
            };
            // For a name that occurs twice, the last list counts, at the place of the first.
            let place = *places.entry(name).or_insert(all.len());
            if place == all.len() {
                all.push(spans);
            } else {
                all[place] = spans;
            }
        }
        Ok(all)
    }
}

/// One device's spans, or the index of the first invalid one.
struct Device<'a>(&'a State<'a>);

impl<'de> DeserializeSeed<'de> for Device<'_> {
    type Value = Result<Spans, usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Values other than a list of spans.
macro_rules! otherwise {
    ($value:expr) => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("anything")
        }
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

/// Values other than numbers.
macro_rules! no_number {
    ($value:expr) => {
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

/// Passes over the rest of a list.
fn pass<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de> Visitor<'de> for Device<'_> {
    type Value = Result<Spans, usize>;

    otherwise!(Err(0));
    no_number!(Err(0));

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut spans = Vec::new();
        while let Some(Pair(pair)) = list.next_element()? {
            let Some(pair) = pair else {
                pass(&mut list)?;
                return Ok(Err(spans.len()));
            };
            self.0.keep(1, size_of_val(&pair) as u64)?;
            spans.push(pair);
        }
        Ok(Ok(spans))
    }
}

/// Start and end in seconds; `None` for anything else.
struct Pair(Option<(f64, f64)>);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairVisitor;
        impl<'de> Visitor<'de> for PairVisitor {
            type Value = Pair;
            otherwise!(Pair(None));
            no_number!(Pair(None));
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pair, A::Error> {
                let (start, end) = (list.next_element::<Time>()?, list.next_element::<Time>()?);
                let is_longer = list.next_element::<IgnoredAny>()?.is_some();
                pass(&mut list)?;
                Ok(match (start, end, is_longer) {
                    (Some(Time(start)), Some(Time(end)), false) => Pair(start.zip(end)),
                    _ => Pair(None),
                })
            }
        }
        deserializer.deserialize_any(PairVisitor)
    }
}

/// A number of seconds, perhaps negative; `None` for anything else.
struct Time(Option<f64>);

impl Time {
    fn of(seconds: f64) -> Self {
        Self(Some(seconds).filter(|seconds| Span::from_seconds(seconds.abs()).is_ok()))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl<'de> Visitor<'de> for TimeVisitor {
            type Value = Time;
            otherwise!(Time(None));
            fn visit_f64<E: Error>(self, number: f64) -> Result<Time, E> {
                Ok(Time::of(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Time, E> {
                Ok(Time::of(number as f64))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Time, E> {
                Ok(Time::of(number as f64))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Time, A::Error> {
                pass(&mut list)?;
                Ok(Time(None))
            }
        }
        deserializer.deserialize_any(TimeVisitor)
    }
}
