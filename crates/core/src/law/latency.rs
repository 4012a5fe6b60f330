//! Effective latency of a client's job, and its mean speed.
//!
//! # Definition
//! A job has three phases, download D, compute C and upload U, and takes τ = D + C + U. In phase i the client is lost
//! at the rate hᵢ per second: it survives all phases with probability `exp(-Σ hᵢ Xᵢ)` given their lengths. A round that
//! waits at most `cut` seconds sees τ_eff = min(τ, cut), and cut if the client was lost. Without a cut a lost client
//! never arrives: τ_eff is infinite and its speed is zero. The speed is τ_min / τ_eff.
//!
//! Two independent routes lead to the mean speed without a cut: the Laplace transforms Lᵢ of the phases,
//! `E[τ_min/τ; survives] = τ_min ∫₀^∞ L_D(s + h_D) L_C(s + h_C) L_U(s + h_U) ds`, and, when at most one phase is
//! random, a one-dimensional expectation. With a cut, `τ_min/cut + ∫ P(τ ≤ τ_min/v, survives) dv` over v > τ_min/cut.
//!
//! # Inputs
//! Phases, cut and τ_min in one unit, usually seconds; hazards per that unit, at least 0.
//!
//! # Source
//! `1/τ = ∫₀^∞ exp(-sτ) ds`: N. Cressie et al., "The moment-generating function and negative integer moments", The
//! American Statistician 35 (1981).
//!
//! # Cost
//! Mean speed: a few microseconds with at most one random phase, a millisecond with more; with a cut, a few hundred
//! evaluations of the cdf. The cdf is one cdf with one random phase and no hazard on it; each further random phase
//! multiplies that by about 150.
//!
//! # Determinism
//! No random number, and sums in a fixed order.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{AnyLaw, Constant, JobLatency, Uniform};
//! let link = AnyLaw::from(Constant::new(0.05)?);
//! let compute = AnyLaw::from(Uniform::new(0.1, 0.9)?);
//! let job = JobLatency { phases: [&link, &compute, &link], hazards: [0.0; 3], cut: None };
//! assert!((job.mean_speed(0.2) - 0.25 * fedgenie_core::math::float::ln(5.0)).abs() < 1e-14);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```

use super::mixture::smallest_root;
use super::{AnyLaw, Law};
use crate::math::float::exp;
use crate::math::quadrature;
pub use lossy::LossyLatency;
use table::Table;

const TOLERANCE: f64 = 1e-11;

/// Tolerance of convolutions. Far in a tail, sums of two coarse steps may agree to 1e-9 because both miss the place
/// where the other phases turn from certain to impossible. Only a sum that no longer moves is accepted; that seldom
/// takes a step more.
const SETTLED: f64 = 1e-15;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobLatency<'a> {
    /// The laws of download, compute and upload.
    pub phases: [&'a AnyLaw; 3],
    /// The rate at which the client is lost in each phase; usually 0.
    pub hazards: [f64; 3],
    /// The longest wait of the round; `None` if it waits forever.
    pub cut: Option<f64>,
}

/// The sum of the constant phases, the chance to survive them, and the other phases with their hazards.
#[derive(Clone, Debug)]
pub(super) struct Parts<'a> {
    constant: f64,
    survival: f64,
    random: Vec<(&'a AnyLaw, f64)>,
    cut: Option<f64>,
    /// The convolution of all random phases but the first, which the whole convolution evaluates many times.
    inner: Option<Table>,
    /// The convolution of all random phases, evaluated at thousands of points.
    whole: Option<Table>,
}

