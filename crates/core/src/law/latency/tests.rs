//! Closed forms, route against route, brute force, and sampling.

use super::*;
use crate::law::{
    Constant, Empirical, Exponential, Gamma, Lognormal, Mixture, Pareto, TruncatedNormal, Uniform, Weibull,
};
use crate::math::float::{ln, sqrt};
use crate::rng::{Purpose, Streams};
use approx::assert_relative_eq;

fn constant(value: f64) -> AnyLaw {
    Constant::new(value).expect("valid").into()
}

fn exponential(mean: f64, shift: f64) -> AnyLaw {
    Exponential::new(mean, shift).expect("valid").into()
}

fn gamma(shape: f64, scale: f64) -> AnyLaw {
    Gamma::new(shape, scale).expect("valid").into()
}

fn lognormal(median: f64, sigma: f64) -> AnyLaw {
    Lognormal::new(median, sigma).expect("valid").into()
}

fn uniform(low: f64, high: f64) -> AnyLaw {
    Uniform::new(low, high).expect("valid").into()
}

fn job<'a>(download: &'a AnyLaw, compute: &'a AnyLaw, upload: &'a AnyLaw) -> JobLatency<'a> {
    JobLatency { phases: [download, compute, upload], hazards: [0.0; 3], cut: None }
}

/// E₁ by its series below 1 and its continued fraction above.
fn exponential_integral(x: f64) -> f64 {
    if x < 1.0 {
        let (mut sum, mut term) = (-0.577_215_664_901_532_9 - ln(x), 1.0);
        for k in 1..40 {
            term *= -x / f64::from(k);
            sum -= term / f64::from(k);
        }
        return sum;
    }
    let fraction = (1..400).rev().fold(0.0, |tail, k| f64::from(k) / (1.0 + f64::from(k) / (x + tail)));
    exp(-x) / (x + fraction)
}

#[test]
fn closed_forms_of_one_random_phase() {
    let zero = constant(0.0);
    let link = constant(0.025);
    assert_relative_eq!(job(&link, &constant(0.15), &link).mean_speed(0.05), 0.25, max_relative = 1e-15);
    for mean in [1e-3, 0.1, 0.4, 30.0] {
        let found = job(&link, &exponential(mean, 0.1), &link).mean_speed(0.05);
        let closed = 0.05 / mean * exp(0.15 / mean) * exponential_integral(0.15 / mean);
        assert_relative_eq!(found, closed, max_relative = 1e-11);
    }
    assert_relative_eq!(
        job(&link, &uniform(0.1, 1.0), &link).mean_speed(0.05),
        0.05 * ln(7.0) / 0.9,
        max_relative = 1e-13
    );
    for shape in [1.1, 1.5, 2.0, 7.5, 300.0] {
        let found = job(&zero, &gamma(shape, 0.2), &zero).mean_speed(0.05);
        assert_relative_eq!(found, 0.05 / (0.2 * (shape - 1.0)), max_relative = 1e-9);
    }
    let found = job(&zero, &lognormal(0.4, 0.7), &zero).mean_speed(0.05);
    assert_relative_eq!(found, 0.05 / 0.4 * exp(0.245), max_relative = 1e-12);
    let found = job(&zero, &Pareto::new(1.5, 0.2).expect("valid").into(), &zero).mean_speed(0.05);
    assert_relative_eq!(found, 0.05 * 1.5 / (2.5 * 0.2), max_relative = 1e-11);
}

#[test]
fn closed_forms_of_several_random_phases() {
    let zero = constant(0.0);
    let found = job(&gamma(1.5, 0.2), &gamma(2.0, 0.2), &zero).mean_speed(0.05);
    assert_relative_eq!(found, 0.05 / (0.2 * 2.5), max_relative = 1e-10);
    let found = job(&gamma(0.5, 0.2), &gamma(2.0, 0.2), &gamma(1.0, 0.2)).mean_speed(0.05);
    assert_relative_eq!(found, 0.05 / (0.2 * 2.5), max_relative = 1e-10);
    let (one, two) = (gamma(0.5, 0.2), gamma(0.4, 0.2));
    assert_eq!(job(&one, &two, &zero).mean_speed(0.05), f64::INFINITY);
    assert_eq!(job(&zero, &exponential(1.0, 0.0), &zero).mean_speed(0.05), f64::INFINITY);
}

