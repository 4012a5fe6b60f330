//! Residual life: the rest of a stretch at a random instant.
//!
//! # Definition
//! Of a stationary renewal process with durations X, the rest of the current stretch has the integrated-tail law
//! `P(R ≤ r) = ∫₀^r P(X > x) dx / E X`.
//!
//! # Inputs
//! A law of finite, positive mean.
//!
//! # Source
//! W. Feller, "An Introduction to Probability Theory and Its Applications", volume II, 2nd edition 1971, XI.4.
//!
//! # Cost
//! Closed forms for constant, uniform and exponential laws. Otherwise the tail is tabulated as piecewise Chebyshev
//! series, some 20 to 200 panels of 16 evaluations each, integrated term by term, and an answer is a search and a few
//! steps of Newton's method.
//!
//! # Accuracy
//! About 1e-12 of the mean.

use fedgenie_core::law::{AnyLaw, Law};
use fedgenie_core::math::float::{cos, ln, sqrt};
use std::f64::consts::PI;

const TERMS: usize = 16;

/// Beyond this many seconds, 634 years, nothing fits virtual time.
const LONGEST: f64 = 2e10;

const MOST_PANELS: usize = 1 << 16;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) enum Residual {
    Uniform { least: f64, most: f64 },
    Exponential { mean: f64, shift: f64 },
    Table(Table),
}

/// The integral of a law's tail, panel by panel.
#[derive(Clone, Debug)]
pub(super) struct Table {
    mean: f64,
    /// Panel k reaches from edge k to edge k + 1.
    edges: Vec<f64>,
    /// The integral up to each edge.
    integrals: Vec<f64>,
    /// The tail in each panel, and its integral from the middle, over half the width.
    tails: Vec<[f64; TERMS]>,
    /// The answer beyond the last edge.
    end: f64,
}

impl Residual {
    /// The residual law of a law with finite, positive mean.
    pub fn new(law: &AnyLaw) -> Self {
        match law {
            AnyLaw::Constant(_) | AnyLaw::Uniform(_) => Self::Uniform { least: law.minimum(), most: law.maximum() },
            AnyLaw::Exponential(_) => Self::Exponential { mean: law.mean() - law.minimum(), shift: law.minimum() },
            _ => Self::Table(Table::new(law)),
        }
    }

    /// The smallest r with P(R ≤ r) ≥ u.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Self::Uniform { least, most } => {
                let target = u * (least + most) / 2.0;
                let above = most - sqrt((1.0 - u) * (most - least) * (most + least));
                if target <= *least { target } else { above }
            }
            Self::Exponential { mean, shift } => {
                let target = u * (mean + shift);
                let above = shift - mean * ln((1.0 - u) * (mean + shift) / mean);
                if target <= *shift { target } else { above }
            }
            Self::Table(table) => table.quantile(u),
        }
    }
}

impl Table {
    fn new(law: &AnyLaw) -> Self {
        let mean = law.mean();
        let last = law.maximum().min(law.upper_quantile(1e-30)).min(LONGEST);
        let mut edges = vec![0.0, last];
        law.breakpoints(&mut edges);
        edges.extend([0.1, 0.5].map(|u| law.quantile(u)));
        let mut share = 1.0;
        for _ in 0..20 {
            share *= 0.1;
            edges.push(law.upper_quantile(share));
        }
        edges.retain(|edge| (0.0..=last).contains(edge));
        edges.sort_by(f64::total_cmp);
        edges.dedup_by(|a, b| *a - *b <= 1e-15 * a.abs());
        let nodes: [f64; TERMS] = std::array::from_fn(|j| cosine(1, j));
        let cosines: [[f64; TERMS]; TERMS] = std::array::from_fn(|i| std::array::from_fn(|j| cosine(i, j)));
        let end = if last == LONGEST { f64::INFINITY } else { last };
        let mut table = Self { mean, edges: vec![0.0], integrals: vec![0.0], tails: Vec::new(), end };
        // Panels still to do, the leftmost on top.
        let mut open: Vec<(f64, f64)> = edges.windows(2).map(|edge| (edge[0], edge[1])).rev().collect();
        while let Some((left, right)) = open.pop() {
            let (middle, half) = (left + (right - left) / 2.0, (right - left) / 2.0);
            let values: [f64; TERMS] = std::array::from_fn(|j| law.tail(middle + half * nodes[j]));
            let series: [f64; TERMS] = std::array::from_fn(|i| {
                let weight = if i == 0 { 1.0 } else { 2.0 } / TERMS as f64;
                weight * values.iter().zip(&cosines[i]).map(|(value, cosine)| value * cosine).sum::<f64>()
            });
            let rest = series[TERMS - 3..].iter().fold(0.0f64, |rest, term| rest.max(term.abs()));
            let is_fine = half * rest <= 1e-14 * mean || half <= 1e-13 * right;
            if is_fine || table.tails.len() + open.len() >= MOST_PANELS {
                let before = *table.integrals.last().expect("there is a first edge");
                table.tails.push(series);
                table.edges.push(right);
                table.integrals.push(before + half * (integral(&series, 1.0) - integral(&series, -1.0)));
            } else {
                open.push((middle, right));
                open.push((left, middle));
            }
        }
        table
    }

