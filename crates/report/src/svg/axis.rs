//! Axes with ticks at 1, 2 and 5.

use fedgenie_core::math::float;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis between two positions; these are values, or their decimal logarithms.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub is_logarithmic: bool,
    /// Position on the axis, and text.
    ticks: Vec<(f64, String)>,
}

/// Whether the ends of an axis are far enough apart for doubles to tell the positions between them.
pub(super) fn is_resolved(low: f64, high: f64) -> bool {
    high / 2.0 - low / 2.0 > 0.5 * CLOSEST * low.abs().max(high.abs()) && high - low > NARROWEST
}

/// The least difference of an axis' ends, as a share of the larger.
const CLOSEST: f64 = 1e-12;
/// The least difference of an axis' ends.
const NARROWEST: f64 = 1e-290;

/// Ends with a margin on both sides, as a share of their distance; half a unit, or as much as it takes, where the ends
/// are equal.
pub(super) fn with_margin([low, high]: [f64; 2], share: f64) -> [f64; 2] {
    let margin = if is_resolved(low, high) { share * high - share * low } else { 0.5_f64.max(1e-9 * high.abs()) };
    [low - margin, high + margin].map(|end| end.clamp(f64::MIN, f64::MAX))
}

impl Axis {
    /// An axis between finite ends, which are moved apart where numbers between them could not be told apart.
    pub fn new(low: f64, high: f64, is_logarithmic: bool) -> Self {
        let [low, high] = if is_resolved(low, high) { [low, high] } else { with_margin([low, low.max(high)], 0.0) };
        let ticks = if is_logarithmic { logarithmic_ticks(low, high) } else { linear_ticks(low, high) };
        Self { low, high, is_logarithmic, ticks }
    }

    /// The position of a value, at the frame if beyond.
    pub fn position(&self, value: f64) -> f64 {
        self.free_position(value).clamp(self.low, self.high)
    }

    /// The position of a value, also beyond the frame.
    pub fn free_position(&self, value: f64) -> f64 {
        match (self.is_logarithmic, value > 0.0) {
            (true, true) => float::log10(value),
            (true, false) => self.low,
            (false, _) => value,
        }
    }

    /// Whether a value lies within the frame.
    pub fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&self.free_position(value)) && (!self.is_logarithmic || value > 0.0)
    }

    /// How far along the axis a position lies, from 0 to 1.
    pub fn share(&self, position: f64) -> f64 {
        // Halves, lest the difference of large ends be infinite.
        (position / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    /// The pixel of a position between those of the ends.
    pub fn pixel(&self, position: f64, [first, last]: [i32; 2]) -> i32 {
        first + float::floor(f64::from(last - first) * self.share(position) + 0.5) as i32
    }

    /// Leaves out ticks between whole numbers.
    pub fn keep_whole_ticks(&mut self) {
        let value = |position: f64| if self.is_logarithmic { float::power(10.0, position) } else { position };
        let is_whole = |position: f64| (value(position) - float::floor(value(position) + 0.5)).abs() < 1e-9;
        self.ticks.retain(|(position, _)| is_whole(*position));
        let without_zeros = |text: &mut String| text.truncate(text.find(".0").unwrap_or(text.len()));
        self.ticks.iter_mut().for_each(|(_, text)| without_zeros(text));
    }

    /// Positions and texts of ticks.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, position: &f64, (first, last): (i32, i32)) -> i32 {
        self.pixel(*position, [first, last])
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let all = || self.ticks.iter().map(|(position, _)| *position).collect();
        if hint.weight().allow_light_points() { Vec::new() } else { all() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, position: &f64) -> String {
        let distance = |tick: &&(f64, String)| (tick.0 - position).abs();
        let nearest = self.ticks.iter().min_by(|one, two| distance(one).total_cmp(&distance(two)));
        nearest.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// Smallest and largest.
pub(super) fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
}

/// `10^exponent`
fn decade(exponent: i32) -> f64 {
    float::power(10.0, f64::from(exponent))
}

/// Five to ten multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = high / 6.0 - low / 6.0;
    let exponent = float::floor(float::log10(rough)) as i32;
    let factor = [1, 2, 5, 10].into_iter().find(|&factor| f64::from(factor) * decade(exponent) >= rough * 0.999);
    let (factor, exponent) = match factor {
        Some(factor @ (1 | 2 | 5)) => (factor, exponent),
        _ => (1, exponent + 1),
    };
    let step = f64::from(factor) * decade(exponent);
    let (first, last) = (float::ceil(low / step - 1e-9) as i64, float::floor(high / step + 1e-9) as i64);
    (first..=last).map(|count| (count as f64 * step, number(count * i64::from(factor), exponent))).collect()
}

/// 1, 2 and 5 of every decade, or the decades alone where there are many.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let factors: &[i64] = if high - low > 4.0 { &[1] } else { &[1, 2, 5] };
    let every = (((high - low) / 10.0) as i32).max(1);
    let mut ticks = Vec::new();
    for exponent in float::floor(low) as i32..=float::ceil(high) as i32 {
        for &factor in factors.iter().filter(|_| exponent % every == 0) {
            let position = float::log10(factor as f64) + f64::from(exponent);
            if (low - 1e-9..=high + 1e-9).contains(&position) {
                ticks.push((position, number(factor, exponent)));
            }
        }
    }
    ticks
}