fn laws() -> Vec<AnyLaw> {
    let mixture = Mixture::new([(1.0, gamma(2.0, 0.1)), (3.0, lognormal(0.3, 1.0))]).expect("valid");
    vec![
        exponential(0.4, 0.1),
        uniform(0.1, 1.0),
        TruncatedNormal::new(0.5, 0.2, 0.1, 0.8).expect("valid").into(),
        TruncatedNormal::new(0.5, 0.04, 0.0, f64::INFINITY).expect("valid").into(),
        lognormal(0.4, 0.01),
        lognormal(0.4, 0.3),
        lognormal(0.4, 2.0),
        gamma(0.7, 0.3),
        gamma(50.0, 0.01),
        Weibull::new(0.8, 0.4).expect("valid").into(),
        Weibull::new(5.0, 0.4).expect("valid").into(),
        Pareto::new(1.2, 0.2).expect("valid").into(),
        mixture.into(),
        Empirical::new(&[0.3, 0.1, 0.2, 0.2]).expect("valid").into(),
    ]
}

#[test]
fn the_two_routes_agree() {
    for link in [0.025, 0.3] {
        let link = constant(link);
        for law in laws() {
            for hazard in [0.0, 0.7] {
                let mut job = job(&link, &law, &link);
                job.hazards = [hazard; 3];
                let (direct, transform) = (job.mean_speed(0.05), 0.05 * job.laplace_integral());
                let error = (direct / transform - 1.0).abs();
                assert!(error < 1e-10, "{law:?}, hazard {hazard}: {direct} directly, {transform} by transforms");
            }
        }
    }
}

#[test]
fn a_far_cut_changes_nothing_and_a_near_one_rules() {
    let link = constant(0.025);
    for law in laws() {
        let mut job = job(&link, &law, &link);
        let without = job.mean_speed(0.05);
        job.cut = Some(1e7);
        if !matches!(law, AnyLaw::Pareto(_)) {
            let error = (job.mean_speed(0.05) / without - 1.0).abs();
            assert!(error < 1e-9, "{law:?}: {} instead of {without}", job.mean_speed(0.05));
        }
        job.cut = Some(0.05);
        assert_eq!(job.mean_speed(0.05), 1.0);
    }
}

#[test]
fn a_cut_is_the_expectation_of_the_smaller_latency() {
    let (link, law) = (constant(0.025), lognormal(0.4, 0.3));
    let mut job = job(&link, &law, &link);
    job.cut = Some(0.5);
    job.hazards = [0.1, 0.3, 0.2];
    // Conditional on the phase, the client survives with probability exp(-0.0025 - 0.3 x - 0.005).
    let speed = |x: f64| {
        let survives = exp(-0.0075 - 0.3 * x);
        if x + 0.05 <= 0.5 { survives * 0.05 / (x + 0.05) + (1.0 - survives) * 0.1 } else { 0.1 }
    };
    let kink = ln(0.45 / 0.4) / 0.3;
    let density = |z: f64| speed(0.4 * exp(0.3 * z)) * exp(-0.5 * z * z) / sqrt(2.0 * std::f64::consts::PI);
    let brute = quadrature::piecewise(-12.0, 12.0, &[kink], density, 1e-14).value;
    assert_relative_eq!(job.mean_speed(0.05), brute, max_relative = 1e-10);
    let arrives = |z: f64| {
        let x = 0.4 * exp(0.3 * z);
        exp(-0.0075 - 0.3 * x - 0.5 * z * z) / sqrt(2.0 * std::f64::consts::PI)
    };
    let brute = quadrature::piecewise(-12.0, 0.0, &[], arrives, 1e-14).value;
    assert_relative_eq!(job.arrival_probability_by(0.45), brute, max_relative = 1e-10);
}