impl<'a> JobLatency<'a> {
    fn parts(&self) -> Parts<'a> {
        let mut parts =
            Parts { constant: 0.0, survival: 1.0, random: Vec::new(), cut: self.cut, inner: None, whole: None };
        for (law, hazard) in self.phases.into_iter().zip(self.hazards) {
            if let AnyLaw::Constant(constant) = law {
                parts.constant += constant.value();
                parts.survival *= exp(-hazard * constant.value());
            } else {
                parts.random.push((law, hazard));
            }
        }
        // The innermost cdf of a convolution is the last one: leave that to one in closed form.
        parts.random.sort_by_key(|(law, hazard)| has_closed_tilted_cdf(law, *hazard));
        parts
    }

    /// The parts with the inner convolution tabulated, for many evaluations.
    pub(super) fn prepared(&self) -> Parts<'a> {
        let mut parts = self.parts();
        let longest = self.cut.map_or(f64::INFINITY, |cut| cut - parts.constant);
        let mut inner: Option<Table> = None;
        // From the inside out: the last cdf, if it is no closed form, then its convolution with the phase before.
        for first in (1..parts.random.len()).rev() {
            let rest = &parts.random[first..];
            let (law, hazard) = rest[0];
            if rest.len() == 1 && has_closed_tilted_cdf(law, hazard) {
                continue;
            }
            let from: f64 = rest.iter().map(|(law, _)| law.minimum()).sum();
            let to: f64 = rest.iter().map(|(law, _)| law.upper_quantile(1e-15)).sum();
            let to = to.min(longest);
            if to <= from {
                continue;
            }
            let table = Table::new(from, to, &sums_of_breakpoints(rest), &mut |y| convolution(rest, inner.as_ref(), y));
            inner = Some(table);
        }
        parts.inner = inner;
        parts
    }

    /// The parts with the cdf itself tabulated, unless it has a closed form.
    pub(super) fn tabulated(&self) -> Parts<'a> {
        let mut parts = self.prepared();
        if self.has_closed_form_cdf() {
            return parts;
        }
        let from: f64 = parts.random.iter().map(|(law, _)| law.minimum()).sum();
        let to: f64 = parts.random.iter().map(|(law, _)| law.upper_quantile(1e-15)).sum();
        let to = self.cut.map_or(to, |cut| to.min(cut - parts.constant));
        if from < to {
            let (random, inner) = (&parts.random, parts.inner.as_ref());
            let cdf = &mut |y: f64| convolution(random, inner, y);
            parts.whole = Some(Table::new(from, to, &sums_of_breakpoints(random), cdf));
        }
        parts
    }

    /// The smallest possible τ.
    pub fn minimum(&self) -> f64 {
        self.phases.iter().map(|law| law.minimum()).sum()
    }

    /// E[τ_min / τ_eff] to a relative error of 1e-9; infinite where that diverges at small τ.
    ///
    /// Speeds above 1, of a job that is faster than `tau_min`, count as they are. The accuracy is lower where the
    /// integral nearly diverges: where P(τ ≤ x) falls as x^κ at zero, κ should be at least 1.1.
    pub fn mean_speed(&self, tau_min: f64) -> f64 {
        if self.phases.iter().map(|law| law.small_value_index()).sum::<f64>() <= 1.0 {
            return f64::INFINITY;
        }
        let parts = self.parts();
        match self.cut {
            Some(cut) => self.speed_until(cut, tau_min, &self.prepared()),
            None if parts.random.len() <= 1 => tau_min * parts.survival * expected_reciprocal(&parts),
            None => tau_min * self.laplace_integral(),
        }
    }

    /// `∫₀^∞ Π Lᵢ(s + hᵢ) ds`.
    fn laplace_integral(&self) -> f64 {
        let scale: f64 = self.phases.iter().map(|law| law.quantile(0.5)).sum();
        let transform = |t: f64| {
            let mut product = 1.0;
            for (law, hazard) in self.phases.iter().zip(self.hazards) {
                product *= law.laplace(t / scale + hazard);
                if product == 0.0 {
                    break;
                }
            }
            product
        };
        quadrature::half_line(transform, TOLERANCE).value / scale
    }

    fn speed_until(&self, cut: f64, tau_min: f64, parts: &Parts<'_>) -> f64 {
        let (minimum, waited) = (self.minimum(), tau_min / cut);
        if minimum >= cut {
            return waited;
        }
        let mut breakpoints = Vec::new();
        self.breakpoints(&mut breakpoints);
        let arrived = |x: f64| parts.arrival_probability_by(x);
        // Down to `turn` by speed; below it, where speeds have no bound, by time.
        let turn = if minimum > 0.0 { minimum } else { tau_min.min(cut) };
        let speeds: Vec<f64> = breakpoints.iter().map(|x| tau_min / x).collect();
        let by_speed = |v: f64| arrived(tau_min / v);
        let slow = quadrature::piecewise_beside(waited, waited, tau_min / turn, &speeds, by_speed, TOLERANCE).value;
        let by_time = |x: f64| arrived(x) * tau_min / (x * x);
        let fast = if minimum > 0.0 {
            0.0
        } else {
            quadrature::piecewise_beside(waited + slow, 0.0, turn, &breakpoints, by_time, TOLERANCE).value
        };
        waited + slow + fast
    }

    /// P(τ ≤ x and the client survives), independent of the cut.
    pub fn arrival_probability_by(&self, x: f64) -> f64 {
        self.parts().arrival_probability_by(x)
    }

    /// P(τ_eff ≤ x).
    pub fn effective_cdf(&self, x: f64) -> f64 {
        self.parts().effective_cdf(x)
    }

    /// The smallest x with P(τ_eff ≤ x) ≥ u, for u in (0, 1); infinite where the round waits for a lost client forever.
    pub fn effective_quantile(&self, u: f64) -> f64 {
        let parts = self.prepared();
        if let Some(cut) = self.cut
            && parts.arrival_probability_by(cut) < u
        {
            return cut;
        }
        let limit = self.cut.unwrap_or(f64::INFINITY);
        if self.has_closed_form_cdf() && self.hazards == [0.0; 3] {
            let random = parts.random.first().map_or(0.0, |(law, _)| law.quantile(u));
            return (parts.constant + random).min(limit);
        }
        let share = (1.0 - u) / parts.random.len().max(1) as f64;
        let mut high = parts.constant + parts.random.iter().map(|(law, _)| law.upper_quantile(share)).sum::<f64>();
        while parts.arrival_probability_by(high) < u {
            if high > 1e12 * parts.constant.max(1.0) {
                return f64::INFINITY;
            }
            high *= 2.0;
        }
        smallest_root(self.minimum(), high.min(limit), |x| parts.arrival_probability_by(x) - u)
    }

    /// Whether the cdf needs no quadrature: at most one phase is random, and has no hazard or is exponential.
    pub fn has_closed_form_cdf(&self) -> bool {
        let parts = self.parts();
        parts.random.len() <= 1 && parts.random.iter().all(|(law, hazard)| has_closed_tilted_cdf(law, *hazard))
    }

    /// Appends where the cdf of τ_eff is not smooth, ascending: sums of the phases' breakpoints, and the cut.
    pub fn breakpoints(&self, out: &mut Vec<f64>) {
        let mut sums = vec![0.0];
        for law in self.phases {
            let mut own = Vec::new();
            law.breakpoints(&mut own);
            sums = sums.iter().flat_map(|sum| own.iter().map(move |x| sum + x)).collect();
            sums.sort_by(f64::total_cmp);
            sums.dedup();
        }
        if let Some(cut) = self.cut {
            sums.retain(|x| *x < cut);
            sums.push(cut);
        }
        out.append(&mut sums);
    }
}

