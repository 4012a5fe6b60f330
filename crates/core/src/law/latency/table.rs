//! Table of a function of one variable that is expensive and evaluated often.
//!
//! # Definition
//! Between its kinks the function is a Chebyshev series of 16 terms on panels that are halved until the last terms fall
//! below 1e-13 of the panel's largest value, or below 1e-13 absolutely, or the panel is as narrow as rounding allows.
//! Terms below 1e-9 that halving makes hardly smaller are the errors of the function itself, and stay.
//!
//! # Accuracy
//! About 1e-12 absolutely, for a function between 0 and 1 that is smooth but at the kinks, or that of the function;
//! next to a kink where the function rises as a fractional power, panels shrink towards it.
//!
//! # Cost
//! 16 evaluations per panel; an answer takes a search and 16 multiplications.

use crate::math::float::cos;
use std::f64::consts::PI;
use std::sync::LazyLock;

const TERMS: usize = 16;
const TOLERANCE: f64 = 1e-13;
/// Terms below this that halving a panel makes hardly smaller are errors of the function: halving would never end.
const NOISE: f64 = 1e-9;
/// From this share of the parent panel's last terms on, terms are hardly smaller; a square root has 0.71.
const HARDLY: f64 = 0.8;
const MOST_PANELS: usize = 4096;

/// cos(π (j + 1/2) / 16) per node, and cos(π i (j + 1/2) / 16) per term i and node j.
static NODES: LazyLock<[f64; TERMS]> = LazyLock::new(|| std::array::from_fn(|j| cosine(1, j)));
static COSINES: LazyLock<[[f64; TERMS]; TERMS]> =
    LazyLock::new(|| std::array::from_fn(|i| std::array::from_fn(|j| cosine(i, j))));

fn cosine(i: usize, j: usize) -> f64 {
    cos(PI * i as f64 * (j as f64 + 0.5) / TERMS as f64)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Panel k reaches from edge k to edge k + 1.
    edges: Vec<f64>,
    series: Vec<[f64; TERMS]>,
    /// The value from the last edge on.
    end: f64,
}

impl Table {
    /// Tabulates `f` on [from, to]; below `from` it is 0, above `to` it keeps its last value.
    pub fn new(from: f64, to: f64, kinks: &[f64], f: &mut dyn FnMut(f64) -> f64) -> Self {
        let mut edges: Vec<f64> = kinks.iter().copied().filter(|kink| from < *kink && *kink < to).collect();
        edges.extend([from, to]);
        edges.sort_by(f64::total_cmp);
        edges.dedup_by(|a, b| *a - *b <= 1e-14 * to.abs());
        let mut table = Self { edges: vec![from], series: Vec::new(), end: f(to) };
        // Panels still to do with the last terms of their parent panel, the leftmost on top.
        let mut open: Vec<(f64, f64, f64)> =
            edges.windows(2).map(|edge| (edge[0], edge[1], f64::INFINITY)).rev().collect();
        while let Some((left, right, before)) = open.pop() {
            let (middle, half) = ((left + right) / 2.0, (right - left) / 2.0);
            let values: [f64; TERMS] = std::array::from_fn(|j| f(middle + half * NODES[j]));
            let series: [f64; TERMS] = std::array::from_fn(|i| {
                let weight = if i == 0 { 1.0 } else { 2.0 } / TERMS as f64;
                weight * values.iter().zip(&COSINES[i]).map(|(value, cosine)| value * cosine).sum::<f64>()
            });
            let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
            let rest = series[TERMS - 3..].iter().fold(0.0f64, |rest, term| rest.max(term.abs()));
            let is_narrow = half <= 1e-13 * right.abs() || table.series.len() + open.len() >= MOST_PANELS;
            let is_noise = rest <= NOISE * largest.max(1.0) && rest >= HARDLY * before;
            if rest <= TOLERANCE * largest.max(1.0) || is_noise || is_narrow {
                table.series.push(series);
                table.edges.push(right);
            } else {
                open.push((middle, right, rest));
                open.push((left, middle, rest));
            }
        }
        table
    }

    /// How many panels there are.
    #[cfg(test)]
    pub fn panels(&self) -> usize {
        self.series.len()
    }

    /// The function at x.
    pub fn at(&self, x: f64) -> f64 {
        let panel = self.edges.partition_point(|edge| *edge <= x);
        if panel == 0 {
            return 0.0;
        }
        let Some(series) = self.series.get(panel - 1) else { return self.end };
        let (left, right) = (self.edges[panel - 1], self.edges[panel]);
        // Clenshaw's recurrence.
        let t = (2.0 * x - left - right) / (right - left);
        let (mut next, mut after) = (0.0, 0.0);
        for term in series[1..].iter().rev() {
            (next, after) = (term + 2.0 * t * next - after, next);
        }
        series[0] + t * next - after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::{power, sqrt};

    #[test]
    fn a_function_with_a_jump_a_kink_and_a_root() {
        let mut calls = 0;
        let mut f = |x: f64| {
            calls += 1;
            match x {
                x if x < 1.0 => sqrt(x) / 3.0,
                x if x < 2.0 => 0.5 + 0.1 * power(x - 1.0, 1.5),
                x => 0.9 - 0.1 / x,
            }
        };
        let table = Table::new(0.0, 5.0, &[1.0, 2.0], &mut f);
        for step in 1..=5000 {
            let x = f64::from(step) / 1000.0;
            let error = (table.at(x) - f(x)).abs();
            assert!(error < 1e-11, "at {x}: {error:e}");
        }
        assert_eq!(table.at(-0.1), 0.0);
        assert_eq!(table.at(7.0), f(5.0));
        assert!(calls < 20_000, "{calls} calls");
    }

    #[test]
    fn errors_of_the_function_are_not_followed() {
        let smooth = |x: f64| x / (1.0 + x);
        // Wrong by up to 1e-11 in a way that no series can follow.
        let noise = |x: f64| 1e-11 * ((x * 1e9).rem_euclid(2.0) - 1.0);
        let table = Table::new(0.0, 10.0, &[], &mut |x| smooth(x) + noise(x));
        assert!(table.panels() < 20, "{} panels", table.panels());
        for step in 1..1000 {
            let x = f64::from(step) / 100.0;
            assert!((table.at(x) - smooth(x)).abs() < 1e-10, "at {x}");
        }
    }
}
