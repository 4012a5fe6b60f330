//! Groups of clients whose jobs take alike, and their number.
//!
//! # Definition
//! Each client belongs to one group, and each phase of a group has a lognormal law. Groups and laws alternate, as in
//! the classification EM algorithm: laws are the most likely ones of their group's jobs, cuts included, then each
//! client moves to the group under which its jobs are most likely. It starts from clients in the order of their
//! durations, of all phases together and of each by itself, in equal parts; the most likely outcome counts. The number
//! of groups minimises
//!
//! > `−2·ln L − 2·Σ ln π + k·ln n`
//!
//! with k the parameters of all laws that vary and of the shares π of the groups, n the jobs, and for each client the
//! share π of its group: BIC of the classification likelihood. There are at most as many groups as the log has twenties
//! of jobs.
//!
//! # Source
//! G. Celeux, G. Govaert, "A classification EM algorithm for clustering", Computational Statistics & Data Analysis 14
//! (1992); C. Biernacki, G. Celeux, G. Govaert, "Assessing a mixture model for clustering with the integrated completed
//! likelihood", IEEE Transactions on Pattern Analysis and Machine Intelligence 22 (2000).
//!
//! # Determinism
//! No random numbers. Ties go to the group of the smaller number; groups are numbered by their mean duration.

use crate::jobs::TimedJob;
use crate::sample::SHORTEST;
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::math::special::normal::normal_tail;
use fedgenie_core::record::Phase;
use std::f64::consts::TAU;

/// The most groups that are tried.
pub(crate) const MOST_GROUPS: usize = 8;

/// A group more is tried for so many jobs: with fewer, each would be a law of a handful of durations.
const FEWEST_JOBS: usize = 20;

/// The most rounds of the alternation; it ends when no client moves.
const ROUNDS: usize = 60;

/// The most steps of the EM algorithm for a working law.
const STEPS: usize = 60;

/// The smallest deviation of logarithms that a working law has: constant durations would have an infinite likelihood.
pub(crate) const LEAST_SIGMA: f64 = 1e-3;

/// An assignment of clients to groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grouping {
    /// The group of each client.
    pub of: Vec<usize>,
    /// How many groups.
    pub count: usize,
    /// The criterion for each number of groups from 1 on.
    pub criteria: Vec<f64>,
}

/// The logarithms of one client's durations of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logarithms {
    /// How many were seen; their sum and that of their squares.
    pub seen: f64,
    pub sum: f64,
    pub squares: f64,
    /// The smallest and the largest of them.
    range: Option<(f64, f64)>,
    /// Those at which jobs were cut.
    pub cuts: Vec<f64>,
}

/// The evidence of one client, per phase.
type Evidence = [Logarithms; 3];

/// Working laws of a group: mean and deviation of the logarithms per phase, or `None` where no duration was seen.
type Working = [Option<(f64, f64)>; 3];

impl Logarithms {
    pub fn add(&mut self, other: &Self) {
        self.seen += other.seen;
        self.sum += other.sum;
        self.squares += other.squares;
        self.range = match (self.range, other.range) {
            (Some((low, high)), Some(others)) => Some((low.min(others.0), high.max(others.1))),
            (one, other) => one.or(other),
        };
        self.cuts.extend(&other.cuts);
    }

    pub fn of(jobs: &[&TimedJob], phase: Phase) -> Self {
        let mut found = Self::default();
        for job in jobs {
            let x = ln(job.phases[phase.index()].max(SHORTEST));
            match job.cut {
                Some(at) if at < phase => {}
                Some(at) if at == phase => found.cuts.push(x),
                _ => {
                    let one = Self { seen: 1.0, sum: x, squares: x * x, range: Some((x, x)), cuts: Vec::new() };
                    found.add(&one);
                }
            }
        }
        found
    }

    /// Whether two durations differ.
    pub fn varies(&self) -> bool {
        self.range.is_some_and(|(low, high)| low < high)
    }

    /// The most likely normal law of the logarithms, by the EM algorithm where some were cut.
    pub fn law(&self) -> Option<(f64, f64)> {
        let (low, high) = self.range?;
        if low == high && self.cuts.iter().all(|cut| *cut <= high) {
            return Some((low, LEAST_SIGMA));
        }
        let spread = |mean: f64, squares: f64, n: f64| sqrt((squares / n - mean * mean).max(0.0)).max(LEAST_SIGMA);
        let n = self.seen + self.cuts.len() as f64;
        let (sum, squares) =
            self.cuts.iter().fold((self.sum, self.squares), |(sum, squares), cut| (sum + cut, squares + cut * cut));
        let mut law = (sum / n, spread(sum / n, squares, n));
        if self.cuts.is_empty() {
            return Some(law);
        }
        for _ in 0..STEPS {
            let (mean, sigma) = law;
            let (mut sum, mut squares) = (self.sum, self.squares);
            for cut in &self.cuts {
                let z = (cut - mean) / sigma;
                let hazard = hazard(z);
                sum += mean + sigma * hazard;
                squares += mean * mean + 2.0 * mean * sigma * hazard + sigma * sigma * (1.0 + z * hazard);
            }
            law = (sum / n, spread(sum / n, squares, n));
            if (law.0 - mean).abs() + (law.1 - sigma).abs() < 1e-6 * sigma {
                break;
            }
        }
        Some(law)
    }

