//! Links whose rate changes over time: a transfer ends when the integral of the rate reaches its bits.
//!
//! # Definition
//! The rate is constant between the points of a trace: that of a point holds from its time until the next point's. A
//! transfer of b bits that begins at t₀ ends at the smallest t with `∫_{t₀}^{t} rate ≥ b`; with b = 0, at t₀. At rate 0
//! nothing moves. A trace that wraps begins again at the end of its window; any other has rate 0 from there on. A
//! transfer never ends on a link with rate 0 from some time on.
//!
//! # Inputs
//! Ascending times, a finite rate of at least 0 bit/s at each, the length of the window.
//!
//! # Source
//! Trace-driven links as in H. Mao, R. Netravali, M. Alizadeh, "Neural Adaptive Video Streaming with Pensieve", SIGCOMM
//! 2017.
//!
//! # Deviations from the source
//! Pensieve's player takes the rate of a point to hold *until* its time, from that of the point before.
//!
//! # Cost
//! A binary search among the integrals up to each point; 24 bytes per point, shared by the clients that follow the
//! trace. A transfer that waits for its device takes one step per time the device comes or goes.
//!
//! # Accuracy
//! Integrals are sums of doubles in the order of the points. An end is rounded to the nearest ns; its relative error is
//! about 1e-15 times the bits of the whole trace over those of the transfer.
//!
//! # Determinism
//! Nothing is drawn.
//!
//! # Example
//! ```
//! use fedgenie_simulator::population::link::LinkTrace;
//! use fedgenie_core::time::{Span, VirtualTime};
//! // 8 Mbit/s for a second, nothing for a second, and again.
//! let link = LinkTrace::new(&[Span(0), Span(1_000_000_000)], &[8e6, 0.0], Span(2_000_000_000), true).unwrap();
//! let end = link.transfer(VirtualTime(500_000_000), 6e6).unwrap();
//! assert_eq!(end, VirtualTime(2_250_000_000));
//! ```

use super::availability::{MOST_CHANGES, Stretch};
use fedgenie_core::math::float::floor;
use fedgenie_core::math::sum::CompensatedSum;
use fedgenie_core::time::{Span, VirtualTime};
use std::fmt;
use std::sync::Arc;

const NS: f64 = 1e9;

/// See the [module](self). Copies share their points.
#[derive(Clone)]
pub struct LinkTrace {
    points: Arc<Points>,
    /// Where its points begin among these.
    first: usize,
    /// How many pieces of constant rate it has; its points are one more.
    pieces: usize,
    wrap: bool,
}

/// Points of links, one link after another.
#[derive(Default)]
struct Points {
    /// Where each piece of constant rate begins, in ns, and after those of a link its window's end.
    times: Vec<u64>,
    /// Bits per second; 0 at a window's end, so that all three have the same indices.
    rates: Vec<f64>,
    /// Bits from a link's beginning up to each time.
    integrals: Vec<f64>,
}

/// Links whose points lie side by side, for files that have many of few points.
#[derive(Default)]
pub struct LinkTraces {
    points: Points,
    /// First point, pieces, and whether it wraps.
    links: Vec<(usize, usize, bool)>,
}

/// Why a link is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// No points, or not as many times as rates.
    #[error("expected at least one point, and a rate for each time")]
    Points,
    /// A time out of order.
    #[error("times do not ascend from 0 to before the window's end (point {0})")]
    Time(usize),
    /// A rate out of range.
    #[error("a rate is no finite number of at least 0 (point {0})")]
    Rate(usize),
}

impl LinkTraces {
    /// Adds a link; see [`LinkTrace::new`].
    ///
    /// # Errors
    /// As [`LinkTrace::new`]; earlier links are lost too.
    pub fn add(
        &mut self,
        points: impl Iterator<Item = (Span, f64)>,
        window: Span,
        wrap: bool,
    ) -> Result<(), LinkError> {
        let Points { times, rates, integrals } = &mut self.points;
        let first = times.len();
        for (time, rate) in points {
            times.push(time.0);
            rates.push(rate);
        }
        let pieces = times.len() - first;
        if pieces == 0 {
            return Err(LinkError::Points);
        }
        times.push(window.0);
        rates.push(0.0);
        integrals.push(0.0);
        let mut sum = CompensatedSum::default();
        for (point, at) in (first..first + pieces).enumerate() {
            let (time, next, rate) = (times[at], times[at + 1], rates[at]);
            if (point == 0 && time != 0) || next <= time {
                return Err(LinkError::Time(point));
            }
            if !(0.0..f64::INFINITY).contains(&rate) {
                return Err(LinkError::Rate(point));
            }
            sum.add(rate * Span(next - time).seconds());
            integrals.push(sum.value());
        }
        self.links.push((first, pieces, wrap));
        Ok(())
    }

