//! Clients each with a speed of its own: a median per client, and one deviation for all.
//!
//! # Definition
//! The logarithms of a phase's durations are normal with the client's own mean and a common deviation, by the EM
//! algorithm where jobs were cut. The criterion is that of [groups](mod@crate::groups), `−2·ln L + k·ln n`, with a
//! parameter for each client and one for the deviation; in each phase the common law is kept where it has the smaller
//! one. Durations that are all alike within each client are a constant per client. Losses count as cuts here.
//!
//! A client none of whose jobs has shown a duration has the median of all.

use crate::goodness::{Goodness, goodness};
use crate::groups::{LEAST_SIGMA, Logarithms, hazard};
use crate::jobs::{TimedJob, plainly, sample};
use crate::law::{Family, LawFit, NORMAL_95, Parameter, fitted};
use crate::sample::{Cut, Sample};
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::record::Phase;

/// The most steps of the EM algorithm.
const STEPS: usize = 60;

/// A phase whose durations differ from client to client.
#[derive(Clone, Debug, PartialEq)]
pub struct Personal {
    /// The median of each client, in seconds.
    pub medians: Vec<f64>,
    /// The deviation of the logarithms, and its 95 % interval; `None` where each client's durations are all alike.
    pub sigma: Option<(f64, [f64; 2])>,
    /// Clients that have the median of all.
    pub unseen: usize,
    /// How far the law is from the durations over their client's median.
    pub goodness: Option<Goodness>,
}

/// What was found for all clients together.
pub(crate) struct Found {
    /// The criterion.
    pub criterion: f64,
    /// The phases that differ from client to client.
    pub phases: [Option<Personal>; 3],
}

/// Means and deviation of a phase's logarithms, and their log-likelihood.
struct Estimate {
    means: Vec<f64>,
    sigma: f64,
    likelihood: f64,
    unseen: usize,
}

/// Fits a median per client, in the phases where that pays.
pub(crate) fn personal(jobs: &[TimedJob], clients: usize) -> Found {
    let mut by_client: Vec<Vec<&TimedJob>> = vec![Vec::new(); clients];
    jobs.iter().for_each(|job| by_client[job.client.index()].push(job));
    let (mut criterion, n) = (0.0, ln(jobs.len() as f64));
    let phases = Phase::ALL.map(|phase| {
        let own: Vec<Logarithms> = by_client.iter().map(|jobs| Logarithms::of(jobs, phase)).collect();
        let mut all = Logarithms::default();
        own.iter().for_each(|one| all.add(one));
        if !all.varies() {
            criterion -= 2.0 * all.likelihood(all.law());
            return None;
        }
        let common = -2.0 * all.likelihood(all.law()) + 2.0 * n;
        let estimate = estimate(&own, &all)?;
        let apart = -2.0 * estimate.likelihood + (clients + 1) as f64 * n;
        criterion += common.min(apart);
        (apart < common).then(|| of_phase(&by_client, phase, &estimate, &own))
    });
    Found { criterion, phases }
}

/// The most likely means and deviation; `None` if no duration was seen.
fn estimate(own: &[Logarithms], all: &Logarithms) -> Option<Estimate> {
    let (middle, spread) = all.law()?;
    let start = |one: &Logarithms| if one.seen > 0.0 { one.sum / one.seen } else { middle };
    let mut means: Vec<f64> = own.iter().map(start).collect();
    let mut sigma = spread;
    for _ in 0..STEPS {
        let (mut squares, mut count, mut moved) = (0.0, 0.0, 0.0_f64);
        for (one, mean) in own.iter().zip(&mut means) {
            // A client without durations has cuts at most, whose most likely mean is infinite.
            if one.seen == 0.0 {
                continue;
            }
            let (mut sum, mut square) = (one.sum, one.squares);
            for cut in &one.cuts {
                let z = (cut - *mean) / sigma;
                let hazard = hazard(z);
                sum += *mean + sigma * hazard;
                square += *mean * *mean + 2.0 * *mean * sigma * hazard + sigma * sigma * (1.0 + z * hazard);
            }
            let n = one.seen + one.cuts.len() as f64;
            let next = sum / n;
            squares += (square - n * next * next).max(0.0);
            count += n;
            moved = moved.max((next - *mean).abs());
            *mean = next;
        }
        let next = sqrt(squares / count).max(LEAST_SIGMA);
        let change = moved + (next - sigma).abs();
        sigma = next;
        if change < 1e-6 * sigma {
            break;
        }
    }
    let likelihood = own.iter().zip(&means).map(|(one, &mean)| one.likelihood(Some((mean, sigma)))).sum();
    let unseen = own.iter().filter(|one| one.seen == 0.0).count();
    Some(Estimate { means, sigma, likelihood, unseen })
}

/// The phase in words of a scenario.
fn of_phase(by_client: &[Vec<&TimedJob>], phase: Phase, found: &Estimate, own: &[Logarithms]) -> Personal {
    let medians: Vec<f64> = by_client
        .iter()
        .zip(&found.means)
        .zip(own)
        .map(|((jobs, &mean), one)| {
            // A constant to the nanosecond, as the log has it.
            let first = jobs.iter().find(|job| job.cut.is_none_or(|cut| cut > phase));
            first.filter(|_| !one.varies()).map_or(exp(mean), |job| job.phases[phase.index()])
        })
        .collect();
    if found.sigma <= LEAST_SIGMA {
        return Personal { medians, sigma: None, unseen: found.unseen, goodness: None };
    }
    let (mut exact, mut cuts) = (Vec::new(), Vec::new());
    for (jobs, median) in by_client.iter().zip(&medians) {
        let own = sample(jobs.iter().copied(), phase, plainly);
        exact.extend(own.exact.iter().map(|x| x / median));
        cuts.extend(own.cuts.iter().map(|cut| Cut::plain(cut.at / median)));
    }
    let over_median = Sample::new(exact, cuts);
    // A mean that was estimated takes one duration of each client.
    let seen = own.iter().map(|one| one.seen).sum::<f64>();
    let free = (seen - (own.len() - found.unseen) as f64).max(1.0);
    let corrected = found.sigma * sqrt(seen / free);
    let half = NORMAL_95 / sqrt(2.0 * free);
    let law = Family::Lognormal.law([1.0, corrected]).map(|law| LawFit {
        family: Family::Lognormal,
        parameters: Vec::new(),
        law,
        log_likelihood: found.likelihood,
        bic: f64::NAN,
    });
    let goodness = law.and_then(|law| goodness(&over_median, &law));
    let sigma = Some((corrected, [corrected * exp(-half), corrected * exp(half)]));
    Personal { medians, sigma, unseen: found.unseen, goodness }
}

/// The law of all medians, for a fleet of another size: lognormal.
pub(crate) fn of_medians(medians: &[f64]) -> Option<Vec<Parameter>> {
    let seen = medians.iter().copied().filter(|median| *median > 0.0).collect();
    Some(fitted(Family::Lognormal, &Sample::new(seen, Vec::new()))?.parameters)
}
