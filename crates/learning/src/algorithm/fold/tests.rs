//! Averages by hand, weights, rows of tables.

use super::*;
use crate::algorithm::{AggregationConfig, ServerConfig, ServerOptimizer};
use crate::layout::Segment;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};

fn contribution<'a>(client: u32, examples: usize, start: &'a [f32], parameters: &'a [f32]) -> Contribution<'a> {
    Contribution {
        client: ClientId(client),
        number: JobNumber(1),
        cluster: 0,
        examples,
        weight: None,
        staleness_weight: 1.0,
        start,
        parameters,
        rows: &[],
        loss: None,
        steps: None,
        rate: 1.0,
    }
}

fn model(rng: &mut StreamRng, length: usize) -> Vec<f32> {
    (0..length).map(|_| (rng.uniform() - 0.5) as f32).collect()
}

#[test]
fn two_clients_by_hand() {
    // Weights 1/4 and 3/4.
    let (start, mut global) = ([1.0, 0.0], [1.0, 0.0]);
    federated_average(
        &mut global,
        &[contribution(0, 10, &start, &[3.0, 0.0]), contribution(1, 30, &start, &[1.0, 4.0])],
    );
    assert_eq!(global, [1.5, 3.0]);
}

#[test]
fn a_stale_update_counts_as_a_change_of_its_own_start() {
    // Fresh: +1 with weight 10·1; stale: +4 with weight 10·0.5; mean change 2.
    let mut global = [5.0];
    let stale = Contribution { number: JobNumber(0), staleness_weight: 0.5, ..contribution(1, 10, &[2.0], &[6.0]) };
    federated_average(&mut global, &[contribution(0, 10, &[5.0], &[6.0]), stale]);
    assert_eq!(global, [7.0]);
}

#[test]
fn where_age_discounts_the_rest_stays_with_the_old_model() {
    // (10·1·1 + 10·0.5·4) / 20 = 1.5; alone, the stale update moves the model by half of its change.
    let (start, fresh, sent) = ([2.0], [3.0], [6.0]);
    let stale = Contribution { number: JobNumber(0), staleness_weight: 0.5, ..contribution(1, 10, &start, &sent) };
    let config = AggregationConfig::default();
    for (contributions, expected) in [(vec![contribution(0, 10, &start, &fresh), stale], 6.5), (vec![stale], 7.0)] {
        let mut global = [5.0];
        ServerOptimizer::new(&config, Layout::dense(1, 1)).with_aging(Aging::Discounting).apply(
            &mut global,
            &contributions,
            20,
            0,
        );
        assert_eq!(global, [expected]);
    }
}

#[test]
fn without_weight_the_model_is_unchanged() {
    let mut global = [0.1, -0.0];
    federated_average(&mut global, &[]);
    federated_average(&mut global, &[contribution(0, 0, &[0.0; 2], &[1.0; 2])]);
    assert_eq!(global.map(f32::to_bits), [0.1_f32, -0.0].map(f32::to_bits));
}

#[test]
fn the_order_of_arrival_does_not_change_a_bit() {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let length = 1_100;
    for _ in 0..20 {
        let global = model(&mut rng, length);
        let sent: Vec<Vec<f32>> = (0..30).map(|_| model(&mut rng, length)).collect();
        let mut contributions: Vec<Contribution<'_>> = (0..30_u32)
            .map(|index| Contribution {
                client: ClientId(index / 2),
                number: JobNumber(index % 2),
                cluster: 0,
                weight: None,
                examples: rng.below(100) as usize + 1,
                staleness_weight: rng.uniform(),
                start: &sent[29 - index as usize],
                parameters: &sent[index as usize],
                rows: &[],
                loss: None,
                steps: None,
                rate: 1.0,
            })
            .collect();
        let mut expected = global.clone();
        federated_average(&mut expected, &contributions);
        rng.shuffle(&mut contributions);
        let mut other = global.clone();
        federated_average(&mut other, &contributions);
        assert!(expected.iter().zip(&other).all(|(one, two)| one.to_bits() == two.to_bits()));
    }
}

#[test]
fn sums_are_taken_in_ascending_client_order() {
    // (10³⁰ − 10³⁰) + 3 is 3, while 10³⁰ + 3 forgets the 3.
    let sent = [[1e30], [-1e30], [3.0]];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let contributions = order.map(|k: usize| contribution(k as u32, 1, &[0.0], &sent[k]));
        let mut global = [0.0];
        federated_average(&mut global, &contributions);
        assert_eq!(global, [1.0], "{order:?}");
    }
}

