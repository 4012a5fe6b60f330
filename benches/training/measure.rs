//! Shared by all cases: timing, and the clients' jobs.

use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::trainer::{LocalTraining, OptimizerConfig, TrainingJob};
use std::time::Instant;

/// Seconds of a call, after one that is not counted: the median, and the shortest, which a busy machine disturbs least.
#[derive(Clone, Copy)]
pub struct Seconds {
    pub median: f64,
    pub shortest: f64,
}

pub fn measure(repetitions: usize, mut call: impl FnMut()) -> Seconds {
    call();
    let mut times: Vec<f64> = (0..repetitions)
        .map(|_| {
            let begin = Instant::now();
            call();
            begin.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Seconds { median: times[repetitions / 2], shortest: times[0] }
}

/// One epoch of stochastic gradient descent.
pub fn descent(batch: usize, lr: f64, momentum: f64) -> LocalTraining {
    let optimizer = OptimizerConfig::Sgd { lr, momentum, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    LocalTraining::new(1, batch, &optimizer).expect("the settings are good")
}

/// Clients of `size` consecutive examples each.
pub fn jobs<'a>(start: &'a [f32], examples: &'a [u32], size: usize) -> Vec<TrainingJob<'a>> {
    let client = |k: usize| ClientId::from_index(k);
    let chunks = examples.chunks_exact(size).enumerate();
    chunks
        .map(|(k, examples)| TrainingJob { client: client(k), round: Round(1), number: JobNumber(1), start, examples })
        .collect()
}