    fn quantile(&self, u: f64) -> f64 {
        let target = u * self.mean;
        let panel = self.integrals.partition_point(|integral| *integral < target);
        if panel == 0 {
            return 0.0;
        }
        if panel == self.integrals.len() {
            return self.end;
        }
        let (series, left, right) = (&self.tails[panel - 1], self.edges[panel - 1], self.edges[panel]);
        let half = (right - left) / 2.0;
        let wanted = (target - self.integrals[panel - 1]) / half + integral(series, -1.0);
        // Newton's method between -1 and 1; where it leaves the bracket, bisection.
        let (mut low, mut high) = (-1.0, 1.0);
        let share = (target - self.integrals[panel - 1]) / (self.integrals[panel] - self.integrals[panel - 1]);
        let mut t = (2.0 * share - 1.0).clamp(-1.0, 1.0);
        for _ in 0..100 {
            let excess = integral(series, t) - wanted;
            if excess >= 0.0 {
                high = t
            } else {
                low = t
            }
            let newton = t - excess / chebyshev(series, t);
            let next = if newton >= low && newton <= high { newton } else { 0.5 * (low + high) };
            if (next - t).abs() <= 1e-15 {
                t = next;
                break;
            }
            t = next;
        }
        (left + half * (1.0 + t)).clamp(left, right)
    }
}

/// cos(π i (j + 1/2) / 16).
fn cosine(i: usize, j: usize) -> f64 {
    cos(PI * i as f64 * (j as f64 + 0.5) / TERMS as f64)
}

/// `Σ sᵢ Tᵢ(t)` by Clenshaw's recurrence.
fn chebyshev(series: &[f64], t: f64) -> f64 {
    let (mut next, mut after) = (0.0, 0.0);
    for term in series[1..].iter().rev() {
        (next, after) = (term + 2.0 * t * next - after, next);
    }
    series[0] + t * next - after
}

/// An antiderivative of `Σ sᵢ Tᵢ(t)`: the coefficient of `Tᵢ` is `(sᵢ₋₁ − sᵢ₊₁) / 2i`, with `s₀` taken twice.
fn integral(series: &[f64; TERMS], t: f64) -> f64 {
    let mut integrated = [0.0; TERMS + 1];
    for (i, term) in integrated.iter_mut().enumerate().skip(1) {
        let below = if i == 1 { 2.0 * series[0] } else { series[i - 1] };
        *term = (below - series.get(i + 1).copied().unwrap_or(0.0)) / (2 * i) as f64;
    }
    chebyshev(&integrated, t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::law::{Constant, Empirical, Exponential, Gamma, Lognormal, Mixture, Pareto, Uniform, Weibull};
    use fedgenie_core::math::quadrature;

    /// `∫₀^r P(X > x) dx` by adaptive quadrature.
    fn integrated_tail(law: &AnyLaw, r: f64) -> f64 {
        let mut breakpoints = Vec::new();
        law.breakpoints(&mut breakpoints);
        breakpoints.extend([0.1, 0.5, 0.9, 0.99, 0.999].map(|u| law.quantile(u)));
        breakpoints.retain(|point| 0.0 < *point && *point < r);
        breakpoints.sort_by(f64::total_cmp);
        breakpoints.dedup();
        quadrature::piecewise(0.0, r, &breakpoints, |x| law.tail(x), 1e-13).value
    }

    #[test]
    fn the_quantile_inverts_the_integrated_tail() {
        let laws: Vec<AnyLaw> = vec![
            Constant::new(3.0).unwrap().into(),
            Uniform::new(1.0, 4.0).unwrap().into(),
            Uniform::new(0.0, 4.0).unwrap().into(),
            Exponential::new(2.0, 0.5).unwrap().into(),
            Exponential::new(2000.0, 0.0).unwrap().into(),
            Lognormal::new(100.0, 1.5).unwrap().into(),
            Gamma::new(0.4, 3.0).unwrap().into(),
            Weibull::new(0.5, 7.0).unwrap().into(),
            Pareto::new(1.5, 2.0).unwrap().into(),
            Empirical::new(&[0.0, 1.0, 1.0, 5.0, 9.0]).unwrap().into(),
            Mixture::new([(1.0, Constant::new(2.0).unwrap().into()), (2.0, Uniform::new(3.0, 9.0).unwrap().into())])
                .unwrap()
                .into(),
        ];
        for law in laws {
            let residual = Residual::new(&law);
            let mut last = 0.0;
            for u in [1e-6, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97] {
                let r = residual.quantile(u);
                assert!(r >= last, "{law:?}: the quantile falls at {u}");
                last = r;
                let share = integrated_tail(&law, r) / law.mean();
                assert!((share - u).abs() < 1e-10, "{law:?}: P(R ≤ {r}) is {share}, not {u}");
            }
        }
    }

    #[test]
    fn a_memoryless_law_is_its_own_residual() {
        let law = AnyLaw::from(Exponential::new(7.0, 0.0).unwrap());
        for u in [0.001, 0.3, 0.999_999] {
            assert!((Residual::new(&law).quantile(u) / law.quantile(u) - 1.0).abs() < 1e-12);
        }
        // A gamma law of shape 1 goes through the table.
        let gamma = AnyLaw::from(Gamma::new(1.0, 7.0).unwrap());
        for u in [0.001, 0.3, 0.999_999] {
            assert!((Residual::new(&gamma).quantile(u) / law.quantile(u) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_outlasts_virtual_time_never_ends() {
        let law = AnyLaw::from(Pareto::new(1.05, 1.0).unwrap());
        assert_eq!(Residual::new(&law).quantile(0.999), f64::INFINITY);
    }
}
