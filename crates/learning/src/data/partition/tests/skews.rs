//! The measures of unevenness, by hand.

use super::super::shards::label_shards;
use super::super::skew::{LabelSkew, Skew};
use super::*;
use approx::assert_relative_eq;

#[test]
fn a_partition_of_two_halves_by_hand() {
    // Labels 0 1 2 3 0 1 2 3; client 0 has classes 0 and 1 in equal parts, client 1 only class 2, client 2 nothing.
    let data = labelled(8, 4);
    let partition = Partition::deal(vec![0, 1, 4, 5, 2, 6], &[4, 2, 0]);
    let Skew { smallest, largest, empty, balance_index, size_gini, sizes, labels, servers: _, features: _, shifts: _ } =
        partition.skew(&data);
    assert_eq!((smallest, largest, empty, balance_index, sizes), (0, 4, 1, 0.0, vec![4, 2, 0]));
    // (−2·0 + 0·2 + 2·4)/(3·6).
    assert_relative_eq!(size_gini, 8.0 / 18.0);
    let LabelSkew { mean_entropy, entropy_of_all, mean_distance } = labels.unwrap();
    assert_relative_eq!(mean_entropy, std::f64::consts::LN_2 / 2.0, max_relative = 1e-15);
    assert_relative_eq!(entropy_of_all, 2.0 * std::f64::consts::LN_2, max_relative = 1e-15);
    assert_relative_eq!(mean_distance, (0.5 + 0.75) / 2.0);
}

#[test]
fn an_even_partition_has_no_skew_and_one_class_each_has_all() {
    let data = labelled(6_000, 10);
    let even = iid(&data, 50, true, &Streams::new(1)).unwrap().skew(&data);
    let labels = even.labels.unwrap();
    assert_eq!((even.size_gini, even.balance_index, labels.mean_distance), (0.0, 1.0, 0.0));
    assert_relative_eq!(labels.mean_entropy, labels.entropy_of_all, max_relative = 1e-14);
    let shards = label_shards(&data, 50, 1, &Streams::new(1)).unwrap().skew(&data).labels.unwrap();
    assert_eq!(shards.mean_entropy.to_bits(), 0.0_f64.to_bits());
    assert_relative_eq!(shards.mean_distance, 0.9, max_relative = 1e-14);
}

#[test]
fn numbers_as_targets_and_nothing_at_all_have_no_classes_to_measure() {
    let numbers = Dataset::new(Array2::zeros((10, 1)), Targets::Values(vec![0.0; 10]));
    let skew = iid(&numbers, 2, false, &Streams::new(1)).unwrap().skew(&numbers);
    assert_eq!((skew.labels, skew.size_gini), (None, 0.0));
    let skew = declared(10, &[0, 0], &Streams::new(1)).unwrap().skew(&labelled(10, 2));
    assert_eq!((skew.labels, skew.size_gini, skew.balance_index, skew.empty), (None, 0.0, 0.0, 2));
}
