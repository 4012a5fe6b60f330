//! Jobs of every task: mean gradients against steps of plain descent, corrections, epochs of its own.

use super::*;
use crate::trainer::{Length, OptimizerConfig};
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::Round;

/// Plain descent: the whole batch, unless it is smaller.
fn sgd(length: Length, batch: usize, lr: f64) -> LocalTraining {
    let sgd = OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    LocalTraining { length, ..LocalTraining::new(1, batch, &sgd).unwrap() }
}

/// A client's job from the model that a run starts from.
struct Case<'a> {
    task: &'a dyn Task,
    streams: Streams,
    start: Vec<f32>,
    client: ClientId,
}

impl Case<'_> {
    fn job<'a>(&'a self, epochs: Option<u32>, correction: Option<&'a [f32]>) -> Job<'a> {
        let (client, number) = (self.client, JobNumber(7));
        Job { client, round: Round(1), number, start: &self.start, private: None, epochs, correction, contrast: None }
    }

    /// The update, and the whole model after it.
    fn train(&self, settings: &LocalTraining, job: &Job<'_>) -> (Update, Vec<f32>) {
        let context = Context { settings, streams: &self.streams, loss_rms: true, halt: &NEVER };
        let mut update = Update::default();
        self.task.train(job, &context, &mut Worker::default(), &mut update).unwrap();
        let model = update.model(self.task.layout(), &self.start, &mut Vec::new()).to_vec();
        (update, model)
    }

    fn gradient(&self, settings: &LocalTraining) -> Vec<f32> {
        let context = Context { settings, streams: &self.streams, loss_rms: true, halt: &NEVER };
        let mut gradient = vec![7.0; 3];
        let is_defined = self.task.losses().is_some_and(|losses| {
            losses.gradient(&self.job(None, None), &context, &mut Worker::default(), &mut gradient).unwrap()
        });
        assert!(is_defined && gradient.len() == self.start.len());
        gradient
    }
}

/// Checks the mean gradient, corrections and epochs of a client's job. `is_additive` says that the loss of a batch is
/// the mean of those of its examples, `is_one_step` that a step moves all parameters along slopes at the same model.
pub(super) fn check(task: &dyn Task, client: ClientId, is_additive: bool, is_one_step: bool) {
    const LR: f64 = 0.25;
    let streams = Streams::new(1);
    let start = task.initial_model(0, &streams);
    let case = Case { task, streams, start, client };
    let step = sgd(Length::Epochs(1), usize::MAX, LR);
    let gradient = case.gradient(&step);
    let most = gradient.iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
    assert!(most > 1e-4 && gradient.iter().all(|slope| slope.is_finite()), "{most}");
    // Neither clipped nor pulled nor decayed, whatever the optimizer.
    let adam = OptimizerConfig::Adam { lr: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.5 };
    let other = LocalTraining { clip: Some(1e-3), proximal: 0.5, ..LocalTraining::new(3, usize::MAX, &adam).unwrap() };
    assert_eq!(case.gradient(&other), gradient);
    if is_additive {
        let pieces = case.gradient(&sgd(Length::Epochs(1), 4, LR));
        assert!(pieces.iter().zip(&gradient).all(|(x, y)| (x - y).abs() < 1e-4 * most), "in pieces");
    }
    // One step on all examples moves by the learning rate times that.
    let (plain, after) = case.train(&step, &case.job(None, None));
    assert_eq!((plain.steps, plain.diverged), (1, false));
    let trained = task.layout().trained();
    let slopes =
        |after: &[f32]| -> Vec<f32> { case.start.iter().zip(after).map(|(x, y)| (x - y) / LR as f32).collect() };
    if is_one_step {
        for (at, (found, expected)) in slopes(&after)[..trained].iter().zip(&gradient).enumerate() {
            assert!((found - expected).abs() < 1e-4 * most + 2e-6, "{at}: {found}, {expected}");
        }
    }
    // A correction adds to that, at numbers which the job moves and at no other.
    let mut draws = case.streams.stream(fedgenie_core::rng::Purpose::Example, 0, 99);
    let correction: Vec<f32> = case.start.iter().map(|_| draws.uniform() as f32 - 0.5).collect();
    let (update, corrected) = case.train(&step, &case.job(None, Some(&correction)));
    assert_eq!((&update.rows, &update.private, update.first_loss), (&plain.rows, &plain.private, plain.first_loss));
    let mut moved = vec![false; case.start.len()];
    plain.parts(task.layout()).for_each(|(range, _)| moved[range].fill(true));
    moved[trained..].fill(false);
    for (at, (found, before)) in slopes(&corrected).iter().zip(slopes(&after)).enumerate() {
        let expected = if moved[at] { before + correction[at] } else { before };
        assert!((found - expected).abs() < 1e-4 * most + 2e-6, "{at}: {found}, {expected}");
    }
    // Zeros change no bit, over many steps.
    let many = sgd(Length::Epochs(3), 3, 0.01);
    let zeros = vec![0.0; correction.len()];
    let alone = case.train(&many, &case.job(None, None)).0;
    assert_eq!(case.train(&many, &case.job(None, Some(&zeros))).0, alone);
    // Epochs of its own.
    let own = case.train(&sgd(Length::Epochs(1), 3, 0.01), &case.job(Some(3), None)).0;
    assert_eq!(own, alone);
    assert_eq!(own.steps, 3 * task.examples(client).div_ceil(3) as u64);
    // Its losses are those of the first.
    let first = case.train(&many, &case.job(Some(1), None)).0;
    assert!(task.tells_losses_after_an_epoch() && first.steps < own.steps);
    assert_eq!((first.first_loss.to_bits(), first.loss_rms), (own.first_loss.to_bits(), own.loss_rms));
}

/// A client that has no examples has no gradient.
pub(super) fn check_none(task: &dyn Task, client: ClientId) {
    let streams = Streams::new(1);
    let case = Case { task, start: task.initial_model(0, &streams), streams, client };
    let settings = sgd(Length::Epochs(1), 4, 0.1);
    let context = Context { settings: &settings, streams: &case.streams, loss_rms: false, halt: &NEVER };
    assert_eq!(task.examples(client), 0);
    let losses = task.losses().unwrap();
    assert!(!losses.gradient(&case.job(None, None), &context, &mut Worker::default(), &mut Vec::new()).unwrap());
}
