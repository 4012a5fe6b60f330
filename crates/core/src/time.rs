//! Virtual time: integer nanoseconds, so that adding durations is exact and associative.

use crate::limits::DURATION_SECONDS;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds in a second.
pub const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// A length of virtual time in nanoseconds, at most about 584 years. A span that is read, drawn or measured is at most
/// [`DURATION_SECONDS`], so that a few of them can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Why a number of seconds cannot be a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Not a number.
    #[error("a duration is not a number (NaN)")]
    NotANumber,
    /// Below zero.
    #[error("a duration is negative")]
    Negative,
    /// Infinite, or beyond [`DURATION_SECONDS`].
    #[error("a duration is infinite or longer than 100 years")]
    TooLong,
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Seconds rounded to the nearest nanosecond, halves away from zero.
    ///
    /// # Errors
    /// NaN, negative, infinite and overlong durations are refused; nothing is clamped.
    #[inline]
    pub fn from_seconds(seconds: f64) -> Result<Self, SpanError> {
        if seconds.is_nan() {
            return Err(SpanError::NotANumber);
        }
        if seconds < 0.0 {
            return Err(SpanError::Negative);
        }
        let nanoseconds = seconds * NANOSECONDS_PER_SECOND;
        if nanoseconds > DURATION_SECONDS as f64 * NANOSECONDS_PER_SECOND {
            return Err(SpanError::TooLong);
        }
        // The limit fits into an `i64`, and the difference is exact: this is `round` without the call.
        let whole = nanoseconds as i64;
        Ok(Self(whole as u64 + u64::from(nanoseconds - whole as f64 >= 0.5)))
    }

    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / NANOSECONDS_PER_SECOND
    }

    /// The shorter of two spans.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("a span of virtual time exceeds 584 years"))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Span {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Time of many clients together in nanoseconds, which may be longer than any [`Span`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TotalTime(pub u128);

impl TotalTime {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / NANOSECONDS_PER_SECOND
    }
}

impl From<Span> for TotalTime {
    #[inline]
    fn from(span: Span) -> Self {
        Self(span.0.into())
    }
}

impl AddAssign<Span> for TotalTime {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self += Self::from(span);
    }
}

impl AddAssign for TotalTime {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.checked_add(other.0).expect("2^64 spans of time fit into 128 bits");
    }
}

/// An instant of virtual time: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VirtualTime(pub u64);

impl VirtualTime {
    /// The instant at which a run begins.
    pub const START: Self = Self(0);

    /// The last instant there is, which stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Seconds since the run began.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / NANOSECONDS_PER_SECOND
    }
}

impl Add<Span> for VirtualTime {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.checked_add(span.0).expect("virtual time exceeds 584 years"))
    }
}

impl Sub for VirtualTime {
    type Output = Span;
    /// The span from `earlier` to `self`; asserts that it is not negative.
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.checked_sub(earlier.0).expect("virtual time never goes back"))
    }
}

impl fmt::Display for VirtualTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} s", self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_seconds(1.5e-9), Ok(Span(2)));
        assert_eq!(Span::from_seconds(1.4e-9), Ok(Span(1)));
        assert_eq!(Span::from_seconds(0.025), Ok(Span(25_000_000)));
        assert_eq!(Span::from_seconds(0.0), Ok(Span::ZERO));
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 0);
        for case in 0..100_000 {
            // Also halves, the numbers beside them, and numbers without a fraction.
            let nanoseconds = [rng.uniform() * 4.0, rng.below(9) as f64 + 0.5, rng.uniform() * 1e18][case % 3];
            for nanoseconds in [nanoseconds.next_down(), nanoseconds, nanoseconds.next_up()] {
                let seconds = nanoseconds / NANOSECONDS_PER_SECOND;
                let rounded = libm::round(seconds * NANOSECONDS_PER_SECOND) as u64;
                assert_eq!(Span::from_seconds(seconds), Ok(Span(rounded)), "{seconds} s");
            }
        }
    }

    #[test]
    fn impossible_durations_are_refused_and_never_clamped() {
        assert_eq!(Span::from_seconds(f64::NAN), Err(SpanError::NotANumber));
        assert_eq!(Span::from_seconds(-1e-12), Err(SpanError::Negative));
        assert_eq!(Span::from_seconds(f64::INFINITY), Err(SpanError::TooLong));
        assert_eq!(Span::from_seconds(1e11), Err(SpanError::TooLong));
        assert_eq!(Span::from_seconds(3_153_600_000.0), Ok(Span(3_153_600_000_000_000_000)));
        assert_eq!(Span::from_seconds(3_153_600_001.0), Err(SpanError::TooLong));
    }

    #[test]
    fn the_time_of_many_is_longer_than_a_span() {
        let mut total = TotalTime::ZERO;
        (0..1_000).for_each(|_| total += Span(u64::MAX));
        assert_eq!(total, TotalTime(1_000 * u128::from(u64::MAX)));
        assert!((total.seconds() - 1.844_674_407_370_955e13).abs() < 1e3);
    }

    #[test]
    #[should_panic(expected = "never goes back")]
    fn a_negative_difference_is_a_broken_invariant() {
        let _ = VirtualTime(1) - VirtualTime(2);
    }
}