#[test]
fn fresh_updates_give_a_convex_combination() {
    let mut rng = Streams::new(2).stream(Purpose::Example, 0, 0);
    for _ in 0..50 {
        let global = model(&mut rng, 40);
        let sent: Vec<Vec<f32>> = (0..8).map(|_| model(&mut rng, 40)).collect();
        let sizes: Vec<usize> = (0..8).map(|_| 1 + rng.below(50) as usize).collect();
        let contributions: Vec<Contribution<'_>> =
            (0..8).map(|k| contribution(k as u32, sizes[k], &global, &sent[k])).collect();
        let mut average = global.clone();
        federated_average(&mut average, &contributions);
        let total = sizes.iter().sum::<usize>() as f64;
        for index in 0..40 {
            let column = || sent.iter().map(|parameters| parameters[index]);
            let expected: f64 = column().zip(&sizes).map(|(w, &n)| n as f64 / total * f64::from(w)).sum();
            assert!((f64::from(average[index]) - expected).abs() < 1e-7);
            assert!(column().fold(f32::INFINITY, f32::min) <= average[index]);
            assert!(column().fold(f32::NEG_INFINITY, f32::max) >= average[index]);
        }
    }
}

#[test]
fn identical_updates_are_returned_as_they_are() {
    let mut rng = Streams::new(3).stream(Purpose::Example, 0, 0);
    for _ in 0..50 {
        let (global, sent) = (model(&mut rng, 40), model(&mut rng, 40));
        let contributions: Vec<Contribution<'_>> =
            (0..9).map(|k| contribution(k, 1 + rng.below(1_000) as usize, &global, &sent)).collect();
        let mut average = global.clone();
        federated_average(&mut average, &contributions);
        assert_eq!(average, sent);
    }
}

/// Two dense numbers, one of a cluster, and a table of three rows of two.
fn mixed() -> Layout {
    Layout::new(vec![
        Segment::dense("a", 1, Scope::Shared),
        Segment::dense("b", 1, Scope::Cluster),
        Segment::table("c", 3, 2, Scope::Shared),
    ])
}

#[test]
fn rows_are_divided_by_the_weights_of_all_or_of_their_senders() {
    // Client 0 with 10 examples moves row 2 by 4 and 8, client 1 with 30 examples rows 0 and 2 by 4 each.
    let start = [0.0; 8];
    let zero = [1.0, 0.0, 4.0, 8.0];
    let one = [1.0, 0.0, 4.0, 4.0, 4.0, 4.0];
    let contributions = [
        Contribution { rows: &[2], ..contribution(0, 10, &start, &zero) },
        Contribution { rows: &[0, 2], ..contribution(1, 30, &start, &one) },
    ];
    let after = |rows| {
        let config = AggregationConfig { rows, ..AggregationConfig::default() };
        let mut global = [0.0, 0.0, 5.0, 5.0, 7.0, 7.0, 0.0, 0.0];
        ServerOptimizer::new(&config, mixed()).apply(&mut global, &contributions, 40, 0);
        global
    };
    assert_eq!(after(RowDivisor::Selected), [1.0, 0.0, 8.0, 8.0, 7.0, 7.0, 4.0, 5.0]);
    assert_eq!(after(RowDivisor::Touched), [1.0, 0.0, 9.0, 9.0, 7.0, 7.0, 4.0, 5.0]);
}

#[test]
fn a_segment_of_a_cluster_takes_in_its_own_contributions() {
    let start = [0.0; 8];
    let (zero, one) = ([2.0, 2.0], [4.0, 4.0]);
    let contributions =
        [contribution(0, 1, &start, &zero), Contribution { cluster: 1, ..contribution(1, 1, &start, &one) }];
    for (cluster, expected) in [(0, [3.0, 2.0]), (1, [3.0, 4.0]), (2, [3.0, 0.0])] {
        let mut global = start;
        let config = AggregationConfig::default();
        ServerOptimizer::new(&config, mixed()).apply(&mut global, &contributions, 2, cluster);
        assert_eq!(global[..2], expected);
    }
}

#[test]
fn rows_are_as_good_as_whole_tables() {
    let mut rng = Streams::new(4).stream(Purpose::Example, 0, 0);
    for server in [ServerConfig::default(), ServerConfig::Momentum { lr: 0.5, momentum: 0.9 }] {
        let config = AggregationConfig { server, ..AggregationConfig::default() };
        let mut sparse = ServerOptimizer::new(&config, mixed());
        let mut dense = ServerOptimizer::new(&config, Layout::dense(8, 8));
        let (mut one, mut other) = ([0.0; 8], [0.0; 8]);
        for _ in 0..3 {
            let start = one;
            let sent: Vec<Vec<f32>> = (0..4).map(|_| model(&mut rng, 8)).collect();
            let rows = [0, 1, 2];
            let mut all: Vec<Contribution<'_>> =
                (0..4).map(|k| contribution(k as u32, k + 1, &start, &sent[k])).collect();
            dense.apply(&mut other, &all, 10, 0);
            all.iter_mut().for_each(|contribution| contribution.rows = &rows);
            sparse.apply(&mut one, &all, 10, 0);
            assert_eq!(one, other);
        }
    }
}

