//! Ranking metrics: how high a user's relevant items stand among all that could be recommended.
//!
//! # Definition
//! A user's *candidates* are all items but the excluded ones (those known to be rated by the user). They are ordered by
//! falling score. Of `N` candidates `R` are relevant; `h` of these are among the first `k`.
//!
//! Their metrics are files of [`metric`](crate::metric): [`AUC`] of the whole ranking, then [`HR`], [`NDCG`],
//! [`RECALL`], [`PRECISION`] and [`f1_at`] for each cutoff `k`.
//!
//! Where scores are equal, the order is not defined by the model. Every metric is therefore its *expectation* over
//! uniformly random orders of candidates with equal scores, in closed form: of `e` candidates with the same score, `r`
//! of them relevant, of which `j` places are among the first `k`, `j·r/e` are expected hits, none is a hit with
//! probability `C(e − r, j) / C(e, j)`, and a pair with equal scores counts one half.
//!
//! A metric of a model is the mean over the users with a relevant and an irrelevant candidate.
//!
//! # Inputs
//! Scores of all items, one `f32` each; −0 equals 0, and NaN counts as −∞. Excluded and relevant items, each ascending
//! without repetition; an item that is both is excluded.
//!
//! # Source
//! K. Järvelin, J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002 (DCG);
//! F. McSherry, M. Najork, "Computing information retrieval performance measures efficiently in the presence of tied
//! scores", ECIR 2008 (expectations over ties).
//!
//! # Deviations from the source
//! Relevance is 0 or 1. McSherry and Najork have no AUC and no hit rate.
//!
//! # Cost
//! Nothing is sorted but a user's relevant scores: for each distinct one among them, one vectorised pass counts the
//! scores that are greater and equal. O(n·D/16) comparisons of vectors for `n` items and `D` distinct relevant scores.
//! Test and validation data are ranked by the same scores, worked out once.
//! Memory: one row of scores for each of up to 16 users per thread.
//!
//! # Determinism
//! Counts are whole numbers; each metric is worked out in `f64` in a fixed order, and added up user by user, in the
//! order of users, whatever the number of threads.

mod count;
mod evaluate;
mod lists;

pub use evaluate::{BLOCK, Lists, Means, ScoreItems, evaluate, evaluate_some, evaluate_users};
pub use lists::ItemLists;

use crate::lanes::Path;
use crate::metric::auc::AUC;
use crate::metric::f1_at;
use crate::metric::hr::HR;
use crate::metric::ndcg::NDCG;
use crate::metric::precision::PRECISION;
use crate::metric::ranked::Tie;
use crate::metric::recall::RECALL;
use crate::metric::{Definition, Ranked};
use count::{Counts, count};
use fedgenie_core::math::float;
use fedgenie_core::metric::Measure;

/// Metrics of a whole ranking, in the order of their values.
const WHOLE: [&Definition; 1] = [&AUC];

/// Metrics that depend on a cutoff, in the order of their values.
const WITH_CUTOFF: [&Definition; 5] = [&HR, &NDCG, &RECALL, &PRECISION, &f1_at::F1];

/// The metrics of a user, for a list of cutoffs. Keeps its buffers from user to user.
#[derive(Clone, Debug)]
pub struct Ranker {
    path: Path,
    cutoffs: Vec<usize>,
    /// `discounts[n]` is the sum of `1/log₂(1 + place)` over the first `n` places.
    discounts: Vec<f64>,
    relevant: Vec<f32>,
    excluded: Vec<f32>,
    /// Distinct scores of relevant candidates, falling, and how many have each.
    levels: Vec<f32>,
    multiplicities: Vec<u32>,
    among_all: Counts,
    among_excluded: Counts,
    ties: Vec<Tie>,
}

impl Ranker {
    /// A ranker for these cutoffs.
    ///
    /// # Panics
    /// If a cutoff is 0.
    pub fn new(cutoffs: &[usize]) -> Self {
        Self::on(Path::detect(), cutoffs)
    }

    /// As [`Ranker::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// If a cutoff is 0.
    pub fn on(path: Path, cutoffs: &[usize]) -> Self {
        assert!(cutoffs.iter().all(|&cutoff| cutoff > 0), "a cutoff is at least 1");
        Self {
            path,
            cutoffs: cutoffs.to_vec(),
            discounts: vec![0.0],
            relevant: Vec::new(),
            excluded: Vec::new(),
            levels: Vec::new(),
            multiplicities: Vec::new(),
            among_all: Counts::default(),
            among_excluded: Counts::default(),
            ties: Vec::new(),
        }
    }

