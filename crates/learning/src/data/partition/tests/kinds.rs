//! Shards, two levels, Zipf's law, the balance index and groups.

use super::super::balance::{Largest, Profile, Unit, UserBalance, balance_index, balanced_sizes, user_balance};
use super::super::groups::by_column;
use super::super::shards::label_shards;
use super::super::two_level::{Law, TwoLevel, clients_of, server_shares, split_by_shares, two_level};
use super::super::zipf::{ZipfSizes, zipf};
use super::*;
use serde_json::json;
use std::collections::BTreeSet;

fn classes_of(partition: &Partition, data: &Dataset, client: usize) -> BTreeSet<u8> {
    let labels = data.classes().unwrap().0;
    partition.client(ClientId::from_index(client)).iter().map(|&example| labels[example as usize]).collect()
}

/// A law with hardly any weight anywhere: most variates are 0.
fn sparse(u: f64) -> f64 {
    if u > 0.97 { 1.0 } else { 0.0 }
}

#[test]
fn every_new_kind_deals_out_every_example_and_does_so_again() {
    let mut rng = Streams::new(4).stream(Purpose::Partition, 1, 99);
    for seed in 0..200 {
        let streams = Streams::new(seed);
        let clients = 1 + rng.below(40) as usize;
        let minimum = rng.below(4) as usize;
        let shards = 1 + rng.below(3) as usize;
        let examples = clients * minimum.max(shards) + rng.below(300) as usize;
        let groups = clients as u64 + rng.below(20);
        let mut of_example: Vec<u32> = (0..examples).map(|_| rng.below(groups) as u32).collect();
        (0..clients).for_each(|client| of_example[client] = client as u32);
        let data = labelled(examples, 1 + rng.below(12) as usize).with_groups(of_example);
        let servers = 1 + rng.below(clients as u64) as usize;
        let two = TwoLevel { servers, alpha_server: 0.1, alpha_client: 0.5, minimum, law: Law::ByClass };
        let own = TwoLevel { law: Law::ByOwner, ..two.clone() };
        let shuffled = seed % 2 == 0;
        let zipf_sizes = ZipfSizes { exponent: rng.uniform() * 3.0, minimum, shuffled };
        let balance =
            UserBalance { profile: Profile::Linear, index: 1.0, shuffled, largest: Largest::First, by: Unit::Ratings };
        type Build<'a> = Box<dyn Fn() -> Partition + 'a>;
        let kinds: [(usize, Build<'_>); 6] = [
            (shards, Box::new(|| label_shards(&data, clients, shards, &streams).unwrap())),
            (minimum, Box::new(|| two_level(&data, clients, &two, &sparse, &half_gamma_quantile, &streams).unwrap().0)),
            (minimum, Box::new(|| two_level(&data, clients, &own, &sparse, &half_gamma_quantile, &streams).unwrap().0)),
            (minimum, Box::new(|| zipf(examples, clients, &zipf_sizes, &streams).unwrap())),
            (1, Box::new(|| user_balance(examples, clients, &balance, &streams).unwrap())),
            (1, Box::new(|| by_column(&data, clients, shuffled, &streams).unwrap())),
        ];
        let first: Vec<Partition> = kinds.iter().map(|(_, build)| build()).collect();
        for ((minimum, build), first) in kinds.iter().zip(&first).rev() {
            assert_every_example_once(first, examples, *minimum);
            assert_eq!(build(), *first, "whatever was dealt before");
        }
    }
}

#[test]
fn two_shards_are_at_most_two_classes_where_classes_are_whole_shards() {
    // The source's case, a tenth of the size: 200 shards of 30, 20 for each class.
    let data = labelled(6_000, 10);
    let mut kinds = [0; 3];
    for seed in 0..50 {
        let partition = label_shards(&data, 100, 2, &Streams::new(seed)).unwrap();
        assert_eq!(sizes(&partition), [60; 100]);
        (0..100).for_each(|client| kinds[classes_of(&partition, &data, client).len()] += 1);
    }
    // The second shard is of the first one's class with probability 19/199: 477 of 5,000 clients, deviation below 22.
    assert_eq!(kinds[0], 0);
    assert!((477.0 - f64::from(kinds[1])).abs() < 5.0 * 22.0, "{kinds:?}");
    // Shards across a boundary have two classes.
    let data = labelled(1_003, 7);
    for seed in 0..50 {
        let partition = label_shards(&data, 13, 3, &Streams::new(seed)).unwrap();
        let most = (0..13).map(|client| classes_of(&partition, &data, client).len()).max().unwrap();
        assert!(most <= 6, "{most}");
        let sizes = sizes(&partition);
        // 39 shards of 25 or 26.
        assert!(sizes.iter().all(|size| (75..=78).contains(size)), "{sizes:?}");
    }
}

#[test]
fn shares_of_servers_and_clients_have_the_two_laws_moments() {
    // 2 classes, 6 clients on 3 servers; server α 1/2, client α 1.
    let data = labelled(4_000, 2);
    let labels = data.classes().unwrap().0;
    let settings = TwoLevel { servers: 3, alpha_server: 0.5, alpha_client: 1.0, minimum: 0, law: Law::ByClass };
    let seeds = 4_000_u64;
    let (mut of_server, mut of_client) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let streams = Streams::new(seed);
        let (partition, shares) =
            two_level(&data, 6, &settings, &half_gamma_quantile, &exponential_quantile, &streams).unwrap();
        let ones = |client| {
            partition.client(ClientId(client)).iter().filter(|&&example| labels[example as usize] == 1).count() as f64
        };
        for class in 0..2 {
            assert!((shares.column(class).sum() - 1.0).abs() < 1e-12);
        }
        // The counts are the drawn shares, rounded.
        assert!((ones(2) + ones(3) - 2_000.0 * shares[[1, 1]]).abs() < 1.0);
        of_server.push(shares[[1, 1]]);
        of_client.push(ones(3) / 2_000.0);
    }
    // Of a Dirichlet share with K parts: mean 1/K, mean square (α + 1)/(K(Kα + 1)); the client's is a product of two.
    let square = |parts: f64, alpha: f64| (alpha + 1.0) / (parts * (parts * alpha + 1.0));
    let expectations = [(1.0 / 3.0, square(3.0, 0.5)), (1.0 / 6.0, square(3.0, 0.5) * square(2.0, 1.0))];
    for (shares, (mean, squares)) in [of_server, of_client].iter().zip(expectations) {
        let found = shares.iter().sum::<f64>() / seeds as f64;
        let variance = squares - mean * mean;
        assert!((found - mean).abs() < 5.0 * (variance / seeds as f64).sqrt(), "mean {found}, not {mean}");
        let found = shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / seeds as f64;
        assert!((found - variance).abs() < 0.1 * variance, "variance {found}, not {variance}");
    }
}