impl Parts<'_> {
    fn arrival_probability_by(&self, x: f64) -> f64 {
        let arrived = match &self.whole {
            Some(whole) => whole.at(x - self.constant),
            None => convolution(&self.random, self.inner.as_ref(), x - self.constant),
        };
        (self.survival * arrived).clamp(0.0, 1.0)
    }

    /// P(τ_eff ≤ x).
    pub(super) fn effective_cdf(&self, x: f64) -> f64 {
        if self.cut.is_some_and(|cut| x >= cut) { 1.0 } else { self.arrival_probability_by(x) }
    }
}

/// E[exp(-hX) / (a + X)] for the only random phase X, or 1/a if there is none.
fn expected_reciprocal(parts: &Parts<'_>) -> f64 {
    let a = parts.constant;
    match parts.random.first() {
        None => 1.0 / a,
        Some((law, 0.0)) => law.expect(&mut |x| 1.0 / (a + x)),
        Some((law, hazard)) => law.expect(&mut |x| exp(-hazard * x) / (a + x)),
    }
}

fn has_closed_tilted_cdf(law: &AnyLaw, hazard: f64) -> bool {
    hazard == 0.0 || matches!(law, AnyLaw::Constant(_) | AnyLaw::Exponential(_) | AnyLaw::Empirical(_))
}

