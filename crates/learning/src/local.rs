//! The epoch loop of a client's job.
//!
//! # Definition
//! In each epoch a job puts its examples in a fresh random order and steps on mini-batches: consecutive pieces of that
//! order, of which the last one of an epoch may be smaller. It ends after a number of epochs, or of steps, at the
//! first loss that is not finite, or before the next mini-batch once it is [stopped](Halt). A `Stepper` makes the
//! steps, and tells the losses of the first epoch, each batch as seen before its step.
//!
//! Where a batch holds all examples, a `Course` may leave them in their own order.
//!
//! # Determinism
//! One stream, consumed epoch by epoch. Losses are added up in `f64`, in the order in which they are met.

use crate::layout::Update;
use fedgenie_core::halt::Halt;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;

/// How long a client trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many passes over its examples; at least 1.
    Epochs(u32),
    /// This many steps, in as many passes as they need; at least 1.
    Steps(u32),
}

impl Length {
    /// The length of a job that may have epochs of its own.
    ///
    /// # Panics
    /// If it has some where steps are counted.
    #[must_use]
    pub fn or_epochs(self, epochs: Option<u32>) -> Self {
        match (self, epochs) {
            (_, None) => self,
            (Self::Epochs(_), Some(epochs)) => Self::Epochs(epochs),
            (Self::Steps(_), Some(_)) => panic!("a job has epochs of its own only where epochs are counted"),
        }
    }

    /// Most epochs and most steps.
    pub(crate) fn bounds(self) -> (u64, u64) {
        match self {
            Self::Epochs(epochs) => (epochs.into(), u64::MAX),
            Self::Steps(steps) => (u64::MAX, steps.into()),
        }
    }
}

/// Losses of the examples of the first epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    sum: f64,
    squares: f64,
    examples: u64,
}

impl Tally {
    /// Takes in the loss of an example.
    pub fn tell(&mut self, loss: f64) {
        self.tell_batch(1, loss, loss * loss);
    }

    /// Takes in the sums of losses and of their squares of some examples.
    pub fn tell_batch(&mut self, examples: usize, sum: f64, squares: f64) {
        self.sum += sum;
        self.squares += squares;
        self.examples += examples as u64;
    }

    /// Mean loss and root mean square, 0 without examples. A NaN is that of [`f64::NAN`].
    pub fn means(&self) -> [f64; 2] {
        let count = self.examples.max(1) as f64;
        [self.sum / count, sqrt(self.squares / count)].map(|mean| if mean.is_nan() { f64::NAN } else { mean })
    }
}

/// Where losses are told, if they are asked for.
pub(crate) type Told<'a> = Option<&'a mut Tally>;

/// Steps on mini-batches.
pub(crate) trait Stepper {
    /// Makes a step on some examples; steps are counted from 1. Tells their losses before the step to `tally`, if there
    /// is one. Returns whether the loss is finite.
    fn step(&mut self, batch: &[u32], number: u64, tally: Told<'_>) -> bool;
}

/// How a job goes through its examples.
#[derive(Clone, Debug)]
pub(crate) struct Course<'a> {
    pub length: Length,
    /// Examples in a mini-batch; at least 1.
    pub batch: usize,
    /// Puts examples in order.
    pub order: StreamRng,
    /// Whether a batch of all examples has their own order.
    pub keeps_whole: bool,
    /// When it ends early.
    pub halt: &'a Halt,
}

/// The result of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub tally: Tally,
    /// Steps with a finite loss.
    pub steps: u64,
    /// Whether all losses were.
    pub is_finite: bool,
}

impl Course<'_> {
    /// Goes through the examples.
    pub fn run(mut self, examples: &mut [u32], stepper: &mut dyn Stepper) -> Outcome {
        let (epochs, most) = if examples.is_empty() { (0, 0) } else { self.length.bounds() };
        let mut outcome = Outcome { tally: Tally::default(), steps: 0, is_finite: true };
        for epoch in 0..epochs {
            if !self.keeps_whole || self.batch < examples.len() {
                self.order.shuffle(examples);
            }
            for batch in examples.chunks(self.batch) {
                if outcome.steps == most || self.halt.is_due() {
                    return outcome;
                }
                let tally = (epoch == 0).then_some(&mut outcome.tally);
                outcome.is_finite = stepper.step(batch, outcome.steps + 1, tally);
                if !outcome.is_finite {
                    return outcome;
                }
                outcome.steps += 1;
            }
        }
        outcome
    }
}

