//! Whether the phases of a job depend on each other.
//!
//! # Definition
//! The correlation of the logarithms of two phases over the jobs that arrived, less each client's own mean, so that
//! clients that are slow in both count for nothing. It matters if Fisher's z is beyond 3.29 (two sides, 0.1 %) and the
//! correlation beyond 0.2. Where jobs were cut, those that arrived are the short ones, which makes their phases depend
//! on each other the other way round: then only a positive correlation matters.
//!
//! # Source
//! R. A. Fisher, "On the probable error of a coefficient of correlation deduced from a small sample", Metron 1 (1921).

use crate::jobs::TimedJob;
use crate::sample::SHORTEST;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::record::Phase;

/// The correlation of two phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// A phase.
    pub one: Phase,
    /// Another.
    pub other: Phase,
    /// Their correlation, from −1 to 1.
    pub r: f64,
    /// Jobs less clients.
    pub free: usize,
    /// Whether it matters.
    pub matters: bool,
}

/// The smallest z and r that matter.
const Z: f64 = 3.29;
const R: f64 = 0.2;

/// The correlations of the phases that vary.
pub(crate) fn correlations(jobs: &[TimedJob], clients: usize, has_cuts: bool) -> Vec<Correlation> {
    let arrived: Vec<&TimedJob> = jobs.iter().filter(|job| job.cut.is_none()).collect();
    let residuals = Phase::ALL.map(|phase| residuals(&arrived, phase, clients));
    let mut is_there = vec![false; clients];
    arrived.iter().for_each(|job| is_there[job.client.index()] = true);
    let free = arrived.len() - is_there.iter().filter(|there| **there).count();
    let mut found = Vec::new();
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let (x, y) = (&residuals[one], &residuals[other]);
        let (own, others) = (sum(x, x), sum(y, y));
        // Durations that are alike up to their rounding have no correlation.
        let least = 1e-12 * arrived.len() as f64;
        if own <= least || others <= least || free < 5 {
            continue;
        }
        let r = (sum(x, y) / sqrt(own * others)).clamp(-1.0, 1.0);
        let z = 0.5 * ln((1.0 + r).max(1e-12) / (1.0 - r).max(1e-12)) * sqrt(free as f64 - 2.0);
        let matters = z.abs() > Z && r.abs() > R && (r > 0.0 || !has_cuts);
        found.push(Correlation { one: Phase::ALL[one], other: Phase::ALL[other], r, free, matters });
    }
    found
}

/// Logarithms of a phase's durations, less the client's mean.
fn residuals(jobs: &[&TimedJob], phase: Phase, clients: usize) -> Vec<f64> {
    let logarithm = |job: &TimedJob| ln(job.phases[phase.index()].max(SHORTEST));
    let mut sums = vec![(0.0, 0_u32); clients];
    for job in jobs {
        let own = &mut sums[job.client.index()];
        *own = (own.0 + logarithm(job), own.1 + 1);
    }
    let mean = |job: &TimedJob| sums[job.client.index()].0 / f64::from(sums[job.client.index()].1);
    jobs.iter().map(|job| logarithm(job) - mean(job)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::id::{ClientId, Round};
    use fedgenie_core::math::float::exp;

    fn job(client: u32, phases: [f64; 3]) -> TimedJob {
        TimedJob { client: ClientId(client), round: Round(1), phases: phases.map(exp), cut: None, is_lost: false }
    }

    /// Two clients of different speed; within each, download and compute are (0, 0), (1, 2), (2, 1): r = 1/2.
    #[test]
    fn correlations_are_within_clients() {
        let own = |client: u32, by: f64| {
            [(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)].map(|(x, y)| job(client, [x + by, y + by, 1.0]))
        };
        let jobs: Vec<TimedJob> = (0..4).flat_map(|client| own(client, 10.0 * f64::from(client))).collect();
        let found = correlations(&jobs, 4, false);
        assert_eq!(found.len(), 1, "the upload is constant: {found:?}");
        assert!((found[0].r - 0.5).abs() < 1e-12 && found[0].free == 8 && !found[0].matters, "{found:?}");
        let many: Vec<TimedJob> = (0..40).flat_map(|client| own(client, 0.0)).collect();
        assert!(correlations(&many, 40, true)[0].matters);
        let negative: Vec<TimedJob> =
            many.iter().map(|job| TimedJob { phases: [job.phases[0], 1.0 / job.phases[1], 1.0], ..*job }).collect();
        assert!(correlations(&negative, 40, false)[0].matters && !correlations(&negative, 40, true)[0].matters);
    }
}
