//! The two-level law by owner: mixtures of classes, multinomial counts, test data.

use super::super::owners::{multinomial, shares_by_owner};
use super::super::two_level::{Law, TwoLevel, clients_of, server_shares, split_by_owners, split_by_shares, two_level};
use super::*;
use fedgenie_core::math::float::{ln, power};
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::math::statistics::{estimate, variance};
use fedgenie_core::rng::StreamRng;
use ndarray::{Array1, array};

const fn by_owner(servers: usize, alpha_server: f64, alpha_client: f64) -> TwoLevel {
    TwoLevel { servers, alpha_server, alpha_client, minimum: 0, law: Law::ByOwner }
}

/// Examples of each class of each part.
fn counted(partition: &Partition, data: &Dataset) -> Vec<Vec<f64>> {
    let (labels, classes) = data.classes().unwrap();
    let one = |part| {
        let mut counts = vec![0.0; classes];
        let examples = partition.client(ClientId::from_index(part));
        examples.iter().for_each(|&example| counts[usize::from(labels[example as usize])] += 1.0);
        counts
    };
    (0..partition.clients()).map(one).collect()
}

/// Pearson's statistic; cells of probability 0 have to be empty, and those below 5 are put together.
fn pearson(counts: &[f64], shares: &[f64]) -> (f64, f64) {
    let total: f64 = counts.iter().sum();
    let (mut statistic, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
    for (&count, &share) in counts.iter().zip(shares) {
        assert!(share > 0.0 || count == 0.0);
        match share * total {
            expected if expected >= 5.0 => {
                statistic += (count - expected) * (count - expected) / expected;
                cells += 1.0;
            }
            expected => rest = (rest.0 + count, rest.1 + expected),
        }
    }
    if rest.1 > 0.0 {
        statistic += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1.max(1.0);
        cells += 1.0;
    }
    (statistic, cells - 1.0)
}

/// Statistics that add up are as large as their degrees of freedom, within five deviations of √(2·degrees).
fn assert_chi_square(found: impl Iterator<Item = (f64, f64)>) {
    let (statistic, degrees) = found.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!((statistic - degrees).abs() < 5.0 * (2.0 * degrees).sqrt(), "{statistic} on {degrees} degrees");
}

#[test]
fn multinomial_counts_have_their_moments_and_pass_pearsons_test() {
    let weights = array![1.0, 2.0, 0.0, 7.0, 0.0];
    let (streams, seeds, draws) = (Streams::new(3), 4_000_u32, 50);
    let drawn: Vec<Vec<usize>> = (0..seeds)
        .map(|seed| multinomial(&weights, draws, &mut streams.stream(Purpose::Partition, seed, 99)))
        .collect();
    assert!(drawn.iter().all(|counts| counts.iter().sum::<usize>() == draws && counts[2] + counts[4] == 0));
    let of = |weight: usize| drawn.iter().map(|counts| counts[weight] as f64).collect::<Vec<f64>>();
    for weight in [0, 1, 3] {
        let share = weights[weight] / 10.0;
        let (mean, spread) = (50.0 * share, 50.0 * share * (1.0 - share));
        let found = of(weight);
        let tolerance = 5.0 * (spread / f64::from(seeds)).sqrt();
        assert!((found.iter().sum::<f64>() / f64::from(seeds) - mean).abs() < tolerance);
        assert!((variance(&found) - spread).abs() < 0.12 * spread, "{} {spread}", variance(&found));
    }
    // Var(X + Y) = n(p + q)(1 − p − q): the covariance is −npq.
    let both: Vec<f64> = of(0).iter().zip(of(3)).map(|(first, second)| first + second).collect();
    assert!((variance(&both) - 50.0 * 0.8 * 0.2).abs() < 0.12 * 8.0);
    let shares = [0.1, 0.2, 0.0, 0.7, 0.0];
    let float = |counts: &Vec<usize>| counts.iter().map(|&count| count as f64).collect::<Vec<f64>>();
    assert_chi_square(drawn.iter().map(|counts| pearson(&float(counts), &shares)));
    // The same by looking through all weights for each uniform.
    let mut rng = streams.stream(Purpose::Partition, 0, 99);
    let mut expected = vec![0; 5];
    for _ in 0..draws {
        let mut left = rng.uniform() * 10.0;
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        expected[chosen.unwrap()] += 1;
    }
    assert_eq!(drawn[0], expected);
    assert_eq!(multinomial(&Array1::from_vec(vec![0.0, 3.0]), 9, &mut rng), [0, 9]);
}

/// Mixtures by the plain formula, from the streams.
fn plain_shares(
    servers: usize,
    classes: usize,
    index: u32,
    quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Array2<f64> {
    let mut shares = Array2::zeros((servers, classes));
    for server in 0..servers {
        let mut rng = streams.stream(Purpose::Partition, server as u32, index);
        let variates: Vec<f64> = (0..classes).map(|_| quantile(rng.uniform())).collect();
        for class in 0..classes {
            shares[[server, class]] = variates[class] / variates.iter().sum::<f64>();
        }
    }
    let sums = shares.sum_axis(ndarray::Axis(0));
    shares / sums
}

#[test]
fn shares_are_mixtures_over_their_sum_and_counts_follow_them_on_both_levels() {
    let (data, settings) = (labelled(3_000, 4), by_owner(3, 0.5, 0.5));
    let (mut of_servers, mut of_clients) = (Vec::new(), Vec::new());
    for seed in 0..100 {
        let streams = Streams::new(seed);
        let quantile = half_gamma_quantile;
        let (partition, shares) = two_level(&data, 8, &settings, &quantile, &quantile, &streams).unwrap();
        let expected = plain_shares(3, 4, 7, &quantile, &streams);
        assert!(shares.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-9));
        let counts = counted(&partition, &data);
        let client_shares = |class: usize| {
            let mixture = |client: u32| {
                let mut rng = streams.stream(Purpose::Partition, client, 8);
                let variates: Vec<f64> = (0..4).map(|_| quantile(rng.uniform())).collect();
                variates[class] / variates.iter().sum::<f64>()
            };
            (0..8).map(mixture).collect::<Vec<f64>>()
        };
        let of_classes: [Vec<f64>; 4] =
            std::array::from_fn(|class| counts.iter().map(|counts| counts[class]).collect());
        for (class, of_class) in of_classes.iter().enumerate() {
            let of_client = |client: usize| of_class[client];
            let sums: Vec<f64> = (0..3).map(|server| clients_of(server, 3, 8).map(of_client).sum()).collect();
            of_servers.push(pearson(&sums, &shares.column(class).to_vec()));
            let mixtures = client_shares(class);
            for server in (0..3).filter(|&server| sums[server] > 0.0) {
                let range = clients_of(server, 3, 8);
                let total: f64 = mixtures[range.clone()].iter().sum();
                let shares: Vec<f64> = mixtures[range.clone()].iter().map(|mixture| mixture / total).collect();
                of_clients.push(pearson(&range.map(of_client).collect::<Vec<f64>>(), &shares));
            }
        }
    }
    assert_chi_square(of_servers.into_iter());
    assert_chi_square(of_clients.into_iter());
}

/// A Gamma(α, 1) variate, α below 1, by rejection (Ahrens and Dieter 1974).
fn by_rejection(alpha: f64, rng: &mut StreamRng) -> f64 {
    let b = 1.0 + alpha / 1.0_f64.exp();
    loop {
        let p = b * rng.uniform();
        let (x, accept) = match p <= 1.0 {
            true => {
                let x = power(p, 1.0 / alpha);
                (x, (-x).exp())
            }
            false => {
                let x = -ln((b - p) / alpha);
                (x, power(x, alpha - 1.0))
            }
        };
        if rng.uniform() <= accept {
            return x;
        }
    }
}

/// Images of the smallest of ten servers at α = 0.1 that one draw of the definition gives, by gamma variates of another
/// kind, without rounding or drawing examples.
fn smallest_by_definition(is_by_owner: bool, rng: &mut StreamRng) -> f64 {
    let mut weights = Array2::from_shape_fn((10, 10), |_| by_rejection(0.1, rng));
    if is_by_owner {
        for mut row in weights.rows_mut() {
            let sum = row.sum();
            row /= sum;
        }
    }
    let sums = weights.sum_axis(ndarray::Axis(0));
    let sizes = (weights / sums).sum_axis(ndarray::Axis(1)) * 6_000.0;
    sizes.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn the_smallest_server_has_900_images_by_class_and_3_300_by_owner() {
    let data = labelled(60_000, 10);
    let quantile = |u| gamma_lower_inverse(0.1, u);
    let mut rng = Streams::new(1).stream(Purpose::Resampling, 0, 0);
    for (law, published) in [(Law::ByClass, 900.0), (Law::ByOwner, 3_300.0)] {
        let settings = TwoLevel { law, ..by_owner(10, 0.1, 1.0) };
        let smallest: Vec<f64> = (0..150)
            .map(|seed| {
                let streams = Streams::new(seed);
                let dealt = two_level(&data, 10, &settings, &quantile, &exponential_quantile, &streams).unwrap().0;
                *sizes(&dealt).iter().min().unwrap() as f64
            })
            .collect();
        let defined: Vec<f64> = (0..4_000).map(|_| smallest_by_definition(law == Law::ByOwner, &mut rng)).collect();
        let (found, defined) = (estimate(&smallest).unwrap(), estimate(&defined).unwrap());
        let error = (variance(&smallest) / 150.0).sqrt();
        assert!((found.mean - defined.mean).abs() < 5.0 * error, "{law:?}: {found:?} {defined:?}");
        assert!((defined.mean / published - 1.0).abs() < 0.06, "{law:?}: {defined:?}");
    }
}

#[test]
fn a_class_that_everyone_has_next_to_nothing_of_goes_to_who_has_most() {
    let quantile = |u| gamma_lower_inverse(0.001, u);
    let mut lost = 0;
    for seed in 0..40 {
        let streams = Streams::new(seed);
        let shares = server_shares(&by_owner(3, 0.001, 0.001), 6, &quantile, &streams).unwrap();
        let logarithms: Vec<Vec<f64>> = (0..3)
            .map(|server| {
                let mut rng = streams.stream(Purpose::Partition, server, 7);
                (0..6).map(|_| ln(rng.uniform())).collect()
            })
            .collect();
        let plain = plain_shares(3, 6, 7, &quantile, &streams);
        for class in 0..6 {
            assert!((shares.column(class).sum() - 1.0).abs() < 1e-12);
            if !plain[[0, class]].is_nan() {
                continue;
            }
            lost += 1;
            // ln q = (ln u − ln of the server's largest u)/α, but for what is below rounding at such an α.
            let own = |server: usize| {
                let largest = logarithms[server].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (logarithms[server][class] - largest) / 0.001
            };
            let exact: Vec<f64> = (0..3).map(own).collect();
            let most = (0..3).max_by(|&first, &second| exact[first].total_cmp(&exact[second])).unwrap();
            let second = (0..3).filter(|&server| server != most).map(|server| exact[server]).fold(-1e300, f64::max);
            if exact[most] - second > 20.0 {
                assert!(shares[[most, class]] > 1.0 - 1e-6, "{shares}");
            }
        }
        let dealt =
            two_level(&labelled(60, 6), 6, &by_owner(3, 0.001, 0.001), &quantile, &quantile, &streams).unwrap().0;
        assert_every_example_once(&dealt, 60, 0);
    }
    assert!(lost > 40, "{lost} columns are all 0 by the plain formula");
    // What is no variate is refused, whoever's it is.
    let rngs = [0, 1].map(|owner| Streams::new(1).stream(Purpose::Partition, owner, 7));
    let error = shares_by_owner(rngs.into_iter(), 2, 1.0, &|_| f64::NAN).unwrap_err();
    assert!(matches!(error, PartitionError::Weight { .. }));
}

#[test]
fn test_data_are_drawn_by_the_shares_of_servers() {
    let (test, settings) = (labelled(1_200, 3), by_owner(4, 0.5, 0.5));
    let mut all = Vec::new();
    for seed in 0..100 {
        let streams = Streams::new(seed);
        let shares = server_shares(&settings, 3, &half_gamma_quantile, &streams).unwrap();
        let split = split_by_shares(&test, &shares, true, &streams).unwrap();
        assert_every_example_once(&split, 1_200, 0);
        let counts = counted(&split, &test);
        for class in 0..3 {
            let of_class: Vec<f64> = counts.iter().map(|counts| counts[class]).collect();
            all.push(pearson(&of_class, &shares.column(class).to_vec()));
        }
    }
    assert_chi_square(all.into_iter());
}

#[test]
fn examples_go_to_their_owner_and_the_others_by_weight() {
    let owners = [Some(2), None, Some(0), Some(2), None, None, None, Some(2), None];
    let split = split_by_owners(&owners, &[1.0, 4.0, 0.0], &Streams::new(5));
    assert_every_example_once(&split, 9, 0);
    assert_eq!(sizes(&split), [2, 4, 3]);
    let part = |server| split.client(ClientId::from_index(server));
    assert!(part(0).contains(&2) && [0, 3, 7].iter().all(|example| part(2).contains(example)));
}
