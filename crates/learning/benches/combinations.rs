//! Combinations of updates beside plain averaging and a plain copy: 1,000 updates of LeNet-5's 61,706 numbers, and 100.
//!
//! `cargo bench -p fedgenie-learning --bench combinations`; `-- --json` prints lines of JSON. Updates are drawn. The
//! copy adds all numbers of all updates up in `f64`, which any combination has to read. Threads: `RAYON_NUM_THREADS`.

#![allow(clippy::disallowed_methods, reason = "benchmarks read the clock")]
#![allow(missing_docs, reason = "a program")]

use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::algorithm::{
    AggregationConfig, Algorithm, AlgorithmsConfig, Contribution, RowDivisor, Scene, ServerConfig, ServerOptimizer,
    Weighting,
};
use fedgenie_learning::layout::Layout;
use fedgenie_learning::trainer::OptimizerConfig;
use std::hint::black_box;
use std::time::Instant;

const PARAMETERS: usize = 61_706;
const SGD: OptimizerConfig =
    OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };

/// Milliseconds: the median of several runs, after one that is not counted.
fn median(runs: usize, mut work: impl FnMut()) -> f64 {
    work();
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[runs / 2] * 1e3
}

fn algorithm(text: &str) -> Algorithm {
    let entries: AlgorithmsConfig = toml::from_str(text).expect("entries are written well");
    let scene = Scene {
        optimizer: &SGD,
        proximal: 0.0,
        has_noise: false,
        weighting: Weighting::Uniform,
        server: &ServerConfig::default(),
        rows: RowDivisor::Selected,
        protocol: "synchronous",
        has_edges: false,
        has_clusters: false,
        weighs_age: false,
        task: "classification",
        has_model: true,
        has_gradient: true,
        has_losses: true,
        has_hidden: true,
        has_rows: false,
        has_own_combination: false,
    };
    Algorithm::new(&entries, &scene).expect("entries are defined")
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let streams = Streams::new(1);
    let draw = |entity: u32| -> Vec<f32> {
        let mut stream = streams.stream(Purpose::ModelInit, entity, 9);
        (0..PARAMETERS).map(|_| (stream.uniform() - 0.5) as f32).collect()
    };
    let start = draw(u32::MAX);
    for (count, runs) in [(100, 9), (1_000, 5)] {
        let updates: Vec<Vec<f32>> = (0..count).map(draw).collect();
        let contributions: Vec<Contribution<'_>> = (0..count)
            .zip(&updates)
            .map(|(client, parameters)| Contribution {
                client: ClientId(client),
                number: JobNumber(1),
                cluster: 0,
                examples: 1,
                weight: None,
                staleness_weight: 1.0,
                start: &start,
                parameters,
                rows: &[],
                loss: Some(1.0),
                steps: Some(1),
                rate: 0.1,
            })
            .collect();
        let copy = median(runs, || {
            let mut sums = vec![0.0_f64; PARAMETERS];
            for update in &updates {
                sums.iter_mut().zip(update).for_each(|(sum, number)| *sum += f64::from(*number));
            }
            black_box(sums);
        });
        let tell = |name: &str, milliseconds: f64| match json {
            true => println!("{{\"updates\":{count},\"combination\":\"{name}\",\"ms\":{milliseconds:.2}}}"),
            false => {
                let copies = milliseconds / copy;
                println!("{count:>5} updates  {name:<18} {milliseconds:>9.2} ms  {copies:>6.1} copies");
            }
        };
        tell("(copy)", copy);
        for (name, text) in [
            ("fedavg", "[fedavg]\n"),
            ("norm-clipping", "[norm-clipping]\nnorm = 1.0\n"),
            ("qfedavg", "[qfedavg]\n"),
            ("geometric-median", "[geometric-median]\n"),
            ("centred-clipping", "[centred-clipping]\n"),
            ("median", "[median]\n"),
            ("trimmed-mean", "[trimmed-mean]\n"),
            ("krum", "[krum]\nbyzantine = 10\n"),
            ("multi-krum", "[multi-krum]\nbyzantine = 10\n"),
            ("bulyan", "[bulyan]\nbyzantine = 10\n"),
        ] {
            let config = AggregationConfig { weighting: Some(Weighting::Uniform), ..AggregationConfig::default() };
            let combine = algorithm(text).combine;
            let mut server =
                ServerOptimizer::new(&config, Layout::dense(PARAMETERS, PARAMETERS)).with_combination(combine, 0);
            let found = median(runs, || {
                let mut model = start.clone();
                server.apply(&mut model, &contributions, 0, 0);
                black_box(model);
            });
            tell(name, found);
        }
    }
}