/// All sums of one breakpoint of each phase.
fn sums_of_breakpoints(phases: &[(&AnyLaw, f64)]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for (law, _) in phases {
        let mut own = Vec::new();
        law.breakpoints(&mut own);
        sums = sums.iter().flat_map(|sum| own.iter().map(move |x| sum + x)).collect();
    }
    sums
}

/// E[exp(-Σ hᵢ Xᵢ); Σ Xᵢ ≤ y]. `inner` is the convolution of all phases but the first, if it was tabulated.
fn convolution(random: &[(&AnyLaw, f64)], inner: Option<&Table>, y: f64) -> f64 {
    match random {
        [] => f64::from(y >= 0.0),
        [(law, hazard)] => tilted_cdf(law, *hazard, y),
        [(law, hazard), rest @ ..] => {
            let kinks: Vec<f64> = sums_of_breakpoints(rest).into_iter().map(|kink| y - kink).collect();
            let weight = |x: f64| if *hazard == 0.0 { 1.0 } else { exp(-hazard * x) };
            match inner {
                Some(inner) => expectation_up_to(law, y, &kinks, &mut |x| weight(x) * inner.at(y - x)),
                None => expectation_up_to(law, y, &kinks, &mut |x| weight(x) * convolution(rest, None, y - x)),
            }
        }
    }
}

/// E[exp(-hX); X ≤ y].
fn tilted_cdf(law: &AnyLaw, hazard: f64, y: f64) -> f64 {
    if hazard == 0.0 || y <= law.minimum() {
        return law.cdf(y) * if hazard == 0.0 { 1.0 } else { exp(-hazard * y) };
    }
    match law {
        AnyLaw::Exponential(exponential) => exponential.tilted_cdf(hazard, y),
        AnyLaw::Mixture(_) | AnyLaw::Constant(_) | AnyLaw::Empirical(_) => {
            expectation_up_to(law, y, &[], &mut |x| exp(-hazard * x))
        }
        _ => {
            // By parts; beyond 50 / h the weight has vanished.
            let end = y.min(law.minimum() + 50.0 / hazard);
            let mut kinks = Vec::new();
            law.breakpoints(&mut kinks);
            let arrived = exp(-hazard * y) * law.cdf(y);
            let weighted = |x: f64| hazard * exp(-hazard * x) * law.cdf(x);
            let integral = quadrature::piecewise_beside(arrived, law.minimum(), end, &kinks, weighted, TOLERANCE).value;
            arrived + integral
        }
    }
}

/// E[f(X); X ≤ y] for an f between 0 and 1 that is smooth but at the `kinks`, to an absolute error of about 1e-11.
fn expectation_up_to(law: &AnyLaw, y: f64, kinks: &[f64], f: &mut dyn FnMut(f64) -> f64) -> f64 {
    match law {
        AnyLaw::Constant(constant) => {
            if constant.value() <= y {
                f(constant.value())
            } else {
                0.0
            }
        }
        AnyLaw::Empirical(empirical) => {
            let count = empirical.samples().len() as f64;
            empirical.samples().take_while(|x| *x <= y).map(f).sum::<f64>() / count
        }
        AnyLaw::Mixture(mixture) => {
            let part = |component: &super::mixture::Component| {
                component.weight * expectation_up_to(&component.law.scaled(mixture.factor()), y, kinks, f)
            };
            mixture.components().iter().map(part).sum()
        }
        _ => {
            let whole = law.cdf(y);
            let inner = kinks.iter().map(|kink| law.cdf(*kink)).filter(|u| *u > 0.0 && *u < whole);
            let mut edges: Vec<f64> = inner.chain([0.0, whole]).collect();
            edges.sort_by(f64::total_cmp);
            edges.dedup();
            let mut sum = 0.0;
            for edge in edges.windows(2) {
                let (from, width) = (edge[0], edge[1] - edge[0]);
                // Close to its kinks f is found from x - kink: no closer than this, so that x stays on its side.
                let at = |p: f64, _| f(law.quantile((from + width * p).min(1.0 - f64::EPSILON)).min(y));
                sum += width * quadrature::unit(at, SETTLED).value;
            }
            sum
        }
    }
}

mod lossy;
mod table;
#[cfg(test)]
mod tests;