    /// The log-likelihood of the durations under a law of their logarithms.
    pub fn likelihood(&self, law: Option<(f64, f64)>) -> f64 {
        // Of a phase that no job of the group has seen, nothing is known.
        let Some((mean, sigma)) = law else { return -1e3 * self.seen };
        let apart = self.squares - 2.0 * mean * self.sum + self.seen * mean * mean;
        let seen = -self.sum - self.seen * (ln(sigma) + 0.5 * ln(TAU)) - 0.5 * apart.max(0.0) / (sigma * sigma);
        seen + self.cuts.iter().map(|cut| ln(normal_tail((cut - mean) / sigma).max(1e-300))).sum::<f64>()
    }
}

/// Density over tail of the standard normal law.
pub(crate) fn hazard(z: f64) -> f64 {
    let tail = normal_tail(z);
    // Beyond the range of numbers the hazard is nearly z + 1/z.
    if tail < 1e-290 { z + 1.0 / z } else { exp(-0.5 * z * z) / (sqrt(TAU) * tail) }
}

/// Finds groups and their number, up to `most`.
pub(crate) fn grouping(jobs: &[TimedJob], clients: usize, most: usize) -> Grouping {
    let mut by_client: Vec<Vec<&TimedJob>> = vec![Vec::new(); clients];
    jobs.iter().for_each(|job| by_client[job.client.index()].push(job));
    let evidence: Vec<Evidence> =
        by_client.iter().map(|own| Phase::ALL.map(|phase| Logarithms::of(own, phase))).collect();
    let mut whole = Evidence::default();
    evidence.iter().for_each(|own| whole.iter_mut().zip(own).for_each(|(all, one)| all.add(one)));
    let dimensions = whole.iter().filter(|phase| phase.varies()).count();
    let orders = orders(&by_client);
    let (mut criteria, mut best) = (Vec::new(), None::<(f64, Vec<usize>, usize)>);
    for count in 1..=most.min(clients).min(1 + jobs.len() / FEWEST_JOBS) {
        let found = orders.iter().filter_map(|order| alternated(&evidence, order, count));
        let Some((likelihood, of)) = found.max_by(|one, other| one.0.total_cmp(&other.0)) else { break };
        let free = (2 * dimensions * count + count - 1) as f64;
        let criterion = -2.0 * likelihood + free * ln(jobs.len() as f64);
        criteria.push(criterion);
        if best.as_ref().is_none_or(|(least, ..)| criterion < *least) {
            best = Some((criterion, of, count));
        }
        // Once more groups are worse twice in a row, no larger number is tried.
        if best.as_ref().is_some_and(|(.., best)| count >= best + 2) {
            break;
        }
    }
    let (_, of, count) = best.unwrap_or((0.0, vec![0; clients], 1));
    Grouping { of: by_mean(&by_client, of, count), count, criteria }
}

/// Mean of the logarithms of durations, of each client, by which clients are put in order.
fn orders(by_client: &[Vec<&TimedJob>]) -> Vec<Vec<usize>> {
    let mean = |own: &[&TimedJob], of: &dyn Fn(&TimedJob) -> f64| {
        own.iter().map(|job| ln(of(job).max(SHORTEST))).sum::<f64>() / own.len().max(1) as f64
    };
    let order = |of: &dyn Fn(&TimedJob) -> f64| {
        let means: Vec<f64> = by_client.iter().map(|own| mean(own, of)).collect();
        let mut order: Vec<usize> = (0..by_client.len()).collect();
        order.sort_by(|&one, &other| means[one].total_cmp(&means[other]));
        order
    };
    let mut orders = vec![order(&TimedJob::total)];
    orders.extend((0..3).map(|phase| order(&|job: &TimedJob| job.phases[phase])));
    orders.dedup();
    orders
}

/// Groups from clients in an order, and their log-likelihood; `None` if a group loses all its clients.
fn alternated(evidence: &[Evidence], order: &[usize], count: usize) -> Option<(f64, Vec<usize>)> {
    let clients = order.len();
    let mut of = vec![0; clients];
    order.iter().enumerate().for_each(|(place, &client)| of[client] = place * count / clients);
    for _ in 0..ROUNDS {
        let laws = (0..count).map(|group| working(evidence, &of, group)).collect::<Option<Vec<Working>>>()?;
        let shares = log_shares(&of, count);
        let (mut total, mut next) = (0.0, Vec::with_capacity(clients));
        for own in evidence {
            let mut best = (f64::NEG_INFINITY, 0);
            for (group, laws) in laws.iter().enumerate() {
                let value = likelihood(own, laws) + shares[group];
                if value > best.0 {
                    best = (value, group);
                }
            }
            total += best.0;
            next.push(best.1);
        }
        if next == of {
            return total.is_finite().then_some((total, of));
        }
        of = next;
    }
    // Rounding may move a client back and forth; the last assignment is as good as the one before.
    let laws = (0..count).map(|group| working(evidence, &of, group)).collect::<Option<Vec<Working>>>()?;
    let shares = log_shares(&of, count);
    let total: f64 = evidence.iter().zip(&of).map(|(own, &group)| likelihood(own, &laws[group]) + shares[group]).sum();
    total.is_finite().then_some((total, of))
}

