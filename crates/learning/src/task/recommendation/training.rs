//! One client's job: from what it was sent and what it keeps to its update.

use super::recommenders::RowJob;
use super::slopes::Scratch;
use super::{Recommendation, Sent};
use crate::layout::Update;
use crate::matrix_factorisation::{self as mf, BprTraining, Correction, Negatives, RowRegularisation};
use crate::ncf::Outcome;
use crate::task::{Context, Job, JobKey, Worker};
use crate::trainer::{LocalTraining, Noise, NoiseScope};
use fedgenie_core::halt::NEVER;
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};

/// A thread's buffers.
#[derive(Default)]
pub(super) struct Kept {
    worker: Worker,
    outcome: Outcome,
    pub slopes: Scratch,
    users: Vec<f32>,
}

/// Whether the noise of clients is on the whole table, which then travels.
pub(super) fn sends_table(settings: &LocalTraining) -> bool {
    settings.noise.is_some_and(|noise| noise.scope == NoiseScope::Table)
}

impl Recommendation {
    pub(super) fn training(&self, local: &LocalTraining, epochs: Option<u32>) -> BprTraining {
        BprTraining {
            dimensions: self.model.dimensions(),
            length: local.length.or_epochs(epochs),
            batch: local.batch,
            optimizer: local.optimizer.clone(),
            extra: RowRegularisation { clip: local.clip, proximal: local.proximal },
            moves: self.settings.moves,
        }
    }

    pub(super) fn job<'a>(&'a self, key: JobKey, streams: &Streams, table: &'a [f32], users: &'a [f32]) -> mf::Job<'a> {
        let JobKey { client, number } = key;
        mf::Job {
            table,
            users,
            positives: self.source.holdings.positives(client),
            ends: self.source.holdings.ends(client),
            negatives: self.source.holdings.triplets(client).map_or(Negatives::Drawn, Negatives::Given),
            lr_factor: 1.0,
            correction: None,
            order: streams.stream(Purpose::BatchOrder, client.0, number.0),
            draws: streams.stream(Purpose::TrainingNoise, client.0, number.0),
            halt: &NEVER,
        }
    }

    /// Trains; see [`Task::train`].
    pub(super) fn do_job(&self, job: &Job<'_>, context: &Context<'_>, kept: &mut Kept, update: &mut Update) {
        let Context { settings, streams, loss_rms, halt } = *context;
        let Kept { worker, outcome, users, .. } = kept;
        self.rows_of(job.client, job.private, users);
        let key = JobKey { client: job.client, number: job.number };
        let lr_factor = settings.schedule.factor(job.round.0) as f32;
        let (weights, table) = self.parts(job.start);
        // Where all rows travel, all of them are corrected.
        let is_whole = self.settings.transfer[1] == Sent::Table || sends_table(settings);
        let correction = job.correction.map(|numbers| {
            let (weights, table) = self.parts(numbers);
            Correction { weights, table, is_whole }
        });
        let todo = mf::Job { lr_factor, correction, halt, ..self.job(key, streams, table, users) };
        update.clear();
        let training = self.training(settings, job.epochs);
        let has_own = !self.first_network.is_empty();
        let weights = if has_own { self.network_of(job.client, job.private) } else { weights };
        let targets = job.private.map(|kept| &kept[self.kept_len(job.client)..]).filter(|targets| !targets.is_empty());
        self.model.train(&RowJob { settings: &training, job: &todo, weights, targets }, worker, outcome);
        if !has_own {
            update.parameters.extend_from_slice(&outcome.weights);
        }
        let rows = &mut outcome.rows;
        let begin = update.parameters.len();
        if self.settings.transfer[1] == Sent::Rows && !sends_table(settings) {
            update.parameters.extend_from_slice(&rows.rows);
            std::mem::swap(&mut rows.items, &mut update.rows);
        } else {
            let d = self.model.dimensions();
            update.parameters.extend_from_slice(table);
            let table = &mut update.parameters[begin..];
            for (&item, row) in rows.items.iter().zip(rows.rows.chunks_exact(d)) {
                table[item as usize * d..][..d].copy_from_slice(row);
            }
            if self.settings.transfer[1] == Sent::Rows {
                update.rows.extend(0..self.source.items() as u32);
            }
        }
        if let Some(Noise { sigma, .. }) = settings.noise {
            let mut noise = streams.stream(Purpose::Privacy, job.client.0, job.number.0);
            let noisy = update.parameters[begin..].iter_mut();
            noisy.for_each(|number| *number += (f64::from(sigma) * normal_quantile(noise.uniform())) as f32);
        }
        // Buffers go to and fro.
        std::mem::swap(&mut rows.users, &mut update.private);
        if has_own {
            update.private.extend_from_slice(&outcome.weights);
        }
        update.first_loss = rows.loss;
        update.loss_rms = loss_rms.then_some(rows.loss_rms);
        update.diverged = rows.diverged || !update.first_loss.is_finite();
        update.steps = rows.steps;
    }
}
