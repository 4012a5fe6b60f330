//! Steps by hand, and invariants of every server.

use super::*;
use crate::algorithm::fold::federated_average;
use approx::assert_relative_eq;
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::rng::{Purpose, Streams};

fn contribution<'a>(client: u32, examples: usize, start: &'a [f32], parameters: &'a [f32]) -> Contribution<'a> {
    let (client, number) = (ClientId(client), JobNumber(1));
    Contribution {
        client,
        number,
        cluster: 0,
        examples,
        staleness_weight: 1.0,
        start,
        parameters,
        rows: &[],
        loss: None,
        steps: None,
        rate: 1.0,
        weight: None,
    }
}

const fn config(weighting: Weighting, server: ServerConfig) -> AggregationConfig {
    AggregationConfig { weighting: Some(weighting), server, rows: RowDivisor::Selected, normalise: false }
}

/// A model of one parameter that starts at 1, after each of some mean changes.
fn path(server: ServerConfig, changes: &[f32]) -> Vec<f32> {
    let mut server = ServerOptimizer::new(&config(Weighting::DataSize, server), Layout::dense(1, 1));
    let mut global = [1.0];
    let step = |change: &f32| {
        // A third and two thirds of changes that average to the one wanted; both exact.
        server.apply(
            &mut global,
            &[contribution(0, 10, &[0.0], &[change * 4.0]), contribution(1, 20, &[1.0], &[1.0 - change * 0.5])],
            100,
            0,
        );
        global[0]
    };
    changes.iter().map(step).collect()
}

#[test]
fn the_mean_change_is_what_the_tests_below_take_it_for() {
    // (10·4 − 20·0.5)/30 = 1.
    assert_eq!(path(ServerConfig::default(), &[1.0, 0.5, -2.0]), [2.0, 2.5, 0.5]);
    assert_eq!(path(ServerConfig::Average { lr: 0.5 }, &[1.0, 0.5, -2.0]), [1.5, 1.75, 0.75]);
}

#[test]
fn momentum_by_hand() {
    // Velocity 1, 1/2 + 1/2, 1/2 − 2.
    let server = ServerConfig::Momentum { lr: 0.5, momentum: 0.5 };
    assert_eq!(path(server, &[1.0, 0.5, -2.0]), [1.5, 2.0, 1.25]);
}

#[test]
fn adam_by_hand() {
    // τ = 1/2: v is 1/4, then (1/4 + 1)/2 = 5/8, (5/8 + 1/4)/2 = 7/16, (7/16 + 4)/2 = 71/32;
    // m is 3/4, then 3/16 + 3/8 = 9/16, then 9/64 − 3/2 = −87/64.
    let server = ServerConfig::Adam { lr: 0.5, beta1: 0.25, beta2: 0.5, tau: 0.5 };
    let steps = [(3.0 / 4.0, 5.0 / 8.0), (9.0 / 16.0, 7.0 / 16.0), (-87.0 / 64.0, 71.0 / 32.0)];
    assert_path(server, steps);
}

#[test]
fn yogi_by_hand() {
    // v is 1/4, grows to 1/4 + 1/2 = 3/4, falls to 3/4 − 1/8 = 5/8, grows to 5/8 + 2 = 21/8.
    let server = ServerConfig::Yogi { lr: 0.5, beta1: 0.25, beta2: 0.5, tau: 0.5 };
    let steps = [(3.0 / 4.0, 3.0 / 4.0), (9.0 / 16.0, 5.0 / 8.0), (-87.0 / 64.0, 21.0 / 8.0)];
    assert_path(server, steps);
    // v = Δ² stays.
    let server = ServerConfig::Yogi { lr: 1.0, beta1: 0.0, beta2: 0.5, tau: 1.0 };
    assert_eq!(path(server, &[1.0, 1.0]), [1.5, 2.0]);
}

#[test]
fn adagrad_by_hand() {
    let server = ServerConfig::Adagrad { lr: 0.5, beta1: 0.25, tau: 0.5 };
    let steps = [(3.0 / 4.0, 5.0 / 4.0), (9.0 / 16.0, 3.0 / 2.0), (-87.0 / 64.0, 11.0 / 2.0)];
    assert_path(server, steps);
}

