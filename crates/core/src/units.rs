//! Quantities as a person writes them: a number and a unit, for example `"25 ms"`, `"10 Mbit/s"`, `"850 kB"`.
//!
//! A quantity without a unit is refused rather than guessed. Values are kept in the base unit (seconds, bits per
//! second, bytes, per second, joules, watts) and written back in it, with as many digits as reading them again needs.

use crate::time::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// A dimension: its base unit, and the units that can be written.
pub trait Quantity: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The accepted form, for errors.
    const EXPECTED: &'static str;
    /// The base unit written after a value; empty for plain numbers.
    const BASE: &'static str;
    /// Units and their size: `Ok(n)` is n base units, `Err(n)` is a 1/n base unit (so that milliseconds stay exact).
    const UNITS: &'static [(&'static str, Result<f64, f64>)];
}

/// Time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds;
/// A plain number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plain;
/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitsPerSecond;
/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes;
/// A rate of events per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond;
/// Energy in joules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joules;
/// Power in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watts;

impl Quantity for Seconds {
    const EXPECTED: &'static str = "a duration such as \"25 ms\" (units ns, us, ms, s, min, h, d)";
    const BASE: &'static str = "s";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] = &[
        ("ns", Err(1e9)),
        ("us", Err(1e6)),
        ("ms", Err(1e3)),
        ("s", Ok(1.0)),
        ("min", Ok(60.0)),
        ("h", Ok(3600.0)),
        ("d", Ok(86400.0)),
    ];
}

impl Quantity for Plain {
    const EXPECTED: &'static str = "a number without a unit";
    const BASE: &'static str = "";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] = &[];
}

impl Quantity for BitsPerSecond {
    const EXPECTED: &'static str =
        "a data rate such as \"10 Mbit/s\" (units bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s)";
    const BASE: &'static str = "bit/s";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] = &[
        ("bit/s", Ok(1.0)),
        ("kbit/s", Ok(1e3)),
        ("Mbit/s", Ok(1e6)),
        ("Gbit/s", Ok(1e9)),
        ("B/s", Ok(8.0)),
        ("kB/s", Ok(8e3)),
        ("MB/s", Ok(8e6)),
        ("GB/s", Ok(8e9)),
    ];
}

impl Quantity for Bytes {
    const EXPECTED: &'static str = "an amount of data such as \"850 kB\" (units B, kB, MB, GB, TB; 1 kB is 1000 B)";
    const BASE: &'static str = "B";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] =
        &[("B", Ok(1.0)), ("kB", Ok(1e3)), ("MB", Ok(1e6)), ("GB", Ok(1e9)), ("TB", Ok(1e12))];
}

impl Quantity for PerSecond {
    const EXPECTED: &'static str = "a hazard rate such as \"0.01 /s\" (units /s, /min, /h, /d)";
    const BASE: &'static str = "/s";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] =
        &[("/s", Ok(1.0)), ("/min", Err(60.0)), ("/h", Err(3600.0)), ("/d", Err(86400.0))];
}

impl Quantity for Joules {
    const EXPECTED: &'static str = "an energy such as \"40 kJ\" (units J, kJ, Wh; 1 Wh is 3600 J)";
    const BASE: &'static str = "J";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] = &[("J", Ok(1.0)), ("kJ", Ok(1e3)), ("Wh", Ok(3600.0))];
}

impl Quantity for Watts {
    const EXPECTED: &'static str = "a power such as \"50 mW\" (units mW, W)";
    const BASE: &'static str = "W";
    const UNITS: &'static [(&'static str, Result<f64, f64>)] = &[("mW", Err(1e3)), ("W", Ok(1.0))];
}

/// Reads a quantity's text into its base unit.
///
/// # Errors
/// A sentence with the accepted form.
pub fn parse<Q: Quantity>(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    // The unit starts at the first letter or slash that is not part of an exponent.
    let start = text
        .char_indices()
        .find(|&(place, letter)| {
            let exponent = matches!(letter, 'e' | 'E')
                && text[place + 1..].starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+');
            letter.is_whitespace() || letter == '/' || (letter.is_alphabetic() && !exponent)
        })
        .map_or(text.len(), |(place, _)| place);
    let (number, unit) = (&text[..start], text[start..].trim());
    let number: f64 = number.replace('_', "").parse().map_err(|_| Q::EXPECTED)?;
    if !number.is_finite() {
        return Err(Q::EXPECTED);
    }
    let (_, size) = Q::UNITS.iter().find(|(name, _)| *name == unit).ok_or(Q::EXPECTED)?;
    let number = match size {
        Ok(times) => number * times,
        Err(parts) => number / parts,
    };
    if number.is_finite() { Ok(number) } else { Err(Q::EXPECTED) }
}

/// Reads a quantity of any dimension: its value in the base unit, and that unit. `None` for anything else, plain
/// numbers too.
pub fn any(text: &str) -> Option<(f64, &'static str)> {
    fn of<Q: Quantity>(text: &str) -> Option<(f64, &'static str)> {
        parse::<Q>(text).ok().map(|value| (value, Q::BASE))
    }
    of::<Seconds>(text)
        .or_else(|| of::<BitsPerSecond>(text))
        .or_else(|| of::<Bytes>(text))
        .or_else(|| of::<PerSecond>(text))
        .or_else(|| of::<Joules>(text))
        .or_else(|| of::<Watts>(text))
}