    /// The metrics in the order of [`Ranker::user`]'s values: `auc`, then `hr_20`, `ndcg_20`, … by cutoff.
    pub fn measures(cutoffs: &[usize]) -> Vec<Measure> {
        let with_cutoff = cutoffs.iter().flat_map(|&cutoff| WITH_CUTOFF.iter().map(move |metric| metric.at(cutoff)));
        WHOLE.iter().map(|metric| metric.measure).chain(with_cutoff).collect()
    }

    /// Names of the metrics in their order.
    pub fn names(cutoffs: &[usize]) -> Vec<String> {
        Self::measures(cutoffs).into_iter().map(|measure| measure.name.to_owned()).collect()
    }

    /// How many metrics there are for so many cutoffs.
    pub const fn count(cutoffs: usize) -> usize {
        WHOLE.len() + cutoffs * WITH_CUTOFF.len()
    }

    /// Writes the metrics of one user to `values`, in the order of [`Ranker::names`], and says whether the user counts:
    /// whether there is a relevant and an irrelevant candidate. If not, `values` stays as it is.
    ///
    /// # Panics
    /// If a list names an item without a score, or `values` has another length than there are metrics.
    pub fn user(&mut self, scores: &[f32], excluded: &[u32], relevant: &[u32], values: &mut [f64]) -> bool {
        debug_assert!(is_ascending(excluded) && is_ascending(relevant), "lists of items are ascending");
        assert_eq!(values.len(), Self::count(self.cutoffs.len()), "every metric has its value");
        let candidates = scores.len() - excluded.len();
        self.relevant.clear();
        let is_excluded = |item: &u32| excluded.binary_search(item).is_ok();
        self.relevant.extend(relevant.iter().filter(|item| !is_excluded(item)).map(|&item| scores[item as usize]));
        let wanted = self.relevant.len();
        if wanted == 0 || wanted == candidates {
            return false;
        }
        self.excluded.clear();
        self.excluded.extend(excluded.iter().map(|&item| scores[item as usize]));
        self.find_levels();
        count(self.path, scores, &self.levels, &mut self.among_all);
        count(self.path, &self.excluded, &self.levels, &mut self.among_excluded);
        self.ties.clear();
        for (level, &relevant) in self.multiplicities.iter().enumerate() {
            self.ties.push(Tie {
                above: (self.among_all.greater[level] - self.among_excluded.greater[level]) as usize,
                equal: (self.among_all.equal[level] - self.among_excluded.equal[level]) as usize,
                relevant: relevant as usize,
            });
        }
        self.extend_discounts(candidates);
        let ranked = Ranked { ties: &self.ties, candidates, relevant: wanted, discounts: &self.discounts };
        let (whole, with_cutoff) = values.split_at_mut(WHOLE.len());
        whole.iter_mut().zip(WHOLE).for_each(|(value, metric)| *value = metric.of_ranking(&ranked));
        for (&cutoff, values) in self.cutoffs.iter().zip(with_cutoff.chunks_exact_mut(WITH_CUTOFF.len())) {
            let at = ranked.at(cutoff);
            values.iter_mut().zip(WITH_CUTOFF).for_each(|(value, metric)| *value = metric.at_cutoff(&at));
        }
        true
    }

    /// Puts the relevant scores together by value.
    fn find_levels(&mut self) {
        for score in &mut self.relevant {
            // One zero and no NaN, so that equal means equal.
            *score = if score.is_nan() { f32::NEG_INFINITY } else { *score + 0.0 };
        }
        self.relevant.sort_unstable_by(|x, y| y.total_cmp(x));
        self.levels.clear();
        self.multiplicities.clear();
        for &score in &self.relevant {
            match (self.levels.last(), self.multiplicities.last_mut()) {
                (Some(&level), Some(multiplicity)) if level == score => *multiplicity += 1,
                _ => {
                    self.levels.push(score);
                    self.multiplicities.push(1);
                }
            }
        }
    }

    /// Adds places to the sums of discounts, as far as a cutoff reaches.
    fn extend_discounts(&mut self, candidates: usize) {
        let needed = self.cutoffs.iter().map(|&cutoff| cutoff.min(candidates)).max().unwrap_or(0);
        for place in self.discounts.len()..=needed {
            let sum = self.discounts[place - 1] + std::f64::consts::LN_2 / float::ln(1.0 + place as f64);
            self.discounts.push(sum);
        }
    }
}

fn is_ascending(items: &[u32]) -> bool {
    items.is_sorted_by(|x, y| x < y)
}

#[cfg(test)]
mod tests;
