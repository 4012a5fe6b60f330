//! The state of learning as a value: models, optimizers, and the memories of clients, servers and the algorithm.
//!
//! # Definition
//! A clone shares all parts with the original until one of both changes them. [`State::open`] opens a round with the
//! data of that round; [`State::fold`] takes the opened round and the updates that arrived, and makes the next state.
//! A counterfactual folds on a clone. The regret in hindsight, an edge server, the cloud and the run itself fold by
//! this one function.
//!
//! # Determinism
//! As [`fold`](crate::algorithm::fold): the order of the updates does not matter.

mod sent;

pub use sent::{Sent, SharedModels};

use crate::algorithm::{
    AggregationConfig, Aging, Algorithm, Contribution, Memory, Related, ServerConfig, ServerOptimizer, Weighting,
};
use crate::layout::{Layout, Update};
use crate::private::{PrivateTable, PrivateView};
use crate::task::{ModelState, Task};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round};
use fedgenie_core::rng::Streams;
use std::sync::Arc;

/// Inputs of folding that never change during a run.
#[derive(Clone, Debug)]
pub struct Learner {
    /// How parameters are arranged.
    pub layout: Arc<Layout>,
    /// The rules of jobs and of the combination.
    pub algorithm: Algorithm,
    /// How updates are weighted.
    pub weighting: Weighting,
    /// Number of clients.
    pub clients: usize,
    /// The cloud's step, or the one server's.
    server: ServerOptimizer,
    /// The mean of changes itself.
    mean: ServerOptimizer,
    /// An edge server's step: it averages updates; only the cloud keeps a part of the old model.
    edge: ServerOptimizer,
}

impl Learner {
    /// Of so many clients that learn a model of such a layout.
    pub fn new(
        layout: &Layout,
        algorithm: &Algorithm,
        aggregation: &AggregationConfig,
        aging: Aging,
        clients: usize,
    ) -> Self {
        let weighting = aggregation.weighting();
        let at_edge = match weighting {
            Weighting::TotalSize => Weighting::DataSize,
            Weighting::DataSize | Weighting::Uniform => weighting,
        };
        let at_edge = AggregationConfig {
            weighting: Some(at_edge),
            server: ServerConfig::default(),
            rows: aggregation.rows,
            normalise: aggregation.normalise,
        };
        let layout = Arc::new(layout.clone());
        let make = |config: &AggregationConfig| {
            let server = ServerOptimizer::new(config, layout.clone());
            server.with_combination(algorithm.combine.clone(), clients).with_privacy(algorithm.privacy.clone())
        };
        let mean = AggregationConfig { server: ServerConfig::default(), ..aggregation.clone() };
        let server = make(aggregation).with_aging(aging).with_rule(algorithm.outside.clone());
        let mean = make(&mean).with_aging(aging);
        let edge = make(&at_edge);
        Self { layout, algorithm: algorithm.clone(), weighting, clients, server, mean, edge }
    }
}

/// Everything that a run has learned.
#[derive(Clone, Debug)]
pub struct State {
    /// The round of the models.
    pub round: Round,
    /// One for each cluster; their shared segments are equal.
    pub models: Vec<Arc<[f32]>>,
    /// The optimizer of each; they agree on shared segments.
    pub servers: Vec<ServerOptimizer>,
    /// Private state of clients.
    pub private: Arc<PrivateTable>,
    /// For each row of a table, the round in which it was last moved; round 0 if never.
    pub moved: Arc<Vec<Round>>,
    /// Each server's memory for its task, beside the models.
    pub memories: Arc<Vec<Vec<f64>>>,
    /// The algorithm's memory.
    pub memory: Memory,
}

/// An opened round, with the data of that round. [`State::fold`] uses it up: a round is folded once, and only if it was
/// opened.
#[derive(Debug)]
#[must_use]
pub struct OpenRound<'t> {
    round: Round,
    task: &'t dyn Task,
}

impl<'t> OpenRound<'t> {
    /// The round.
    pub const fn round(&self) -> Round {
        self.round
    }

