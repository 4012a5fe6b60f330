//! Which item rows a job meets and moves, without training: its draws are repeated, its rows are not looked at.

use super::job::{Examples, Job, Negatives, bounds};
use super::{BprTraining, Moves};
use crate::ratings::triplets::Triplet;
use crate::trainer::Length;

/// Finds what jobs meet. Keeps its buffers from job to job.
#[derive(Debug, Default)]
pub struct Footprint {
    examples: Examples,
    /// A bit for each item.
    met: Vec<u64>,
    positive: Vec<u64>,
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
    examples.list(job, items);
    let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
    order.shuffle(&mut examples.order);
    triplets.clear();
    for &example in &examples.order {
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

    /// Of jobs whose steps meet all their positives.
    #[must_use]
    pub fn with_all_positives(self) -> Self {
        Self { all_positives: true, ..self }
    }

    /// The rows of a job among so many items. Its tables may be empty: they are not read.
    ///
    /// # Panics
    /// If an item is not there.
    pub fn of(&mut self, settings: &BprTraining, job: &Job<'_>, items: usize) -> Extent {
        self.examples.list(job, items);
        for bits in [&mut self.met, &mut self.positive] {
            bits.clear();
            bits.resize(items.div_ceil(64), 0);
        }
        let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
        let (epochs, most) = bounds(settings.length);
        // Whole epochs meet every example; the negatives of one user do not depend on their order.
        let is_order_free = matches!(settings.length, Length::Epochs(_))
            && (job.ends.len() == 1 || matches!(job.negatives, Negatives::Given(_)));
        let mut left = most;
        for _ in 0..epochs {
            if left == 0 || self.examples.order.is_empty() {
                break;
            }
            if !is_order_free {
                order.shuffle(&mut self.examples.order);
            }
            if self.all_positives {
                job.positives.iter().for_each(|&item| mark(&mut self.met, item));
            }
            let steps = left.min(self.examples.order.len().div_ceil(settings.batch) as u64);
            left -= steps;
            let count = self.examples.order.len().min((steps as usize).saturating_mul(settings.batch));
            for &example in &self.examples.order[..count] {
                let Triplet { user, positive, negative } = self.examples.triplet(example, job, items, &mut draws);
                mark(&mut self.met, positive);
                mark(&mut self.met, negative);
                if self.neighbours {
                    job.positives_of(user).iter().for_each(|&item| mark(&mut self.met, item));
                }
            }
        }
        let met = self.met.iter().map(|word| word.count_ones() as usize).sum();
        let moved = match settings.moves {
            Moves::Touched => met,
            Moves::Interacted => {
                job.positives.iter().for_each(|&item| mark(&mut self.positive, item));
                let both = self.met.iter().zip(&self.positive).map(|(met, positive)| met & positive);
                both.map(|word| word.count_ones() as usize).sum()
            }
        };
        Extent { met, moved }
    }
}