#[test]
fn servers_have_contiguous_clients_and_test_data_in_the_same_proportions() {
    assert_eq!((0..3).map(|server| clients_of(server, 3, 8)).collect::<Vec<_>>(), [0..3, 3..6, 6..8]);
    let (data, test, streams) = (labelled(9_000, 3), labelled(3_000, 3), Streams::new(8));
    let settings = TwoLevel { servers: 3, alpha_server: 0.5, alpha_client: 0.5, minimum: 0, law: Law::ByClass };
    let (partition, shares) =
        two_level(&data, 8, &settings, &half_gamma_quantile, &half_gamma_quantile, &streams).unwrap();
    assert_eq!(shares, server_shares(&settings, 3, &half_gamma_quantile, &streams).unwrap());
    let split = split_by_shares(&test, &shares, false, &streams).unwrap();
    assert_every_example_once(&split, 3_000, 0);
    for server in 0..3 {
        for class in 0..3_u8 {
            let count = |examples: &[u32]| examples.iter().filter(|&&example| example % 3 == u32::from(class)).count();
            let train: usize =
                clients_of(server, 3, 8).map(|client| count(&partition.client(ClientId::from_index(client)))).sum();
            let tested = count(&split.client(ClientId::from_index(server)));
            let share = shares[[server, usize::from(class)]];
            assert!((train as f64 - 3_000.0 * share).abs() < 1.0, "{train} of 3000, not {share}");
            assert!((tested as f64 - 1_000.0 * share).abs() < 1.0, "{tested} of 1000, not {share}");
        }
    }
    assert!(matches!(
        split_by_shares(&labelled(9, 4), &shares, false, &streams),
        Err(PartitionError::OutOfRange { .. })
    ));
}

