//! Metrics against all orders, by hand, and on every path.

use super::*;
use fedgenie_core::rng::{Purpose, Streams};

const CUTOFFS: [usize; 5] = [1, 2, 3, 5, 9];

fn user(scores: &[f32], excluded: &[u32], relevant: &[u32], cutoffs: &[usize]) -> Option<Vec<f64>> {
    let mut values = vec![f64::NAN; Ranker::count(cutoffs.len())];
    Ranker::new(cutoffs).user(scores, excluded, relevant, &mut values).then_some(values)
}

/// The metrics of one order of candidates, straight from their definition.
fn of_order(order: &[u32], relevant: &[u32], cutoffs: &[usize]) -> Vec<f64> {
    let hits: Vec<bool> = order.iter().map(|item| relevant.contains(item)).collect();
    let wanted = hits.iter().filter(|&&hit| hit).count();
    let mut pairs = 0;
    for (place, _) in hits.iter().enumerate().filter(|(_, hit)| **hit) {
        pairs += hits[place..].iter().filter(|&&hit| !hit).count();
    }
    let mut values = vec![pairs as f64 / (wanted * (order.len() - wanted)) as f64];
    let discount = |place: usize| 1.0 / ((place + 2) as f64).log2();
    for &k in cutoffs {
        let top = &hits[..k.min(hits.len())];
        let found = top.iter().filter(|&&hit| hit).count() as f64;
        let dcg: f64 = top.iter().enumerate().filter(|(_, hit)| **hit).map(|(place, _)| discount(place)).sum();
        let ideal: f64 = (0..k.min(wanted)).map(discount).sum();
        let (precision, recall) = (found / k as f64, found / wanted as f64);
        let f1 = if found > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        values.extend([f64::from(u8::from(found > 0.0)), dcg / ideal, recall, precision, f1]);
    }
    values
}

/// All orders of the candidates in which no score is before a greater one.
fn orders(scores: &[f32], candidates: &mut Vec<u32>, order: &mut Vec<u32>, found: &mut dyn FnMut(&[u32])) {
    if candidates.is_empty() {
        found(order);
    }
    let key = |item: u32| if scores[item as usize].is_nan() { f32::NEG_INFINITY } else { scores[item as usize] };
    for place in 0..candidates.len() {
        let item = candidates[place];
        if candidates.iter().all(|&other| key(other) <= key(item)) {
            candidates.remove(place);
            order.push(item);
            orders(scores, candidates, order, found);
            order.pop();
            candidates.insert(place, item);
        }
    }
}

#[test]
fn every_metric_is_its_mean_over_all_orders_of_equal_scores() {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let levels = [f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0, 0.5, f32::INFINITY];
    for case in 0..400 {
        let items = 2 + rng.below(6) as usize;
        let distinct = 1 + rng.below(levels.len() as u64);
        let first = rng.below(levels.len() as u64 - distinct + 1);
        let scores: Vec<f32> = (0..items).map(|_| levels[(first + rng.below(distinct)) as usize]).collect();
        let (mut excluded, mut relevant) = (Vec::new(), Vec::new());
        for item in 0..items as u32 {
            match rng.below(5) {
                0 => excluded.push(item),
                1 | 2 => relevant.push(item),
                _ => {}
            }
        }
        let mut candidates: Vec<u32> = (0..items as u32).filter(|item| !excluded.contains(item)).collect();
        let found = user(&scores, &excluded, &relevant, &CUTOFFS);
        assert_eq!(found.is_some(), !relevant.is_empty() && relevant.len() < candidates.len(), "case {case}");
        let Some(found) = found else { continue };
        let (mut sums, mut count) = (vec![0.0; found.len()], 0.0);
        orders(&scores, &mut candidates, &mut Vec::new(), &mut |order| {
            count += 1.0;
            sums.iter_mut().zip(of_order(order, &relevant, &CUTOFFS)).for_each(|(sum, value)| *sum += value);
        });
        for ((name, value), sum) in Ranker::names(&CUTOFFS).iter().zip(&found).zip(&sums) {
            let expected = sum / count;
            assert!((value - expected).abs() < 1e-12, "case {case}, {name}: {value}, not {expected}; {scores:?}");
        }
    }
}

#[test]
fn six_items_worked_out_by_hand() {
    // Item 5 was rated in training. Order: 2, then 0 and 3 tied, then 1 and 4.
    let scores = [0.5, 0.1, 0.9, 0.5, 0.0, 7.0];
    let values = user(&scores, &[5], &[0, 1], &[2]).unwrap();
    // Pairs with 2, 3, 4: item 0 loses, ties, wins: 1.5; item 1 loses, loses, wins: 1. Of 6.
    // Item 0 is second with probability 1/2. Ideal gain 1 + 1/log2(3).
    let second = 1.0 / 3.0_f64.log2();
    let expected = [2.5 / 6.0, 0.5, 0.5 * second / (1.0 + second), 0.25, 0.25, 0.25];
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-15, "{values:?}");
    }
    assert_eq!(Ranker::names(&[2]), ["auc", "hr_2", "ndcg_2", "recall_2", "precision_2", "f1_2"]);
}