/// Three steps of ½m/(√v + ½) for the changes 1, ½, −2.
fn assert_path(server: ServerConfig, steps: [(f64, f64); 3]) {
    let mut expected = 1.0;
    for (found, (m, v)) in path(server, &[1.0, 0.5, -2.0]).into_iter().zip(steps) {
        expected += 0.5 * m / (v.sqrt() + 0.5);
        assert_relative_eq!(f64::from(found), expected, max_relative = 2e-7);
    }
}

#[test]
fn weightings_by_hand() {
    let (start, one, two) = ([1.0], [3.0], [5.0]);
    let stale = Contribution { number: JobNumber(0), staleness_weight: 0.5, ..contribution(1, 30, &start, &two) };
    let contributions = [contribution(0, 10, &start, &one), stale];
    for (weighting, expected) in [
        // (10·2 + 15·4)/25, (2 + ½·4)/1.5, (10·2 + 15·4)/100.
        (Weighting::DataSize, 1.0 + 80.0 / 25.0),
        (Weighting::Uniform, 1.0 + 4.0 / 1.5),
        (Weighting::TotalSize, 1.0 + 80.0 / 100.0),
    ] {
        let mut global = [1.0];
        let mut server = ServerOptimizer::new(&config(weighting, ServerConfig::default()), Layout::dense(1, 1));
        server.apply(&mut global, &contributions, 100, 0);
        assert_eq!(global, [expected as f32], "{weighting:?}");
    }
    // A client without examples has learned nothing.
    let mut global = [1.0];
    let mut server = ServerOptimizer::new(&config(Weighting::Uniform, ServerConfig::default()), Layout::dense(1, 1));
    server.apply(&mut global, &[contribution(0, 10, &start, &one), contribution(1, 0, &start, &start)], 100, 0);
    assert_eq!(global, [3.0]);
}

#[test]
fn total_size_is_data_size_where_everybody_contributes() {
    let (start, one, two) = ([1.0, 2.0], [3.0, -1.0], [5.0, 0.5]);
    let contributions = [contribution(0, 10, &start, &one), contribution(1, 30, &start, &two)];
    let mut expected = start;
    federated_average(&mut expected, &contributions);
    let mut global = start;
    let mut server = ServerOptimizer::new(&config(Weighting::TotalSize, ServerConfig::default()), Layout::dense(2, 2));
    server.apply(&mut global, &contributions, 40, 0);
    assert_eq!(global, expected);
}

#[test]
fn the_default_is_federated_averaging_bit_by_bit() {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let mut model = || Vec::from_iter((0..1_100).map(|_| rng.uniform() as f32 - 0.5));
    let (mut expected, start, one, two) = (model(), model(), model(), model());
    let mut global = expected.clone();
    let mut server = ServerOptimizer::new(&AggregationConfig::default(), Layout::dense(1_100, 1_100));
    for _ in 0..3 {
        let contributions = [contribution(0, 7, &start, &one), contribution(1, 13, &start, &two)];
        federated_average(&mut expected, &contributions);
        server.apply(&mut global, &contributions, 20, 0);
        assert!(expected.iter().zip(&global).all(|(one, two)| one.to_bits() == two.to_bits()));
    }
}

#[test]
fn every_parameter_has_its_own_moments() {
    // More than a block, with another change for each parameter.
    let change = |index: usize| (index % 7) as f32 - 3.0;
    let sent: Vec<f32> = (0..1_100).map(change).collect();
    let start = vec![0.0; 1_100];
    for server in [
        ServerConfig::Momentum { lr: 0.5, momentum: 0.5 },
        ServerConfig::Adam { lr: 0.1, beta1: 0.9, beta2: 0.99, tau: 1e-3 },
        ServerConfig::Yogi { lr: 0.1, beta1: 0.9, beta2: 0.99, tau: 1e-3 },
        ServerConfig::Adagrad { lr: 0.1, beta1: 0.0, tau: 1e-3 },
    ] {
        let config = config(Weighting::Uniform, server);
        let mut whole = (ServerOptimizer::new(&config, Layout::dense(1_100, 1_100)), vec![1.0; 1_100]);
        let mut alone: Vec<_> =
            (0..1_100).map(|_| (ServerOptimizer::new(&config, Layout::dense(1, 1)), [1.0])).collect();
        for _ in 0..3 {
            whole.0.apply(&mut whole.1, &[contribution(0, 1, &start, &sent)], 1, 0);
            for (index, (server, global)) in alone.iter_mut().enumerate() {
                server.apply(global, &[contribution(0, 1, &[0.0], &[change(index)])], 1, 0);
                assert!((global[0] - 1.0) * change(index) >= 0.0, "the step is in the direction of the change");
            }
        }
        assert!(whole.1.iter().zip(&alone).all(|(one, (_, two))| one.to_bits() == two[0].to_bits()));
    }
}