#[test]
fn a_server_without_anything_is_helped_up_to_its_clients_minima() {
    // All weight on the server with the largest uniform.
    let data = labelled(100, 1);
    let settings = TwoLevel { servers: 3, alpha_server: 1e-9, alpha_client: 1e-9, minimum: 5, law: Law::ByClass };
    let (partition, shares) = two_level(&data, 7, &settings, &|_| 0.0, &|_| 0.0, &Streams::new(1)).unwrap();
    assert_eq!(shares.iter().filter(|&&share| share == 1.0).count(), 1);
    let rich = (0..3).find(|&server| shares[[server, 0]] == 1.0).unwrap();
    let mut sizes = sizes(&partition);
    let inside = clients_of(rich, 3, 7);
    assert!(sizes.iter().enumerate().all(|(client, &size)| size == 5 || inside.contains(&client)));
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 5, 5, 5, 5, 5, 70]);
}

#[test]
fn zipfs_sizes_by_hand() {
    // Shares 1, 1/2, 1/3, 1/6·… of 1 + 1/2 + 1/3 + 1/4 = 25/12 of 100: 48, 24, 16, 12.
    let partition = zipf(100, 4, &ZipfSizes::default(), &Streams::new(1)).unwrap();
    assert_eq!(sizes(&partition), [48, 24, 16, 12]);
    let shuffled = ZipfSizes { shuffled: true, ..ZipfSizes::default() };
    let firsts: BTreeSet<usize> =
        (0..50).map(|seed| sizes(&zipf(100, 4, &shuffled, &Streams::new(seed)).unwrap())[0]).collect();
    assert_eq!(firsts, BTreeSet::from([12, 16, 24, 48]));
    let flat = ZipfSizes { exponent: 0.0, ..ZipfSizes::default() };
    assert_eq!(sizes(&zipf(11, 4, &flat, &Streams::new(1)).unwrap()), [3, 3, 3, 2]);
    let steep = ZipfSizes { exponent: 500.0, minimum: 2, shuffled: false };
    assert_eq!(sizes(&zipf(20, 4, &steep, &Streams::new(1)).unwrap()), [14, 2, 2, 2]);
    for exponent in [-0.1, f64::NAN, f64::INFINITY] {
        let settings = ZipfSizes { exponent, ..ZipfSizes::default() };
        assert!(matches!(zipf(20, 4, &settings, &Streams::new(1)), Err(PartitionError::Exponent { .. })));
    }
}

/// The nearest that any rounding of every share down or up comes, by trying all of them.
fn nearest_by_force(exact: &[f64], total: usize, index: f64) -> f64 {
    let mut nearest = f64::INFINITY;
    for ups in 0..1_u32 << exact.len() {
        let round = |(client, share): (usize, &f64)| if ups >> client & 1 == 1 { share.ceil() } else { share.floor() };
        let sizes: Vec<usize> = exact.iter().enumerate().map(|entry| round(entry) as usize).collect();
        if sizes.iter().sum::<usize>() == total {
            nearest = nearest.min((balance_index(&sizes) - index).abs());
        }
    }
    nearest
}

