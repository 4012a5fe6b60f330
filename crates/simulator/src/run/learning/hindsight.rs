//! For the regret in hindsight: updates of clients that were not asked, and the score of each update by itself.

use super::before::EdgeState;
use super::{Before, Learning, Trained, change};
use crate::policy::Wants;
use crate::run::error::RunError;
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::metric::{Measure, Place};
use fedgenie_core::oracle::utility::contribution::{deviation, norm};
use fedgenie_core::oracle::utility::{ModelScore, UpdateScore};
use fedgenie_core::time::Span;
use fedgenie_learning::layout::Update;
use fedgenie_learning::learned::{Arrival, Tier};
use fedgenie_learning::task::{Job, JobKey, ModelState, On, PrivateView, Worker};
use fedgenie_learning::training::Assignment;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Bytes of updates that are looked at and forgotten, at a time, where that is more than a few.
const REHEARSED_BYTES: usize = 1 << 26;

/// The fewest updates at a time: enough for every thread to have some.
const FEWEST_REHEARSED: usize = 64;

impl Learning<'_> {
    /// The weighted metrics of the model that updates would have made, `-∞` if it is not finite. `members` are
    /// ascending by client, with the numbers of their jobs; from none of them the model stays as it is.
    pub fn worth(&self, before: &Before<'_>, weights: &BTreeMap<String, f64>, members: &[(JobKey, &Update)]) -> f64 {
        if members.iter().any(|(_, update)| update.diverged) || self.halt.is_due() {
            return f64::NEG_INFINITY;
        }
        let cluster = before.cluster();
        let arrivals = members.iter().map(|&(JobKey { client, number }, update)| Arrival {
            client,
            number,
            cluster,
            examples: self.task.examples(client),
            age: 1.0,
            weight: None,
            rate: Some(f64::from(self.world.training.local.rate(before.round()))),
            start: &before.models()[cluster as usize],
            update,
        });
        let arrivals: Vec<Arrival<'_>> = arrivals.collect();
        match self.made_of(before, Tier::Server, &arrivals) {
            Some(state) => self.weighted(&state.current(cluster), before.edge(), weights),
            None => f64::NEG_INFINITY,
        }
    }

    /// The weighted sum of some metrics of a model, which may be an edge server's.
    fn weighted(&self, state: &ModelState<'_>, edge: Option<&EdgeState<'_>>, weights: &BTreeMap<String, f64>) -> f64 {
        let measures = &self.world.measures;
        let own = edge.map_or(On::Test, |edge| self.tested_by(edge.edge, edge.members));
        let places = [
            (Place::Test, On::Test, &measures.of_data),
            (Place::Valid, On::Valid, &measures.of_data),
            (Place::Model, On::Model, &measures.of_model),
            (Place::Servers, own, &measures.of_data),
        ];
        let mut sum = 0.0;
        for (place, on, of_place) in places {
            let weight = |measure: &Measure| weights.get(&measure.at(place).to_string()).copied();
            if !of_place.iter().any(|measure| weight(measure).is_some()) {
                continue;
            }
            let mut values = vec![f64::NAN; of_place.len()];
            self.measured_on(on, state, false, &mut values);
            let weighted = of_place.iter().zip(values).filter_map(|(measure, value)| Some(weight(measure)? * value));
            sum += weighted.sum::<f64>();
        }
        if sum.is_nan() { f64::NEG_INFINITY } else { sum }
    }

    /// The contribution of a client's update to the measures of its server, where these are sums: see
    /// [`task::Script::adds`].
    pub fn adds(&self, client: ClientId) -> Option<f64> {
        self.task.script()?.adds(client)
    }

    /// Whether a client has anything to train on.
    pub fn has_data(&self, client: ClientId) -> bool {
        self.task.examples(client) > 0
    }

    /// Number of a client's examples.
    pub fn examples(&self, client: ClientId) -> usize {
        self.task.examples(client)
    }

    /// Trains clients from the model that a round sent, as if they had been asked; update `i` is that of job `i`.
    /// Neither the global model nor the updates of the clients that were asked change.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    pub fn train_in_hindsight(
        &self,
        start: &[f32],
        round: Round,
        jobs: &[JobKey],
        parallel: bool,
        updates: &mut Vec<Update>,
    ) -> Result<(), RunError> {
        let jobs: Vec<Assignment<'_>> = jobs.iter().map(|&job| self.imagined(start, round, job)).collect();
        if updates.len() < jobs.len() {
            updates.resize_with(jobs.len(), Update::default);
        }
        self.train_jobs(&self.context(Wants::default()), &jobs, parallel, &mut updates[..jobs.len()]);
        self.check_work(round)
    }

    /// The job of a client that is sent a model now.
    fn imagined<'a>(&'a self, start: &'a [f32], round: Round, JobKey { client, number }: JobKey) -> Assignment<'a> {
        let private = self.state.private.get(client).map(|kept| &**kept);
        let job = Job { client, round, number, start, private, epochs: None, correction: None, contrast: None };
        Assignment { job, memory: self.state.memory.of(client) }
    }

    /// Clients' answers to a probe with one number in the round of these jobs, from the model that is sent and their
    /// current private parts. Without such a probe: the loss on their own data times their examples.
    pub fn answers_of(&self, kind: &str, start: &[f32], jobs: &[JobKey], parallel: bool) -> Vec<f64> {
        let state = self.state.view(start, PrivateView::of(&self.state.private));
        let context = self.context(Wants::default());
        let (known, losses) = (self.probe(kind).zip(self.task.probes()), self.task.losses());
        let one = |&job: &JobKey| match &known {
            Some((kind, probes)) => {
                let mut answer = Vec::new();
                let found = probes.answer(kind, job, &context, &state, &mut answer);
                self.faults.or(("answer", Some(job.client)), found, ());
                answer.first().copied().unwrap_or(f64::NAN)
            }
            None => self.client_loss(losses, job.client, &state) * self.task.examples(job.client) as f64,
        };
        if parallel { jobs.par_iter().map(one).collect() } else { jobs.iter().map(one).collect() }
    }

    /// The slope of the validation loss at the model that is sent, with clients' current private parts.
    ///
    /// # Panics
    /// If the task does not know it: then the world is refused.
    pub fn slope(&self, start: &[f32]) -> Vec<f32> {
        let mut slope = Vec::new();
        let state = self.state.view(start, PrivateView::of(&self.state.private));
        match self.task.losses().map_or(Ok(false), |losses| losses.slope(&state, &mut slope)) {
            Ok(is_known) => assert!(is_known && slope.len() == self.layout.len(), "a slope by every parameter"),
            failed => drop(self.faults.or(("slope", None), failed, false)),
        }
        slope
    }

    /// How far an update goes down a slope: `−⟨slope, change⟩` over the trained parameters. `None` if the update
    /// diverged.
    pub fn descent(&self, start: &[f32], slope: &[f32], update: &Update) -> Option<f64> {
        let trained = self.layout.trained();
        let mut sum = 0.0;
        for (range, part) in update.parts(self.layout) {
            let places = range.start..range.end.min(trained).max(range.start);
            let before = places.clone().map(|place| (slope[place], start[place]));
            sum -= before
                .zip(part)
                .map(|((slope, before), after)| f64::from(slope) * (f64::from(*after) - f64::from(before)))
                .sum::<f64>();
        }
        (!update.diverged && sum.is_finite()).then_some(sum)
    }

    /// Whole jobs of clients whose updates are only looked at, ascending by client, without those that diverged; an
    /// update is there if it is wanted. Where only losses are, a job ends here with the epoch that tells them.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    pub fn rehearse(
        &self,
        start: &[f32],
        (round, turn): (Round, Turn),
        clients: &[ClientId],
        wants: Wants,
        parallel: bool,
    ) -> Result<Vec<(Trained, Update)>, RunError> {
        let mut clients: Vec<ClientId> = clients.iter().copied().filter(|&client| self.has_data(client)).collect();
        clients.sort_unstable();
        let number = JobNumber::from(turn);
        let looks = wants.looks_at_updates();
        let epochs = if looks { None } else { self.losses_after() };
        let job = |&client: &ClientId| {
            let Assignment { job, memory } = self.imagined(start, round, JobKey { client, number });
            Assignment { job: Job { epochs, ..job }, memory }
        };
        let one = |client: ClientId, update: &Update| {
            let mut buffer = Vec::new();
            let model = if looks { update.model(self.layout, start, &mut buffer) } else { &[] };
            let trained = self.layout.trained();
            Trained {
                client,
                turn,
                round,
                staleness: 0,
                examples: self.task.examples(client),
                loss: update.first_loss,
                loss_rms: update.loss_rms,
                quality: wants.quality.then(|| self.score_of(client, model, update).quality),
                deviation: wants.deviation.map(|_| deviation(&model[..trained], &start[..trained])),
                norm: wants.norm.then(|| norm(&model[..trained], start)),
                change: wants.change.then(|| change(&model[..trained], start)),
                answer: Vec::new(),
                latency: Span::ZERO,
            }
        };
        let block = (REHEARSED_BYTES / (size_of::<f32>() * self.layout.len().max(1))).max(FEWEST_REHEARSED);
        let mut updates = vec![Update::default(); block.min(clients.len())];
        let mut found = Vec::new();
        for clients in clients.chunks(block) {
            let jobs: Vec<Assignment<'_>> = clients.iter().map(job).collect();
            let updates = &mut updates[..jobs.len()];
            self.train_jobs(&self.context(wants), &jobs, parallel, updates);
            self.check_work(round)?;
            for (&client, update) in clients.iter().zip(updates) {
                if !update.diverged {
                    let report = one(client, update);
                    found.push((report, if wants.update { std::mem::take(update) } else { Update::default() }));
                }
            }
            self.check_work(round)?;
        }
        Ok(found)
    }

    /// The epochs after which a job tells its losses; `None` if those are all that it has.
    fn losses_after(&self) -> Option<u32> {
        let epochs = self.world.training.local.epochs();
        (self.task.tells_losses_after_an_epoch() && epochs.is_some_and(|epochs| epochs > 1)).then_some(1)
    }

    /// The score of the model that a round sent.
    pub fn score_sent(&self, start: &[f32], parallel: bool) -> ModelScore {
        self.score(&self.state.view(start, PrivateView::of(&self.state.private)), parallel)
    }

    /// The score of each update by itself; none of one that diverged.
    pub fn score_updates(
        &self,
        start: &[f32],
        updates: &[(ClientId, &Update)],
        parallel: bool,
    ) -> Vec<Option<UpdateScore>> {
        let trained = self.layout.trained();
        let one = |&(client, update): &(ClientId, &Update)| {
            let mut buffer = Vec::new();
            if update.diverged || self.halt.is_due() {
                return None;
            }
            let model = update.model(self.layout, start, &mut buffer);
            Some(UpdateScore {
                model: self.score_of(client, model, update),
                deviation: deviation(&model[..trained], &start[..trained]),
            })
        };
        if parallel { updates.par_iter().map(one).collect() } else { updates.iter().map(one).collect() }
    }

    /// The sum of the squared losses of a model on each client's own examples.
    pub fn squared_losses(&self, parameters: &[f32], clients: &[ClientId], parallel: bool) -> Vec<f64> {
        let state = self.state.view(parameters, PrivateView::of(&self.state.private));
        let Some(losses) = self.task.losses() else { return vec![f64::NAN; clients.len()] };
        let one = |worker: &mut Worker, &client: &ClientId| {
            let found = losses.squared_losses(client, &state, worker);
            self.faults.or(("squared_losses", Some(client)), found, f64::NAN)
        };
        if parallel {
            clients.par_iter().map_init(Worker::default, one).collect()
        } else {
            let mut worker = Worker::default();
            clients.iter().map(|client| one(&mut worker, client)).collect()
        }
    }
}
