//! The laws and losses of one group of clients.

use crate::goodness::{Goodness, goodness};
use crate::jobs::{TimedJob, plainly, sample};
use crate::law::{Choice, Family, choose, choose_among};
use crate::loss::{Loss, Uniformly, hazards, probability};
use crate::personal::Personal;
use crate::sample::{Cut, Sample, inverse_mean};
use fedgenie_core::id::ClientId;
use fedgenie_core::law::Law;
use fedgenie_core::math::float::ln;
use fedgenie_core::record::Phase;

/// A phase of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFit {
    /// Its law, and the next best one.
    pub choice: Choice,
    /// Whether no job of the group has shown a duration, so that those of all clients were taken.
    pub is_borrowed: bool,
    /// How far the law is from the durations.
    pub goodness: Option<Goodness>,
    /// A median of each client, instead of the law, where clients differ.
    pub personal: Option<Personal>,
}

/// A group of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFit {
    /// Its clients, ascending.
    pub clients: Vec<ClientId>,
    /// Its jobs whose time is known.
    pub jobs: usize,
    /// Its jobs that were cut by a deadline or a timeout.
    pub late: usize,
    /// Its jobs that were lost.
    pub lost: usize,
    /// Its phases.
    pub phases: [PhaseFit; 3],
    /// Its losses.
    pub loss: Loss,
}

/// The phases' laws, with the log-likelihood of those that vary and the number of their parameters.
type Laws = ([Choice; 3], [bool; 3], f64, f64);

/// How a job counts that was cut.
type Cutting = Box<dyn Fn(&TimedJob) -> Cut>;

/// Fits a group. `all` are the jobs of all clients, for phases of which the group has shown nothing.
pub(crate) fn fit_group(clients: Vec<ClientId>, jobs: &[&TimedJob], all: &[TimedJob]) -> Option<GroupFit> {
    let lost = jobs.iter().filter(|job| job.is_lost).count();
    let late = jobs.iter().filter(|job| job.cut.is_some() && !job.is_lost).count();
    let plain = laws(jobs, all, &plainly, [&Family::VARYING; 3])?;
    let (laws, cut, loss): (Laws, Cutting, Loss) = if lost == 0 {
        (plain, Box::new(plainly), Loss::None)
    } else {
        let (rates, value, free) = hazards(jobs);
        let n = ln(jobs.len() as f64);
        let by_rates = (plain.3 + free as f64) * n - 2.0 * (plain.2 + value);
        match uniformly(jobs, all, &plain) {
            Some((model, laws, interval, value)) if (laws.3 + 1.0) * n - 2.0 * (laws.2 + value) < by_rates => {
                (laws, Box::new(move |job: &TimedJob| model.cut(job)), Loss::Probability(model.probability, interval))
            }
            _ => (plain, Box::new(plainly), rates),
        }
    };
    let (choices, borrowed, ..) = laws;
    let phases = choices.into_iter().zip(borrowed).zip(Phase::ALL).map(|((choice, is_borrowed), phase)| {
        let own = sample(jobs.iter().copied(), phase, &cut);
        let goodness = if is_borrowed { None } else { goodness(&own, &choice.best) };
        PhaseFit { choice, is_borrowed, goodness, personal: None }
    });
    let phases: Vec<PhaseFit> = phases.collect();
    let phases = <[PhaseFit; 3]>::try_from(phases).ok()?;
    Some(GroupFit { clients, jobs: jobs.len(), late, lost, phases, loss })
}

/// The laws of the phases out of some families, where cuts contribute what `cut` says.
fn laws(
    jobs: &[&TimedJob],
    all: &[TimedJob],
    cut: &dyn Fn(&TimedJob) -> Cut,
    families: [&[Family]; 3],
) -> Option<Laws> {
    let (mut value, mut free, mut borrowed) = (0.0, 0.0, [false; 3]);
    let mut choices = Vec::with_capacity(3);
    for phase in Phase::ALL {
        let own: Sample = sample(jobs.iter().copied(), phase, cut);
        borrowed[phase.index()] = own.exact.is_empty();
        let choice = match own.exact.is_empty() {
            true => choose(&sample(all, phase, plainly)),
            false => choose_among(&own, families[phase.index()]),
        }?;
        if choice.best.log_likelihood.is_finite() && !borrowed[phase.index()] {
            value += choice.best.log_likelihood;
            free += choice.best.family.free() as f64;
        }
        choices.push(choice);
    }
    Some((<[Choice; 3]>::try_from(choices).ok()?, borrowed, value, free))
}

/// Laws, probability and interval of the model in which losses are uniform over the job, and the part of its
/// log-likelihood that depends on the probability alone. Laws and probability are estimated in turn, twice; laws are of
/// the two best families of plain cuts, because each of these cuts is an integral.
fn uniformly(jobs: &[&TimedJob], all: &[TimedJob], plain: &Laws) -> Option<(Uniformly, Laws, [f64; 2], f64)> {
    let arrived = jobs.iter().filter(|job| job.cut.is_none()).count();
    let lost = jobs.iter().filter(|job| job.is_lost).count();
    let means = |laws: &Laws| [0, 1, 2].map(|phase: usize| laws.0[phase].best.law.mean());
    let finite = |means: [f64; 3]| means.iter().all(|mean| mean.is_finite()).then_some(means);
    let mut model = Uniformly { probability: lost as f64 / jobs.len() as f64, means: finite(means(plain))? };
    let (mut laws_now, mut interval) = (plain.clone(), [0.0; 2]);
    let best: Vec<Vec<Family>> = plain.0.iter().map(two_best).collect();
    for _ in 0..2 {
        laws_now = laws(jobs, all, &|job| model.cut(job), [&best[0], &best[1], &best[2]])?;
        model.means = finite(means(&laws_now))?;
        let shares: Vec<f64> = jobs
            .iter()
            .filter(|job| job.cut.is_some() && !job.is_lost)
            .map(|job| lost_by(job, &model, &laws_now))
            .collect();
        (model.probability, interval) = probability(arrived, lost, &shares)?;
    }
    let p = model.probability;
    let value = arrived as f64 * ln(1.0 - p) + lost as f64 * ln(p);
    Some((model, laws_now, interval, value))
}

/// The families of the best law and of the next one.
fn two_best(choice: &Choice) -> Vec<Family> {
    [Some(&choice.best), choice.next.as_ref()].into_iter().flatten().map(|fit| fit.family).collect()
}

/// The probability that a job that is to be lost had been lost when this one was cut.
fn lost_by(job: &TimedJob, model: &Uniformly, laws: &Laws) -> f64 {
    let cut = model.cut(job);
    let law = &job.cut.map_or(&laws.0[0], |phase| &laws.0[phase.index()]).best.law;
    let tail = law.tail(cut.at);
    if tail <= 0.0 { 0.0 } else { (job.total() * inverse_mean(law, cut.at, cut.offset) / tail).clamp(0.0, 1.0) }
}
