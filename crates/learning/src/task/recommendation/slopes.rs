//! Slopes of mean losses by the parameters that travel: of validation pairs, and of a client's examples.
//!
//! # Definition
//! `F` is the mean of `−ln σ(x)` over pairs of a user and a held-out item that the user rated, each with one negative:
//! validation pairs, or test pairs where there is no validation. A user's row is that which the home keeps; pairs of
//! users without a home do not count. A client's loss is the mean over the triplets of the first epoch of its job in
//! the round. Proxies have no slope, but in the mean gradient of a job: there, that of what they are trained by.
//!
//! # Determinism
//! Negatives of pairs: stream (Example, user, 22), in ascending order of items, uniform over the items that are neither
//! training ratings nor to be found; or those of the table of triplets, if it has any of such pairs. The sum over homes
//! is in `f64`, ascending by client.
//!
//! # Method
//! One step of plain descent on all triplets at once, with a learning rate of 1,024, moves every number by 1,024 times
//! its slope: what is lost in the difference of two `f32` is then far below the slope's own rounding.

use super::Recommendation;
use super::recommenders::RowJob;
use crate::matrix_factorisation::{self as mf, BprTraining, Moves, Negatives, RowRegularisation, first_epoch};
use crate::ncf::Outcome;
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::task::{Job, JobKey, ModelState, Worker};
use crate::trainer::{Length, Optimizer, OptimizerConfig};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use rayon::prelude::*;

/// Number of the stream, as documented above.
const PAIRS: u32 = 22;

/// A power of two: products with it are exact.
const RATE: f32 = 1_024.0;

/// Slopes of a mean loss of some triplets.
pub(super) struct Slopes {
    /// By the weights of networks.
    weights: Vec<f32>,
    /// Items whose rows have one, ascending, and these.
    pub items: Vec<u32>,
    rows: Vec<f32>,
}

/// What a thread reuses.
#[derive(Default)]
pub(super) struct Scratch {
    worker: Worker,
    outcome: Outcome,
    triplets: Vec<Triplet>,
}

/// The model, and what a client keeps.
fn seen<'a>(client: ClientId, state: &ModelState<'a>) -> (&'a [f32], Option<&'a [f32]>) {
    (state.model, state.private.get(client))
}

impl Recommendation {
    /// Slopes of the mean loss of a client's triplets, by the rows that a step moves.
    fn slopes(
        &self,
        key: JobKey,
        (model, kept): (&[f32], Option<&[f32]>),
        moves: Moves,
        Scratch { worker, outcome, triplets }: &mut Scratch,
    ) -> Slopes {
        let (d, client) = (self.model.dimensions(), key.client);
        let mut users = Vec::new();
        self.rows_of(client, kept, &mut users);
        let sgd = OptimizerConfig::Sgd {
            lr: f64::from(RATE),
            momentum: 0.0,
            nesterov: false,
            weight_decay: 0.0,
            dampening: 0.0,
        };
        let settings = BprTraining {
            dimensions: d,
            length: Length::Steps(1),
            batch: triplets.len(),
            optimizer: Optimizer::new(&sgd).expect("the rate is in range"),
            extra: RowRegularisation::default(),
            moves,
        };
        let (weights, table) = self.parts(model);
        let job = mf::Job { negatives: Negatives::Given(triplets), ..self.job(key, &self.streams, table, &users) };
        let has_own = !self.first_network.is_empty();
        let sent = weights;
        let weights = if has_own { self.network_of(client, kept) } else { sent };
        self.model.descend(&RowJob { settings: &settings, job: &job, weights, targets: None }, worker, outcome);
        let slope = |(before, after): (&f32, &f32)| (before - after) / RATE;
        // A private network does not travel.
        let of_weights = if sent.is_empty() { &[][..] } else { &outcome.weights };
        let by_weights = sent.iter().zip(of_weights).map(slope).collect();
        let rows = outcome.rows.items.iter().zip(outcome.rows.rows.chunks_exact(d));
        let rows = rows.flat_map(|(&item, row)| table[item as usize * d..][..d].iter().zip(row).map(slope)).collect();
        Slopes { weights: by_weights, items: outcome.rows.items.clone(), rows }
    }

    /// Forgets the slopes of a proxy.
    fn without_proxy(&self, slopes: &mut Slopes) {
        if self.model.has_proxy() {
            let half = slopes.weights.len() / 2;
            slopes.weights[half..].fill(0.0);
        }
    }

    /// The mean gradient of a job; see [`Task::gradient`](crate::task::Task::gradient).
    pub(super) fn mean_gradient(
        &self,
        job: &Job<'_>,
        streams: &Streams,
        scratch: &mut Scratch,
        gradient: &mut Vec<f32>,
    ) -> bool {
        let key = JobKey { client: job.client, number: job.number };
        first_epoch(&self.job(key, streams, &[], &[]), self.source.items(), &mut scratch.triplets);
        gradient.clear();
        gradient.resize(job.start.len(), 0.0);
        if scratch.triplets.is_empty() {
            return false;
        }
        let slopes = self.slopes(key, (job.start, job.private), self.settings.moves, scratch);
        let (weights, table) = gradient.split_at_mut(slopes.weights.len());
        weights.copy_from_slice(&slopes.weights);
        let d = self.model.dimensions();
        for (&item, row) in slopes.items.iter().zip(slopes.rows.chunks_exact(d)) {
            table[item as usize * d..][..d].copy_from_slice(row);
        }
        true
    }

