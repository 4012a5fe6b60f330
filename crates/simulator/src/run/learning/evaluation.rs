//! The metrics of a round, and the losses that policies ask clients for.
//!
//! Where the task deals test examples to edge servers, metrics of servers are on these, each under its server's model;
//! and so are metrics on test data, where there are several models.

use super::{Learning, Work};
use crate::clusters::LossesOn;
use crate::policy::Wants;
use crate::run::error::RunError;
use crate::world::Metrics;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::metric::{MetricId, Place, between, statistics, value_of};
use fedgenie_core::oracle::utility::ModelScore;
use fedgenie_core::rng::{Purpose, StreamRng};
use fedgenie_learning::task::{self, JobKey, ModelState, Need, On, PrivateView, ProbeKind, Script};
use rayon::prelude::*;
use std::sync::Arc;

/// The clients of an edge server, and the cluster of its model.
pub(in crate::run) type ServerScope<'a> = (&'a [ClientId], u32);

/// Measurements of a round.
pub(in crate::run) struct Measured {
    pub metrics: Metrics,
    /// The measures of each edge server, where servers are evaluated; `None` for a server without data to measure on.
    pub servers: Vec<Option<Vec<f64>>>,
}

/// The values of measures, and the weight with which those of parts are put together.
type Weighted = (Vec<f64>, f64);

/// The data that metrics of a round are measured on.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Evaluated<'a> {
    /// Whether also each client's own data.
    pub clients: bool,
    /// Whether also each edge server's.
    pub servers: bool,
    /// The edge servers; empty where there is one server.
    pub scopes: &'a [ServerScope<'a>],
    pub parallel: bool,
}

/// Places of a mini-batch, ascending: a Fisher–Yates shuffle of all of them, from the first one up, as far as it is
/// needed. Nothing is drawn where all are in it.
fn drawn(count: usize, size: usize, rng: &mut StreamRng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    if size < count {
        for place in 0..size {
            let other = place + rng.below((count - place) as u64) as usize;
            places.swap(place, other);
        }
        places.truncate(size);
        places.sort_unstable();
    }
    places
}

