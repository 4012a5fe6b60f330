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

const NS: f64 = 1e9;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct LinkTrace {
    /// Where each piece of constant rate begins, in ns, and at last the window's end.
    times: Box<[u64]>,
    /// Bits per second.
    rates: Box<[f64]>,
    /// Bits from the beginning up to each time.
    integrals: Box<[f64]>,
    wrap: bool,
}

/// Why there is no such link.
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

impl LinkTrace {
    /// A link with these rates in bit/s from these times on; the first time is 0, the last before the end of the
    /// window.
    ///
    /// # Errors
    /// If times or rates are not as they have to be; the number of the point, from 0.
    pub fn new(times: &[Span], rates: &[f64], window: Span, wrap: bool) -> Result<Self, LinkError> {
        if times.is_empty() || times.len() != rates.len() {
            return Err(LinkError::Points);
        }
        let mut integrals = vec![0.0];
        let mut sum = CompensatedSum::default();
        for (point, (&time, &rate)) in times.iter().zip(rates).enumerate() {
            let next = times.get(point + 1).copied().unwrap_or(window);
            if (point == 0 && time != Span::ZERO) || next <= time {
                return Err(LinkError::Time(point));
            }
            if !(0.0..f64::INFINITY).contains(&rate) {
                return Err(LinkError::Rate(point));
            }
            sum.add(rate * Span(next.0 - time.0).seconds());
            integrals.push(sum.value());
        }
        let times = times.iter().chain([&window]).map(|time| time.0).collect();
        Ok(Self { times, rates: rates.into(), integrals: integrals.into(), wrap })
    }

    /// How long the trace is before it ends or begins again.
    pub fn window(&self) -> Span {
        Span(self.times[self.rates.len()])
    }

    /// Mean rate over the window, in bit/s.
    pub fn mean(&self) -> f64 {
        self.integrals[self.rates.len()] / self.window().seconds()
    }

    /// The link with all rates multiplied.
    ///
    /// # Errors
    /// If a rate is no finite number of at least 0 afterwards.
    pub fn scaled(&self, factor: f64) -> Result<Self, LinkError> {
        let times: Vec<Span> = self.times[..self.rates.len()].iter().map(|&time| Span(time)).collect();
        let rates: Vec<f64> = self.rates.iter().map(|rate| rate * factor).collect();
        Self::new(&times, &rates, self.window(), self.wrap)
    }

    /// Where the window begins in which a time lies, and the ns since then; none after the end of the trace.
    fn in_window(&self, time: VirtualTime) -> Option<(u64, u64)> {
        let window = self.window().0;
        if time.0 < window {
            return Some((0, time.0));
        }
        self.wrap.then(|| (time.0 - time.0 % window, time.0 % window))
    }

    /// The index of the piece of constant rate at so many ns of the window.
    fn piece(&self, since: u64) -> usize {
        self.times.partition_point(|time| *time <= since) - 1
    }

    /// When a transfer that begins at `from` has moved `bits`; `None` if that never happens, or only after the end of
    /// virtual time.
    pub fn transfer(&self, from: VirtualTime, bits: f64) -> Option<VirtualTime> {
        if bits <= 0.0 {
            return Some(from);
        }
        let (mut base, since) = self.in_window(from)?;
        let piece = self.piece(since);
        // Within the piece under way, without the integrals.
        let room = self.rates[piece] * Span(self.times[piece + 1] - since).seconds();
        if bits <= room {
            return later(from.0, bits / self.rates[piece]);
        }
        // Bits that are still to be moved at the beginning of `after`, as an integral from the beginning of the window.
        let whole = self.integrals[self.rates.len()];
        let mut target = self.integrals[piece + 1] + (bits - room);
        let mut first = piece + 1;
        if target > whole {
            if !self.wrap || whole <= 0.0 {
                return None;
            }
            // Whole windows: as many as leave something for the last one.
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
        let piece = first + self.integrals[first + 1..].partition_point(|integral| *integral < target);
        let left = target - self.integrals[piece];
        // What is left may be lost in rounding, before a piece that carries nothing.
        let seconds = if left > 0.0 { left / self.rates[piece] } else { 0.0 };
        later(base.checked_add(self.times[piece])?, seconds).map(|end| end.max(from))
    }

    /// Whether nothing will ever move from a time on.
    fn is_over(&self, from: VirtualTime) -> bool {
        let whole = self.integrals[self.rates.len()];
        match self.in_window(from) {
            _ if self.wrap => whole <= 0.0,
            Some((_, since)) => self.rates[self.piece(since)..].iter().all(|&rate| rate == 0.0),
            None => true,
        }
    }

    /// Bits that move from one time to a later one.
    pub fn moved(&self, from: VirtualTime, to: VirtualTime) -> f64 {
        let whole = self.integrals[self.rates.len()];
        let Some((base, start)) = self.in_window(from) else { return 0.0 };
        if to <= from {
            return 0.0;
        }
        let up_to = |since: u64| {
            let piece = self.piece(since);
            self.integrals[piece] + self.rates[piece] * Span(since - self.times[piece]).seconds()
        };
        match self.in_window(to) {
            Some((later, end)) if later == base && self.piece(start) == self.piece(end) => {
                self.rates[self.piece(start)] * Span(end - start).seconds()
            }
            Some((later, end)) => {
                let windows = (later - base) / self.window().0;
                windows as f64 * whole + (up_to(end) - up_to(start))
            }
            None => whole - up_to(start),
        }
        .max(0.0)
    }

    /// [`LinkTrace::transfer`] for a device that is sometimes away: bits move only in its available stretches,
    /// `[start, end)`. A transfer that needs exactly the rest of a stretch ends at its end; a transfer of 0 bits ends
    /// at once, even if the device is away. `None` too after
    /// [`MOST_CHANGES`] stretches. `offset` is the link's time at the run's beginning.
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
