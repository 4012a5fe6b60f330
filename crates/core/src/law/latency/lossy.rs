//! Effective latency of a job that is lost with a probability, independent of its length.
//!
//! # Definition
//! With the probability 1 − q, independent of τ, the client is lost; otherwise the job is that of a [`JobLatency`]. So
//! `P(τ_eff ≤ x) = q P(τ ≤ x, survives)` below the cut and 1 from there on, and the mean speed is
//! `q E[τ_min/τ_eff] + (1 − q) τ_min/cut`, without a cut `q E[τ_min/τ_eff]`. The phase of the loss does not matter.
//!
//! # Inputs
//! As [`JobLatency`]; `survival`, q, in (0, 1].

use super::{JobLatency, Parts};

/// A latency whose job can be lost with a probability: either as a whole or in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossyLatency<'a> {
    /// Latency and hazards.
    pub job: JobLatency<'a>,
    /// The probability that the client is not lost in this way.
    pub survival: f64,
}

impl<'a> From<JobLatency<'a>> for LossyLatency<'a> {
    fn from(job: JobLatency<'a>) -> Self {
        Self { job, survival: 1.0 }
    }
}

impl<'a> LossyLatency<'a> {
    /// E[τ_min / τ_eff]; see [`JobLatency::mean_speed`].
    pub fn mean_speed(&self, tau_min: f64) -> f64 {
        let speed = self.job.mean_speed(tau_min);
        if self.survival == 1.0 {
            return speed;
        }
        let waited = self.job.cut.map_or(0.0, |cut| tau_min / cut);
        self.survival * speed + (1.0 - self.survival) * waited
    }

    /// P(τ_eff ≤ x).
    pub fn effective_cdf(&self, x: f64) -> f64 {
        match self.job.cut {
            Some(cut) if x >= cut => 1.0,
            _ => self.survival * self.job.arrival_probability_by(x),
        }
    }

    /// The smallest x with P(τ_eff ≤ x) ≥ u, for u in (0, 1); infinite where a lost client is never given up.
    pub fn effective_quantile(&self, u: f64) -> f64 {
        let share = u / self.survival;
        if share < 1.0 { self.job.effective_quantile(share) } else { self.job.cut.unwrap_or(f64::INFINITY) }
    }

    /// See [`JobLatency::has_closed_form_cdf`].
    pub fn has_closed_form_cdf(&self) -> bool {
        self.job.has_closed_form_cdf()
    }

    /// The parts of the job with the cdf tabulated, unless it has a closed form.
    pub(in crate::law) fn tabulated(&self) -> Parts<'a> {
        let mut parts = self.job.tabulated();
        parts.survival *= self.survival;
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{AnyLaw, Constant, ExpectedMinimum, Exponential, Law, Lognormal};
    use crate::rng::{Purpose, Streams};

    const TAU_MIN: f64 = 0.05;
    const DRAWS: u32 = 200_000;

    /// Draws of τ_eff: a uniform for each phase, for each hazard and for the loss.
    fn drawn(job: &LossyLatency<'_>, entity: u32, draw: u32) -> f64 {
        let mut rng = Streams::new(7).stream(Purpose::Resampling, entity, draw);
        let mut is_lost = rng.uniform() >= job.survival;
        let mut latency = 0.0;
        for (law, hazard) in job.job.phases.into_iter().zip(job.job.hazards) {
            let phase = law.quantile(rng.uniform());
            is_lost |= -crate::math::float::ln(rng.uniform()) < hazard * phase;
            latency += phase;
        }
        let cut = job.job.cut.unwrap_or(f64::INFINITY);
        if is_lost { cut } else { latency.min(cut) }
    }

    /// Mean and standard error of the draws.
    fn mean(of: impl Fn(u32) -> f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for draw in 0..DRAWS {
            let value = of(draw);
            sum += value;
            squares += value * value;
        }
        let (count, mean) = (f64::from(DRAWS), sum / f64::from(DRAWS));
        (mean, crate::math::float::sqrt((squares / count - mean * mean) / count))
    }

    #[test]
    fn mean_speeds_cdfs_and_minima_are_those_of_draws() {
        let link = AnyLaw::from(Constant::new(0.025).unwrap());
        let slow = AnyLaw::from(Lognormal::new(0.4, 0.5).unwrap());
        let fast = AnyLaw::from(Exponential::new(0.2, 0.01).unwrap());
        let of = |compute, hazard, cut, survival| LossyLatency {
            job: JobLatency { phases: [&link, compute, &link], hazards: [0.0, hazard, 0.0], cut },
            survival,
        };
        let jobs = [of(&slow, 0.0, Some(1.0), 0.8), of(&fast, 0.3, Some(1.0), 0.9), of(&slow, 0.5, None, 0.6)];
        for (entity, job) in (0..).zip(&jobs) {
            let (speed, error) = mean(|draw| TAU_MIN / drawn(job, entity, draw));
            let exact = job.mean_speed(TAU_MIN);
            assert!((speed - exact).abs() < 4.0 * error, "{entity}: {speed} ± {error}, {exact}");
            for x in [0.2, 0.45, 0.99] {
                let (share, error) = mean(|draw| f64::from(u8::from(drawn(job, entity, draw) <= x)));
                let exact = job.effective_cdf(x);
                assert!((share - exact).abs() < 4.0 * error, "{entity} at {x}: {share} ± {error}, {exact}");
                assert!((job.effective_quantile(exact) - x).abs() < 1e-6, "{entity} at {x}");
            }
            // The lost jobs are at the cut, or never come.
            assert_eq!(job.effective_quantile(0.95 * job.survival + 0.05), job.job.cut.unwrap_or(f64::INFINITY));
        }
        let pair = &jobs[..2];
        let speeds: Vec<f64> = pair.iter().map(|job| job.mean_speed(TAU_MIN)).collect();
        let minima = ExpectedMinimum::new(TAU_MIN, pair, &speeds).unwrap();
        let (slowest, error) = mean(|draw| TAU_MIN / drawn(&pair[0], 0, draw).max(drawn(&pair[1], 1, draw)));
        assert!((minima.of(&[0, 1]) - slowest).abs() < 4.0 * error, "{} {slowest} ± {error}", minima.of(&[0, 1]));
    }

    #[test]
    fn a_constant_job_by_hand() {
        let (none, second) = (AnyLaw::from(Constant::new(0.0).unwrap()), AnyLaw::from(Constant::new(1.0).unwrap()));
        let job = JobLatency { phases: [&none, &second, &none], hazards: [0.0; 3], cut: Some(4.0) };
        // One in four waits 4 s instead of 1 s: 0.75 · 0.5/1 + 0.25 · 0.5/4.
        let lossy = LossyLatency { job, survival: 0.75 };
        assert!((lossy.mean_speed(0.5) - 0.406_25).abs() < 1e-15);
        assert_eq!(LossyLatency::from(job).mean_speed(0.5), job.mean_speed(0.5));
        assert_eq!((lossy.effective_cdf(0.9), lossy.effective_cdf(1.0), lossy.effective_cdf(4.0)), (0.0, 0.75, 1.0));
        let speeds = [lossy.mean_speed(0.5); 3];
        let minima = ExpectedMinimum::new(0.5, &[lossy; 3], &speeds).unwrap();
        // All three survive, or the round waits 4 s.
        let all = 0.75 * 0.75 * 0.75;
        assert!((minima.of(&[0, 1, 2]) - (all * 0.5 + (1.0 - all) * 0.125)).abs() < 1e-12);
    }
}