    /// The task, with the data of the round.
    pub const fn task(&self) -> &'t dyn Task {
        self.task
    }
}

/// Whose model is folded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The one server's, or the cloud's: those of all clusters.
    Server,
    /// The one server's, by the mean of the changes in the place of its step.
    Mean,
    /// An edge server's, which has the model of this cluster.
    Edge(u32),
}

/// An update that arrived, of a client or of an edge server.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The client that trained. The cloud numbers its edge servers as if they were clients.
    pub client: ClientId,
    /// Which of its jobs.
    pub number: JobNumber,
    /// The cluster whose model it trained; 0 where there is one.
    pub cluster: u32,
    /// How many examples it trained on.
    pub examples: usize,
    /// Weight for its age: 1 for a fresh update, 0 to ignore it.
    pub age: f64,
    /// The coefficient that a policy gave it, in the place of a weight.
    pub weight: Option<f64>,
    /// The learning rate of the job's round; `None` for a model that no job made.
    pub rate: Option<f64>,
    /// The model that its change is counted from.
    pub start: &'a [f32],
    /// The update.
    pub update: &'a Update,
}

impl Arrival<'_> {
    fn contribution(&self, age: f64) -> Contribution<'_> {
        let Self { client, number, cluster, examples, weight, rate, start, update, .. } = *self;
        Contribution {
            client,
            number,
            cluster,
            examples,
            staleness_weight: age,
            start,
            parameters: &update.parameters,
            rows: &update.rows,
            loss: update.start_loss,
            steps: rate.map(|_| update.steps),
            rate: rate.unwrap_or(0.0),
            weight,
        }
    }
}

/// The servers that remember, for their task, which clients' updates they have taken in.
#[derive(Clone, Copy, Debug)]
pub enum Remember<'a> {
    /// Every server; a server that is not listed has taken in no update.
    All(&'a [(EdgeId, Vec<ClientId>)]),
    /// One server; the memories of the others stay the same.
    One(EdgeId, &'a [ClientId]),
    /// No server yet: an edge server's model may not reach the cloud.
    Nobody,
}

/// Why there is no new model.
#[derive(Debug)]
pub enum Unfolded {
    /// A model is not finite after a server's step.
    NotFinite,
    /// A program's step failed.
    Failed(Failure),
}

/// Result of a fold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folded {
    /// Whether there is a new model: whether anything arrived.
    pub is_new: bool,
    /// The rows that were moved, ascending.
    pub rows: Vec<u32>,
    /// Private state of each client, where the algorithm sets it in place of the updates.
    pub private: Option<Vec<Vec<f32>>>,
}

impl State {
    /// The start of a run: `clusters` is the number of cluster models, `servers` that of servers that select clients.
    pub fn new(task: &dyn Task, learner: &Learner, clusters: u32, servers: usize, streams: &Streams) -> Self {
        let clients = learner.clients;
        let ids = || (0..clients).map(ClientId::from_index);
        let keeps = task.private().is_some_and(|state| ids().any(|client| state.len(client) > 0));
        Self {
            round: Round(0),
            models: (0..clusters).map(|cluster| task.initial_model(cluster, streams).into()).collect(),
            servers: vec![learner.server.clone(); clusters as usize],
            private: Arc::new(if keeps { PrivateTable::new(clients) } else { PrivateTable::default() }),
            moved: Arc::new(vec![Round(0); learner.layout.rows()]),
            memories: Arc::new(vec![vec![0.0; task.memory_len()]; servers]),
            memory: Memory::new(&learner.algorithm, learner.layout.len(), clients),
        }
    }

