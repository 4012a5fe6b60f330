//! Means of ranking metrics over users, block of users by block of users.

use super::{ItemLists, Ranker};
use crate::lanes::Path;
use fedgenie_core::halt::Effort;
use rayon::prelude::*;

/// Users whose scores are made together.
pub const BLOCK: usize = 16;

/// A source of users' scores: a model, or a reference.
pub trait ScoreItems: Sync {
    /// Writes the scores of up to [`BLOCK`] users to `scores`, one row of all items for each, in their order.
    fn score(&self, users: &[u32], scores: &mut [f32]);
}

/// Means over the users with a relevant and an irrelevant candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Means {
    /// The means in the order of [`Ranker::names`]; NaN where nobody counts.
    pub values: Vec<f64>,
    /// How many users count.
    pub users: usize,
}

/// Excluded items, and relevant items: lists of the same users.
pub type Lists<'a> = [&'a ItemLists; 2];

/// Ranks all items for every user of `relevant` with a list: see [`evaluate_users`].
///
/// # Panics
/// As [`evaluate_users`].
pub fn evaluate(
    model: &dyn ScoreItems,
    items: usize,
    excluded: &ItemLists,
    relevant: &ItemLists,
    cutoffs: &[usize],
    parallel: bool,
) -> Means {
    let everybody = 0..relevant.users() as u32;
    let [means] = evaluate_users(everybody, model, items, [[excluded, relevant]], cutoffs, parallel);
    means
}

/// Ranks all items by several pairs of lists, each for the users with a relevant item in it, on all cores of the
/// current pool if `parallel`. A user's items are scored once for all pairs, and each pair's means are those that it
/// would have alone.
///
/// Memory: [`BLOCK`] rows of scores for each thread and the metrics of each user, never users × items.
///
/// # Panics
/// If a cutoff is 0, the lists have different numbers of users, a user has no list, or an item is not below `items`.
pub fn evaluate_users<'a, const PARTS: usize>(
    users: impl Iterator<Item = u32>,
    model: &dyn ScoreItems,
    items: usize,
    parts: [Lists<'_>; PARTS],
    cutoffs: &[usize],
    effort: impl Into<Effort<'a>>,
) -> [Means; PARTS] {
    evaluate_some(users, model, items, parts, cutoffs, effort, |_| false).0
}

/// As [`evaluate_users`]; and for the first pair of lists also the means over a part of the users.
///
/// # Panics
/// As [`evaluate_users`].
pub fn evaluate_some<'a, const PARTS: usize>(
    users: impl Iterator<Item = u32>,
    model: &dyn ScoreItems,
    items: usize,
    parts: [Lists<'_>; PARTS],
    cutoffs: &[usize],
    effort: impl Into<Effort<'a>>,
    is_meant: impl Fn(u32) -> bool,
) -> ([Means; PARTS], Means) {
    let Effort { parallel, halt } = effort.into();
    for [excluded, relevant] in parts {
        assert_eq!(excluded.users(), relevant.users(), "the same users have both lists");
    }
    let is_asked = |&user: &u32| parts.iter().any(|[_, relevant]| !relevant.of(user).is_empty());
    let users: Vec<u32> = users.filter(is_asked).collect();
    // A user's metrics by one pair of lists, and all of a user's.
    let width = Ranker::count(cutoffs.len());
    let row = PARTS * width;
    let mut values = vec![f64::NAN; users.len() * row];
    let new = || (Ranker::on(Path::detect(), cutoffs), vec![0.0; BLOCK * items]);
    let one = |(ranker, scores): &mut (Ranker, Vec<f32>), (users, values): (&[u32], &mut [f64])| {
        if halt.is_due() {
            return;
        }
        let scores = &mut scores[..users.len() * items];
        model.score(users, scores);
        for ((&user, values), scores) in users.iter().zip(values.chunks_exact_mut(row)).zip(scores.chunks_exact(items))
        {
            for ([excluded, relevant], values) in parts.iter().zip(values.chunks_exact_mut(width)) {
                // A user who does not count keeps NaN, which no metric is.
                ranker.user(scores, excluded.of(user), relevant.of(user), values);
            }
        }
    };
    if parallel {
        users.par_chunks(BLOCK).zip(values.par_chunks_mut(BLOCK * row)).for_each_init(new, one);
    } else {
        let mut worker = new();
        users.chunks(BLOCK).zip(values.chunks_mut(BLOCK * row)).for_each(|block| one(&mut worker, block));
    }
    let of = |part| values.chunks_exact(row).map(move |values| &values[part * width..][..width]);
    let some = users.iter().zip(of(0)).filter(|&(&user, _)| is_meant(user)).map(|(_, values)| values);
    (std::array::from_fn(|part| mean(of(part), width)), mean(some, width))
}

/// Means of the counted users' metrics, added up in the order of users.
fn mean<'a>(users: impl Iterator<Item = &'a [f64]>, width: usize) -> Means {
    let mut sums = vec![0.0; width];
    let mut counted = 0;
    for values in users.filter(|values| !values[0].is_nan()) {
        counted += 1;
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sums.iter_mut().for_each(|sum| *sum /= f64::from(counted));
    Means { values: sums, users: counted as usize }
}
