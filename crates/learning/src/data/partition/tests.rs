//! Laws that every partition obeys, and the distributions of the random ones.

use super::declared::declared;
use super::dirichlet::{DirichletClasses, dirichlet};
use super::gamma::{GammaSizes, gamma};
use super::iid::iid;
use super::*;
use crate::data::{Dataset, Targets};
use fedgenie_core::math::special::normal_quantile as standard_normal;
use ndarray::Array2;

mod config;
mod kinds;
mod owners;
mod skews;
mod tables;

fn labelled(examples: usize, classes: usize) -> Dataset {
    let labels = (0..examples).map(|example| (example % classes) as u8).collect();
    Dataset::new(Array2::zeros((examples, 1)), Targets::Classes { labels, classes })
}

fn sizes(partition: &Partition) -> Vec<usize> {
    (0..partition.clients()).map(|client| partition.size(ClientId::from_index(client))).collect()
}

/// Of 12, 3 and 1 examples a share of 0.3 is 3, 0 and 0; what is held out is drawn, and both parts keep their order.
#[test]
fn clients_hold_a_share_of_their_examples_out() {
    let partition = Partition::deal((0..16).rev().collect(), &[12, 3, 1]);
    let (kept, held) = partition.held_out(0.3, &Streams::new(5)).unwrap();
    assert_eq!((sizes(&kept), sizes(&held)), (vec![9, 3, 1], vec![3, 0, 0]));
    for client in (0..3).map(ClientId) {
        let [kept, held, all] = [&kept, &held, &partition].map(|partition| partition.client(client).to_vec());
        assert!(kept.is_sorted_by(|one, next| one > next) && held.is_sorted_by(|one, next| one > next));
        let mut both = [kept, held].concat();
        both.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(both, all);
    }
    assert_eq!(held.rows().len(), 3);
    let other = partition.held_out(0.3, &Streams::new(6)).unwrap();
    assert_ne!(held, other.1, "another seed holds out others");
    // At least one example is left to train on.
    assert_eq!(sizes(&partition.held_out(0.999_999_999_999, &Streams::new(5)).unwrap().1), [11, 2, 0]);
}

/// Gamma(1/2) is half a squared standard normal variate.
fn half_gamma_quantile(u: f64) -> f64 {
    let z = standard_normal(0.5 + 0.5 * u);
    0.5 * z * z
}

fn never(_: f64) -> f64 {
    unreachable!("shape 1 is exact")
}

fn assert_every_example_once(partition: &Partition, examples: usize, minimum: usize) {
    let mut seen = vec![0; examples];
    for client in 0..partition.clients() {
        let client = ClientId::from_index(client);
        assert_eq!(partition.client(client).len(), partition.size(client));
        assert!(partition.size(client) >= minimum, "{client} has {}", partition.size(client));
        for &example in &*partition.client(client) {
            seen[example as usize] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count == 1), "every example belongs to exactly one client");
    assert_eq!(partition.examples(), examples);
}

#[test]
fn every_example_goes_to_exactly_one_client() {
    let mut rng = Streams::new(3).stream(Purpose::Partition, 1, 99);
    for seed in 0..200 {
        let streams = Streams::new(seed);
        let clients = 1 + rng.below(40) as usize;
        let minimum = rng.below(4) as usize;
        let examples = clients * minimum.max(1) + rng.below(300) as usize;
        let data = labelled(examples, 1 + rng.below(12) as usize);
        assert_every_example_once(&iid(&data, clients, false, &streams).unwrap(), examples, 1);
        assert_every_example_once(&iid(&data, clients, true, &streams).unwrap(), examples, 1);
        let settings = GammaSizes { shape: 0.5, minimum };
        let partition = gamma(examples, clients, &settings, &half_gamma_quantile, &streams).unwrap();
        assert_every_example_once(&partition, examples, minimum);
        // A law with hardly any weight anywhere: most variates are 0.
        let sparse = |u: f64| if u > 0.97 { 1.0 } else { 0.0 };
        let settings = DirichletClasses { alpha: 0.01, minimum };
        let partition = dirichlet(&data, clients, &settings, &sparse, &streams).unwrap();
        assert_every_example_once(&partition, examples, minimum);
    }
}

#[test]
fn even_sizes_differ_by_at_most_one_and_the_first_are_larger() {
    let streams = Streams::new(1);
    for stratified in [false, true] {
        let partition = iid(&labelled(11, 3), 4, stratified, &streams).unwrap();
        assert_eq!(sizes(&partition), [3, 3, 3, 2]);
    }
    let first = iid(&labelled(100, 1), 4, false, &streams).unwrap();
    assert_ne!(first, iid(&labelled(100, 1), 4, false, &Streams::new(2)).unwrap());
    assert_ne!(first.client(ClientId(0)), (0..25).collect::<Vec<u32>>());
}

#[test]
fn stratified_clients_have_equally_many_of_each_class() {
    let (data, streams) = (labelled(6_000, 10), Streams::new(1));
    let partition = iid(&data, 50, true, &streams).unwrap();
    let (labels, _) = data.classes().unwrap();
    for client in 0..50 {
        let mut counts = [0; 10];
        for &example in &*partition.client(ClientId(client)) {
            counts[usize::from(labels[example as usize])] += 1;
        }
        assert_eq!(counts, [12; 10]);
    }
}