    /// The held-out pairs of a client's residents, each with its negative; users are numbered within the client.
    pub(super) fn pairs(&self, client: ClientId, triplets: &mut Vec<Triplet>) {
        triplets.clear();
        let users = self.source.holdings.users(client);
        let place = |user: u32| users.binary_search(&user).ok().map(|place| place as u32);
        if !self.valid_triplets.is_empty() {
            let begin = |user| self.valid_triplets.partition_point(|triplet| triplet.user < user);
            for &user in self.source.holdings.residents(client) {
                let Some(place) = place(user) else { continue };
                let given = &self.valid_triplets[begin(user)..begin(user + 1)];
                triplets.extend(given.iter().map(|triplet| Triplet { user: place, ..*triplet }));
            }
            return;
        }
        let held_out = self.source.valid.as_ref().unwrap_or(&self.source.test);
        let items = self.source.items() as u32;
        for &user in self.source.holdings.residents(client) {
            let Some(place) = place(user) else { continue };
            let mut known = held_out.excluded.of(user).to_vec();
            known.extend_from_slice(held_out.relevant.of(user));
            known.sort_unstable();
            known.dedup();
            let mut draws = self.streams.stream(Purpose::Example, user, PAIRS);
            for &positive in held_out.relevant.of(user) {
                if let Some(negative) = negative(&mut draws, items, &known) {
                    triplets.push(Triplet { user: place, positive, negative });
                }
            }
        }
    }

    /// The slope of `F` by all parameters that travel; see [`Losses::slope`](crate::task::Losses::slope).
    pub(super) fn slope_of_held_out(&self, state: &ModelState<'_>, slope: &mut Vec<f32>) -> bool {
        let d = self.model.dimensions();
        let networks = self.parts(state.model).0.len();
        let mut sums = vec![0.0_f64; state.model.len()];
        let (mut scratch, mut count) = (Scratch::default(), 0);
        for client in (0..self.source.holdings.clients()).map(ClientId::from_index) {
            self.pairs(client, &mut scratch.triplets);
            if scratch.triplets.is_empty() {
                continue;
            }
            let pairs = scratch.triplets.len();
            count += pairs;
            let mut slopes =
                self.slopes(Self::next_job(client, state), seen(client, state), Moves::Touched, &mut scratch);
            self.without_proxy(&mut slopes);
            let add = |(sum, &slope): (&mut f64, &f32)| *sum += pairs as f64 * f64::from(slope);
            sums.iter_mut().zip(&slopes.weights).for_each(add);
            for (&item, row) in slopes.items.iter().zip(slopes.rows.chunks_exact(d)) {
                sums[networks + item as usize * d..].iter_mut().zip(row).for_each(add);
            }
        }
        slope.clear();
        slope.extend(sums.iter().map(|sum| (sum / count as f64) as f32));
        count > 0
    }

    /// For each job `⟨∇F, ∇L_u⟩`, by the rows that its client would send and by networks.
    pub(super) fn influences(&self, state: &ModelState<'_>, keys: &[JobKey], parallel: bool) -> Vec<f64> {
        let mut slope = Vec::new();
        if !self.slope_of_held_out(state, &mut slope) {
            return vec![f64::NAN; keys.len()];
        }
        let d = self.model.dimensions();
        let (of_weights, of_items) = self.parts(&slope);
        let one = |scratch: &mut Scratch, &key: &JobKey| {
            first_epoch(&self.job(key, &self.streams, &[], &[]), self.source.items(), &mut scratch.triplets);
            if scratch.triplets.is_empty() {
                return 0.0;
            }
            let mut slopes =
                self.slopes(Self::next_job(key.client, state), seen(key.client, state), self.settings.moves, scratch);
            self.without_proxy(&mut slopes);
            let product = |(one, other): (&f32, &f32)| f64::from(*one) * f64::from(*other);
            let mut sum: f64 = of_weights.iter().zip(&slopes.weights).map(product).sum();
            for (&item, row) in slopes.items.iter().zip(slopes.rows.chunks_exact(d)) {
                sum += of_items[item as usize * d..].iter().zip(row).map(product).sum::<f64>();
            }
            sum
        };
        if parallel {
            keys.par_iter().map_init(Scratch::default, one).collect()
        } else {
            let mut scratch = Scratch::default();
            keys.iter().map(|key| one(&mut scratch, key)).collect()
        }
    }

    /// Bytes of a client's gradient: the network's weights, and the rows that a whole epoch moves, with their ids.
    pub(super) fn gradient_bytes(&self, key: JobKey) -> u64 {
        let mut triplets = Vec::new();
        first_epoch(&self.job(key, &self.streams, &[], &[]), self.source.items(), &mut triplets);
        let mut items: Vec<u32> = triplets.iter().map(|triplet| triplet.positive).collect();
        if self.settings.moves == Moves::Touched {
            items.extend(triplets.iter().map(|triplet| triplet.negative));
        }
        items.sort_unstable();
        items.dedup();
        let network = self.model.network().map_or(0, |shape| shape.network());
        4 * (network + items.len() * (self.model.dimensions() + 1)) as u64
    }
}
