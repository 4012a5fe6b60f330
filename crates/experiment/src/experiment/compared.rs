//! The best policy or point of a sweep, and the candidates not told apart from it.
//!
//! # Definition
//! Candidates are compared in one quantity, of which each has a [`Sample`], to their common horizon. The *best* has the
//! best mean among candidates with a value for every seed that any has. Each other is compared with it by the
//! differences of common seeds, with their 95 % interval: Student's t with n − 1 degrees of freedom, unless
//! [`sample`](super::sample) says otherwise. It is *told apart* if the interval excludes 0 and rests on at least
//! [`INTERVAL_SEEDS`] pairs. In a regret, which measures the distance to the known best, policies that are shown the
//! truth are no candidates: they are named beside the others, with their regret.
//!
//! # Interpretation
//! Two candidates that are equal in truth are told apart in 5 % of studies. Of more, the best was chosen from the same
//! runs, so that it is partly the luckiest; each comparison is at 95 % by itself, and nothing is corrected for their
//! number. "Not told apart from the best" is thus a list of candidates that may be as good as the best. A candidate
//! outside the list is worse at 95 % if it was suspected beforehand, and less surely if there were many.

use super::sample::Sample;
use super::until::FollowUp;
use super::{ArmSummary, CONVERGENCE, INTERVAL_SEEDS, ROUNDING, Reached, RunSummary, Summary};
use fedgenie_core::math::statistics::{Estimate, Miss, values_needed};
use fedgenie_core::metric::{Better, Metric, MetricId, Place, Statistic};
use std::collections::BTreeSet;

/// Whether a difference is more than chance: its interval excludes 0.
pub fn is_told_apart(difference: &Estimate) -> bool {
    let excludes = |[low, high]: [f64; 2]| low > 0.0 || high < 0.0;
    difference.n >= INTERVAL_SEEDS && difference.ci95.is_some_and(excludes)
}

/// Whether all pairs are alike.
pub fn is_same(difference: &Estimate) -> bool {
    difference.mean == 0.0 && difference.half_width().is_none_or(|half| half == 0.0)
}

/// About how many seeds would tell a difference from 0; `None` where it is told already, is 0, or too few seeds are
/// known for its spread.
pub fn seeds_needed(difference: &Estimate) -> Option<u64> {
    let is_open = difference.n >= INTERVAL_SEEDS && !is_told_apart(difference);
    let needed = Some(difference).filter(|_| is_open).and_then(values_needed)?;
    // The spread is too uncertain for a third digit.
    let mut unit = 1;
    while needed / unit >= 100 {
        unit *= 10;
    }
    Some(needed.div_ceil(unit) * unit)
}

/// Candidates beside the best of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Index of the best.
    pub best: usize,
    /// Its mean.
    pub value: Estimate,
    /// Every other candidate with as many seeds, with its difference to the best.
    pub others: Vec<(usize, Estimate)>,
    /// Candidates with fewer seeds, whose means would be of other seeds, or with runs that do not arrive; each with its
    /// number of arrivals.
    pub incomplete: Vec<(usize, usize)>,
}

/// The reason why candidates are not ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unranked {
    /// Runs ended without arriving before others arrived.
    Unfair(FollowUp),
    /// Each candidate lacks seeds of another.
    OtherSeeds,
}

/// Compares candidates with the best of them; of equal ones the first is the best. `None` if no candidate has a value.
pub fn rank(candidates: &[Sample], better: Better) -> Option<Result<Ranking, Unranked>> {
    rank_at(candidates, better, Miss::USUAL)
}

/// The same, with intervals that miss the differences more or less often.
pub fn rank_at(candidates: &[Sample], better: Better, miss: Miss) -> Option<Result<Ranking, Unranked>> {
    let candidates = &Sample::alike(candidates)[..];
    let most = candidates.iter().map(Sample::len).max().filter(|&most| most > 0)?;
    let follow_up = Sample::follow_up(candidates);
    if !follow_up.is_fair() {
        return Some(Err(Unranked::Unfair(follow_up)));
    }
    let all: BTreeSet<u64> = candidates.iter().flat_map(Sample::seeds).collect();
    if all.len() > most {
        return Some(Err(Unranked::OtherSeeds));
    }
    let mut best: Option<(usize, Estimate)> = None;
    let complete = || (0..candidates.len()).filter(|&index| candidates[index].len() == most);
    for index in complete() {
        let Some(found) = candidates[index].estimate(follow_up) else { continue };
        let margin = |known: f64| ROUNDING * known.abs().max(found.mean.abs());
        if best.is_none_or(|(_, known)| better.quality(found.mean) > better.quality(known.mean) + margin(known.mean)) {
            best = Some((index, found));
        }
    }
    let (best, value) = best?;
    let minus = |index: usize| candidates[index].minus_at(&candidates[best], follow_up, miss);
    let others = complete().filter(|&index| index != best).filter_map(|index| Some((index, minus(index)?))).collect();
    let arrived = candidates.iter().map(Sample::arrived).enumerate();
    Some(Ok(Ranking { best, value, others, incomplete: arrived.filter(|&(_, arrived)| arrived < most).collect() }))
}