#[test]
fn exponential_sizes_have_a_gini_coefficient_of_one_half() {
    // The Gini coefficient of the exponential law is 1/2, of Gamma(1/2) 2/π.
    for (shape, expected) in [(1.0, 0.5), (0.5, std::f64::consts::FRAC_2_PI)] {
        let settings = GammaSizes { shape, minimum: 1 };
        let quantile: &dyn Fn(f64) -> f64 = if shape == 1.0 { &never } else { &half_gamma_quantile };
        let partition = gamma(2_000_000, 4_000, &settings, quantile, &Streams::new(4)).unwrap();
        let mut sizes = sizes(&partition);
        sizes.sort_unstable();
        let weighted: f64 = (1..).zip(&sizes).map(|(rank, &size)| f64::from(rank) * size as f64).sum();
        let gini = 2.0 * weighted / (4_000.0 * 2_000_000.0) - 4_001.0 / 4_000.0;
        assert!((gini - expected).abs() < 0.02, "shape {shape}: {gini}");
    }
}

#[test]
fn a_clients_share_of_a_class_has_the_dirichlet_mean_and_variance() {
    let data = labelled(4_000, 2);
    let (labels, _) = data.classes().unwrap();
    for (alpha, quantile) in [(1.0, exponential_quantile as fn(f64) -> f64), (0.5, half_gamma_quantile)] {
        let (seeds, clients) = (4_000, 5.0);
        let shares: Vec<f64> = (0..seeds)
            .map(|seed| {
                let settings = DirichletClasses { alpha, minimum: 0 };
                let partition = dirichlet(&data, 5, &settings, &quantile, &Streams::new(seed)).unwrap();
                let examples = partition.client(ClientId(3));
                let ones = examples.iter().filter(|&&example| labels[example as usize] == 1);
                ones.count() as f64 / 2_000.0
            })
            .collect();
        let mean = shares.iter().sum::<f64>() / seeds as f64;
        let variance = shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / seeds as f64;
        let expected = (1.0 / clients) * (1.0 - 1.0 / clients) / (clients * alpha + 1.0);
        assert!((mean - 0.2).abs() < 5.0 * (expected / seeds as f64).sqrt(), "α = {alpha}: mean {mean}");
        assert!((variance - expected).abs() < 0.1 * expected, "α = {alpha}: variance {variance}, not {expected}");
    }
}

#[test]
fn a_short_client_is_helped_by_the_largest_one_from_its_largest_class() {
    // One class, all of it to the client with the largest uniform, which keeps all but the minima of the other two.
    let data = labelled(9, 1);
    let settings = DirichletClasses { alpha: 1e-9, minimum: 2 };
    let partition = dirichlet(&data, 3, &settings, &|_| 0.0, &Streams::new(6)).unwrap();
    let mut sizes = sizes(&partition);
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 2, 5]);
}

#[test]
fn declared_sizes_are_honoured_and_the_rest_is_left_over() {
    let partition = declared(10, &[3, 0, 5], &Streams::new(1)).unwrap();
    assert_eq!(sizes(&partition), [3, 0, 5]);
    assert_eq!(partition.examples(), 8);
    let mut all: Vec<u32> = (0..3).flat_map(|client| partition.client(ClientId(client)).to_vec()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8);
}

#[test]
fn impossible_wishes_are_refused() {
    let (data, streams) = (labelled(10, 2), Streams::new(1));
    let numbers = Dataset::new(Array2::zeros((10, 1)), Targets::Values(vec![0.0; 10]));
    let one = |_: f64| 1.0;
    assert_eq!(iid(&data, 0, false, &streams), Err(PartitionError::NoClients));
    assert!(matches!(iid(&data, 11, false, &streams), Err(PartitionError::TooFewExamples { .. })));
    assert!(matches!(iid(&numbers, 2, true, &streams), Err(PartitionError::NoClasses { .. })));
    let wanting = GammaSizes { shape: 1.0, minimum: 4 };
    assert!(matches!(gamma(10, 3, &wanting, &one, &streams), Err(PartitionError::TooFewExamples { .. })));
    for shape in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let settings = GammaSizes { shape, minimum: 1 };
        assert!(matches!(gamma(10, 3, &settings, &one, &streams), Err(PartitionError::NotPositive { .. })));
        let settings = DirichletClasses { alpha: shape, minimum: 1 };
        assert!(matches!(dirichlet(&data, 3, &settings, &one, &streams), Err(PartitionError::NotPositive { .. })));
    }
    let settings = DirichletClasses { alpha: 1.0, minimum: 1 };
    assert!(matches!(dirichlet(&numbers, 3, &settings, &one, &streams), Err(PartitionError::NoClasses { .. })));
    let broken = dirichlet(&data, 3, &settings, &|_| f64::NAN, &streams);
    assert!(matches!(broken, Err(PartitionError::Weight { client: ClientId(0), .. })));
    assert_eq!(
        declared(10, &[usize::MAX, 2], &streams),
        Err(PartitionError::DeclaredTooMany { declared: usize::MAX, examples: 10 })
    );
    assert_eq!(declared(10, &[], &streams), Err(PartitionError::NoClients));
}