#[test]
fn the_cdf_of_a_sum_of_gammas_is_that_of_a_gamma() {
    let (zero, sum) = (constant(0.1), gamma(4.0, 0.2));
    let (first, second, third) = (gamma(1.5, 0.2), gamma(2.5, 0.2), gamma(1.0, 0.2));
    let (two, three) = (job(&first, &second, &zero), job(&first, &first, &third));
    for x in [0.05, 0.2, 0.7, 1.3, 3.0] {
        assert_relative_eq!(two.arrival_probability_by(x + 0.1), sum.cdf(x), max_relative = 1e-9);
    }
    assert!(!two.has_closed_form_cdf());
    assert_relative_eq!(three.arrival_probability_by(0.7), sum.cdf(0.7), max_relative = 1e-8);
    let u = sum.cdf(0.6);
    assert_relative_eq!(two.effective_quantile(u), 0.7, max_relative = 1e-9);
}

#[test]
fn quantiles_invert_the_cdf_up_to_the_cut() {
    let link = constant(0.025);
    for law in laws() {
        let mut job = job(&link, &law, &link);
        assert!(job.has_closed_form_cdf());
        job.cut = Some(0.45);
        for u in [0.01, 0.2, 0.5, 0.9] {
            let x = job.effective_quantile(u);
            assert!(x <= 0.45 && job.effective_cdf(x * (1.0 + 1e-12)) >= u, "{law:?} at {u}");
            assert!(x == 0.45 || job.effective_cdf(x * (1.0 - 1e-9)) < u, "{law:?} at {u}");
        }
        assert_eq!(job.effective_cdf(0.45), 1.0);
    }
    let slow = exponential(0.4, 0.0);
    let mut lossy = job(&link, &slow, &link);
    lossy.hazards = [0.0, 2.5, 0.0];
    assert!(lossy.has_closed_form_cdf());
    assert_eq!(lossy.effective_quantile(0.6), f64::INFINITY);
    assert_relative_eq!(lossy.effective_cdf(lossy.effective_quantile(0.3)), 0.3, max_relative = 1e-13);
}

#[test]
fn breakpoints_are_the_sums_below_the_cut() {
    let (a, b, c) = (uniform(0.0, 1.0), uniform(2.0, 4.0), constant(10.0));
    let mut job = job(&a, &b, &c);
    let mut found = vec![];
    job.breakpoints(&mut found);
    assert_eq!(found, [12.0, 13.0, 14.0, 15.0]);
    job.cut = Some(13.5);
    found.clear();
    job.breakpoints(&mut found);
    assert_eq!(found, [12.0, 13.0, 13.5]);
}

/// Draws jobs as a run does and returns the mean speed with its standard error.
fn sampled(job: &JobLatency<'_>, tau_min: f64) -> (f64, f64) {
    let size = if cfg!(debug_assertions) { 200_000 } else { 10_000_000 };
    let streams = Streams::new(5);
    let mut durations = streams.stream(Purpose::Latency, 1, 1);
    let mut dropouts = streams.stream(Purpose::Dropout, 1, 1);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..size {
        let (mut tau, mut survives) = (0.0, true);
        for (law, hazard) in job.phases.iter().zip(job.hazards) {
            let x = law.quantile(durations.uniform());
            survives &= -ln(dropouts.uniform()) > hazard * x;
            tau += x;
        }
        let limit = job.cut.unwrap_or(f64::INFINITY);
        let speed = tau_min / if survives { tau.min(limit) } else { limit };
        sum += speed;
        squares += speed * speed;
    }
    let n = f64::from(size);
    let mean = sum / n;
    (mean, sqrt((squares / n - mean * mean) / n))
}

#[test]
fn sampling_agrees_within_four_standard_errors() {
    let (link, compute, upload) = (constant(0.025), lognormal(0.4, 0.3), gamma(2.0, 0.1));
    let plain = job(&link, &compute, &link);
    let both = job(&link, &compute, &upload);
    let cut = JobLatency { hazards: [0.2, 0.5, 0.3], cut: Some(0.5), ..plain };
    for job in [plain, both, cut] {
        let ((mean, error), exact) = (sampled(&job, 0.05), job.mean_speed(0.05));
        assert!((mean - exact).abs() < 4.0 * error, "{mean} ± {error} is not {exact}");
    }
}

