//! Axes with ticks at 1, 2 and 5.

use fedgenie_core::math::float;

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
    /// An axis between finite ends, which are moved apart where numbers between them could not be told apart. It has
    /// about six ticks.
    pub fn new(low: f64, high: f64, is_logarithmic: bool) -> Self {
        let [low, high] = if is_resolved(low, high) { [low, high] } else { with_margin([low, low.max(high)], 0.0) };
        Self { low, high, is_logarithmic, ticks: Vec::new() }.with_ticks(6)
    }

    /// With about so many ticks, at most a third more.
    pub fn with_ticks(mut self, most: usize) -> Self {
        let ticks = if self.is_logarithmic { logarithmic_ticks } else { linear_ticks };
        self.ticks = ticks(self.low, self.high, most.max(2));
        self
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

    /// How far along the axis a position lies, from 0 to 1.
    pub fn share(&self, position: f64) -> f64 {
        // Halves, lest the difference of large ends be infinite.
        (position / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    /// The pixel of a position between those of the ends.
    pub fn pixel(&self, position: f64, [first, last]: [f64; 2]) -> f64 {
        first + (last - first) * self.share(position)
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

/// Smallest and largest.
pub(super) fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
}

/// `10^exponent`
fn decade(exponent: i32) -> f64 {
    float::power(10.0, f64::from(exponent))
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let rough = high / most as f64 - low / most as f64;
    let exponent = float::floor(float::log10(rough)) as i32;
    let factor = [1, 2, 5, 10].into_iter().find(|&factor| f64::from(factor) * decade(exponent) >= rough * 0.75);
    let (factor, exponent) = match factor {
        Some(factor @ (1 | 2 | 5)) => (factor, exponent),
        _ => (1, exponent + 1),
    };
    let step = f64::from(factor) * decade(exponent);
    let (first, last) = (float::ceil(low / step - 1e-9) as i64, float::floor(high / step + 1e-9) as i64);
    (first..=last).map(|count| (count as f64 * step, number(count * i64::from(factor), exponent))).collect()
}

/// All digits of every decade, some of them, or some decades: as many as there may be. Within one decade there are
/// those of a linear axis.
fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let all = |factors: &[i64], every: i32| -> Vec<(f64, String)> {
        let exponents = float::floor(low) as i32..=float::ceil(high) as i32;
        let of = |exponent: i32| {
            factors
                .iter()
                .map(move |&factor| (float::log10(factor as f64) + f64::from(exponent), number(factor, exponent)))
        };
        let ticks = exponents.filter(|exponent| exponent % every == 0).flat_map(of);
        ticks.filter(|(position, _)| (low - 1e-9..=high + 1e-9).contains(position)).collect()
    };
    let lists: [&[i64]; 4] = [&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 5], &[1, 3], &[1]];
    if let Some(ticks) = lists.iter().map(|list| all(list, 1)).find(|ticks| (3..=most).contains(&ticks.len())) {
        return ticks;
    }
    if high - low < 1.0 {
        let ends = [low, high].map(|end| float::power(10.0, end));
        let ticks = linear_ticks(ends[0], ends[1], most).into_iter().filter(|(value, _)| *value > 0.0);
        return ticks.map(|(value, text)| (float::log10(value), text)).collect();
    }
    all(&[1], float::ceil((high - low) / most as f64).max(1.0) as i32)
}

/// `count · 10^exponent` as people write it.
fn number(count: i64, exponent: i32) -> String {
    let value = count as f64 * decade(exponent);
    let text = match exponent {
        _ if count == 0 => "0".to_owned(),
        6.. | ..-6 => format!("{value:e}"),
        0.. => format!("{value:.0}"),
        _ => format!("{value:.*}", exponent.unsigned_abs() as usize),
    };
    text.replace('-', "−")
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
            assert_eq!([axis.low, axis.high].map(|end| axis.pixel(end, [0.0, 100.0])), [0.0, 100.0]);
            assert!(axis.ticks().iter().all(|(_, text)| text.len() < 30), "{low} {high}: {axis:?}");
        }
    }

    #[test]
    fn ticks_are_one_two_and_five() {
        assert_eq!(texts(&linear_ticks(0.0, 1.0, 6)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&linear_ticks(-0.3, 2.0, 6)), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(texts(&linear_ticks(-1e-9, 300.0, 6)), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(texts(&linear_ticks(0.0, 1e6, 6)), ["0", "200000", "400000", "600000", "800000", "1000000"]);
        assert_eq!(texts(&logarithmic_ticks(-0.8, 1.05, 10)), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(texts(&logarithmic_ticks(0.0, 6.0, 10)), ["1", "10", "100", "1000", "10000", "100000", "1e6"]);
        let mut rounds = Axis::new(0.0, 1.0, false);
        rounds.keep_whole_ticks();
        assert_eq!(texts(rounds.ticks()), ["0", "1"], "there is no round 0.2");
        let mut rounds = Axis::new(-0.5, 1.0, true);
        rounds.keep_whole_ticks();
        assert_eq!(texts(rounds.ticks()), ["1", "2", "5", "10"]);
    }
}