/// A quantity by which candidates are ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// Its key in `RunSummary::numbers`.
    pub key: String,
    /// In words.
    pub words: String,
    /// Its unit, empty for a pure number.
    pub unit: &'static str,
    /// Which values are better.
    pub better: Better,
}

impl Aim {
    /// Whether it is a regret.
    pub fn is_regret(&self) -> bool {
        self.key.starts_with("regret.")
    }

    /// The main quantity of an experiment: the time to the hardest target that is often reached, or else the main
    /// metric of the task, or else regret. Where bytes are limited, the bytes to that target, or else the best value of
    /// that metric: all runs may spend as much.
    pub fn of(summary: &Summary) -> Option<Self> {
        let mut all = Self::all(summary);
        // Regrets in different rewards are not comparable between points; those of policies are, at each of them.
        let is_of_points = summary.arms.iter().all(|arm| arm.arm == summary.arms[0].arm) && summary.points.len() > 1;
        all.retain(|aim| !(aim.is_regret() && is_of_points && summary.sweep.moves("regret")));
        let counts = |aim: &Self| -> Vec<usize> {
            let count = |arm: &ArmSummary| match arm.until.get(&aim.key) {
                Some(until) => until.arrived,
                None => arm.values.get(&aim.key).map_or(0, |value| value.n),
            };
            summary.arms.iter().map(count).collect()
        };
        // A quantity that some candidate has in half of its runs tells them apart; one that all runs lack does not.
        let is_usual = |(arm, count): (&ArmSummary, usize)| 2 * count >= arm.runs;
        let is_reached = |aim: &&Self| summary.arms.iter().zip(counts(aim)).any(is_usual);
        let is_there = |aim: &&Self| counts(aim).into_iter().any(|count| count > 0);
        let asked = summary.aim.as_ref().map(|key| Self::named(summary, key)).filter(|aim| is_there(&aim));
        asked.or_else(|| all.iter().find(is_reached).or_else(|| all.iter().find(is_there)).cloned())
    }

    /// The quantity of this key of `values`. Less is better, unless it is a metric of which more is.
    pub fn named(summary: &Summary, key: &str) -> Self {
        if let Some(known) = Self::all(summary).into_iter().find(|aim| aim.key == key) {
            return known;
        }
        let mut measured = summary.runs.iter().flat_map(|run| &run.measured);
        let name = key.split('.').next_back().unwrap_or_default();
        let is_it =
            |metric: &&Metric| [metric.id, metric.id.last(), metric.id.tuned()].iter().any(|id| id.is_called(name));
        let known = measured.find(is_it);
        let better = known.map_or(Better::Lower, |metric| metric.better);
        let words = known.map_or_else(|| key.to_owned(), |_| key.replace(['.', '_'], " "));
        let unit = match key.split('.').next() {
            Some("joules_to") => "J",
            _ if key.ends_with("_s") || key.starts_with("time_to.") => "s",
            _ => "",
        };
        Self { key: key.to_owned(), words, unit, better }
    }