#[test]
fn two_random_phases_with_hazards_and_a_cut_agree_with_sampling() {
    let (link, compute, upload) = (constant(0.025), lognormal(0.4, 0.3), uniform(0.1, 0.3));
    let job = JobLatency { hazards: [0.2, 0.0, 0.3], cut: Some(0.7), ..job(&link, &compute, &upload) };
    let ((mean, error), exact) = (sampled(&job, 0.05), job.mean_speed(0.05));
    assert!((mean - exact).abs() < 4.0 * error, "{mean} ± {error} is not {exact}");
}

/// Three random phases with hazards: the tabulated convolution against nested quadrature, and the mean speed under a
/// cut against samples.
#[test]
fn three_random_phases_are_tabulated() {
    let laws: [AnyLaw; 3] = [
        Pareto::new(2.5, 0.04).unwrap().into(),
        Gamma::new(2.0, 0.2).unwrap().into(),
        Uniform::new(0.06, 0.3).unwrap().into(),
    ];
    let job = JobLatency { phases: [&laws[0], &laws[1], &laws[2]], hazards: [0.0; 3], cut: Some(2.0) };
    let prepared = job.prepared();
    for x in [0.12, 0.35, 0.7, 1.9] {
        let difference = (prepared.arrival_probability_by(x) - job.arrival_probability_by(x)).abs();
        assert!(difference < 1e-10, "at {x}: {difference:e}");
    }
    let lossy = JobLatency { hazards: [0.1, 0.5, 0.2], ..job };
    let streams = crate::rng::Streams::new(5);
    let samples = if cfg!(debug_assertions) { 100_000 } else { 2_000_000 };
    let (mut sum, mut squares) = (0.0, 0.0);
    for index in 0..samples {
        let mut rng = streams.stream(crate::rng::Purpose::Latency, 0, index);
        let phases = laws.each_ref().map(|law| law.quantile(rng.uniform()));
        let lost = phases.iter().zip(lossy.hazards).any(|(phase, hazard)| -rng.uniform().ln() / hazard < *phase);
        let waited = if lost { 2.0 } else { phases.iter().sum::<f64>().min(2.0) };
        let speed = 0.1 / waited;
        sum += speed;
        squares += speed * speed;
    }
    let mean = sum / f64::from(samples);
    let error = ((squares / f64::from(samples) - mean * mean) / f64::from(samples)).sqrt();
    let computed = lossy.mean_speed(0.1);
    assert!((computed - mean).abs() < 4.0 * error, "{computed} against {mean} ± {error}");
}

/// Sums of exponential variates of rates 1/4, 1 and 1, by partial fractions; the links take 0.05 s more.
#[test]
fn three_random_phases_in_closed_form() {
    let link = AnyLaw::from(Exponential::new(1.0, 0.05).unwrap());
    let compute = AnyLaw::from(Exponential::new(4.0, 0.0).unwrap());
    let job = JobLatency { phases: [&link, &compute, &link], hazards: [0.0; 3], cut: None };
    let exact = |y: f64| {
        let z = (y - 0.1).max(0.0);
        1.0 - 16.0 / 9.0 * exp(-z / 4.0) + exp(-z) * (7.0 / 9.0 + z / 3.0)
    };
    let (prepared, tabulated) = (job.prepared(), job.tabulated());
    // Far in the tail, too, sums settle: otherwise panels are halved for ever.
    assert!(prepared.inner.as_ref().unwrap().panels() < 50 && tabulated.whole.as_ref().unwrap().panels() < 50);
    for step in 1..3000 {
        let y = 0.05 * f64::from(step);
        for found in [prepared.effective_cdf(y), tabulated.effective_cdf(y)] {
            assert!((found - exact(y)).abs() < 2e-11, "at {y}: {found} instead of {}", exact(y));
        }
    }
    let slow = job.effective_quantile(0.999);
    assert!((exact(slow) - 0.999).abs() < 1e-10);
}