impl Outcome {
    /// Writes losses, steps, and whether anything is not finite, beside parameters and private state. All NaNs become
    /// one: their bits are not defined.
    pub fn settle(&self, loss_rms: bool, update: &mut Update) {
        let [loss, rms] = self.tally.means();
        (update.first_loss, update.loss_rms) = (loss, loss_rms.then_some(rms));
        update.steps = self.steps;
        update.diverged = !self.is_finite || !update.is_finite();
        if update.diverged {
            let numbers = update.parameters.iter_mut().chain(&mut update.private);
            numbers.filter(|number| number.is_nan()).for_each(|number| *number = f32::NAN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::halt::NEVER;
    use fedgenie_core::rng::{Purpose, Streams};
    use std::time::Duration;

    /// Notes its calls; the loss of an example is its number.
    #[derive(Default)]
    struct Notes {
        batches: Vec<Vec<u32>>,
        bad: Option<u64>,
    }

    impl Stepper for Notes {
        fn step(&mut self, batch: &[u32], number: u64, tally: Told<'_>) -> bool {
            self.batches.push(batch.to_vec());
            assert_eq!(self.batches.len() as u64, number);
            if let Some(tally) = tally {
                batch.iter().for_each(|&example| tally.tell(f64::from(example)));
            }
            self.bad != Some(number)
        }
    }

    fn course(length: Length, batch: usize, keeps_whole: bool) -> Course<'static> {
        let order = Streams::new(1).stream(Purpose::BatchOrder, 0, 0);
        Course { length, batch, keeps_whole, order, halt: &NEVER }
    }

    fn run(course: Course<'_>, count: u32, bad: Option<u64>) -> (Vec<Vec<u32>>, Outcome) {
        let mut notes = Notes { bad, ..Notes::default() };
        let mut examples: Vec<u32> = (0..count).collect();
        let outcome = course.run(&mut examples, &mut notes);
        (notes.batches, outcome)
    }

    #[test]
    fn epochs_are_pieces_of_one_shuffled_order_after_the_other() {
        let (batches, outcome) = run(course(Length::Epochs(2), 3, false), 7, None);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1, 3, 3, 1]);
        let mut order: Vec<u32> = (0..7).collect();
        let mut draws = Streams::new(1).stream(Purpose::BatchOrder, 0, 0);
        for epoch in batches.chunks(3) {
            draws.shuffle(&mut order);
            assert_eq!(epoch.concat(), order);
        }
        // Only the first epoch counts: (0 + … + 6)/7 and (0 + 1 + … + 36)/7.
        assert_eq!((outcome.tally.means(), outcome.steps), ([3.0, 13.0_f64.sqrt()], 6));
    }

    #[test]
    fn steps_end_a_job_in_the_middle_of_an_epoch() {
        let (batches, outcome) = run(course(Length::Steps(4), 3, false), 7, None);
        assert_eq!((batches.iter().map(Vec::len).collect::<Vec<_>>(), outcome.steps), (vec![3, 3, 1, 3], 4));
        let (batches, outcome) = run(course(Length::Steps(2), 3, false), 7, None);
        assert_eq!((batches.len(), outcome.tally.examples), (2, 6));
        let (batches, outcome) = run(course(Length::Steps(2), 3, false), 0, None);
        assert_eq!((batches.len(), outcome.steps, outcome.tally.means()), (0, 0, [0.0; 2]));
    }

    #[test]
    fn a_whole_batch_may_keep_its_order() {
        let ordered: Vec<u32> = (0..7).collect();
        assert_eq!(run(course(Length::Epochs(2), 7, true), 7, None).0, [&*ordered, &*ordered]);
        assert!(run(course(Length::Epochs(1), 7, false), 7, None).0 != [&*ordered]);
        assert!(run(course(Length::Epochs(1), 6, true), 7, None).0.concat() != ordered);
    }

    #[test]
    fn a_loss_that_is_not_finite_ends_a_job() {
        let (batches, outcome) = run(course(Length::Epochs(5), 3, false), 7, Some(4));
        assert_eq!((batches.len(), outcome.steps, outcome.is_finite), (4, 3, false));
        let mut update = Update { parameters: vec![1.0, -f32::NAN], private: vec![-f32::NAN], ..Update::default() };
        outcome.settle(true, &mut update);
        assert!(update.diverged && update.steps == 3 && update.loss_rms.is_some());
        let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&update.parameters), bits(&[1.0, f32::NAN]));
        assert_eq!(bits(&update.private), bits(&[f32::NAN]));
    }

    /// Stops its own job in a step.
    struct Stops<'a>(&'a Halt, u64);

    impl Stepper for Stops<'_> {
        fn step(&mut self, _: &[u32], number: u64, _: Told<'_>) -> bool {
            if number == self.1 {
                self.0.ask(Duration::ZERO);
            }
            true
        }
    }

    #[test]
    fn a_job_that_is_stopped_makes_no_further_step() {
        let halt = Halt::new();
        let course = Course { halt: &halt, ..course(Length::Epochs(1_000_000_000), 3, false) };
        let outcome = course.run(&mut [1, 2, 3, 4, 5, 6, 7], &mut Stops(&halt, 5));
        assert_eq!((outcome.steps, outcome.is_finite), (5, true));
    }

    #[test]
    fn a_job_has_epochs_of_its_own_where_epochs_are_counted() {
        assert_eq!(Length::Epochs(2).or_epochs(Some(5)), Length::Epochs(5));
        assert_eq!(Length::Epochs(2).or_epochs(None), Length::Epochs(2));
        assert_eq!(Length::Steps(2).or_epochs(None), Length::Steps(2));
    }

    #[test]
    #[should_panic(expected = "where epochs are counted")]
    fn epochs_are_no_steps() {
        let _ = Length::Steps(2).or_epochs(Some(5));
    }
}