/// The logarithm of each group's share of the clients.
fn log_shares(of: &[usize], count: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; count];
    of.iter().for_each(|&group| sizes[group] += 1.0);
    sizes.into_iter().map(|size: f64| ln(size / of.len() as f64)).collect()
}

/// The working laws of a group; `None` if it has no client.
fn working(evidence: &[Evidence], of: &[usize], group: usize) -> Option<Working> {
    let mut all: Option<Evidence> = None;
    for (own, _) in evidence.iter().zip(of).filter(|(_, own)| **own == group) {
        let all = all.get_or_insert_with(Evidence::default);
        all.iter_mut().zip(own).for_each(|(all, one)| all.add(one));
    }
    all.map(|all| all.map(|phase| phase.law()))
}

/// The log-likelihood of a client's jobs under a group's working laws.
fn likelihood(own: &Evidence, laws: &Working) -> f64 {
    own.iter().zip(laws).map(|(phase, law)| phase.likelihood(*law)).sum()
}

/// The same groups, numbered by their mean duration.
fn by_mean(by_client: &[Vec<&TimedJob>], of: Vec<usize>, count: usize) -> Vec<usize> {
    let mut sums = vec![(0.0, 0_u32); count];
    for (own, &group) in by_client.iter().zip(&of) {
        for job in own {
            sums[group].0 += job.total();
            sums[group].1 += 1;
        }
    }
    let mean = |group: usize| sums[group].0 / f64::from(sums[group].1.max(1));
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| mean(one).total_cmp(&mean(other)));
    let mut place = vec![0; count];
    order.iter().enumerate().for_each(|(index, &group)| place[group] = index);
    of.into_iter().map(|group| place[group]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::id::{ClientId, Round};

    fn job(client: u32, compute: f64, cut: Option<Phase>) -> TimedJob {
        TimedJob { client: ClientId(client), round: Round(1), phases: [0.1, compute, 0.2], cut, is_lost: false }
    }

    /// Against the estimate of the whole likelihood, which is searched and not iterated.
    #[test]
    fn working_laws_are_most_likely() {
        let jobs: Vec<TimedJob> = (1..=40)
            .map(|index| f64::from(index) / 10.0)
            .map(|x| if x > 2.5 { job(0, 2.5, Some(Phase::Compute)) } else { job(0, x, None) })
            .collect();
        let own: Vec<&TimedJob> = jobs.iter().collect();
        let (mean, sigma) = Logarithms::of(&own, Phase::Compute).law().unwrap();
        let sample = crate::jobs::sample(&jobs, Phase::Compute, crate::jobs::plainly);
        let fit = crate::law::fitted(crate::law::Family::Lognormal, &sample).unwrap();
        assert!((mean - ln(fit.parameters[0].value)).abs() < 1e-3, "{mean}, {fit:?}");
        assert!((sigma - fit.parameters[1].value).abs() < 1e-3, "{sigma}, {fit:?}");
        let found = Logarithms::of(&own, Phase::Compute).likelihood(Some((mean, sigma)));
        assert!((found - fit.log_likelihood).abs() < 1e-3, "{found}, {fit:?}");
    }

    /// Two speeds of computing, apart by more than their spread; and one, which is not divided.
    #[test]
    fn speeds_that_differ_are_groups() {
        let spread = |index: u32| 1.0 + 0.2 * f64::from((index * 7) % 11) / 11.0;
        let of = |speed: &dyn Fn(u32) -> f64| {
            let jobs: Vec<TimedJob> =
                (0..200).map(|index| job(index % 10, speed(index % 10) * spread(index / 10), None)).collect();
            grouping(&jobs, 10, MOST_GROUPS)
        };
        let two = of(&|client| if client % 3 == 0 { 3.0 } else { 1.0 });
        assert_eq!((two.count, &two.of[..]), (2, &[1, 0, 0, 1, 0, 0, 1, 0, 0, 1][..]));
        assert_eq!(of(&|_| 1.0).count, 1);
        assert!(two.criteria[1] < two.criteria[0], "{:?}", two.criteria);
    }

    #[test]
    fn the_hazard_is_that_of_the_normal_law() {
        assert!((hazard(0.0) - 0.797_884_560_802_865_4).abs() < 1e-15);
        assert!((hazard(36.0) - 36.027_735).abs() < 1e-4 && (hazard(40.0) - 40.025).abs() < 1e-4);
    }
}