#[test]
fn equal_scores_of_all_items_are_worth_a_random_order() {
    // 3 relevant among 10; none among the first 4 with probability C(7, 4)/C(10, 4) = 35/210.
    let values = user(&[1.0; 12], &[0, 11], &[2, 4, 6], &[4, 100]).unwrap();
    let expected = [0.5, 1.0 - 35.0 / 210.0, f64::NAN, 0.4, 0.3, 2.4 / 7.0, 1.0, f64::NAN, 1.0, 0.03, 6.0 / 103.0];
    for (value, expected) in values.iter().zip(expected) {
        assert!(expected.is_nan() || (value - expected).abs() < 1e-14, "{values:?}");
    }
}

#[test]
fn a_user_counts_who_has_a_relevant_and_an_irrelevant_candidate() {
    let scores = [1.0, 2.0, 3.0];
    for (excluded, relevant, counts) in [
        (&[][..], &[][..], false),
        (&[], &[1], true),
        (&[0, 2], &[1], false),
        (&[], &[0, 1, 2], false),
        (&[1], &[1], false),
    ] {
        assert_eq!(user(&scores, excluded, relevant, &[1]).is_some(), counts, "{excluded:?} {relevant:?}");
    }
    // An item that is both is excluded.
    assert_eq!(user(&scores, &[2], &[1, 2], &[1]).unwrap()[0], 1.0);
}

#[test]
fn every_path_counts_alike() {
    let mut rng = Streams::new(2).stream(Purpose::Example, 0, 0);
    for items in [5, 16, 17, 100, 1_003] {
        let scores: Vec<f32> = (0..items).map(|_| rng.below(40) as f32 / 8.0 - 2.0).collect();
        let levels: Vec<f32> = (0..13).rev().map(|level| level as f32 / 4.0 - 1.0).collect();
        for path in Path::all() {
            let mut counts = Counts::default();
            count(path, &scores, &levels, &mut counts);
            for (index, level) in levels.iter().enumerate() {
                let number = |keep: &dyn Fn(f32) -> bool| scores.iter().filter(|&&score| keep(score)).count() as u32;
                assert_eq!(counts.greater[index], number(&|score| score > *level), "{path} {items}");
                assert_eq!(counts.equal[index], number(&|score| score == *level), "{path} {items}");
            }
        }
    }
}

/// Scores that depend on user and item alone.
struct Table(usize);

impl ScoreItems for Table {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        for (&user, scores) in users.iter().zip(scores.chunks_exact_mut(self.0)) {
            for (item, score) in scores.iter_mut().enumerate() {
                *score = ((user as usize * 7 + item * 13) % 11) as f32;
            }
        }
    }
}

#[test]
fn means_are_over_users_who_count_in_their_order() {
    let (users, items) = (100, 37);
    let excluded = ItemLists::new(users, (0..users as u32).map(|user| (user, user % 37)));
    let relevant = (0..users as u32).filter(|user| user % 3 > 0);
    let relevant = ItemLists::new(users, relevant.flat_map(|user| [(user, (user + 1) % 37), (user, (user * 5) % 37)]));
    let mut sums = vec![0.0; Ranker::count(1)];
    let mut counted = 0;
    for user in 0..users as u32 {
        let mut scores = vec![0.0; items];
        Table(items).score(&[user], &mut scores);
        if let Some(values) = self::user(&scores, excluded.of(user), relevant.of(user), &[5]) {
            counted += 1;
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    let expected: Vec<f64> = sums.iter().map(|sum| sum / f64::from(counted)).collect();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for threads in [1, 2, 5] {
        for parallel in [false, true] {
            let means = pool(threads).install(|| evaluate(&Table(items), items, &excluded, &relevant, &[5], parallel));
            assert_eq!(means, Means { values: expected.clone(), users: counted as usize });
        }
    }
    // Some users have only one of two lists of relevant items.
    let rest = ItemLists::new(users, (0..users as u32).filter(|user| user % 5 > 1).map(|user| (user, (user * 3) % 37)));
    let nothing = ItemLists::new(users, [].into_iter());
    let parts = [[&excluded, &relevant], [&nothing, &rest]];
    let alone = parts.map(|[excluded, relevant]| evaluate(&Table(items), items, excluded, relevant, &[5], false));
    assert!(alone[0].users != alone[1].users);
    for parallel in [false, true] {
        let both = evaluate_users(0..users as u32, &Table(items), items, parts, &[5], parallel);
        assert_eq!(both, alone);
    }
    let nobody = evaluate(&Table(items), items, &excluded, &ItemLists::new(users, [].into_iter()), &[5], false);
    assert!(nobody.users == 0 && nobody.values.iter().all(|value| value.is_nan()));
}

#[test]
fn lists_are_ascending_without_repetition() {
    let pairs = [(2, 5), (0, 3), (2, 1), (0, 3), (2, 5), (2, 0), (0, 1)];
    let lists = ItemLists::new(4, pairs.into_iter());
    assert_eq!([0, 1, 2, 3].map(|user| lists.of(user)), [&[1, 3][..], &[], &[0, 1, 5], &[]]);
    assert_eq!((lists.len(), lists.users(), lists.empty_users(), lists.is_empty()), (5, 4, 2, false));
    let union = lists.union(&ItemLists::new(4, [(1, 9), (2, 1), (0, 2)].into_iter()));
    assert_eq!([0, 1, 2, 3].map(|user| union.of(user)), [&[1, 2, 3][..], &[9], &[0, 1, 5], &[]]);
}
