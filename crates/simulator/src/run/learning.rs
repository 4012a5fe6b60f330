//! What a run has learned: lazy local training, aggregation, evaluation, for any task.

mod accuracy;
mod evaluation;
mod folding;
mod hindsight;
mod intake;
mod subsets;

pub(super) use accuracy::Accuracies;
pub(super) use evaluation::{Evaluated, Measured, ServerScope};
pub(super) use hindsight::{EdgeState, Past, Snapshot};
pub(super) use intake::{EdgeModel, Intake, Sent, Sought, Trained, Work};
pub(super) use subsets::Before;

use self::folding::{contributions, edge_average, related, step};
use super::RunError;
use super::checkpoint::Shared;
use crate::policy::{DeviationFrom, Wants};
use crate::protocol::{Combine, Rule};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::oracle::utility::ModelScore;
use fedgenie_core::oracle::utility::contribution::deviation;
use fedgenie_core::state::State;
use fedgenie_learning::aggregate::{Aging, Contribution, ServerOptimizer};
use fedgenie_learning::layout::{Layout, Update};
use fedgenie_learning::task::{self, Context, Job, ModelState, Need, PrivateTable, PrivateView, Task};
use rayon::prelude::*;
use std::sync::Arc;

/// A round's aggregation. It borrows the models, so that the updates in it are read before the next aggregation begins.
pub(super) struct Aggregated<'a, 'w> {
    pub learning: &'a Learning<'w>,
    /// What the updates said of their training, ascending by client.
    pub trained: Vec<Trained>,
    /// Whether anything was aggregated.
    pub is_new_model: bool,
}

/// The models of a run, and what its clients keep.
pub(super) struct Learning<'w> {
    world: &'w World,
    /// With the data of the round under way.
    task: &'w dyn Task,
    /// Whether data have moved from server to server.
    pub has_drifted: bool,
    layout: &'w Layout,
    /// One for each cluster; their shared segments are equal.
    models: Vec<Arc<[f32]>>,
    /// The optimizer of each; they agree on shared segments.
    servers: Vec<ServerOptimizer>,
    private: PrivateTable,
    /// For each row of a table, the round in which it was last moved.
    moved: Vec<Round>,
    /// What each server remembers, beside the models.
    memories: Vec<Vec<f64>>,
    /// The round of the models.
    round: Round,
    /// Buffers of updates, kept from round to round.
    updates: Vec<Update>,
    /// The work of the updates aggregated last, where a policy evaluates subsets of them.
    folded: Vec<Work>,
}

impl<'w> Learning<'w> {
    /// The start of a run; `clusters` is the number of cluster models.
    pub fn new(world: &'w World, task: &'w dyn Task, clusters: u32) -> Self {
        let aging = aging(world);
        let layout = task.layout();
        let server = || ServerOptimizer::new(&world.training.aggregation, layout.clone()).with_aging(aging);
        let clients = (0..world.population.len()).map(ClientId::from_index);
        let keeps = clients.into_iter().any(|client| task.private_len(client) > 0);
        Self {
            world,
            task,
            has_drifted: false,
            layout,
            models: (0..clusters).map(|cluster| task.initial_model(cluster, &world.streams).into()).collect(),
            servers: (0..clusters).map(|_| server()).collect(),
            private: if keeps { PrivateTable::new(world.population.len()) } else { PrivateTable::default() },
            moved: vec![Round(0); layout.rows()],
            memories: vec![vec![0.0; task.memory_len()]; world.servers()],
            round: Round(0),
            updates: Vec::new(),
            folded: Vec::new(),
        }
    }

    fn aging(&self) -> Aging {
        aging(self.world)
    }

    /// The models, and what clients and servers keep.
    pub fn exchange(&mut self, state: &mut State<'_>, shared: &mut Shared) {
        let Self {
            world: _,
            task: _,
            has_drifted: _,
            layout: _,
            models,
            servers,
            private,
            moved,
            memories,
            round,
            updates: _,
            folded: _,
        } = self;
        models.iter_mut().for_each(|model| shared.exchange(model, state));
        state.fields(servers);
        state.field(private);
        state.fields(moved);
        memories.iter_mut().for_each(|memory| state.fields(memory));
        state.field(round);
    }

    /// Data are those of a round, which begins or was the last one before a run goes on.
    pub fn take_data_of(&mut self, round: Round) {
        if let (Some(task), has_drifted) = self.world.task_in(round) {
            (self.task, self.has_drifted) = (task, has_drifted);
        }
    }

    /// Does something with the data of a round that may be over by now.
    pub fn with_data_of<T>(&mut self, round: Round, work: impl FnOnce(&mut Self) -> T) -> T {
        let now = (self.task, self.has_drifted);
        self.take_data_of(round);
        let done = work(self);
        (self.task, self.has_drifted) = now;
        done
    }

