//! One client's training.

use super::{Batch, Features, Network, Objective, Scratch, Shape};
use crate::lanes::Path;
use crate::local::Told;
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::trainer::{Buffers, DenseJob, Slopes, Wanted};
use fedgenie_core::rng::StreamRng;

/// The positive pairs of a client, and where their negatives come from.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// Its users, ascending.
    pub users: &'a [u32],
    /// Its positives, user after user; of each user ascending without repetition.
    pub positives: &'a [u32],
    /// Where in `positives` each user's end; as many as users.
    pub ends: &'a [u32],
    /// The negatives, if they are given: as many triplets for each example as it has negatives, one after the other;
    /// their users are numbered within the client. Else they are drawn, uniform over the items that are none of the
    /// user's positives here.
    pub given: Option<&'a [Triplet]>,
}

/// The examples of a client.
#[derive(Debug, Default)]
pub struct Examples {
    user_of: Vec<u32>,
    users: Vec<u32>,
    positives: Vec<u32>,
    negatives: Vec<u32>,
}

impl Examples {
    /// Numbers the examples in `order`: those whose users have not rated everything.
    pub fn list(&mut self, pairs: &Pairs<'_>, items: usize, negatives: usize, order: &mut Vec<u32>) {
        order.clear();
        self.user_of.clear();
        if let Some(given) = pairs.given {
            order.extend(0..(given.len() / negatives) as u32);
            return;
        }
        let mut begin = 0;
        for (&end, user) in pairs.ends.iter().zip(0..) {
            self.user_of.resize(end as usize, user);
            if ((end - begin) as usize) < items {
                order.extend(begin..end);
            }
            begin = end;
        }
    }

    /// Some examples with their negatives: drawn example by example.
    pub fn batch(
        &mut self,
        pairs: &Pairs<'_>,
        items: usize,
        count: usize,
        chosen: &[u32],
        draws: &mut StreamRng,
    ) -> Batch<'_> {
        let Self { user_of, users, positives, negatives } = self;
        users.clear();
        positives.clear();
        negatives.clear();
        negatives.resize(chosen.len() * count, 0);
        for (place, &example) in chosen.iter().enumerate() {
            let mut into = negatives[place..].iter_mut().step_by(chosen.len());
            match pairs.given {
                Some(given) => {
                    let given = &given[example as usize * count..][..count];
                    users.push(pairs.users[given[0].user as usize]);
                    positives.push(given[0].positive);
                    into.zip(given).for_each(|(into, triplet)| *into = triplet.negative);
                }
                None => {
                    let user = user_of[example as usize] as usize;
                    let begin = if user == 0 { 0 } else { pairs.ends[user - 1] as usize };
                    let known = &pairs.positives[begin..pairs.ends[user] as usize];
                    users.push(pairs.users[user]);
                    positives.push(pairs.positives[example as usize]);
                    into.by_ref().for_each(|into| {
                        *into = negative(draws, items as u32, known).expect("such examples are left out");
                    });
                }
            }
        }
        Batch { users, positives, negatives }
    }
}

/// What a client trains on.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    /// How large the parts of the model are.
    pub shape: &'a Shape,
    /// Features of all items.
    pub features: &'a Features,
    /// What it minimises.
    pub objective: &'a Objective,
    /// Its examples.
    pub pairs: Pairs<'a>,
    /// Draws the negatives of a batch, then what it drops: stream (TrainingNoise, client, job).
    pub draws: StreamRng,
}

/// What a thread reuses from job to job.
#[derive(Debug, Default)]
pub struct Worker {
    /// Of the network.
    pub scratch: Scratch,
    /// Of the examples.
    pub examples: Examples,
    /// Places of examples, in some order.
    pub order: Vec<u32>,
    /// Losses of a batch.
    pub losses: Vec<f32>,
    buffers: Buffers,
}

/// What a model loses on examples.
struct Losses<'a> {
    data: Data<'a>,
    examples: &'a mut Examples,
    losses: &'a mut Vec<f32>,
    scratch: &'a mut Scratch,
}

impl Slopes for Losses<'_> {
    fn slopes(&mut self, parameters: &mut [f32], batch: &[u32], gradient: &mut [f32], tally: Told<'_>) -> bool {
        let Self { data: Data { shape, features, objective, pairs, draws }, examples, losses, scratch } = self;
        let batch = examples.batch(pairs, shape.items, objective.negatives, batch, draws);
        let network = Network { shape, features };
        let loss = network.loss_and_gradient(parameters, batch, objective, gradient, draws, (losses, scratch));
        if let Some(tally) = tally {
            losses.iter().for_each(|&loss| tally.tell(loss.into()));
        }
        (loss.ranking + loss.correlation).is_finite()
    }
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { scratch: Scratch::on(path), ..Self::default() }
    }

    /// Does a job, or works out its mean gradient.
    ///
    /// # Panics
    /// If a length does not fit, or a setting is out of its range.
    pub fn run(&mut self, data: Data<'_>, job: &DenseJob<'_>, mut wanted: Wanted<'_>) {
        let Self { scratch, examples, order, losses, buffers } = self;
        assert_eq!(job.start.len(), data.shape.parameters(), "a client was sent a model of another length");
        examples.list(&data.pairs, data.shape.items, data.objective.negatives, order);
        let mut model = Losses { data, examples, losses, scratch };
        if !job.run(order, &mut model, buffers, &mut wanted) {
            // What is left in padding may not be finite, which no later job should meet.
            *scratch = Scratch::on(scratch.path());
        }
    }
}