/// Writes a quantity in its base unit, so that reading it gives the same bits.
pub fn format<Q: Quantity>(value: f64) -> String {
    format!("{value} {}", Q::BASE)
}

/// A number of some dimension, in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Amount<Q>(pub f64, std::marker::PhantomData<Q>);

impl<Q> Amount<Q> {
    /// A value in the base unit.
    pub const fn new(value: f64) -> Self {
        Self(value, std::marker::PhantomData)
    }
}

impl<Q: Quantity> Serialize for Amount<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if Q::BASE.is_empty() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&format::<Q>(self.0))
        }
    }
}

impl<'de, Q: Quantity> Deserialize<'de> for Amount<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<Q>(std::marker::PhantomData<Q>);
        impl<Q: Quantity> de::Visitor<'_> for Visitor<Q> {
            type Value = Amount<Q>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(Q::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount<Q>, E> {
                parse::<Q>(text).map(Amount::new).map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount<Q>, E> {
                if Q::BASE.is_empty() && number.is_finite() {
                    Ok(Amount::new(number))
                } else {
                    Err(E::custom(Q::EXPECTED))
                }
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount<Q>, E> {
                self.visit_f64(number as f64)
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<Q: Quantity> schemars::JsonSchema for Amount<Q> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        if Q::BASE.is_empty() { "number".into() } else { format!("amount in {}", Q::BASE).into() }
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        if Q::BASE.is_empty() {
            schemars::json_schema!({ "type": "number" })
        } else {
            schemars::json_schema!({ "type": "string", "description": Q::EXPECTED })
        }
    }
}

/// A span of virtual time as written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub Span);

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The largest unit that leaves a whole number, which reads back as the same span.
        let units = [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let found = units.into_iter().find(|&(_, size)| self.0.0 > 0 && self.0.0.is_multiple_of(size));
        let (unit, size) = found.unwrap_or(("ns", 1));
        serializer.serialize_str(&format!("{} {unit}", self.0.0 / size))
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = Amount::<Seconds>::deserialize(deserializer)?;
        Span::from_seconds(seconds.0)
            .map(Self)
            .map_err(|error| de::Error::custom(format!("{} ({error})", Seconds::EXPECTED)))
    }
}

impl schemars::JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "duration".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Amount::<Seconds>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_exactly() {
        assert_eq!(parse::<Seconds>("25 ms"), Ok(0.025));
        assert_eq!(parse::<Seconds>("35ms"), Ok(0.035));
        assert_eq!(parse::<Seconds>("1e-3 s"), Ok(0.001));
        assert_eq!(parse::<Seconds>("3 h"), Ok(10800.0));
        assert_eq!(parse::<BitsPerSecond>("1.5 MB/s"), Ok(12e6));
        assert_eq!(parse::<Bytes>("850 kB"), Ok(850_000.0));
        assert_eq!(parse::<PerSecond>("6 /min"), Ok(0.1));
        assert_eq!(parse::<Seconds>("70_000 s"), Ok(70_000.0));
        assert_eq!(["40 kJ", "11.1 Wh", "12 J"].map(parse::<Joules>), [Ok(40_000.0), Ok(39_960.0), Ok(12.0)]);
        assert_eq!(["50 mW", "2.5 W"].map(parse::<Watts>), [Ok(0.05), Ok(2.5)]);
    }

    #[test]
    fn any_quantity_tells_its_base_unit() {
        let found = ["2 min", "1.5 MB/s", "850 kB", "6 /min", "2 kJ", "50 mW"].map(any);
        let expected = [(120.0, "s"), (12e6, "bit/s"), (850_000.0, "B"), (0.1, "/s"), (2000.0, "J"), (0.05, "W")];
        assert_eq!(found, expected.map(Some));
        assert_eq!(["20", "drop", "2 parsecs", ""].map(any), [None; 4]);
    }

    #[test]
    fn wrong_units_and_missing_units_are_refused() {
        for text in ["25", "25 parsecs", "ms", "", "NaN s", "inf s", "1 MB", "1e400 s", "1 s s"] {
            assert_eq!(parse::<Seconds>(text), Err(Seconds::EXPECTED), "{text:?}");
        }
        assert_eq!(["3 kWh", "50 W", "7"].map(parse::<Joules>), [Err(Joules::EXPECTED); 3]);
        assert_eq!(["3 uW", "50 J", "7"].map(parse::<Watts>), [Err(Watts::EXPECTED); 3]);
        assert_eq!(parse::<BitsPerSecond>("-1e308 Mbit/s"), Err(BitsPerSecond::EXPECTED), "infinite in its base unit");
    }

    #[test]
    fn what_is_written_reads_back_to_the_same_bits() {
        for value in [0.1 + 0.2, 1e-9, 12_345.678_9] {
            assert_eq!(parse::<Seconds>(&format::<Seconds>(value)), Ok(value));
        }
    }
}