#[test]
fn no_other_rounding_of_the_profile_comes_nearer_to_the_index() {
    let mut rng = Streams::new(12).stream(Purpose::Partition, 1, 98);
    let mut tried = 0;
    for _ in 0..1_500 {
        let clients = 2 + rng.below(9) as usize;
        let examples = clients + rng.below(400) as usize;
        let (index, steps) = (rng.uniform(), (clients - 1) as f64);
        for profile in [Profile::Exponential, Profile::Linear] {
            let Ok(sizes) = balanced_sizes(examples, clients, profile, index) else { continue };
            let weights: Vec<f64> = (0..clients)
                .map(|client| match profile {
                    Profile::Exponential => index.powf(client as f64 / steps),
                    Profile::Linear => 1.0 - (1.0 - index) * client as f64 / steps,
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            let whole = |share: f64| if (share - share.round()).abs() < 1e-9 { share.round() } else { share };
            let exact: Vec<f64> = weights.iter().map(|weight| whole(weight / sum * examples as f64)).collect();
            let distance = (balance_index(&sizes) - index).abs();
            assert!(distance <= nearest_by_force(&exact, examples, index) + 1e-12, "{sizes:?}, {index}");
            assert!(sizes.is_sorted_by(|first, second| first >= second), "{sizes:?}");
            assert_eq!(sizes.iter().sum::<usize>(), examples);
            tried += 1;
        }
    }
    assert!(tried > 1_000, "{tried} cases were in reach");
}

#[test]
fn the_published_indices_are_reached_as_nearly_as_ratings_allow() {
    for profile in [Profile::Exponential, Profile::Linear] {
        for index in [0.0146, 0.1172] {
            let sizes = balanced_sizes(100_000, 8, profile, index).unwrap();
            let reached = balance_index(&sizes);
            println!("{profile:?} {index}: {sizes:?}, index {reached}");
            // Half an example of the smallest client, in units of the largest.
            assert!((reached - index).abs() <= 0.5 / sizes[0] as f64 + 1e-6, "{reached}");
        }
    }
}

#[test]
fn an_index_out_of_reach_is_refused_with_the_range() {
    for profile in [Profile::Exponential, Profile::Linear] {
        let Err(PartitionError::Balance { least, .. }) = balanced_sizes(100, 8, profile, 1e-6) else {
            panic!("100 examples do not have an index of one in a million");
        };
        assert_eq!(balanced_sizes(100, 8, profile, least).unwrap()[7], 1);
        assert!(balanced_sizes(100, 8, profile, least * 0.999).is_err());
        for index in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(balanced_sizes(100, 8, profile, index).is_err());
        }
        assert_eq!(balanced_sizes(10, 4, profile, 1.0).unwrap(), [3, 3, 2, 2]);
        assert_eq!(balanced_sizes(10, 1, profile, 1.0).unwrap(), [10]);
        assert!(balanced_sizes(10, 1, profile, 0.5).is_err());
        assert!(matches!(balanced_sizes(3, 4, profile, 1.0), Err(PartitionError::TooFewExamples { .. })));
    }
}

#[test]
fn groups_stay_together_and_are_dealt_in_turn() {
    let streams = Streams::new(2);
    // Group 2 has no examples.
    let data = labelled(10, 2).with_groups(vec![0, 0, 0, 1, 3, 3, 4, 5, 5, 5]);
    let partition = by_column(&data, 3, false, &streams).unwrap();
    let sorted = |client| {
        let mut examples = partition.client(ClientId(client)).to_vec();
        examples.sort_unstable();
        examples
    };
    // Groups 0 and 4; 1 and 5; 3.
    assert_eq!([sorted(0), sorted(1), sorted(2)], [vec![0, 1, 2, 6], vec![3, 7, 8, 9], vec![4, 5]]);
    let ways: BTreeSet<Vec<usize>> =
        (0..50).map(|seed| sizes(&by_column(&data, 5, true, &Streams::new(seed)).unwrap())).collect();
    assert!(ways.len() > 5, "{ways:?}");
    let error = by_column(&data, 6, false, &streams).unwrap_err();
    assert_eq!(error, PartitionError::TooFewGroups { groups: 5, clients: 6 });
    assert!(error.to_string().contains("at most 5 clients, not for 6"), "{error}");
    assert_eq!(by_column(&labelled(10, 2), 2, false, &streams), Err(PartitionError::NoGroups));
}

#[test]
fn impossible_wishes_of_the_new_kinds_are_refused() {
    let (data, streams) = (labelled(10, 2), Streams::new(1));
    let numbers = Dataset::new(Array2::zeros((10, 1)), Targets::Values(vec![0.0; 10]));
    assert!(matches!(label_shards(&data, 6, 2, &streams), Err(PartitionError::TooFewExamples { .. })));
    assert!(matches!(label_shards(&data, 3, 0, &streams), Err(PartitionError::OutOfRange { .. })));
    assert!(matches!(label_shards(&numbers, 3, 2, &streams), Err(PartitionError::NoClasses { .. })));
    assert_eq!(label_shards(&data, 0, 2, &streams), Err(PartitionError::NoClients));
    let good = TwoLevel { servers: 2, alpha_server: 1.0, alpha_client: 1.0, minimum: 1, law: Law::ByClass };
    let deal = |data: &Dataset, settings: &TwoLevel| {
        two_level(data, 4, settings, &exponential_quantile, &exponential_quantile, &streams)
    };
    assert!(deal(&data, &good).is_ok());
    for servers in [0, 5] {
        let refused = deal(&data, &TwoLevel { servers, ..good.clone() });
        assert!(matches!(refused, Err(PartitionError::OutOfRange { most: 4, .. })));
    }
    assert!(matches!(deal(&numbers, &good), Err(PartitionError::NoClasses { .. })));
    let wanting = TwoLevel { minimum: 3, ..good.clone() };
    assert!(matches!(deal(&data, &wanting), Err(PartitionError::TooFewExamples { .. })));
    for alpha in [0.0, f64::NAN] {
        for settings in
            [TwoLevel { alpha_server: alpha, ..good.clone() }, TwoLevel { alpha_client: alpha, ..good.clone() }]
        {
            assert!(matches!(deal(&data, &settings), Err(PartitionError::NotPositive { .. })));
        }
    }
}

#[test]
fn the_largest_client_may_be_the_last_and_groups_may_stay_whole() {
    // Sizes of groups as of users: 7 to 60 and some of several hundred.
    let groups: Vec<u32> =
        (0..200_u32).flat_map(|group| vec![group; (7 + group % 54 + 300 * (group / 190)) as usize]).collect();
    let count = groups.len();
    let data = Dataset::new(ndarray::Array2::zeros((count, 0)), Targets::Values(vec![0.0; count]));
    let data = data.with_groups(groups.clone());
    let deal = |settings: serde_json::Value, seed| {
        let partition: PartitionConfig = serde_json::from_value(json!({ "user-balance": settings })).unwrap();
        partition.check().unwrap();
        partition.build(&data, 8, &[], &Streams::new(seed))
    };
    let sizes = |partition: &Partition| (0..8).map(|client| partition.size(ClientId(client))).collect::<Vec<_>>();
    for (profile, index) in [("exponential", 0.0146), ("linear", 0.1172)] {
        let first = deal(json!({"profile": profile, "index": index}), 1).unwrap();
        let last = deal(json!({"profile": profile, "index": index, "largest": "last"}), 1).unwrap();
        let wanted = sizes(&first);
        assert!(wanted.is_sorted_by(|x, y| x > y));
        assert!(sizes(&last).iter().eq(wanted.iter().rev()));
        for largest in ["first", "last"] {
            for seed in 1..6 {
                let settings = json!({"profile": profile, "index": index, "by": "groups", "largest": largest});
                let whole = deal(settings, seed).unwrap();
                let mut of_group = vec![None; 200];
                let mut seen = 0;
                for client in (0..8).map(ClientId) {
                    for &example in &*whole.client(client) {
                        let of = &mut of_group[groups[example as usize] as usize];
                        assert_eq!(*of.get_or_insert(client), client, "a group is whole");
                        seen += 1;
                    }
                }
                assert_eq!(seen, count);
                let found = sizes(&whole);
                for (client, &found) in found.iter().enumerate() {
                    let wanted = wanted[if largest == "first" { client } else { 7 - client }];
                    assert!(found.abs_diff(wanted) <= 7, "{found} {wanted}");
                }
            }
        }
    }
    let by_groups = json!({"profile": "linear", "index": 0.5, "by": "groups"});
    let without = Dataset::new(ndarray::Array2::zeros((20, 0)), Targets::Values(vec![0.0; 20]));
    let partition: PartitionConfig = serde_json::from_value(json!({ "user-balance": by_groups })).unwrap();
    assert!(matches!(partition.build(&without, 2, &[], &Streams::new(1)), Err(PartitionError::NoGroups)));
    let few = without.with_groups(vec![0; 20]);
    let error = partition.build(&few, 2, &[], &Streams::new(1));
    assert!(matches!(error, Err(PartitionError::TooFewGroups { groups: 1, clients: 2 })));
}