#[test]
fn what_is_not_trained_is_averaged_under_any_server() {
    // 700 numbers, so that a block of 512 has both kinds, and the next has statistics only.
    for trained in [0, 3, 512, 600, 700] {
        let config = config(Weighting::Uniform, ServerConfig::Momentum { lr: 10.0, momentum: 0.0 });
        let mut global = vec![1.0; 700];
        let start = global.clone();
        ServerOptimizer::new(&config, Layout::dense(700, trained)).apply(
            &mut global,
            &[contribution(0, 5, &start, &[2.0; 700])],
            5,
            0,
        );
        assert!(global[..trained].iter().all(|&parameter| parameter == 11.0), "{trained}");
        assert!(global[trained..].iter().all(|&parameter| parameter == 2.0), "{trained}");
    }
}

#[test]
fn a_round_without_weight_is_forgotten() {
    for server in [
        ServerConfig::Momentum { lr: 1.0, momentum: 0.9 },
        ServerConfig::Adam { lr: 0.1, beta1: 0.9, beta2: 0.99, tau: 1e-3 },
    ] {
        let config = config(Weighting::TotalSize, server);
        let (mut with, mut without) =
            (ServerOptimizer::new(&config, Layout::dense(1, 1)), ServerOptimizer::new(&config, Layout::dense(1, 1)));
        let (mut one, mut two) = ([0.0], [0.0]);
        for _ in 0..3 {
            with.apply(&mut one, &[contribution(0, 1, &[0.0], &[1.0])], 10, 0);
            with.apply(&mut one, &[], 10, 0);
            with.apply(&mut one, &[contribution(0, 0, &[0.0], &[1.0])], 10, 0);
            without.apply(&mut two, &[contribution(0, 1, &[0.0], &[1.0])], 10, 0);
        }
        assert_eq!(one, two);
    }
}

#[test]
#[should_panic(expected = "part of the population")]
fn a_contributor_belongs_to_the_population() {
    let mut server = ServerOptimizer::new(&config(Weighting::TotalSize, ServerConfig::default()), Layout::dense(1, 1));
    server.apply(&mut [0.0], &[contribution(0, 11, &[0.0], &[1.0])], 10, 0);
}

#[test]
fn settings_out_of_range_are_named() {
    let adam = |lr, beta1, beta2, tau| ServerConfig::Adam { lr, beta1, beta2, tau };
    for (server, key) in [
        (ServerConfig::Average { lr: 0.0 }, "lr"),
        (ServerConfig::Momentum { lr: -1.0, momentum: 0.9 }, "lr"),
        (ServerConfig::Momentum { lr: 1.0, momentum: 1.0 }, "momentum"),
        (adam(f64::NAN, 0.9, 0.99, 1e-3), "lr"),
        (adam(0.1, 1.0, 0.99, 1e-3), "beta1"),
        (adam(0.1, 0.9, -0.1, 1e-3), "beta2"),
        (adam(0.1, 0.9, 0.99, 0.0), "tau"),
        (ServerConfig::Yogi { lr: 0.1, beta1: 0.9, beta2: 1.0, tau: 1e-3 }, "beta2"),
        (ServerConfig::Adagrad { lr: 0.1, beta1: 0.0, tau: f64::INFINITY }, "tau"),
    ] {
        assert_eq!(config(Weighting::DataSize, server).check().unwrap_err().path, key);
    }
}
