//! Questions that clients answer before a selection.
//!
//! # Definition
//! | kind | answer |
//! |---|---|
//! | `summed-loss` | the true loss of the client's triplets at the model that it is sent, summed |
//! | `predicted-loss` | the same as the proxy predicts it; of models with a proxy |
//! | `embedding` | the row of the client's user, which reveals private state; the mean of its users' rows where it has several |
//! | `influence` | `⟨∇F, ∇L_u⟩` of the losses of held-out pairs and of the client's triplets, see `slopes`; the gradient travels |
//!
//! Triplets are those of the first epoch of the job that the client would do in the round.

use super::{Recommendation, RowRecommender};
use crate::matrix_factorisation::first_epoch;
use crate::task::{Context, JobKey, ModelState, ProbeKind, Probes};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, JobNumber};
use rayon::prelude::*;

/// Names of the kinds.
const SUMMED: &str = "summed-loss";
const PREDICTED: &str = "predicted-loss";
const EMBEDDING: &str = "embedding";
const INFLUENCE: &str = "influence";

/// Questions that clients of a model answer.
pub(super) fn kinds(model: &dyn RowRecommender) -> Vec<ProbeKind> {
    let loss = |name| ProbeKind { name, numbers: 1, passes: 1.0, needs_model: true };
    let embedding = ProbeKind { name: EMBEDDING, numbers: model.dimensions(), passes: 0.0, needs_model: false };
    let predicted = model.has_proxy().then(|| loss(PREDICTED));
    [loss(SUMMED), embedding, loss(INFLUENCE)].into_iter().chain(predicted).collect()
}

impl Probes for Recommendation {
    fn kinds(&self) -> &[ProbeKind] {
        &self.probes
    }

    fn answer(
        &self,
        kind: &ProbeKind,
        job: JobKey,
        _context: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure> {
        answer.extend(self.tell(kind, &[job], state, false));
        Ok(())
    }

    fn answers(
        &self,
        kind: &ProbeKind,
        jobs: &[JobKey],
        _context: &Context<'_>,
        state: &ModelState<'_>,
        parallel: bool,
    ) -> Result<Vec<f64>, Failure> {
        Ok(self.tell(kind, jobs, state, parallel))
    }

    fn bytes(&self, kind: &ProbeKind, job: JobKey, _context: &Context<'_>) -> Option<u64> {
        (kind.name == INFLUENCE).then(|| self.gradient_bytes(job))
    }
}

impl Recommendation {
    /// The answers of all clients in the rounds whose jobs are `keys`, one after the other.
    fn tell(&self, kind: &ProbeKind, keys: &[JobKey], state: &ModelState<'_>, parallel: bool) -> Vec<f64> {
        let of = |which: usize| self.sums(state, keys, parallel).iter().map(|sums| sums[which]).collect();
        match kind.name {
            SUMMED => of(0),
            PREDICTED => of(1),
            INFLUENCE => self.influences(state, keys, parallel),
            _ => {
                let mut answers = Vec::with_capacity(keys.len() * kind.numbers);
                keys.iter().for_each(|key| self.embedding(key.client, state, &mut answers));
                answers
            }
        }
    }

    /// For each job the losses of its client's triplets, and the proxy's predictions, summed; NaN without a proxy.
    pub(super) fn sums(&self, state: &ModelState<'_>, keys: &[JobKey], parallel: bool) -> Vec<[f64; 2]> {
        let model = self.model.losses(self.parts(state.model), keys.len() > 1);
        let one = |triplets: &mut Vec<_>, &key: &JobKey| {
            let rows = self.rows_as_seen(key.client, state);
            first_epoch(&self.job(key, &self.streams, &[], &[]), self.source.items(), triplets);
            let mut sums = [0.0; 2];
            let own = self.own_losses(key.client, state);
            own.as_ref().unwrap_or(&model).each(&rows, triplets, |loss, predicted| {
                sums[0] += loss;
                sums[1] += predicted;
            });
            sums
        };
        if parallel {
            keys.par_iter().map_init(Vec::new, one).collect()
        } else {
            let mut kept = Vec::new();
            keys.iter().map(|key| one(&mut kept, key)).collect()
        }
    }

    fn embedding(&self, client: ClientId, state: &ModelState<'_>, answer: &mut Vec<f64>) {
        let mut rows = Vec::new();
        self.rows_of(client, state.private.get(client), &mut rows);
        let d = self.model.dimensions();
        let count = (rows.len() / d).max(1) as f64;
        answer.extend(
            (0..d).map(|at| rows.iter().skip(at).step_by(d).map(|&number| f64::from(number)).sum::<f64>() / count),
        );
    }

    /// The job that a client is asked about where nobody says which: that of the next round.
    pub(super) fn next_job(client: ClientId, state: &ModelState<'_>) -> JobKey {
        JobKey { client, number: JobNumber(state.round.0 + 1) }
    }
}
