//! Most likely parameters of a family, with their intervals.

use super::{Family, NORMAL_95, Parameter};
use crate::sample::{SHORTEST, Sample};
use crate::search::{maximum, standard_errors};
use fedgenie_core::math::float::{exp, ln, power, sqrt};

/// The probability that an interval leaves out.
const LEFT_OUT: f64 = 0.05;

/// The fewest durations that were seen for an interval.
const FEWEST: usize = 3;

/// The parameters of a family in the order of a scenario; `None` if its likelihood has no maximum.
pub(super) fn estimate(family: Family, sample: &Sample) -> Option<Vec<Parameter>> {
    let seen = sample.exact.len();
    if seen == 0 {
        return None;
    }
    match family {
        Family::Constant => None,
        Family::Exponential => exponential(sample, 0.0).map(|mean| vec![mean]),
        Family::ShiftedExponential => {
            let (shift, _) = sample.range();
            let mean = exponential(&sample.since(shift), shift)?;
            // n·(smallest − shift)/mean is exponential.
            let reach = mean.value * ln(1.0 / LEFT_OUT) / at_risk(sample, shift);
            let interval = (seen >= FEWEST).then_some([(shift - reach).max(0.0), shift]);
            Some(vec![mean, Parameter { name: "shift", value: shift, interval, is_time: true }])
        }
        Family::Lognormal => smooth(family, sample, ["median", "sigma"], [true, false]),
        Family::Gamma => smooth(family, sample, ["shape", "scale"], [false, true]),
        Family::Weibull => smooth(family, sample, ["shape", "scale"], [false, true]),
        Family::TruncatedNormal => truncated_normal(sample),
        Family::Uniform => uniform(sample),
        Family::Pareto => pareto(sample),
    }
}

/// Observations that were still under way at a duration.
fn at_risk(sample: &Sample, x: f64) -> f64 {
    (sample.exact.len() + sample.cuts.iter().filter(|cut| cut.at >= x).count()) as f64
}

/// An interval in the logarithm of a positive number.
fn around(value: f64, error: f64) -> [f64; 2] {
    [value * exp(-NORMAL_95 * error), value * exp(NORMAL_95 * error)]
}

/// The mean of an exponential law from 0 on. Beyond a shift that was estimated, one duration less tells of the mean.
fn exponential(sample: &Sample, shift: f64) -> Option<Parameter> {
    let seen = sample.exact.len() as f64;
    let time = sample.sum + sample.cuts.iter().map(|cut| cut.at).sum::<f64>();
    let start = time / seen;
    if start < SHORTEST {
        return None;
    }
    let free = if shift > 0.0 { seen - 1.0 } else { seen };
    let (value, error) = if sample.is_plain() {
        (start, 1.0 / sqrt(free))
    } else {
        let likelihood = |[at]: &[f64; 1]| {
            let numbers = [exp(*at), 0.0];
            let law = Family::Exponential.law(numbers);
            law.map_or(f64::NAN, |law| Family::Exponential.log_densities(numbers, sample) + sample.log_cuts(&law))
        };
        let found = maximum([ln(start)], 0.1, likelihood)?;
        (exp(found.at[0]), standard_errors(&found.at, likelihood)?[0])
    };
    // Around the estimate without bias, time/free.
    let interval = (sample.exact.len() >= FEWEST).then(|| around(value * seen / free, error));
    Some(Parameter { name: "mean", value, interval, is_time: true })
}

