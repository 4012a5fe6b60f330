//! When a phone is on its charger: hours of its day, or recorded intervals.

use crate::population::availability::Offsets;
use crate::population::availability::trace::Trace;
use fedgenie_core::config::Complaint;

/// Nanoseconds of an hour.
const HOUR: f64 = 3.6e12;
/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Number of a client's phase or offset among its parameters.
pub(super) const PHASE: u32 = 104;

/// A time in which the charger gives its power, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub is_on: bool,
    /// When this may end, exclusive; `u64::MAX` if never.
    pub until: u64,
}

/// When the chargers of a group give power.
#[derive(Clone, Debug)]
pub(super) enum Charger {
    Never,
    /// Hours of the client's day, in ns, ascending and apart; and its clock at time 0.
    Hours(Box<[(u64, u64)]>, Offsets),
    Intervals(Trace),
}

impl Charger {
    /// The piece that contains a time.
    pub fn at(&self, in_group: usize, time: u64) -> Piece {
        match self {
            Self::Never => Piece { is_on: false, until: u64::MAX },
            Self::Hours(bounds, phases) => {
                let clock = (time % DAY + phases.of(in_group) % DAY) % DAY;
                let next = bounds.partition_point(|(_, to)| *to <= clock);
                let (is_on, end) = match bounds.get(next) {
                    Some(&(from, to)) if from <= clock => (true, to),
                    Some(&(from, _)) => (false, from),
                    None => (false, DAY),
                };
                Piece { is_on, until: time.saturating_add(end - clock) }
            }
            Self::Intervals(trace) => {
                let (is_on, until) = trace.piece_at(in_group, time);
                Piece { is_on, until }
            }
        }
    }

    /// After how long a client's pieces are the same again; `None` if that is not known.
    pub fn period(&self, in_group: usize) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::Hours(..) => Some(DAY),
            Self::Intervals(trace) => trace.period(in_group),
        }
    }
}

/// Hours of a day in nanoseconds.
pub(super) fn bounds(hours: &[[f64; 2]]) -> Result<Box<[(u64, u64)]>, Complaint> {
    let refuse = |message: String| Err(Complaint::new("hours", message));
    if hours.is_empty() {
        return refuse("found none; a battery that can never charge has no charger: take charge out".to_owned());
    }
    let mut all = Vec::with_capacity(hours.len());
    for &[from, to] in hours {
        let is_hour = |hour: f64| (0.0..=24.0).contains(&hour);
        if is_hour(from) && is_hour(to) && from > to && to > 0.0 {
            return refuse(format!("found [{from}, {to}]; over midnight, write [{from}, 24], [0, {to}]"));
        }
        if !is_hour(from) || !is_hour(to) || from >= to {
            return refuse(format!("found [{from}, {to}]; expected two hours from 0 to 24, the earlier first"));
        }
        all.push((libm::round(from * HOUR) as u64, libm::round(to * HOUR) as u64));
    }
    all.sort_unstable();
    if let Some(pair) = all.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        let [one, other] = [pair[0], pair[1]].map(|(from, to)| [from as f64 / HOUR, to as f64 / HOUR]);
        return refuse(format!("found {one:?} and {other:?}, which overlap; write them as one"));
    }
    Ok(all.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: u64 = 3_600_000_000_000;

    fn of(hours: &[[f64; 2]], phase: u64) -> Charger {
        Charger::Hours(bounds(hours).unwrap(), Offsets::Shared(phase))
    }

    #[test]
    fn hours_are_of_the_clients_day() {
        let night = of(&[[22.0, 24.0], [0.0, 6.5]], 0);
        let piece = |is_on, until| Piece { is_on, until };
        assert_eq!(night.at(0, 0), piece(true, 6 * H + H / 2));
        assert_eq!(night.at(0, 6 * H + H / 2), piece(false, 22 * H));
        assert_eq!(night.at(0, 22 * H), piece(true, 24 * H));
        assert_eq!(night.at(0, 47 * H), piece(true, 48 * H));
        let later = of(&[[9.0, 10.0]], 8 * H);
        assert_eq!(later.at(0, 0), piece(false, H));
        assert_eq!(later.at(0, H + 1), piece(true, 2 * H));
        assert_eq!(later.at(0, 2 * H), piece(false, 16 * H), "up to midnight");
        assert_eq!(later.at(0, 16 * H), piece(false, 25 * H));
        assert_eq!(of(&[[0.0, 24.0]], 0).at(0, 5), piece(true, 24 * H));
    }

    #[test]
    fn impossible_hours_are_refused() {
        let said = |hours: &[[f64; 2]]| bounds(hours).unwrap_err().to_string();
        assert!(said(&[]).contains("can never charge"));
        assert!(said(&[[22.0, 6.0]]).contains("write [22, 24], [0, 6]"));
        assert!(said(&[[3.0, 3.0]]).contains("the earlier first"));
        assert!(said(&[[3.0, 25.0]]).contains("from 0 to 24"));
        assert!(said(&[[f64::NAN, 2.0]]).contains("from 0 to 24"));
        assert!(said(&[[8.0, 12.0], [7.0, 9.0]]).contains("[7.0, 9.0] and [8.0, 12.0], which overlap"));
    }
}
