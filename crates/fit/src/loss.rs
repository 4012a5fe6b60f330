//! How clients are lost with their jobs.
//!
//! # Definition
//! Two models of a scenario are compared by BIC.
//!
//! *Hazards*: in each phase at a rate. The most likely rate is the number of losses over the time that jobs spent in
//! the phase, and a loss cuts its job as a deadline does.
//!
//! *Probability*: a share p of the jobs, each at an instant that is uniform over all of the job. A lost job of which t
//! seconds were seen has the factor `p·E[1(T > t)/T]`, one that arrived `(1 − p)·f`, and one that was cut at w
//! `E[1(T > w)·(1 − p·w/T)]`: short jobs are lost after short times, so that a loss tells more than a cut. The phases
//! after the one that was cut are taken at their means.

use crate::jobs::TimedJob;
use crate::law::NORMAL_95;
use crate::sample::Cut;
use crate::search::{maximum, standard_errors};
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::record::Phase;

/// How the clients of a group are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Never.
    None,
    /// In each phase at a rate per second, with its 95 % interval; `None` for phases without losses.
    Hazards([Option<(f64, [f64; 2])>; 3]),
    /// With this probability, and its 95 % interval.
    Probability(f64, [f64; 2]),
}

/// The parameters of a model of losses, as far as the laws depend on them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Uniformly {
    /// The probability that a job is lost.
    pub probability: f64,
    /// Mean durations of the phases, in seconds.
    pub means: [f64; 3],
}

impl Uniformly {
    /// What a job that was cut contributes to the law of the phase in which it was.
    pub fn cut(&self, job: &TimedJob) -> Cut {
        let Some(phase) = job.cut else { return Cut::plain(0.0) };
        let offset = job.before(phase) + self.means[phase.index() + 1..].iter().sum::<f64>();
        let at = job.phases[phase.index()];
        let (plain, inverse) = if job.is_lost { (0.0, 1.0) } else { (1.0, -self.probability * job.total()) };
        Cut { at, plain, inverse, offset }
    }
}

/// Most likely hazards, and the part of the log-likelihood that depends on them.
pub(crate) fn hazards(jobs: &[&TimedJob]) -> (Loss, f64, usize) {
    let (mut value, mut free) = (0.0, 0);
    let rates = Phase::ALL.map(|phase| {
        let exposure: f64 = jobs.iter().map(|job| job.phases[phase.index()]).sum();
        let lost = jobs.iter().filter(|job| job.is_lost && job.cut == Some(phase)).count() as f64;
        if lost == 0.0 || exposure <= 0.0 {
            return None;
        }
        let rate = lost / exposure;
        value += lost * ln(rate) - lost;
        free += 1;
        let half = NORMAL_95 / sqrt(lost);
        Some((rate, [rate * exp(-half), rate * exp(half)]))
    });
    (Loss::Hazards(rates), value, free)
}

/// The most likely probability of a loss. `shares` has, of each job that was cut without a loss, the probability that a
/// job to be lost had not been lost by then.
pub(crate) fn probability(arrived: usize, lost: usize, shares: &[f64]) -> Option<(f64, [f64; 2])> {
    let likelihood = |[at]: &[f64; 1]| {
        let p = 1.0 / (1.0 + exp(-at));
        let cut: f64 = shares.iter().map(|before| ln(1.0 - p * before)).sum();
        arrived as f64 * ln(1.0 - p) + lost as f64 * ln(p) + cut
    };
    let all = (arrived + lost + shares.len()) as f64;
    let first = (lost as f64 / all).clamp(1e-6, 1.0 - 1e-6);
    let found = maximum([ln(first / (1.0 - first))], 0.1, likelihood)?;
    let error = standard_errors(&found.at, likelihood)?[0];
    let [low, middle, high] = [-NORMAL_95, 0.0, NORMAL_95].map(|by| 1.0 / (1.0 + exp(-(found.at[0] + by * error))));
    Some((middle, [low, high]))
}