    /// The test examples of a server now, where the task deals them to servers.
    pub fn test_of(&self, server: EdgeId) -> Option<&'w [u32]> {
        if self.has_drifted { self.world.test_of_moved(server) } else { self.world.test_of(server) }
    }

    /// What a client of a cluster is sent now.
    pub fn sent(&self, cluster: u32, client: ClientId) -> Sent {
        Sent { model: self.model(cluster), private: self.private.get(client).cloned(), cluster }
    }

    /// What an edge server's client is sent, whose server has this model.
    pub fn sent_by(&self, model: Arc<[f32]>, cluster: u32, client: ClientId) -> Sent {
        Sent { model, private: self.private.get(client).cloned(), cluster }
    }

    /// The current model of a cluster; there is one, number 0, where there are no clusters.
    pub fn model(&self, cluster: u32) -> Arc<[f32]> {
        self.models[cluster as usize].clone()
    }

    /// All parameters as the digest has them: the shared segments and cluster 0's, then those of the other clusters.
    pub fn digested(&self) -> Vec<Arc<[f32]>> {
        self.models.clone()
    }

    /// The contents of a file with the models and what clients keep.
    pub fn file(&self) -> Vec<u8> {
        let models: Vec<&[f32]> = self.models.iter().map(|model| &**model).collect();
        let tensors = self.task.tensors(&models, &PrivateView::of(&self.private));
        fedgenie_learning::model::weights::to_safetensors(&tensors)
    }

    fn context(&self, wants: Wants) -> Context<'w> {
        Context { loss_rms: wants.loss_rms, ..self.world.context() }
    }

    /// Trains the given work; the updates lie in `self.updates`, in the order of the list that is returned: ascending
    /// (client, job), without clients that have no data.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    fn train(
        &mut self,
        round: Round,
        mut work: Vec<Work>,
        wants: Wants,
        parallel: bool,
    ) -> Result<Vec<Work>, RunError> {
        // A client without data has nothing to train on.
        work.retain(|work| self.task.examples(work.client) > 0);
        work.sort_unstable_by_key(|work| (work.client, work.number));
        let clients: Vec<ClientId> = work.iter().map(|work| work.client).collect();
        self.check(round, Need::Losses(&clients))?;
        let jobs: Vec<Job<'_>> = work.iter().map(Work::job).collect();
        if self.updates.len() < jobs.len() {
            self.updates.resize_with(jobs.len(), Update::default);
        }
        let context = self.context(wants);
        let updates = &mut self.updates[..jobs.len()];
        task::train(self.task, &context, &jobs, parallel, updates);
        for (work, update) in work.iter().zip(&*updates) {
            if update.diverged {
                return Err(RunError::Diverged { client: work.client, round });
            }
            let found = self.task.update_bytes(update, &context);
            if !self.layout.is_empty() && found != work.up_bytes {
                let what = format!("the update of {} has {found} bytes; {} travelled", work.client, work.up_bytes);
                return Err(RunError::Violated { what, records: Vec::new() });
            }
        }
        Ok(work)
    }

    /// What the updates of `work`, which was just trained, say of their training, and what they bring.
    fn said(&self, work: &[Work], sought: Sought, parallel: bool) -> Vec<Trained> {
        let said = |(work, update): (&Work, &Update)| Trained {
            client: work.client,
            turn: work.turn,
            round: work.round,
            staleness: work.staleness,
            examples: self.task.examples(work.client),
            loss: update.first_loss,
            loss_rms: update.loss_rms,
            quality: None,
            deviation: None,
            change: None,
            answer: Vec::new(),
            latency: work.latency,
        };
        let mut trained: Vec<Trained> = work.iter().zip(&self.updates).map(said).collect();
        if let Some(kind) = sought.answer {
            let answers = self.answers_to(&kind, work, parallel);
            trained.iter_mut().zip(answers).for_each(|(trained, answer)| trained.answer = answer);
        }
        trained
    }

    /// Looks at the updates themselves, as far as that is wanted. `aggregated` is what was made of them.
    fn inspect(&self, work: &[Work], wants: Wants, aggregated: &[f32], trained: &mut [Trained], parallel: bool) {
        if !wants.quality && !wants.change && wants.deviation.is_none() {
            return;
        }
        let one = |((work, update), trained): ((&Work, &Update), &mut Trained)| {
            let mut buffer = Vec::new();
            let model = update.model(self.layout, &work.sent.model, &mut buffer);
            let length = self.layout.trained();
            trained.deviation = wants.deviation.map(|from| {
                let from = match from {
                    DeviationFrom::Sent => &work.sent.model,
                    DeviationFrom::Aggregated => aggregated,
                };
                deviation(&model[..length], &from[..length])
            });
            trained.change = wants.change.then(|| change(&model[..length], &work.sent.model));
            if wants.quality {
                trained.quality = Some(self.score_of(work.client, model, update).quality);
            }
        };
        let updates = &self.updates[..work.len()];
        if parallel {
            work.par_iter().zip(updates).zip(trained).for_each(one);
        } else {
            work.iter().zip(updates).zip(trained).for_each(one);
        }
    }

    /// The score of a client's own model.
    fn score_of(&self, client: ClientId, model: &[f32], update: &Update) -> ModelScore {
        let instead = [(client, &*update.private)];
        let instead = if update.private.is_empty() { &[][..] } else { &instead[..] };
        let private = PrivateView { table: &self.private, instead };
        self.score(&self.state(model, private), false)
    }

    fn state<'a>(&'a self, model: &'a [f32], private: PrivateView<'a>) -> ModelState<'a> {
        ModelState { model, private, round: self.round, moved: &self.moved, memories: &self.memories }
    }

    /// Takes over what the clients of the updates keep; the last job of a client counts.
    fn keep(&mut self, work: &[Work]) {
        for (work, update) in work.iter().zip(&self.updates) {
            if !update.private.is_empty() {
                self.private.set(work.client, &update.private);
            }
        }
    }

    /// What the updates just aggregated changed of what clients keep.
    pub fn kept<'a>(&'a self, trained: &'a [Trained]) -> impl Iterator<Item = (ClientId, &'a [f32])> {
        let pairs = trained.iter().zip(&self.updates).filter(|(_, update)| !update.private.is_empty());
        pairs.map(|(trained, update)| (trained.client, &*update.private))
    }

    /// The update that a report is about, in the order of the reports of the last aggregation.
    pub fn update(&self, index: usize) -> &Update {
        &self.updates[index]
    }

    /// Lets the task relate the updates of `work`, which was just trained, to each other: clients keep what it says.
    /// Returns the weights for age with which updates weigh what it says.
    ///
    /// # Errors
    /// If the policy gave weights, for which that is not defined.
    fn relate<'a>(
        &mut self,
        round: Round,
        work: &'a [Work],
        current: Option<&'a [Arc<[f32]>]>,
    ) -> Result<Vec<f64>, RunError> {
        let updates: Vec<&Update> = self.updates.iter().take(work.len()).collect();
        let start = |work: &'a Work| match current {
            Some(current) => &*current[work.sent.cluster as usize],
            None => &*work.sent.model,
        };
        let sent: Vec<(ClientId, &[f32])> = work.iter().map(|work| (work.client, start(work))).collect();
        let ages: Vec<f64> = work.iter().map(|work| work.staleness_weight).collect();
        let weighting = self.world.training.aggregation.weighting;
        let Some(together) = related(self.task, weighting, &sent, &updates, &ages) else { return Ok(ages) };
        if let Some(weighed) = work.iter().find(|work| work.weight.is_some()) {
            let message = format!(
                "the policy gave {} a weight, and this task lets its server compare updates before they are averaged; \
                 take a policy without weights, or another model",
                weighed.client
            );
            return Err(RunError::Task { round, message });
        }
        self.updates.iter_mut().zip(together.private).for_each(|(update, private)| update.private = private);
        Ok(together.ages)
    }

    /// Folds what a round took in into the models.
    ///
    /// # Errors
    /// The first client whose update is not finite, or the server; the models stay as they were.
    pub fn aggregate(
        &mut self,
        round: Round,
        intake: Intake,
        sought: Sought,
        parallel: bool,
    ) -> Result<Aggregated<'_, 'w>, RunError> {
        let wants = sought.wants;
        self.folded.clear();
        let (trained, is_new_model) = match intake {
            Intake::Nothing => {
                self.remember(round, &[])?;
                (Vec::new(), false)
            }
            Intake::Updates(work, combine) => {
                let work = self.train(round, work, wants, parallel)?;
                let mut trained = self.said(&work, sought, parallel);
                let current = (combine == Combine::Models).then(|| self.models.clone());
                let ages = self.relate(round, &work, current.as_deref())?;
                let contributions = contributions(self.task, &work, &self.updates, &ages, current.as_deref());
                let rows: Vec<&[u32]> = contributions.iter().map(|contribution| contribution.rows).collect();
                let new = step(&mut self.servers, &self.models, &contributions, self.task.all_examples(), round)?;
                let moved = moved_rows(&rows);
                let is_new = new.is_some();
                self.adopt(round, new, &moved);
                self.keep(&work);
                let clients = work.iter().map(|work| work.client).collect();
                self.remember(round, &[(EdgeId(0), clients)])?;
                if wants.quality {
                    self.check_measures()?;
                }
                let aggregated = self.models[0].clone();
                self.inspect(&work, wants, &aggregated, &mut trained, parallel);
                self.folded = if sought.subsets { work } else { Vec::new() };
                (trained, is_new)
            }
            Intake::EdgeModels(models) => {
                let parts: Vec<Update> = models.iter().map(|model| model.part(self.layout)).collect();
                let starts = self.models.clone();
                let contributions: Vec<Contribution<'_>> =
                    models.iter().zip(&parts).map(|(model, part)| model.contribution(part, &starts)).collect();
                let rows: Vec<&[u32]> = parts.iter().map(|part| &*part.rows).collect();
                let new = step(&mut self.servers, &self.models, &contributions, self.task.all_examples(), round)?;
                let moved = moved_rows(&rows);
                let is_new = new.is_some();
                self.adopt(round, new, &moved);
                // A server may have sent several models.
                let mut arrived: Vec<(EdgeId, Vec<ClientId>)> = Vec::new();
                for EdgeModel { edge, arrived: clients, .. } in models {
                    match arrived.iter_mut().find(|(known, _)| *known == edge) {
                        Some((_, known)) => known.extend(clients),
                        None => arrived.push((edge, clients)),
                    }
                }
                self.remember(round, &arrived)?;
                (Vec::new(), is_new)
            }
        };
        Ok(Aggregated { learning: self, trained, is_new_model })
    }

    /// Lets every server remember whose updates it has taken in.
    ///
    /// # Errors
    /// What the task lacks for that.
    fn remember(&mut self, round: Round, arrived: &[(EdgeId, Vec<ClientId>)]) -> Result<(), RunError> {
        self.round = round;
        for (_, clients) in arrived {
            self.check(round, Need::Aggregation(clients))?;
        }
        for (index, memory) in self.memories.iter_mut().enumerate() {
            let server = EdgeId::from_index(index);
            let clients = arrived.iter().find(|(edge, _)| *edge == server).map_or(&[][..], |(_, clients)| clients);
            self.task.remember(round, server, clients, memory);
        }
        Ok(())
    }

    /// Checks that the task has what it will be asked for in a round.
    ///
    /// # Errors
    /// What it lacks.
    fn check(&self, round: Round, need: Need<'_>) -> Result<(), RunError> {
        self.task.check(need).map_err(|message| RunError::Task { round, message })
    }

    /// Checks that the task can measure the current models.
    fn check_measures(&self) -> Result<(), RunError> {
        self.check(self.round, Need::Measures { round: self.round, servers: self.memories.len() })
    }

    fn adopt(&mut self, round: Round, new: Option<Vec<Arc<[f32]>>>, moved: &[u32]) {
        self.round = round;
        if let Some(new) = new {
            self.models = new;
            moved.iter().for_each(|&row| self.moved[row as usize] = round);
        }
    }

    /// Trains the given work for an edge server and averages the updates into its model, which stays as it is if there
    /// is nothing to average. Adds the rows that were moved to `rows`. Returns what the updates said of their training.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    pub fn aggregate_at_edge(
        &mut self,
        round: Round,
        work: Vec<Work>,
        (model, cluster): (&mut Arc<[f32]>, u32),
        rows: &mut Vec<u32>,
        sought: Sought,
        parallel: bool,
    ) -> Result<Vec<Trained>, RunError> {
        let wants = sought.wants;
        self.folded.clear();
        let work = self.train(round, work, wants, parallel)?;
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let mut average = model.to_vec();
        let ages = self.relate(round, &work, None)?;
        let contributions = contributions(self.task, &work, &self.updates, &ages, None);
        let sent: Vec<&[u32]> = contributions.iter().map(|contribution| contribution.rows).chain([&**rows]).collect();
        let moved = moved_rows(&sent);
        edge_average(&self.world.training.aggregation, self.layout).apply(&mut average, &contributions, 0, cluster);
        *rows = moved;
        *model = average.into();
        let mut trained = self.said(&work, sought, parallel);
        self.keep(&work);
        self.inspect(&work, wants, model, &mut trained, parallel);
        self.folded = if sought.subsets { work } else { Vec::new() };
        Ok(trained)
    }
}

/// What age does to weights in the average of the server, or of the cloud.
const fn aging(world: &World) -> Aging {
    match &world.protocol.rule {
        Rule::Buffered(_) => Aging::Discounting,
        Rule::Hierarchical(rule) if rule.buffer.is_some() => Aging::Discounting,
        Rule::Rounds(_) | Rule::Hierarchical(_) => Aging::Relative,
    }
}

/// What a client changed of a model's trained parameters.
fn change(own: &[f32], sent: &[f32]) -> Vec<f32> {
    own.iter().zip(sent).map(|(own, sent)| own - sent).collect()
}

/// All rows of some ascending lists, each once, ascending.
fn moved_rows(lists: &[&[u32]]) -> Vec<u32> {
    let mut rows = lists.concat();
    rows.sort_unstable();
    rows.dedup();
    rows
}