/// `count · 10^exponent` as people write it.
fn number(count: i64, exponent: i32) -> String {
    let value = count as f64 * decade(exponent);
    match exponent {
        _ if count == 0 => "0".to_owned(),
        6.. | ..-6 => format!("{value:e}"),
        0.. => format!("{value:.0}"),
        _ => format!("{value:.*}", exponent.unsigned_abs() as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Ends that numbers may have, however far or near: an axis has few ticks, in order and within, and shares from 0
    /// to 1.
    #[test]
    fn every_pair_of_ends_makes_an_axis() {
        let sizes = [0.0, 5e-324, 1e-308, 1e-300, 1e-9, 1.0, 1.0 + f64::EPSILON, 3.7, 1e15, 1e17, 1e300, f64::MAX];
        let ends: Vec<f64> = sizes.into_iter().flat_map(|size| [size, -size]).collect();
        for (&low, &high) in ends.iter().flat_map(|low| ends.iter().map(move |high| (low, high))) {
            if high < low {
                continue;
            }
            let axis = Axis::new(low, high, false);
            assert!(axis.low <= low && high <= axis.high && axis.low < axis.high, "{low} {high}: {axis:?}");
            let positions: Vec<f64> = axis.ticks().iter().map(|(position, _)| *position).collect();
            assert!((2..=11).contains(&positions.len()), "{low} {high}: {axis:?}");
            assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{low} {high}: {axis:?}");
            let shares: Vec<f64> = positions.iter().map(|&position| axis.share(position)).collect();
            assert!(shares.iter().all(|share| (-1e-3..=1.001).contains(share)), "{low} {high}: {shares:?}");
            assert_eq!((axis.pixel(axis.low, [0, 100]), axis.pixel(axis.high, [0, 100])), (0, 100));
            assert!(axis.ticks().iter().all(|(_, text)| text.len() < 30), "{low} {high}: {axis:?}");
        }
    }

    #[test]
    fn ticks_are_one_two_and_five() {
        assert_eq!(texts(&linear_ticks(0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&linear_ticks(-0.3, 2.0)), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(texts(&linear_ticks(-1e-9, 300.0)), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(texts(&linear_ticks(0.0, 1e6)), ["0", "200000", "400000", "600000", "800000", "1000000"]);
        assert_eq!(texts(&logarithmic_ticks(-0.8, 1.05)), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(texts(&logarithmic_ticks(0.0, 6.0)), ["1", "10", "100", "1000", "10000", "100000", "1e6"]);
        let mut rounds = Axis::new(0.0, 1.0, false);
        rounds.keep_whole_ticks();
        assert_eq!(texts(rounds.ticks()), ["0", "1"], "there is no round 0.2");
        let mut rounds = Axis::new(-0.5, 1.0, true);
        rounds.keep_whole_ticks();
        assert_eq!(texts(rounds.ticks()), ["1", "2", "5", "10"]);
    }
}