    /// The links, in the order in which they were added.
    pub fn finish(self) -> Vec<LinkTrace> {
        let Self { mut points, links } = self;
        points.times.shrink_to_fit();
        points.rates.shrink_to_fit();
        points.integrals.shrink_to_fit();
        let points = Arc::new(points);
        let link = |(first, pieces, wrap)| LinkTrace { points: points.clone(), first, pieces, wrap };
        links.into_iter().map(link).collect()
    }
}

impl PartialEq for LinkTrace {
    fn eq(&self, other: &Self) -> bool {
        let parts = |link: &Self| (link.wrap, link.window());
        parts(self) == parts(other) && self.times() == other.times() && self.rates() == other.rates()
    }
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("LinkTrace");
        shown.field("times", &self.times()).field("rates", &self.rates()).field("wrap", &self.wrap).finish()
    }
}

impl LinkTrace {
    /// A link with these rates in bit/s from these times on; the first time is 0, the last before the end of the
    /// window.
    ///
    /// # Errors
    /// If times or rates are out of order or range; the number of the point, from 0.
    pub fn new(times: &[Span], rates: &[f64], window: Span, wrap: bool) -> Result<Self, LinkError> {
        if times.len() != rates.len() {
            return Err(LinkError::Points);
        }
        let mut links = LinkTraces::default();
        links.add(times.iter().copied().zip(rates.iter().copied()), window, wrap)?;
        links.finish().pop().ok_or(LinkError::Points)
    }

    /// Where each piece of constant rate begins, in ns, and at last the window's end.
    fn times(&self) -> &[u64] {
        &self.points.times[self.first..=self.first + self.pieces]
    }

    /// Bits per second of each piece.
    fn rates(&self) -> &[f64] {
        &self.points.rates[self.first..self.first + self.pieces]
    }

    /// Bits from the beginning up to each time.
    fn integrals(&self) -> &[f64] {
        &self.points.integrals[self.first..=self.first + self.pieces]
    }

    /// Bits of the whole window.
    fn whole(&self) -> f64 {
        self.points.integrals[self.first + self.pieces]
    }

    /// How long the trace is before it ends or begins again.
    pub fn window(&self) -> Span {
        Span(self.points.times[self.first + self.pieces])
    }

    /// Mean rate over the window, in bit/s.
    pub fn mean(&self) -> f64 {
        self.whole() / self.window().seconds()
    }

    /// The link with all rates multiplied.
    ///
    /// # Errors
    /// If a rate is no finite number of at least 0 afterwards.
    pub fn scaled(&self, factor: f64) -> Result<Self, LinkError> {
        let times: Vec<Span> = self.times()[..self.pieces].iter().map(|&time| Span(time)).collect();
        let rates: Vec<f64> = self.rates().iter().map(|rate| rate * factor).collect();
        Self::new(&times, &rates, self.window(), self.wrap)
    }

    /// Beginning of the window that contains a time, and the ns since then; `None` after the end of the trace.
    fn in_window(&self, time: VirtualTime) -> Option<(u64, u64)> {
        let window = self.window().0;
        if time.0 < window {
            return Some((0, time.0));
        }
        self.wrap.then(|| (time.0 - time.0 % window, time.0 % window))
    }

    /// The index of the piece of constant rate at so many ns of the window.
    fn piece(&self, since: u64) -> usize {
        self.times().partition_point(|time| *time <= since) - 1
    }