impl Learning<'_> {
    /// The current model of a cluster, for the task.
    pub(in crate::run) fn current(&self, cluster: u32) -> ModelState<'_> {
        self.state.current(cluster)
    }

    /// Loss of a model on the candidates' own data; NaN where the task has no loss.
    ///
    /// # Errors
    /// If the task lacks the loss of one of them, or fails.
    pub fn losses(
        &self,
        model: &[f32],
        candidates: &[ClientId],
        parallel: bool,
    ) -> Result<Vec<(ClientId, f64)>, RunError> {
        self.check(self.state.round.next(), Need::Losses(candidates))?;
        let state = self.state.view(model, PrivateView::of(&self.state.private));
        let losses = self.task.losses();
        let one = |&client: &ClientId| (client, self.client_loss(losses, client, &state));
        let found =
            if parallel { candidates.par_iter().map(one).collect() } else { candidates.iter().map(one).collect() };
        self.check_work(self.state.round.next())?;
        Ok(found)
    }

    /// Loss of a model on a mini-batch of each candidate's own data; NaN where it has none.
    ///
    /// # Errors
    /// If the task fails.
    pub fn batch_losses(
        &self,
        model: &[f32],
        (turn, size): (Turn, usize),
        candidates: &[ClientId],
        parallel: bool,
    ) -> Result<Vec<(ClientId, f64)>, RunError> {
        let state = self.state.view(model, PrivateView::of(&self.state.private));
        let one = |&client: &ClientId| {
            let Some(losses) = self.task.losses().filter(|_| !self.halt.is_due()) else { return (client, f64::NAN) };
            let mut rng = self.world.streams.stream(Purpose::BatchOrder, client.0, u32::MAX - turn.0);
            let places = drawn(losses.losses_of(client), size, &mut rng);
            if places.is_empty() {
                return (client, f64::NAN);
            }
            let loss = losses.batch_loss(client, &state, &places);
            (client, self.faults.or(("batch_loss", Some(client)), loss, f64::NAN))
        };
        let found =
            if parallel { candidates.par_iter().map(one).collect() } else { candidates.iter().map(one).collect() };
        self.check_work(self.state.round.next())?;
        Ok(found)
    }

    /// A mini-batch as a share of a client's data; 1 if it is all.
    pub fn share_of_batch(&self, client: ClientId, size: usize) -> f64 {
        let all = self.task.losses().map_or(0, |losses| losses.losses_of(client));
        if size < all { size as f64 / all as f64 } else { 1.0 }
    }

    /// The main measure of a model on the candidates' own data, negated where smaller is better; NaN where it has none.
    ///
    /// # Errors
    /// If the task fails.
    pub fn qualities(
        &self,
        model: &[f32],
        candidates: &[ClientId],
        parallel: bool,
    ) -> Result<Vec<(ClientId, f64)>, RunError> {
        let state = self.state.view(model, PrivateView::of(&self.state.private));
        let one = |&client: &ClientId| {
            let mut values = self.no_values();
            let weight = self.measured_on(On::Client(client), &state, false, &mut values);
            (client, if weight > 0.0 { self.quality_and_loss(&values)[0] } else { f64::NAN })
        };
        let found =
            if parallel { candidates.par_iter().map(one).collect() } else { candidates.iter().map(one).collect() };
        self.check_work(self.state.round.next())?;
        Ok(found)
    }

    /// Loss of a model on a client's own data; NaN where the task has no loss, or fails.
    pub(super) fn client_loss(
        &self,
        losses: Option<&dyn task::Losses>,
        client: ClientId,
        state: &ModelState<'_>,
    ) -> f64 {
        // Nobody looks at what is left out once the run is stopped.
        let Some(losses) = losses.filter(|_| !self.halt.is_due()) else { return f64::NAN };
        self.faults.or(("client_loss", Some(client)), losses.client_loss(client, state), f64::NAN)
    }

    /// Measures of a model: their weight, 0 where the task fails.
    pub(super) fn measured_on(&self, on: On<'_>, state: &ModelState<'_>, parallel: bool, values: &mut [f64]) -> f64 {
        let found = self.task.measure(on, state, self.effort(parallel), values);
        let client = if let On::Client(client) = on { Some(client) } else { None };
        self.faults.or(("evaluate", client), found, 0.0)
    }

    /// Whether losses of clusters' models are looked up.
    pub fn tells_losses(&self) -> bool {
        self.task.script().is_some_and(Script::tells_losses)
    }

    /// Loss of a cluster's model for an edge server, which is looked up.
    ///
    /// # Errors
    /// If it is missing.
    pub fn told_loss(&self, edge: EdgeId, cluster: u32) -> Result<f64, RunError> {
        let round = self.state.round;
        let told = self.task.script().map_or(Ok(f64::NAN), |script| script.told_loss(round, edge, cluster));
        told.map_err(|message| RunError::Task { round, message })
    }

    /// Mean losses of all clusters' models on the training examples of an edge server's clients, or on its test
    /// examples; NaN where there is none.
    pub fn losses_of_server(&self, edge: EdgeId, members: &[ClientId], on: LossesOn, parallel: bool) -> Vec<f64> {
        let measures = &self.world.measures;
        let Some((loss, _)) = measures.loss() else { return vec![f64::NAN; self.state.models.len()] };
        let on = match on {
            LossesOn::Train => On::Server(edge, members),
            LossesOn::Test => On::ServerTest(edge, members, self.test_of(edge).unwrap_or_default()),
        };
        let states: Vec<ModelState<'_>> =
            (0..).zip(&self.state.models).map(|(cluster, _)| self.current(cluster)).collect();
        let mut values = vec![self.no_values(); states.len()];
        let found = self.task.measure_each(on, &states, self.effort(parallel), &mut values);
        match self.faults.or(("evaluate", None), found, 0.0) > 0.0 {
            true => values.into_iter().map(|values| values[loss]).collect(),
            false => vec![f64::NAN; states.len()],
        }
    }

    /// Training examples of these clients.
    pub fn examples_of(&self, members: &[ClientId]) -> usize {
        members.iter().map(|&client| self.task.examples(client)).sum()
    }

    /// A question that clients know by a name.
    pub fn probe(&self, name: &str) -> Option<ProbeKind> {
        self.task.probe_kinds().iter().find(|kind| kind.name == name).copied()
    }

    /// The clients' answers to a question before a selection, one after the other.
    pub fn answers(
        &self,
        kind: &ProbeKind,
        model: &[f32],
        turn: Turn,
        clients: &[ClientId],
        parallel: bool,
    ) -> Result<Vec<f64>, RunError> {
        let state = self.state.view(model, PrivateView::of(&self.state.private));
        let jobs: Vec<JobKey> = clients.iter().map(|&client| JobKey { client, number: turn.into() }).collect();
        let probes = self.task.probes().expect("a kind is one of the task's");
        let answers = probes.answers(kind, &jobs, &self.context(Wants::default()), &state, parallel);
        let answers = self.faults.or(("answers", None), answers, Vec::new());
        self.check_work(self.state.round.next())?;
        assert_eq!(answers.len(), kind.numbers * jobs.len(), "an answer has the numbers that its kind declares");
        Ok(answers)
    }

    /// The answers that updates bring: each from the model sent to its client, and from the client's private part then.
    pub(super) fn answers_to(&self, kind: &ProbeKind, work: &[Work], parallel: bool) -> Vec<Vec<f64>> {
        let one = |work: &Work| {
            let Work { client, number, round, ref sent, .. } = *work;
            let kept = self.task.private_of(client, sent.private.as_deref(), &self.world.streams);
            let instead = [(client, &*kept)];
            let instead = if kept.is_empty() { &[][..] } else { &instead[..] };
            let private = PrivateView { table: &self.state.private, instead };
            let state = ModelState { round: Round(round.0.saturating_sub(1)), ..self.state.view(&sent.model, private) };
            self.answer(kind, JobKey { client, number }, &state)
        };
        if parallel { work.par_iter().map(one).collect() } else { work.iter().map(one).collect() }
    }

    fn answer(&self, kind: &ProbeKind, job: JobKey, state: &ModelState<'_>) -> Vec<f64> {
        let mut answer = Vec::with_capacity(kind.numbers);
        let probes = self.task.probes().expect("a kind is one of the task's");
        match probes.answer(kind, job, &self.context(Wants::default()), state, &mut answer) {
            Ok(()) => assert_eq!(answer.len(), kind.numbers, "an answer has the numbers that its kind declares"),
            failed => self.faults.or(("answer", Some(job.client)), failed, ()),
        }
        answer
    }

    /// Bytes of an answer that does not travel as its numbers.
    pub fn answer_bytes(&self, kind: &ProbeKind, client: ClientId, turn: Turn) -> Option<u64> {
        self.task.probes()?.bytes(kind, JobKey { client, number: turn.into() }, &self.world.context())
    }

    fn no_values(&self) -> Vec<f64> {
        vec![f64::NAN; self.world.measures.of_data.len()]
    }

    /// The score of a model where its quality is judged: on validation data, or else on test data.
    pub(in crate::run) fn score(&self, state: &ModelState<'_>, parallel: bool) -> ModelScore {
        let measures = &self.world.measures;
        let mut values = self.no_values();
        let on = if measures.has_valid { On::Valid } else { On::Test };
        self.measured_on(on, state, parallel, &mut values);
        let main = measures.main().expect("a task that is judged measures something");
        ModelScore {
            loss: measures.loss().map_or(f64::NAN, |(loss, _)| values[loss]),
            quality: main.better.quality(values[measures.main]),
        }
    }

    /// The quality of the current model, of the first cluster where there are several. It is read off the metrics of
    /// the current models where these are given and have it.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
    pub fn quality(&self, measured: Option<&[(MetricId, f64)]>, parallel: bool) -> Result<f64, RunError> {
        let measures = &self.world.measures;
        let place = if measures.has_valid { Place::Valid } else { Place::Test };
        // With cluster models, metrics are means over these.
        if let (Some(measured), Some(main), true) = (measured, measures.main(), self.state.models.len() == 1)
            && let Some(value) = value_of(measured, main.at(place))
        {
            return Ok(main.better.quality(value));
        }
        self.check_measures()?;
        let found = self.score(&self.current(0), parallel).quality;
        self.check_work(self.state.round)?;
        Ok(found)
    }

    /// The metrics of the current models.
    ///
    /// # Errors
    /// If the task lacks a number that it measures, or fails, or the run is stopped.
    pub fn evaluate(&self, evaluated: Evaluated<'_>) -> Result<Measured, RunError> {
        self.check_measures()?;
        let found = self.evaluate_state(&self.current(0), evaluated);
        self.check_work(self.state.round)?;
        Ok(found)
    }

    /// The main measure among the values of measures, negated where smaller is better, and the loss. NaN for a value
    /// that is not measured.
    pub fn quality_and_loss(&self, values: &[f64]) -> [f64; 2] {
        let measures = &self.world.measures;
        let quality = measures.main().map_or(f64::NAN, |main| main.better.quality(values[measures.main]));
        [quality, measures.loss().map_or(f64::NAN, |(loss, _)| values[loss])]
    }

    /// The measures on test data among the metrics of a round; `None` if one is missing.
    pub fn on_test(&self, metrics: &Metrics) -> Option<Vec<f64>> {
        let of_data = self.world.measures.of_data.iter();
        of_data.map(|measure| value_of(metrics, measure.at(Place::Test))).collect()
    }

    /// The metrics of a model; where there are clusters, `state` has the model of the first.
    fn evaluate_state(&self, state: &ModelState<'_>, evaluated: Evaluated<'_>) -> Measured {
        let Evaluated { clients, servers, scopes, parallel } = evaluated;
        let measures = &self.world.measures;
        let mut metrics = Metrics::new();
        let has_tests = !scopes.is_empty() && self.test_of(EdgeId(0)).is_some();
        let is_split = has_tests && self.state.models.len() > 1;
        let of_servers = match servers || is_split {
            true => self.of_servers(state, scopes, parallel),
            false => Vec::new(),
        };
        let mut of_model = vec![f64::NAN; measures.of_model.len()];
        let mut held_out = vec![self.no_values(); if measures.has_valid { 2 } else { 1 }];
        if self.state.models.len() == 1 || scopes.is_empty() {
            // A part of a model is measured at no place but clients.
            held_out.truncate(if measures.is_personal { 0 } else { held_out.len() });
            let found = self.task.measure_all(state, self.effort(parallel), &mut held_out, &mut of_model);
            self.faults.or(("evaluate", None), found, ());
        } else {
            held_out = self.on_held_out(state, scopes, is_split, parallel);
            if !of_model.is_empty() {
                self.measured_on(On::Model, state, parallel, &mut of_model);
            }
        }
        if is_split {
            held_out[0] = together(of_servers.iter().flatten(), self.no_values());
        }
        for (place, values) in [Place::Test, Place::Valid].into_iter().zip(held_out) {
            metrics.extend(measures.of_data.iter().map(|measure| measure.at(place)).zip(values));
        }
        metrics.extend(measures.of_model.iter().map(|measure| measure.at(Place::Model)).zip(of_model));
        if clients {
            let cluster_of = self.clusters_of_clients(scopes);
            let everyone: Vec<ClientId> = (0..self.world.population.len()).map(ClientId::from_index).collect();
            let one = |&client: &ClientId| {
                let cluster = cluster_of.get(client.index()).copied().unwrap_or(0);
                self.measured(On::Client(client), state, cluster, false)
            };
            let found: Vec<Option<Weighted>> =
                if parallel { everyone.par_iter().map(one).collect() } else { everyone.iter().map(one).collect() };
            self.statistics(Place::Clients, &found, &mut metrics);
        }
        if servers && !scopes.is_empty() {
            self.statistics(Place::Servers, &of_servers, &mut metrics);
        }
        if !self.edges.is_empty() {
            self.statistics(Place::Edges, &self.of_edges(state, scopes, parallel), &mut metrics);
        }
        if !servers {
            return Measured { metrics, servers: Vec::new() };
        }
        let servers = of_servers.into_iter().map(|found| found.map(|(values, _)| values)).collect();
        Measured { metrics, servers }
    }

    /// The measures of each edge server under the model that it has sent, on the same data; `None` if it has sent none.
    fn of_edges(&self, state: &ModelState<'_>, scopes: &[ServerScope<'_>], parallel: bool) -> Vec<Option<Weighted>> {
        let one = |((index, &(members, _)), model): ((usize, &ServerScope<'_>), &Option<Arc<[f32]>>)| {
            let server = EdgeId::from_index(index);
            let on = On::of_server(server, members, self.test_of(server));
            let mut values = self.no_values();
            let state = ModelState { model: model.as_ref()?, ..*state };
            let weight = self.measured_on(on, &state, parallel, &mut values);
            (weight > 0.0).then_some((values, weight))
        };
        scopes.iter().enumerate().zip(&self.edges).map(one).collect()
    }

    /// The measures of each edge server under its model: on its test examples, or else on the task's substitute for its
    /// data.
    fn of_servers(&self, state: &ModelState<'_>, scopes: &[ServerScope<'_>], parallel: bool) -> Vec<Option<Weighted>> {
        let one = |(index, &(members, cluster)): (usize, &ServerScope<'_>)| {
            let server = EdgeId::from_index(index);
            self.measured(On::of_server(server, members, self.test_of(server)), state, cluster, parallel)
        };
        scopes.iter().enumerate().map(one).collect()
    }

    /// The measures of cluster models on test data and, if there are any, on validation data: the mean over edge
    /// servers of each one's model's measures, weighted by their clients' examples; then NaN on test data, if these are
    /// split among servers.
    fn on_held_out(
        &self,
        state: &ModelState<'_>,
        scopes: &[ServerScope<'_>],
        is_split: bool,
        parallel: bool,
    ) -> Vec<Vec<f64>> {
        let has_valid = self.world.measures.has_valid;
        let mut all = vec![self.no_values(); if has_valid { 2 } else { 1 }];
        if is_split && !has_valid {
            return all;
        }
        let mut parts = vec![Vec::new(); all.len()];
        for (cluster, model) in (0..).zip(&self.state.models) {
            let mine = scopes.iter().filter(|(_, of)| *of == cluster);
            let weight: usize = mine.map(|(members, _)| self.examples_of(members)).sum();
            if weight > 0 {
                let model = if cluster == 0 { state.model } else { model };
                let (state, effort) = (ModelState { model, ..*state }, self.effort(parallel));
                let found = self.task.measure_all(&state, effort, &mut all, &mut []);
                self.faults.or(("evaluate", None), found, ());
                parts.iter_mut().zip(&all).for_each(|(parts, values)| parts.push((values.clone(), weight as f64)));
            }
        }
        parts.iter().map(|parts| together(parts.iter(), self.no_values())).collect()
    }

    /// The cluster of each client; empty where there is one.
    fn clusters_of_clients(&self, scopes: &[ServerScope<'_>]) -> Vec<u32> {
        let mut cluster_of = Vec::new();
        if self.state.models.len() > 1 {
            cluster_of.resize(self.world.population.len(), 0);
            for (members, cluster) in scopes {
                members.iter().for_each(|client| cluster_of[client.index()] = *cluster);
            }
        }
        cluster_of
    }

    /// The measures under the model of a cluster; `None` without data to measure on.
    fn measured(&self, on: On<'_>, state: &ModelState<'_>, cluster: u32, parallel: bool) -> Option<Weighted> {
        let mut values = self.no_values();
        let model = if cluster == 0 { state.model } else { &self.state.models[cluster as usize] };
        let weight = self.measured_on(on, &ModelState { model, ..*state }, parallel, &mut values);
        (weight > 0.0).then_some((values, weight))
    }

    /// Statistics of each measure over those where there is something to measure on.
    fn statistics(&self, place: Place, found: &[Option<Weighted>], metrics: &mut Metrics) {
        for (index, measure) in self.world.measures.of_data.iter().enumerate() {
            let values: Vec<f64> = found.iter().flatten().map(|(values, _)| values[index]).collect();
            metrics.extend(statistics(place, measure, &values));
        }
    }
}

/// The mean of the values of parts, by their weights; `nothing` if there is no part.
fn together<'a>(parts: impl Iterator<Item = &'a Weighted>, nothing: Vec<f64>) -> Vec<f64> {
    let (mut sums, mut total, mut all) = (vec![0.0; nothing.len()], 0.0, vec![Vec::new(); nothing.len()]);
    for (values, weight) in parts {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        all.iter_mut().zip(values).for_each(|(all, value)| all.push(*value));
        total += weight;
    }
    if total == 0.0 {
        return nothing;
    }
    sums.iter().zip(all).map(|(sum, all)| between(sum / total, &all)).collect()
}
