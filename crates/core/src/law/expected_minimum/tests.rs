//! Closed forms, brute force, and inputs that are refused.

use super::*;
use crate::law::JobLatency;
use crate::law::{AnyLaw, Constant, Empirical, Exponential, Gamma, Lognormal, Pareto, Uniform};
use crate::math::float::{exp, ln, power};
use crate::math::quadrature;
use approx::assert_relative_eq;

const TAU_MIN: f64 = 0.05;

fn constant(value: f64) -> AnyLaw {
    Constant::new(value).expect("valid").into()
}

fn job<'a>(link: &'a AnyLaw, compute: &'a AnyLaw) -> JobLatency<'a> {
    JobLatency { phases: [link, compute, link], hazards: [0.0; 3], cut: None }
}

fn table(clients: &[JobLatency<'_>]) -> ExpectedMinimum {
    let speeds: Vec<f64> = clients.iter().map(|client| client.mean_speed(TAU_MIN)).collect();
    ExpectedMinimum::new(TAU_MIN, clients, &speeds).expect("a table")
}

fn laws() -> Vec<AnyLaw> {
    vec![
        Exponential::new(0.3, 0.0).expect("valid").into(),
        Exponential::new(0.1, 0.2).expect("valid").into(),
        Lognormal::new(0.4, 0.3).expect("valid").into(),
        Lognormal::new(0.2, 1.5).expect("valid").into(),
        Uniform::new(0.1, 0.6).expect("valid").into(),
        Gamma::new(0.5, 0.5).expect("valid").into(),
        Pareto::new(0.6, 0.1).expect("valid").into(),
        Empirical::new(&[0.1, 0.2, 0.25, 0.7]).expect("valid").into(),
        constant(0.33),
    ]
}

#[test]
fn the_slowest_of_constants_is_the_greatest_constant() {
    let (link, fast, slow) = (constant(0.025), constant(0.1), constant(0.2));
    let minima = table(&[job(&link, &fast), job(&link, &slow)]);
    assert_relative_eq!(minima.of(&[0]), 0.05 / 0.15, max_relative = 1e-14);
    assert_relative_eq!(minima.of(&[1, 0]), 0.05 / 0.25, max_relative = 1e-14);
    assert_eq!(minima.of(&[]), 0.0);
}

#[test]
fn the_slowest_of_like_exponentials() {
    // The greatest of n has the cdf (1 - e^{-x/m})^n: a signed sum of exponentials, each with E 1/(a + X) through E₁.
    let (link, law) = (constant(0.1), Exponential::new(0.3, 0.0).expect("valid").into());
    let minima = table(&[job(&link, &law); 12]);
    let reciprocal = |mean: f64| quadrature::exponential(|y, _| 1.0 / (0.2 + mean * y), 1e-15).value;
    for (n, binomials) in
        [(1, vec![1.0]), (2, vec![2.0, -1.0]), (3, vec![3.0, -3.0, 1.0]), (5, vec![5.0, -10.0, 10.0, -5.0, 1.0])]
    {
        let terms = binomials.iter().enumerate().map(|(k, binomial)| binomial * reciprocal(0.3 / (k + 1) as f64));
        let closed: f64 = TAU_MIN * terms.sum::<f64>();
        let set: Vec<usize> = (0..n).collect();
        assert_relative_eq!(minima.of(&set), closed, max_relative = 1e-9);
    }
}

#[test]
fn the_slowest_of_like_uniforms() {
    // The greatest of n uniforms on [0, w] above a is a + w U^{1/n}.
    let (link, law) = (constant(0.025), Uniform::new(0.1, 0.6).expect("valid").into());
    let minima = table(&[job(&link, &law); 20]);
    for n in [1, 2, 7, 20] {
        let brute = quadrature::unit(|u, _| TAU_MIN / (0.15 + 0.5 * power(u, 1.0 / f64::from(n))), 1e-15).value;
        let set: Vec<usize> = (0..n as usize).collect();
        assert_relative_eq!(minima.of(&set), brute, max_relative = 1e-9);
    }
}

#[test]
fn every_pair_agrees_with_brute_force() {
    let (link, laws) = (constant(0.025), laws());
    let clients: Vec<_> = laws.iter().map(|law| job(&link, law)).collect();
    let minima = table(&clients);
    for one in 0..clients.len() {
        assert_relative_eq!(minima.of(&[one]), clients[one].mean_speed(TAU_MIN), max_relative = 1e-9);
        for two in 0..one {
            let mut breakpoints = Vec::new();
            clients[one].breakpoints(&mut breakpoints);
            clients[two].breakpoints(&mut breakpoints);
            // In the logarithm of the latency above its minimum, where no law is singular.
            let kinks: Vec<f64> = breakpoints.iter().filter(|x| **x > 0.05).map(|x| ln(x - 0.05)).collect();
            let integrand = |w: f64| {
                let x = 0.05 + exp(w);
                clients[one].effective_cdf(x) * clients[two].effective_cdf(x) * TAU_MIN / (x * x) * exp(w)
            };
            let brute = quadrature::piecewise(-60.0, 40.0, &kinks, integrand, 1e-14).value;
            assert_relative_eq!(minima.of(&[one, two]), brute, max_relative = 2e-9);
        }
    }
}

#[test]
fn sets_of_many_different_clients_agree_with_brute_force() {
    let link = constant(0.025);
    let laws: Vec<AnyLaw> = (0..30)
        .map(|k| Lognormal::new(0.1 + 0.03 * f64::from(k), 0.05 + 0.02 * f64::from(k)).expect("valid").into())
        .collect();
    let clients: Vec<_> = laws.iter().map(|law| job(&link, law)).collect();
    let minima = table(&clients);
    for (first, step, size) in [(0, 1, 5), (0, 3, 10), (20, 1, 10), (0, 1, 20), (0, 1, 30), (0, 29, 2)] {
        let set: Vec<usize> = (0..size).map(|k| first + step * k).collect();
        let integrand = |w: f64| {
            let x = 0.05 + exp(w);
            set.iter().map(|k| clients[*k].effective_cdf(x)).product::<f64>() * TAU_MIN / (x * x) * exp(w)
        };
        let brute = quadrature::piecewise(-30.0, 30.0, &[-2.0, 0.0], integrand, 1e-14).value;
        assert_relative_eq!(minima.of(&set), brute, max_relative = 1e-9);
    }
}

#[test]
fn cuts_hazards_and_latencies_below_tau_min_are_covered() {
    let (none, law) = (constant(0.0), Gamma::new(2.5, 0.1).expect("valid").into());
    let (link, slow) = (constant(0.02), Lognormal::new(0.4, 0.3).expect("valid").into());
    let lossy = JobLatency { hazards: [0.1, 0.0, 0.1], cut: Some(0.5), ..job(&link, &slow) };
    let fast = JobLatency { cut: Some(0.5), ..job(&none, &law) };
    let minima = table(&[fast, lossy, lossy]);
    let by_time = |x: f64| fast.effective_cdf(x) * lossy.effective_cdf(x) * TAU_MIN / (x * x);
    let brute = quadrature::piecewise(0.04, 0.5, &[], by_time, 1e-14).value + 0.1;
    assert_relative_eq!(minima.of(&[0, 1]), brute, max_relative = 1e-9);
    assert_relative_eq!(minima.of(&[1]), lossy.mean_speed(TAU_MIN), max_relative = 1e-9);
}

#[test]
fn like_clients_share_a_row_and_large_tables_are_refused() {
    let (link, laws) = (constant(0.025), laws());
    let clients = [job(&link, &laws[2]), job(&link, &laws[4]), job(&link, &laws[2])];
    let minima = table(&clients);
    assert_eq!((minima.rows.len(), minima.row_of.clone()), (2, vec![0, 1, 0]));
    assert!(minima.nodes() < 1000, "{}", minima.nodes());

    let samples: Vec<f64> = (0..5_000_000).map(|k| 0.1 + f64::from(k) * 1e-6).collect();
    let trace = Empirical::new(&samples).expect("valid").into();
    let refused = ExpectedMinimum::new(TAU_MIN, &[job(&link, &trace)], &[0.1]).expect_err("refused");
    assert_eq!(refused, ExpectedMinimumError::TooLarge { clients: 1, limit: LIMIT });
}

#[test]
fn a_wrong_mean_speed_is_noticed() {
    let (link, laws) = (constant(0.025), laws());
    let client = job(&link, &laws[4]);
    let wrong = client.mean_speed(TAU_MIN) * (1.0 + 1e-8);
    let error = ExpectedMinimum::new(TAU_MIN, &[client], &[wrong]).expect_err("refused");
    assert!(matches!(error, ExpectedMinimumError::NotReproduced { client: 0, .. }), "{error}");
    let error = ExpectedMinimum::new(TAU_MIN, &[client], &[f64::INFINITY]).expect_err("refused");
    assert!(matches!(error, ExpectedMinimumError::BadSpeed { client: 0, .. }), "{error}");
}