#[test]
#[should_panic(expected = "once for each job")]
fn a_contribution_is_not_counted_twice() {
    federated_average(&mut [0.0], &[contribution(3, 1, &[0.0], &[1.0]), contribution(3, 1, &[0.0], &[1.0])]);
}

/// How coefficients are summed, of a dense model.
fn coefficients(aging: Aging, normalise: bool, contributions: &[Contribution<'_>]) -> Vec<f32> {
    let layout = Layout::dense(2, 2);
    let fold = Fold {
        layout: &layout,
        cluster: 0,
        weighting: Weighting::DataSize,
        aging,
        rows: RowDivisor::Selected,
        normalise,
        combine: None,
        centre: &[],
        mixture: &[],
    };
    let mut global = vec![1.0, -1.0];
    fold.changes(&mut global, contributions, 0, |_, parameters, changes| {
        parameters.iter_mut().zip(changes).for_each(|(parameter, change)| *parameter += *change as f32);
    });
    global
}

/// Changes (2, 4) and (−1, 2), with weights 0.5 and −2 of their own, whatever their examples; the second one counts
/// half for its age. The sum is 0.5·(2, 4) − 1·(−1, 2) = (2, 0); weights with age add up to −0.5, without to −1.5.
#[test]
fn weights_of_their_own_are_coefficients() {
    let start = [1.0, 1.0];
    let (first, second) = (contribution(0, 10, &start, &[3.0, 5.0]), contribution(1, 70, &start, &[0.0, 3.0]));
    let both = [
        Contribution { weight: Some(0.5), ..first },
        Contribution { weight: Some(-2.0), staleness_weight: 0.5, ..second },
    ];
    for aging in [Aging::Relative, Aging::Discounting] {
        assert_eq!(coefficients(aging, false, &both), [3.0, -1.0]);
    }
    assert_eq!(coefficients(Aging::Relative, true, &both), [1.0 - 4.0, -1.0]);
    assert_eq!(coefficients(Aging::Discounting, true, &both), [1.0 + (-2.0_f64 / 1.5) as f32, -1.0]);
    let opposed = [Contribution { weight: Some(1.0), ..first }, Contribution { weight: Some(-1.0), ..second }];
    assert_eq!(coefficients(Aging::Relative, false, &opposed), [4.0, 1.0]);
    assert_eq!(coefficients(Aging::Relative, true, &opposed), [1.0, -1.0], "a sum of 0 divides nothing");
    let nothing = [Contribution { weight: Some(0.0), ..first }];
    assert_eq!(coefficients(Aging::Relative, false, &nothing), [1.0, -1.0]);
}

/// A row takes in the sum over the updates that moved it; normalised, it is divided by the weights of all or of these.
#[test]
fn rows_take_in_weights_of_their_own() {
    let layout = Layout::new(vec![Segment::table("rows", 3, 1, Scope::Shared)]);
    let start = [0.0; 3];
    let (zero, one) = ([4.0], [2.0, 8.0]);
    let both = [
        Contribution { rows: &[2], weight: Some(0.5), ..contribution(0, 10, &start, &zero) },
        Contribution { rows: &[0, 2], weight: Some(1.5), ..contribution(1, 30, &start, &one) },
    ];
    let of = |rows, normalise| {
        let (mut global, layout) = (vec![0.0_f32; 3], &layout);
        let (weighting, aging) = (Weighting::Uniform, Aging::Relative);
        let fold =
            Fold { layout, cluster: 0, weighting, aging, rows, normalise, combine: None, centre: &[], mixture: &[] };
        fold.changes(&mut global, &both, 0, |_, parameters, changes| parameters[0] += changes[0] as f32);
        global
    };
    assert_eq!(of(RowDivisor::Selected, false), [3.0, 0.0, 14.0]);
    assert_eq!(of(RowDivisor::Touched, false), [3.0, 0.0, 14.0]);
    assert_eq!(of(RowDivisor::Selected, true), [1.5, 0.0, 7.0]);
    assert_eq!(of(RowDivisor::Touched, true), [2.0, 0.0, 7.0]);
}

#[test]
#[should_panic(expected = "all have a weight of their own, or none")]
fn weights_of_their_own_are_not_mixed() {
    let start = [1.0, 1.0];
    let plain = contribution(1, 1, &start, &start);
    coefficients(
        Aging::Relative,
        false,
        &[Contribution { weight: Some(1.0), ..contribution(0, 1, &start, &start) }, plain],
    );
}
