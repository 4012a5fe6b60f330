//! Numbers as they stand in a paper: rounded to their interval.

use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::{INTERVAL_SEEDS, ROUNDING};

/// Significant digits of a number without an interval.
const PLAIN_DIGITS: usize = 4;
/// Significant digits of half an interval.
const INTERVAL_DIGITS: usize = 2;

/// What a cell shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    what: What,
    /// How many runs of how many have it, where not all do.
    part: Option<(usize, usize)>,
    pub is_best: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum What {
    #[default]
    Nothing,
    Words(String),
    /// A number that is not rounded yet, and whether it is only a lower bound.
    Raw(Estimate, bool),
    Rounded(Rounded),
}

/// A rounded number, in units of a power of ten.
#[derive(Clone, Debug, PartialEq)]
struct Rounded {
    value: String,
    /// Half of the interval, if the number is its middle.
    half: Option<String>,
    ends: Option<[String; 2]>,
    exponent: i32,
    is_least: bool,
}

/// The exponent of a number in scientific notation with so many digits.
fn exponent(value: f64, digits: usize) -> i32 {
    let written = format!("{:.*e}", digits.saturating_sub(1), value.abs());
    written.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

/// A number to so many decimals, which may be negative.
fn to_decimals(value: f64, decimals: i32) -> String {
    let decimals = decimals.min(12);
    let shown = match usize::try_from(decimals) {
        Ok(decimals) => format!("{value:.decimals$}"),
        Err(_) => format!("{:.0}", (value / power(-decimals)).round() * power(-decimals)),
    };
    // No negative zero.
    if shown.starts_with('-') && shown.bytes().all(|byte| b"-0.".contains(&byte)) {
        shown[1..].to_owned()
    } else {
        shown
    }
}

/// A number to so many significant digits.
fn to_digits(value: f64, digits: usize) -> String {
    if value == 0.0 { "0".to_owned() } else { to_decimals(value, digits as i32 - 1 - exponent(value, digits)) }
}

/// The factor and the unit in which numbers up to `most` are shown: multiples of bytes by thousands.
pub(super) fn scale_of(unit: &str, most: f64) -> (f64, String) {
    if unit != "B" {
        return (1.0, unit.to_owned());
    }
    let all = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = all.into_iter().find(|(size, _)| most >= *size);
    found.map_or_else(|| (1.0, unit.to_owned()), |(size, name)| (size, name.to_owned()))
}

impl Shown {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn words(words: &str) -> Self {
        Self { what: What::Words(words.to_owned()), ..Self::default() }
    }

    /// A number, with its interval if there are enough seeds and they differ.
    pub fn of(found: Estimate) -> Self {
        let half = found.half_width().unwrap_or(0.0);
        let has_interval = found.n >= INTERVAL_SEEDS && half > ROUNDING * found.mean.abs();
        let ci95 = found.ci95.filter(|_| has_interval);
        Self { what: What::Raw(Estimate { ci95, ..found }, false), ..Self::default() }
    }

    /// A number that is more than this.
    pub fn beyond(least: f64) -> Self {
        Self { what: What::Raw(Estimate { mean: least, ci95: None, n: 0 }, true), ..Self::default() }
    }

    /// The same of so many of so many runs.
    pub fn among(self, part: Option<(usize, usize)>) -> Self {
        Self { part, ..self }
    }

    /// The same among the best or not.
    pub fn best(self, is_best: bool) -> Self {
        Self { is_best, ..self }
    }

    /// The number divided by a factor, and rounded.
    pub fn scaled(self, factor: f64, digits: Option<usize>) -> Self {
        let What::Raw(found, is_least) = self.what else { return self };
        let (mean, ci95) = (found.mean / factor, found.ci95.map(|ends| ends.map(|end| end / factor)));
        Self { what: What::Rounded(Rounded { is_least, ..Rounded::of(mean, ci95, digits) }), ..self }
    }

    fn part_words(&self) -> String {
        self.part.map_or_else(String::new, |(arrived, runs)| format!(" ({arrived}/{runs})"))
    }

    /// As plain text.
    pub fn plain(&self) -> String {
        let Rounded { value, half, ends, exponent, is_least } = match &self.what {
            What::Nothing | What::Raw(..) => return "–".to_owned(),
            What::Words(words) => return words.clone(),
            What::Rounded(rounded) => rounded,
        };
        let (least, times) = (if *is_least { "> " } else { "" }, |power: i32| format!(" × 10^{power}"));
        let times = if *exponent == 0 { String::new() } else { times(*exponent) };
        let shown = match (half, ends) {
            (Some(half), _) if *exponent == 0 => format!("{value} ± {half}"),
            (Some(half), _) => format!("({value} ± {half}){times}"),
            (None, Some([low, high])) => format!("{value} [{low}, {high}]{times}"),
            (None, None) => format!("{least}{value}{times}"),
        };
        shown + &self.part_words()
    }

    /// In LaTeX.
    pub fn latex(&self) -> String {
        let Rounded { value, half, ends, exponent, is_least } = match &self.what {
            What::Nothing | What::Raw(..) => return "--".to_owned(),
            What::Words(words) => return fedgenie_core::text::latex::literal(words),
            What::Rounded(rounded) => rounded,
        };
        let least = if *is_least { "> " } else { "" };
        let times = if *exponent == 0 { String::new() } else { format!(" \\times 10^{{{exponent}}}") };
        let formula = match (half, ends) {
            (Some(half), _) if *exponent == 0 => format!("{value} \\pm {half}"),
            (Some(half), _) => format!("({value} \\pm {half}){times}"),
            (None, Some([low, high])) => format!("{value}\\ [{low}, {high}]{times}"),
            (None, None) => format!("{least}{value}{times}"),
        };
        let formula = if self.is_best { format!("{{\\boldmath${formula}$}}") } else { format!("${formula}$") };
        formula + &self.part_words()
    }

    /// As cells with the number and the ends of its interval.
    pub fn in_cells(&self) -> [String; 3] {
        let none = || [String::new(), String::new()];
        let found = match &self.what {
            What::Nothing | What::Raw(..) => return Default::default(),
            What::Rounded(found) if !found.is_least && self.part.is_none() => found,
            What::Words(_) | What::Rounded(_) => {
                let [low, high] = none();
                return [self.plain(), low, high];
            }
        };
        let number = |text: &String| match found.exponent {
            0 => text.clone(),
            exponent => format!("{text}e{exponent}"),
        };
        let [low, high] = found.ends.as_ref().map_or_else(none, |ends| ends.each_ref().map(number));
        [number(&found.value), low, high]
    }
}

impl Rounded {
    fn of(mean: f64, ci95: Option<[f64; 2]>, digits: Option<usize>) -> Self {
        let most = ci95.iter().flatten().fold(mean.abs(), |most, end| most.max(end.abs()));
        let is_far = most >= 1e6 && (ci95.is_some() || mean.fract() != 0.0 || most >= 1e9) || most < 1e-3;
        let exponent = if is_far && most > 0.0 { exponent(most, PLAIN_DIGITS) } else { 0 };
        let (mean, ci95) = (mean / power(exponent), ci95.map(|ends| ends.map(|end| end / power(exponent))));
        let half = ci95.map(|[low, high]| (high - low) / 2.0);
        let is_middle = |[low, high]: [f64; 2]| ((high + low) / 2.0 - mean).abs() <= 1e-6 * (high - low) / 2.0;
        let shown = |value: f64| match (digits, half) {
            (Some(digits), _) => to_digits(value, digits),
            (None, Some(half)) => {
                to_decimals(value, INTERVAL_DIGITS as i32 - 1 - self::exponent(half, INTERVAL_DIGITS))
            }
            (None, None) if value.fract() == 0.0 => format!("{value:.0}"),
            (None, None) => to_digits(value, PLAIN_DIGITS),
        };
        let half = half.filter(|_| ci95.is_some_and(is_middle)).map(shown);
        Self { value: shown(mean), half, ends: ci95.map(|ends| ends.map(shown)), exponent, is_least: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mean: f64, ends: [f64; 2], digits: Option<usize>) -> String {
        Shown::of(Estimate { mean, ci95: Some(ends), n: 5 }).scaled(1.0, digits).plain()
    }

    #[test]
    fn numbers_are_rounded_to_two_digits_of_half_their_interval() {
        let cases = [
            (1980.4, [1760.8, 2200.0], "1980 ± 220"),
            (1980.4, [1730.1, 2170.3], "1980 [1730, 2170]"),
            (0.81234, [0.80234, 0.82234], "0.812 ± 0.010"),
            (0.5, [0.4004, 0.5996], "0.50 ± 0.10"),
            (-0.04, [-1.04, 0.96], "0.0 ± 1.0"),
            (12.0, [12.0, 12.0], "12"),
            (12.3456, [12.3456, 12.3456], "12.35"),
            (1.48e9, [1.46e9, 1.5e9], "(1.480 ± 0.020) × 10^9"),
            (2.5e-5, [1.5e-5, 3.5e-5], "(2.5 ± 1.0) × 10^-5"),
            (12_345_678.0, [12_345_678.0, 12_345_678.0], "12345678"),
        ];
        for (mean, ends, text) in cases {
            assert_eq!(shown(mean, ends, None), text);
        }
        assert_eq!(shown(1980.4, [1730.1, 2170.3], Some(3)), "1980 [1730, 2170]");
        assert_eq!(shown(0.81234, [0.80234, 0.82234], Some(2)), "0.81 ± 0.010");
        let few = Shown::of(Estimate { mean: 1980.46, ci95: Some([0.0, 9e3]), n: 2 }).scaled(1.0, None);
        assert_eq!(few.plain(), "1980");
        assert_eq!(few.in_cells(), ["1980", "", ""]);
    }

    #[test]
    fn bytes_have_the_multiple_that_fits() {
        assert_eq!(scale_of("B", 2.5e9), (1e9, "GB".to_owned()));
        assert_eq!((scale_of("B", 999.0), scale_of("s", 1e9)), ((1.0, "B".to_owned()), (1.0, "s".to_owned())));
        let found = Shown::of(Estimate { mean: 2.5e9, ci95: Some([2.4e9, 2.6e9]), n: 3 }).scaled(1e9, None);
        assert_eq!((found.plain(), found.latex()), ("2.50 ± 0.10".to_owned(), "$2.50 \\pm 0.10$".to_owned()));
    }

    #[test]
    fn partial_and_unknown_numbers_say_so() {
        let part = Shown { part: Some((2, 3)), ..Shown::beyond(5400.0).scaled(1.0, None) };
        assert_eq!((part.plain(), part.latex()), ("> 5400 (2/3)".to_owned(), "$> 5400$ (2/3)".to_owned()));
        assert_eq!(Shown::none().plain(), "–");
        let ends = Shown::of(Estimate { mean: 1.0, ci95: Some([0.5, 2.5]), n: 3 }).scaled(1.0, None);
        let best = Shown { is_best: true, ..ends };
        assert_eq!(best.latex(), "{\\boldmath$1.0\\ [0.5, 2.5]$}");
        assert_eq!(best.in_cells(), ["1.0", "0.5", "2.5"]);
    }
}
