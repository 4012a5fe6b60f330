//! The format of shown numbers.

use fedgenie_core::math::float;
use fedgenie_core::math::statistics::Estimate;

/// Fewest seeds with a shown interval: that of two is twelve times as wide as their distance.
pub const INTERVAL_SEEDS: usize = 3;

/// Values that differ by less than this share are equal but for rounding.
pub const ROUNDING: f64 = 1e-12;

/// A mean, with its interval if there are enough seeds and they differ: half of it where the mean is its middle, else
/// both ends.
pub fn show(estimate: &Estimate) -> String {
    let mean = estimate.mean;
    let Some([low, high]) = estimate.ci95.filter(|_| estimate.n >= INTERVAL_SEEDS) else { return number(mean) };
    let (half, off) = ((high - low) / 2.0, (high + low) / 2.0 - mean);
    if half <= ROUNDING * mean.abs() {
        number(mean)
    } else if off.abs() <= 1e-6 * half {
        let [mean, half] = numbers([mean, half]);
        format!("{mean} ± {half}")
    } else {
        let [mean, low, high] = numbers([mean, low, high]);
        format!("{mean} [{low}, {high}]")
    }
}

/// As [`show`], rounded to two significant digits of half its interval: `0.252 ± 0.015`.
pub fn show_rounded(estimate: &Estimate) -> String {
    /// More digits after the point nobody reads.
    const MOST_DECIMALS: i32 = 6;
    let half =
        estimate.half_width().filter(|half| estimate.n >= INTERVAL_SEEDS && *half > ROUNDING * estimate.mean.abs());
    let Some(half) = half else { return show(estimate) };
    let decimals = 1 - float::floor(float::log10(half)) as i32;
    if decimals > MOST_DECIMALS || !(1e-4..1e7).contains(&half.max(estimate.mean.abs())) {
        return show(estimate);
    }
    let round = |value: f64| format!("{value:.*}", decimals.max(0) as usize);
    match estimate.ci95 {
        Some([low, high]) if ((high + low) / 2.0 - estimate.mean).abs() > 1e-6 * half => {
            format!("{} [{}, {}]", round(estimate.mean), round(low), round(high))
        }
        _ => format!("{} ± {}", round(estimate.mean), round(half)),
    }
}

/// Numbers that stand together: all with an exponent if one needs it.
fn numbers<const N: usize>(values: [f64; N]) -> [String; N] {
    let shown = values.map(number);
    if !shown.iter().any(|shown| shown.contains('e')) {
        return shown;
    }
    values.map(|value| if value == 0.0 { "0".to_owned() } else { format!("{value:.3e}") })
}

/// Four significant digits.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if magnitude.fract() == 0.0 && magnitude < 1e9 {
        format!("{value}")
    } else if !(1e-4..1e7).contains(&magnitude) {
        format!("{value:.3e}")
    } else {
        let digits = 3 - float::floor(float::log10(magnitude)) as i32;
        format!("{value:.*}", digits.clamp(0, 8) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_to_their_interval() {
        let of = |mean: f64, [low, high]: [f64; 2]| show_rounded(&Estimate { mean, ci95: Some([low, high]), n: 5 });
        assert_eq!(of(0.251_91, [0.236_5, 0.267_32]), "0.252 ± 0.015");
        assert_eq!(of(1_980.4, [1_730.2, 2_170.9]), "1980 [1730, 2171]");
        assert_eq!(of(264.0, [103.7, 424.3]), "264 ± 160");
        assert_eq!(of(1.7e-5, [-1.33e-4, 1.67e-4]), "0.00002 ± 0.00015");
        assert_eq!(of(1e-7, [-2e-7, 4e-7]), "1.000e-7 ± 3.000e-7");
        assert_eq!(of(36.0, [36.0, 36.0]), "36");
    }

    #[test]
    fn rounding_is_no_interval() {
        let same = fedgenie_core::math::statistics::estimate(&[
            0.892_857_142_857_142_9,
            0.892_857_142_857_142_8,
            0.892_857_142_857_142_8,
        ])
        .unwrap();
        assert_eq!(show(&same), "0.8929");
    }

    #[test]
    fn numbers_that_stand_together_have_one_format() {
        let of = |mean: f64, ci95: [f64; 2]| show(&Estimate { mean, ci95: Some(ci95), n: 5 });
        assert_eq!(of(821_947_155.0, [769_204_310.5, 869_204_310.0]), "8.219e8 [7.692e8, 8.692e8]");
        assert_eq!(of(2e9, [1e9, 3e9]), "2.000e9 ± 1.000e9");
        assert_eq!(of(0.0, [-2e-7, 2e-7]), "0 ± 2.000e-7");
        assert_eq!(of(821_947_155.0, [821_947_145.0, 821_947_165.0]), "821947155 ± 10");
    }

    #[test]
    fn numbers_are_shown_with_four_digits() {
        let shown: Vec<_> = [0.0, 200.0, 123.456, 0.012_345_6, 1.5e-7, 123_456.7].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "200", "123.5", "0.01235", "1.500e-7", "123457"]);
    }
}