/// A family of two positive parameters with a smooth likelihood.
fn smooth(family: Family, sample: &Sample, names: [&'static str; 2], is_time: [bool; 2]) -> Option<Vec<Parameter>> {
    let likelihood = |at: &[f64; 2]| {
        let numbers = at.map(exp);
        family.law(numbers).map_or(f64::NAN, |law| family.log_densities(numbers, sample) + sample.log_cuts(&law))
    };
    let found = match (family, sample.cuts.is_empty()) {
        (Family::Lognormal, true) => {
            let n = sample.exact.len() as f64;
            let centre = sample.sum_ln / n;
            let squares: f64 = sample.exact.iter().map(|x| ln(x.max(SHORTEST)) - centre).map(|z| z * z).sum();
            [centre, ln(sqrt(squares / n))]
        }
        _ => maximum(start(family, sample)?, 0.2, likelihood)?.at,
    };
    let errors = standard_errors(&found, likelihood).filter(|_| sample.exact.len() >= FEWEST);
    let parameter = |index: usize| {
        let value = exp(found[index]);
        let interval = errors.map(|errors| around(value, errors[index]));
        Parameter { name: names[index], value, interval, is_time: is_time[index] }
    };
    Some(vec![parameter(0), parameter(1)])
}

/// Mean and variance of the logarithms of all durations, seen or cut.
fn of_logarithms(sample: &Sample) -> (f64, f64) {
    let all = || sample.exact.iter().copied().chain(sample.cuts.iter().map(|cut| cut.at));
    let n = sample.len() as f64;
    let mean = all().map(|x| ln(x.max(SHORTEST))).sum::<f64>() / n;
    let variance = all().map(|x| ln(x.max(SHORTEST)) - mean).map(|z| z * z).sum::<f64>() / n;
    (mean, variance.clamp(1e-12, 25.0))
}

/// Where the search of a smooth family begins: at the moments of the logarithms.
fn start(family: Family, sample: &Sample) -> Option<[f64; 2]> {
    let (mean, variance) = of_logarithms(sample);
    match family {
        Family::Lognormal => Some([mean, 0.5 * ln(variance)]),
        Family::Gamma => {
            let shape = (1.0 / variance).clamp(0.02, 5000.0);
            Some([ln(shape), mean - ln(shape)])
        }
        // The logarithm of a Weibull variate has the deviation π/(√6·shape), and its mean is ln(scale) − γ/shape.
        Family::Weibull => {
            let shape = std::f64::consts::PI / sqrt(6.0 * variance);
            Some([ln(shape), mean + 0.577_215_664_901_532_9 / shape])
        }
        _ => None,
    }
}

/// Parent's mean, in units of the sample's spread, and the logarithm of the parent's deviation.
fn truncated_normal(sample: &Sample) -> Option<Vec<Parameter>> {
    let n = sample.exact.len() as f64;
    let mean = sample.sum / n;
    let spread = sqrt(sample.exact.iter().map(|x| x - mean).map(|z| z * z).sum::<f64>() / n).max(1e-9 * mean);
    if spread <= 0.0 {
        return None;
    }
    let numbers = |at: &[f64; 2]| [mean + at[0] * spread, spread * exp(at[1])];
    let likelihood = |at: &[f64; 2]| {
        let [centre, deviation] = numbers(at);
        // Beyond, the law is an exponential one, and its parameters cannot be told apart.
        if centre < -8.0 * deviation {
            return f64::NAN;
        }
        let family = Family::TruncatedNormal;
        let law = family.law([centre, deviation]);
        law.map_or(f64::NAN, |law| family.log_densities([centre, deviation], sample) + sample.log_cuts(&law))
    };
    let found = maximum([0.0, 0.0], 0.2, likelihood)?;
    let errors = standard_errors(&found.at, likelihood).filter(|_| sample.exact.len() >= FEWEST);
    let [centre, deviation] = numbers(&found.at);
    let of_mean = |errors: [f64; 2]| {
        let half = NORMAL_95 * errors[0] * spread;
        [centre - half, centre + half]
    };
    let of_sd = |errors: [f64; 2]| around(deviation, errors[1]);
    Some(vec![
        Parameter { name: "mean", value: centre, interval: errors.map(of_mean), is_time: true },
        Parameter { name: "sd", value: deviation, interval: errors.map(of_sd), is_time: true },
    ])
}

/// Both ends; the upper one lies beyond all durations if some were cut.
fn uniform(sample: &Sample) -> Option<Vec<Parameter>> {
    let (low, longest) = sample.range();
    let cut = sample.cuts.iter().map(|cut| cut.at).fold(longest, f64::max);
    let width = longest - low;
    if width <= 0.0 {
        return None;
    }
    let high = if sample.cuts.iter().all(|cut| cut.at <= low && cut.inverse == 0.0) {
        longest
    } else {
        let likelihood = |[at]: &[f64; 1]| {
            let numbers = [low, cut + width * exp(*at)];
            let law = Family::Uniform.law(numbers);
            law.map_or(f64::NAN, |law| Family::Uniform.log_densities(numbers, sample) + sample.log_cuts(&law))
        };
        // A maximum at infinity is none, and one at the end of the range is the end itself.
        let found = maximum([ln(0.1)], 0.5, likelihood)?;
        if found.at[0] > 12.0 {
            return None;
        }
        cut + width * exp(found.at[0])
    };
    // The largest of n durations is U^(1/n) of the way from the lower end to the upper one.
    let n = sample.exact.len() as f64;
    let reach = (high - low) * (power(LEFT_OUT / 2.0, -1.0 / n) - 1.0);
    let is_enough = sample.exact.len() >= FEWEST;
    let interval = |ends: [f64; 2]| is_enough.then_some(ends);
    // With cuts the upper end is seen as well as the share of durations that were: n is the number of all.
    let spread = if cut > longest { NORMAL_95 * (high - low) / sqrt(n) } else { 0.0 };
    Some(vec![
        Parameter { name: "low", value: low, interval: interval([(low - reach).max(0.0), low]), is_time: true },
        Parameter {
            name: "high",
            value: high,
            interval: interval([(high - spread).max(cut), high + reach.max(spread)]),
            is_time: true,
        },
    ])
}

/// The smallest duration, and the shape of the logarithms beyond it, which are exponential.
fn pareto(sample: &Sample) -> Option<Vec<Parameter>> {
    let (minimum, _) = sample.range();
    if minimum < SHORTEST {
        return None;
    }
    let seen = sample.exact.len() as f64;
    let likelihood = |[at]: &[f64; 1]| {
        let numbers = [exp(*at), minimum];
        let law = Family::Pareto.law(numbers);
        law.map_or(f64::NAN, |law| Family::Pareto.log_densities(numbers, sample) + sample.log_cuts(&law))
    };
    let cut: f64 = sample.cuts.iter().map(|cut| ln((cut.at / minimum).max(1.0))).sum();
    let logarithms = sample.sum_ln - seen * ln(minimum) + cut;
    if logarithms <= 0.0 {
        return None;
    }
    let (shape, error) = if sample.is_plain() {
        (seen / logarithms, 1.0 / sqrt(seen - 1.0))
    } else {
        let found = maximum([ln(seen / logarithms)], 0.1, likelihood)?;
        (exp(found.at[0]), standard_errors(&found.at, likelihood)?[0])
    };
    let is_enough = sample.exact.len() >= FEWEST;
    // n·ln(smallest/minimum) is exponential with the mean 1/shape.
    let least = minimum * exp(-ln(1.0 / LEFT_OUT) / (shape * at_risk(sample, minimum)));
    let interval = is_enough.then(|| around(shape * (seen - 1.0) / seen, error));
    Some(vec![
        Parameter { name: "shape", value: shape, interval, is_time: false },
        Parameter { name: "minimum", value: minimum, interval: is_enough.then_some([least, minimum]), is_time: true },
    ])
}