    /// Opens a round with the data of that round.
    pub const fn open<'t>(&self, round: Round, task: &'t dyn Task) -> OpenRound<'t> {
        OpenRound { round, task }
    }

    /// The same state as an edge server sees it that has a model of its own, for a cluster, with `rows` moved since the
    /// cloud's round began.
    #[must_use]
    pub fn at_edge(&self, cluster: u32, model: Arc<[f32]>, rows: &[u32], round: Round) -> Self {
        let mut state = self.clone();
        state.models[cluster as usize] = model;
        state.note_moved(rows, round);
        state
    }

    /// Folds the updates of a round into the models and into the memories of their clients and of the algorithm, and
    /// lets servers remember.
    ///
    /// # Errors
    /// If a model is not finite, or a program's step fails; the models stay as they were, and the state is not to be
    /// gone on with.
    pub fn fold(
        &mut self,
        learner: &Learner,
        open: OpenRound<'_>,
        tier: Tier,
        arrivals: &[Arrival<'_>],
        remember: Remember<'_>,
    ) -> Result<Folded, Unfolded> {
        let OpenRound { round, task } = open;
        let folded = match arrivals.is_empty() && !self.servers[0].steps_alone() {
            true => Folded::default(),
            false => self.fold_arrivals(learner, (round, task), tier, arrivals)?,
        };
        self.round = round;
        self.remember((round, task), remember);
        Ok(folded)
    }

    fn fold_arrivals(
        &mut self,
        learner: &Learner,
        (round, task): (Round, &dyn Task),
        tier: Tier,
        arrivals: &[Arrival<'_>],
    ) -> Result<Folded, Unfolded> {
        let ages: Vec<f64> = arrivals.iter().map(|arrival| arrival.age).collect();
        let (ages, private) = match relate(learner, task, arrivals, &ages) {
            Some((ages, private)) => (ages, Some(private)),
            None => (ages, None),
        };
        let contributions: Vec<Contribution<'_>> =
            arrivals.iter().zip(ages).map(|(arrival, age)| arrival.contribution(age)).collect();
        // The step may use the algorithm's memory of this round.
        if learner.algorithm.job.is_some() || learner.algorithm.keeps_errors() {
            let mut left: Vec<&Arrival<'_>> = arrivals.iter().collect();
            left.sort_unstable_by_key(|arrival| (arrival.client, arrival.number));
            let left: Vec<(ClientId, &Update)> =
                left.into_iter().map(|arrival| (arrival.client, arrival.update)).collect();
            if let Some(rule) = &learner.algorithm.job {
                self.memory.take(&**rule, &learner.layout, &left, learner.clients);
            }
            self.memory.take_errors(&left);
        }
        self.step(learner, task, tier, &contributions)?;
        let mut rows = match self.servers[0].moves_all() {
            true => (0..learner.layout.rows() as u32).collect(),
            false => arrivals.iter().map(|arrival| &*arrival.update.rows).collect::<Vec<_>>().concat(),
        };
        rows.sort_unstable();
        rows.dedup();
        self.note_moved(&rows, round);
        self.keep(arrivals, private.as_deref());
        Ok(Folded { is_new: true, rows, private })
    }

    /// Moves all models by one step, or leaves all of them unchanged if one is not finite.
    fn step(
        &mut self,
        learner: &Learner,
        task: &dyn Task,
        tier: Tier,
        contributions: &[Contribution<'_>],
    ) -> Result<(), Unfolded> {
        // The algorithm's memory belongs to the one server, or to the cloud.
        let moves = matches!(tier, Tier::Server | Tier::Mean);
        let shift = learner.algorithm.job.as_ref().filter(|_| moves).map_or(0.0, |rule| rule.shift());
        let memory = self.memory.clone();
        let shift = (shift != 0.0).then(|| (shift, memory.numbers()));
        let one = |server: &mut ServerOptimizer, old: &[f32], examples: u64, cluster: u32| {
            let mut new = old.to_vec();
            let applied = server.apply_shifted(&mut new, contributions, examples, cluster, shift);
            applied.map_err(Unfolded::Failed)?;
            match new.iter().all(|parameter| parameter.is_finite()) {
                true => Ok(new.into()),
                false => Err(Unfolded::NotFinite),
            }
        };
        match tier {
            Tier::Server => {
                let mut servers = self.servers.clone();
                let all = (0..).zip(servers.iter_mut().zip(&self.models));
                let examples = task.describe().all_examples;
                let models: Result<Vec<Arc<[f32]>>, Unfolded> =
                    all.map(|(cluster, (server, old))| one(server, old, examples, cluster)).collect();
                (self.models, self.servers) = (models?, servers);
            }
            Tier::Mean => {
                let examples = task.describe().all_examples;
                let mut mean = learner.mean.clone().with_memory_of(&self.servers[0]);
                self.models[0] = one(&mut mean, &self.models[0], examples, 0)?;
            }
            Tier::Edge(cluster) => {
                let model = &mut self.models[cluster as usize];
                *model = one(&mut learner.edge.clone(), model, 0, cluster)?;
            }
        }
        Ok(())
    }

    fn note_moved(&mut self, rows: &[u32], round: Round) {
        if !rows.is_empty() {
            let moved = Arc::make_mut(&mut self.moved);
            rows.iter().for_each(|&row| moved[row as usize] = round);
        }
    }

    /// Takes over the private state of the updates' clients; the last job of a client counts.
    fn keep(&mut self, arrivals: &[Arrival<'_>], instead: Option<&[Vec<f32>]>) {
        let kept = |(index, arrival): (usize, &Arrival<'_>)| {
            let kept = instead.map_or(&arrival.update.private, |instead| &instead[index]);
            (!kept.is_empty()).then(|| (arrival.client, arrival.number, Arc::<[f32]>::from(&**kept)))
        };
        let mut kept: Vec<_> = arrivals.iter().enumerate().filter_map(kept).collect();
        if kept.is_empty() {
            return;
        }
        kept.sort_by_key(|(client, number, _)| (*client, *number));
        let table = Arc::make_mut(&mut self.private);
        kept.into_iter().for_each(|(client, _, kept)| table.put(client, kept));
    }

    fn remember(&mut self, (round, task): (Round, &dyn Task), remember: Remember<'_>) {
        let Some(script) = task.script() else { return };
        match remember {
            Remember::All(arrived) => {
                for (index, memory) in Arc::make_mut(&mut self.memories).iter_mut().enumerate() {
                    let server = EdgeId::from_index(index);
                    let known = arrived.iter().find(|(edge, _)| *edge == server);
                    script.remember(round, server, known.map_or(&[][..], |(_, clients)| clients), memory);
                }
            }
            Remember::One(server, clients) => {
                script.remember(round, server, clients, &mut Arc::make_mut(&mut self.memories)[server.index()]);
            }
            Remember::Nobody => {}
        }
    }

    /// A model of this state, for the task to be evaluated.
    pub fn view<'a>(&'a self, model: &'a [f32], private: PrivateView<'a>) -> ModelState<'a> {
        ModelState { model, private, round: self.round, moved: &self.moved, memories: &self.memories }
    }

    /// The model of a cluster, with the private state of clients.
    pub fn current(&self, cluster: u32) -> ModelState<'_> {
        self.view(&self.models[cluster as usize], PrivateView::of(&self.private))
    }
}

/// Compares updates by `Combine::relate`: factors in place of the weights for age, and the private state of each
/// client. `None` if the combination does not compare updates, or if no job made one of them.
fn relate(
    learner: &Learner,
    task: &dyn Task,
    arrivals: &[Arrival<'_>],
    ages: &[f64],
) -> Option<(Vec<f64>, Vec<Vec<f32>>)> {
    if arrivals.iter().any(|arrival| arrival.rate.is_none()) {
        return None;
    }
    let rule = learner.algorithm.combine.as_deref().or_else(|| task.combination())?;
    let sent: Vec<(ClientId, &[f32])> = arrivals.iter().map(|arrival| (arrival.client, arrival.start)).collect();
    let updates: Vec<&Update> = arrivals.iter().map(|arrival| arrival.update).collect();
    let base: Vec<f64> = arrivals.iter().map(|arrival| learner.weighting.of(arrival.examples)).collect();
    let weights: Vec<f64> = base.iter().zip(ages).map(|(base, age)| base * age).collect();
    let Related { weights, private } = rule.relate(&sent, &updates, &weights)?;
    Some((weights.iter().zip(base).map(|(weight, base)| weight / base).collect(), private))
}

#[cfg(test)]
pub(crate) mod tests;
