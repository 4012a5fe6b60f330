//! Which item rows a job meets and moves, without training: its draws are repeated, its rows are not looked at.

use super::job::{Examples, Job, Negatives};
use super::{BprTraining, Moves};
use crate::ratings::triplets::Triplet;
use crate::trainer::Length;

/// Finds the rows that jobs meet. Keeps its buffers from job to job.
#[derive(Debug, Default)]
pub struct Footprint {
    examples: Examples,
    order: Vec<u32>,
    /// A bit for each item.
    met: Vec<u64>,
    moved: Vec<u64>,
    /// Whether a step that meets a user meets all of the user's positives.
    neighbours: bool,
    /// Whether any step meets all of the job's positives.
    all_positives: bool,
}

/// How many item rows a job needs and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Rows that its steps meet.
    pub met: usize,
    /// Rows that move: those of [`Outcome::items`](super::Outcome::items), unless training stops early.
    pub moved: usize,
}

/// The triplets of a job's first epoch in their order, all examples, without training; its tables may be empty.
///
/// # Panics
/// If an item is not there.
pub fn first_epoch(job: &Job<'_>, items: usize, triplets: &mut Vec<Triplet>) {
    let mut examples = Examples::default();
    let mut chosen = Vec::new();
    examples.list(job, items, (Length::Epochs(1), 1), &mut chosen);
    let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
    order.shuffle(&mut chosen);
    triplets.clear();
    for &example in &chosen {
        triplets.push(examples.triplet(example, job, items, &mut draws));
    }
}

fn mark(bits: &mut [u64], item: u32) {
    bits[item as usize / 64] |= 1 << (item % 64);
}

impl Footprint {
    /// Of jobs whose steps meet all positives of the users that they meet.
    #[must_use]
    pub fn with_neighbours(self) -> Self {
        Self { neighbours: true, ..self }
    }

    /// The footprint of jobs whose steps meet all their positives.
    #[must_use]
    pub fn with_all_positives(self) -> Self {
        Self { all_positives: true, ..self }
    }

    /// How many rows a job moves, where that follows from its positives: whole epochs meet each of them. `None` where
    /// it depends on draws.
    pub fn moved_by_positives(settings: &BprTraining, job: &Job<'_>, items: usize) -> Option<usize> {
        let follows = settings.moves == Moves::Interacted
            && matches!((settings.length, job.negatives), (Length::Epochs(_), Negatives::Drawn))
            && job.ends.len() == 1;
        // Who rated everything has no example.
        follows.then_some(if job.positives.len() == items { 0 } else { job.positives.len() })
    }

    /// The rows of a job among so many items. Its tables may be empty: they are not read.
    ///
    /// # Panics
    /// If an item is not there.
    pub fn of(&mut self, settings: &BprTraining, job: &Job<'_>, items: usize) -> Extent {
        self.examples.list(job, items, (settings.length, settings.batch), &mut self.order);
        for bits in [&mut self.met, &mut self.moved] {
            bits.clear();
            bits.resize(items.div_ceil(64), 0);
        }
        let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
        let (epochs, most) = settings.length.bounds();
        // Whole epochs meet every example; the negatives of one user do not depend on their order.
        let is_order_free = matches!(settings.length, Length::Epochs(_))
            && (job.ends.len() == 1 || matches!(job.negatives, Negatives::Given(_)));
        let mut left = most;
        for _ in 0..epochs {
            if left == 0 || self.order.is_empty() {
                break;
            }
            if !is_order_free {
                order.shuffle(&mut self.order);
            }
            if self.all_positives {
                job.positives.iter().for_each(|&item| mark(&mut self.met, item));
            }
            let steps = left.min(self.order.len().div_ceil(settings.batch) as u64);
            left -= steps;
            let count = self.order.len().min((steps as usize).saturating_mul(settings.batch));
            for &example in &self.order[..count] {
                let Triplet { user, positive, negative } = self.examples.triplet(example, job, items, &mut draws);
                mark(&mut self.met, positive);
                mark(&mut self.met, negative);
                if self.neighbours {
                    job.positives_of(user).iter().for_each(|&item| mark(&mut self.met, item));
                }
            }
        }
        match settings.moves {
            Moves::Touched => self.moved.copy_from_slice(&self.met),
            Moves::Interacted => {
                job.positives.iter().for_each(|&item| mark(&mut self.moved, item));
                self.moved.iter_mut().zip(&self.met).for_each(|(moved, met)| *moved &= met);
            }
        }
        let [met, moved] =
            [&self.met, &self.moved].map(|bits| bits.iter().map(|word| word.count_ones() as usize).sum());
        Extent { met, moved }
    }

    /// The items whose rows a job moves, ascending.
    ///
    /// # Panics
    /// As [`Footprint::of`].
    pub fn moved(&mut self, settings: &BprTraining, job: &Job<'_>, items: usize) -> Vec<u32> {
        self.of(settings, job, items);
        (0..items as u32).filter(|&item| self.moved[item as usize / 64] >> (item % 64) & 1 == 1).collect()
    }
}