    /// When a transfer that begins at `from` has moved `bits`; `None` if never, or only after the end of virtual time.
    pub fn transfer(&self, from: VirtualTime, bits: f64) -> Option<VirtualTime> {
        if bits <= 0.0 {
            return Some(from);
        }
        let (mut base, since) = self.in_window(from)?;
        let piece = self.piece(since);
        // Within the piece under way, without the integrals.
        let (times, rates, integrals) = (self.times(), self.rates(), self.integrals());
        let room = rates[piece] * Span(times[piece + 1] - since).seconds();
        if bits <= room {
            return later(from.0, bits / rates[piece]);
        }
        // Bits that are still to be moved at the beginning of `after`, as an integral from the beginning of the window.
        let whole = self.whole();
        let mut target = integrals[piece + 1] + (bits - room);
        let mut first = piece + 1;
        if target > whole {
            if !self.wrap || whole <= 0.0 {
                return None;
            }
            // Whole windows, so many that bits are left for the last one.
            target -= whole;
            first = 0;
            let more = floor(target / whole);
            let more = if target - more * whole > 0.0 { more } else { more - 1.0 };
            target = (target - more * whole).min(whole);
            let windows = 1.0 + more;
            if windows * self.window().0 as f64 >= u64::MAX as f64 {
                return None;
            }
            base = base.checked_add(self.window().0.checked_mul(windows as u64)?)?;
        }
        let piece = first + integrals[first + 1..].partition_point(|integral| *integral < target);
        let left = target - integrals[piece];
        // The bits left may be lost in rounding, before a piece without capacity.
        let seconds = if left > 0.0 { left / rates[piece] } else { 0.0 };
        later(base.checked_add(times[piece])?, seconds).map(|end| end.max(from))
    }

    /// Whether nothing will ever move from a time on.
    fn is_over(&self, from: VirtualTime) -> bool {
        match self.in_window(from) {
            _ if self.wrap => self.whole() <= 0.0,
            Some((_, since)) => self.rates()[self.piece(since)..].iter().all(|&rate| rate == 0.0),
            None => true,
        }
    }

    /// Bits that move from one time to a later one.
    pub fn moved(&self, from: VirtualTime, to: VirtualTime) -> f64 {
        let Some((base, start)) = self.in_window(from) else { return 0.0 };
        if to <= from {
            return 0.0;
        }
        let up_to = |since: u64| {
            let piece = self.piece(since);
            self.integrals()[piece] + self.rates()[piece] * Span(since - self.times()[piece]).seconds()
        };
        match self.in_window(to) {
            Some((later, end)) if later == base && self.piece(start) == self.piece(end) => {
                self.rates()[self.piece(start)] * Span(end - start).seconds()
            }
            Some((later, end)) => {
                let windows = (later - base) / self.window().0;
                windows as f64 * self.whole() + (up_to(end) - up_to(start))
            }
            None => self.whole() - up_to(start),
        }
        .max(0.0)
    }

    /// [`LinkTrace::transfer`] for a device that is sometimes away: bits move only in its available stretches,
    /// `[start, end)`. A transfer that needs exactly the rest of a stretch ends at its end; a transfer of 0 bits ends
    /// at once, even if the device is away. Also `None` after [`MOST_CHANGES`] stretches. `offset` is the link's time
    /// at the run's beginning.
    pub fn transfer_while(
        &self,
        offset: Span,
        from: VirtualTime,
        bits: f64,
        mut stretch: impl FnMut(VirtualTime) -> Stretch,
    ) -> Option<VirtualTime> {
        let (mut now, mut left) = (from, bits);
        if left <= 0.0 {
            return Some(now);
        }
        let in_trace = |time: VirtualTime| time.0.checked_add(offset.0).map(VirtualTime);
        for _ in 0..MOST_CHANGES {
            let Stretch { available, until } = stretch(now);
            if available {
                let begins = in_trace(now)?;
                let ends = self.transfer(begins, left).map(|end| VirtualTime(end.0 - offset.0));
                match ends {
                    Some(end) if end <= until => return Some(end),
                    // Nothing will ever move again, whether the device is there or not.
                    _ if self.is_over(begins) => return None,
                    _ if until == VirtualTime::MAX => return None,
                    _ => {}
                }
                left -= self.moved(begins, in_trace(until)?);
                if left <= 0.0 {
                    return Some(until);
                }
            }
            if until == VirtualTime::MAX {
                return None;
            }
            now = until;
        }
        None
    }
}

/// A time `seconds` after another one, rounded to the nearest ns.
fn later(from: u64, seconds: f64) -> Option<VirtualTime> {
    let nanoseconds = libm::round(seconds * NS);
    let fits = nanoseconds < u64::MAX as f64;
    if fits { from.checked_add(nanoseconds as u64).map(VirtualTime) } else { None }
}

#[cfg(test)]
mod tests;