    /// All candidates for the main quantity, the first first.
    pub fn all(summary: &Summary) -> Vec<Self> {
        let Some(first) = summary.runs.first() else { return Vec::new() };
        let is_main = |metric: &&Metric| metric.main;
        let lower = |key: String, words: String, unit| Self { key, words, unit, better: Better::Lower };
        let time_to = |name: String| lower(format!("time_to.{name}"), format!("virtual time to {name}"), "s");
        let targets = || first.reached.iter().rev().map(Reached::name);
        let mut all: Vec<Self> = Vec::new();
        if summary.runs.iter().any(RunSummary::limits_traffic) {
            all.extend(targets().map(|name| lower(format!("bytes_to.{name}"), format!("traffic to {name}"), "B")));
            let best = |metric: &Metric| Self {
                key: format!("best.{}", metric.id),
                words: format!("best {}", metric.id.words()),
                unit: "",
                better: metric.better,
            };
            all.extend(first.measured.iter().filter(|metric| is_main(metric)).map(best));
        }
        all.extend(targets().map(time_to));
        all.extend(first.converged.iter().map(|_| time_to(CONVERGENCE.to_owned())));
        // Where no target is reached, its metric says most.
        let is_aimed_at =
            |metric: &&Metric| first.reached.iter().any(|reached| metric.id.is_called(&reached.target.metric));
        let aimed_at = first.measured.iter().filter(is_aimed_at);
        for metric in aimed_at.chain(first.measured.iter().filter(is_main)) {
            // Where test data are dealt to edge servers, models are compared by the mean over these.
            let of_servers = metric.id.over(Place::Servers, Statistic::Mean);
            let of_servers = [of_servers.last(), of_servers].into_iter().filter(|_| metric.id.place == Place::Test);
            let of = |id: MetricId| Self {
                key: format!("final.{id}"),
                words: format!("final {}", id.words()),
                unit: "",
                better: metric.better,
            };
            all.extend(of_servers.chain([metric.id]).map(of));
        }
        let meters = ["mean", "realised", "expected", "expected-exact", "counterfactual", "assignment"];
        let regret = |name: &str| lower(format!("regret.{name}"), format!("{name} regret"), "");
        all.extend(meters.iter().map(|name| regret(name)));
        // Less time is better for the same number of rounds.
        if summary.runs.windows(2).all(|pair| pair[0].rounds == pair[1].rounds) {
            all.push(lower("virtual_time_s".to_owned(), "virtual time of the run".to_owned(), "s"));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Sample {
        Sample::of_numbers("x", (1..).zip(values.iter().copied()))
    }

    fn paired(one: &Sample, other: &Sample) -> Option<Estimate> {
        one.minus(other, FollowUp::ENDLESS)
    }

    /// Differences 2, 4, 6: mean 4, s = 2, t(0.975, 2) = 4.3026527, half-width 4.3026527·2/√3 = 4.9682754.
    #[test]
    fn pairs_are_formed_by_seed() {
        let one = seeds(&[12.0, 24.0, 36.0, 99.0]);
        let found = paired(&one, &seeds(&[10.0, 20.0, 30.0])).unwrap();
        assert_eq!((found.mean, found.n), (4.0, 3));
        assert!((found.half_width().unwrap() - 4.968_275_4).abs() < 1e-6);
        assert!(!is_told_apart(&found) && !is_same(&found));
        // 4.3 or 3.18 times 2/√n below 4: n = 4 gives 3.1824463·2/2 = 3.18.
        assert_eq!(seeds_needed(&found), Some(4));
        assert_eq!(paired(&one, &Sample::of_numbers("x", [(9, 1.0)])), None);
        // Three runs against four: Welch.
        let unpaired = one.minus_independent(&seeds(&[10.0, 20.0, 30.0]), FollowUp::ENDLESS);
        assert_eq!(unpaired.unwrap().mean, 42.75 - 20.0);
        let same = paired(&seeds(&[0.1 + 0.2, 1.0, 2.0]), &seeds(&[0.3, 1.0, 2.0])).unwrap();
        assert!(is_same(&same) && seeds_needed(&same).is_none(), "but for rounding");
    }

    #[test]
    fn the_best_has_all_seeds_and_of_equals_the_first_wins() {
        let all = [seeds(&[5.0, 6.0, 7.0]), seeds(&[1.0, 2.0]), seeds(&[4.0, 5.0, 6.0]), seeds(&[4.0, 5.0, 6.0])];
        let found = rank(&all, Better::Lower).unwrap().unwrap();
        assert_eq!((found.best, found.value.mean), (2, 5.0));
        assert_eq!(
            found.others.iter().map(|(index, other)| (*index, other.mean)).collect::<Vec<_>>(),
            [(0, 1.0), (3, 0.0)]
        );
        assert_eq!(found.incomplete, [(1, 2)]);
        assert_eq!(rank(&all, Better::Higher).unwrap().unwrap().best, 0);
        assert_eq!(rank(&[seeds(&[]), seeds(&[])], Better::Lower), None);
    }

    #[test]
    fn candidates_of_different_seeds_are_not_ranked() {
        let [even, odd] = [[2, 4], [1, 3]].map(|all| Sample::of_numbers("x", all.map(|seed| (seed, 1.0))));
        assert_eq!(rank(&[even, odd], Better::Lower), Some(Err(Unranked::OtherSeeds)));
    }

    /// A world whose truth is known: equal points are told apart in at most 5 % of 1000 studies (two standard
    /// deviations of the binomial allowed: 6.4 %), and a true difference lies in its interval in 95 %.
    #[test]
    fn equal_points_are_rarely_told_apart() {
        // The generator SplitMix64.
        let mut state = 0_u64;
        let mut uniform = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        // Nearly normal: a sum of twelve uniforms.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let (mut apart, mut covered) = (0, 0);
        for _ in 0..1000 {
            let common: Vec<f64> = (0..5).map(|_| 100.0 * normal()).collect();
            let mut point = |truth: f64| -> Sample {
                seeds(&common.iter().map(|common| common + truth + normal()).collect::<Vec<_>>())
            };
            let found = rank(&[point(10.0), point(10.0)], Better::Lower).unwrap().unwrap();
            apart += usize::from(is_told_apart(&found.others[0].1));
            let [low, high] = paired(&point(10.1), &point(10.0)).unwrap().ci95.unwrap();
            covered += usize::from(low <= 0.1 && 0.1 <= high);
        }
        assert!((30..=64).contains(&apart), "{apart} of 1000");
        assert!((936..=970).contains(&covered), "{covered} of 1000");
    }
}
