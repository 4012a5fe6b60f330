//! Ratings predicted on graphs: each client has a graph of users, items and trust, and all learn one network.
//!
//! # Definition
//! The models are those of [`graph_network`]; of a client everything but the network's parameters
//! stays with it. A client's graph has as nodes the users and items of the ratings that it holds, whatever these are
//! for, and as edges its training ratings and the trust between its users. Features of nodes, where they are drawn, are
//! the same on every client and never sent.
//!
//! Measures, on test and validation ratings: `rmse`, `mae` and `loss` (the mean squared error), and those of
//! [`of_known`](crate::metric::of_known) that a scenario adds, pooled over clients, each of which predicts its own
//! ratings on its own graph. A client's data are its test ratings, an edge server's
//! those of its clients. The loss of a client is the mean over its training ratings.
//!
//! # Cost
//! Evaluation: one pass of the network over every client's graph, which test and validation ratings share. Memory: the
//! graphs and `4·embedding` bytes a node and client; and a network's buffers for each thread that has evaluated.
//!
//! # Determinism
//! Start: stream (ModelInit, 0, 0). Features: streams (Example, user, 15) and (Example, item, 16). A job: stream
//! (BatchOrder, client, job). Errors over ratings are in `f64`, in the order of clients.

pub mod factors;
mod holdings;

pub use holdings::{ClientGraph, Holdings};

use super::{Appendix, Ask, Context, DealtData, Description, Job, Losses, ModelState, On, Task, Worker};
use crate::graph_network::{self, Network, Pairs, Prepared, Scratch, Shape};
use crate::layout::{Layout, Scope, Segment, Update};
use crate::metric::loss::LOSS;
use crate::metric::mae::MAE;
use crate::metric::rmse::RMSE;
use crate::metric::{Definition, Known};
use crate::model::weights::TensorLayout;
use crate::ratings::Part;
use crate::trainer::{DenseJob, LocalTraining, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile as standard_normal;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::{Purpose, Streams};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Numbers of streams, as documented above.
const OF_USERS: u32 = 15;
const OF_ITEMS: u32 = 16;

/// The features of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// `N(0, 1/embedding)` for each user and item.
    Random,
    /// A one at place `min(d, embedding − 1)` for a node with `d` neighbours.
    Degree,
    /// All ones.
    Constant,
    /// A row for each user, then for each item.
    Table(Vec<f32>),
}

/// The metrics on data, in the order of the values, with those that a scenario adds.
fn metrics(more: &[&'static Definition]) -> Vec<&'static Definition> {
    [&RMSE, &MAE, &LOSS].into_iter().chain(more.iter().copied()).collect()
}

/// The measures on data, with those that a scenario adds.
pub fn measures(has_valid: bool, more: &[&'static Definition]) -> Measures {
    let of_data = metrics(more).iter().map(|metric| metric.measure).collect();
    Measures { of_data, has_valid, main: 0, ..Measures::default() }
}

/// Graphs of all clients, and the network.
#[derive(Debug)]
pub struct RatingGraph {
    shape: Shape,
    layout: Layout,
    holdings: Holdings,
    prepared: Vec<Prepared>,
    start: Option<Vec<f32>>,
    metrics: Vec<&'static Definition>,
    /// Buffers of evaluations that are over: the genie makes thousands, each of which would allocate them anew.
    kept: Mutex<Vec<Scratch>>,
}

/// Buffers of an evaluation, which go back to their task.
struct Lent<'a> {
    scratch: Scratch,
    kept: &'a Mutex<Vec<Scratch>>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.scratch));
    }
}

/// Writes the measures of sums in their order, and the number of ratings.
pub(super) fn measure<'a>(metrics: &[&Definition], all: impl Iterator<Item = &'a Known> + Clone, ask: &mut Ask<'_>) {
    let total = Known::total(all);
    ask.values.iter_mut().zip(metrics).for_each(|(value, metric)| *value = metric.of_ratings(&total));
    ask.weight = total.all.count;
}

/// The numbers of all ratings of a list.
fn all(pairs: &Pairs) -> Vec<u32> {
    (0..pairs.ends.len() as u32).collect()
}

impl RatingGraph {
    /// The task of clients with these holdings; `start` are parameters to start from, if they are not drawn.
    ///
    /// # Panics
    /// If a table of features has not the shape's width, or a start is not as long as the network's parameters.
    pub fn new(
        shape: Shape,
        holdings: Holdings,
        features: &Features,
        start: Option<Vec<f32>>,
        streams: &Streams,
    ) -> Self {
        assert!(start.as_ref().is_none_or(|start| start.len() == shape.parameters()), "a start is checked");
        let (users, width) = (holdings.users(), shape.embedding);
        let drawn = match features {
            Features::Random => random(&holdings, width, streams),
            _ => Vec::new(),
        };
        let prepare = |client: &ClientGraph| {
            Prepared::new(&shape, &client.graph, |node, row| match features {
                Features::Random => row.copy_from_slice(&drawn[client.nodes[node] as usize * width..][..width]),
                Features::Table(table) => row.copy_from_slice(&table[client.nodes[node] as usize * width..][..width]),
                Features::Constant => row.fill(1.0),
                Features::Degree => {
                    row.fill(0.0);
                    row[client.graph.degree(node).min(width - 1)] = 1.0;
                }
            })
        };
        if let Features::Table(table) = features {
            assert_eq!(table.len(), (users + holdings.items()) * width, "features of every node are checked");
        }
        let prepared = holdings.clients().iter().map(prepare).collect();
        let segments = shape.tensors().into_iter();
        let segments = segments.map(|tensor| {
            let entries = tensor.entries();
            Segment::dense(tensor.name, entries, Scope::Shared)
        });
        let (layout, metrics) = (Layout::new(segments.collect()), metrics(&[]));
        Self { layout, shape, holdings, prepared, start, metrics, kept: Mutex::default() }
    }

    /// With these metrics beside the usual ones.
    #[must_use]
    pub fn with_metrics(mut self, more: &[&'static Definition]) -> Self {
        self.metrics = metrics(more);
        self
    }

    /// Each client's users and ratings.
    pub const fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    fn lend(&self) -> Lent<'_> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lent { scratch: kept.unwrap_or_default(), kept: &self.kept }
    }

    fn network(&self, client: ClientId) -> Network<'_> {
        let graph = &self.holdings.clients()[client.index()].graph;
        Network { shape: &self.shape, graph, prepared: &self.prepared[client.index()] }
    }

    /// Errors over the ratings of some parts that each of some clients holds.
    fn sums<const PARTS: usize>(
        &self,
        clients: &[ClientId],
        parts: [Part; PARTS],
        model: &[f32],
        Effort { parallel, halt }: Effort<'_>,
    ) -> Vec<[Known; PARTS]> {
        let one = |Lent { scratch, .. }: &mut Lent<'_>, client: &ClientId| {
            if halt.is_due() {
                return parts.map(|_| Known::default());
            }
            let network = self.network(*client);
            network.embed(model, scratch);
            parts.map(|part| {
                let pairs = self.holdings.clients()[client.index()].part(part);
                let errors = network.errors(model, pairs, &all(pairs), scratch);
                self.holdings.errors(*client, part, errors.iter().map(|&error| f64::from(error)))
            })
        };
        if parallel {
            clients.par_iter().map_init(|| self.lend(), one).collect()
        } else {
            let mut lent = self.lend();
            clients.iter().map(|client| one(&mut lent, client)).collect()
        }
    }

    fn everybody(&self) -> Vec<ClientId> {
        (0..self.prepared.len()).map(ClientId::from_index).collect()
    }

    fn training(&self, client: ClientId) -> &Pairs {
        self.holdings.clients()[client.index()].part(Part::Train)
    }

    /// Does a job; a batch of all ratings has their own order.
    fn run(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, wanted: Wanted<'_>) {
        let dense = DenseJob { keeps_whole: true, ..job.dense(context, self.shape.parameters()) };
        let worker: &mut graph_network::Worker = worker.keep();
        worker.run(&self.network(job.client), self.training(job.client), &dense, wanted);
    }

    /// Writes the measures on one kind of data.
    fn measure(&self, ask: &mut Ask<'_>, effort: Effort<'_>) {
        let (clients, part) = match ask.on {
            On::Test => (self.everybody(), Part::Test),
            On::Valid => (self.everybody(), Part::Valid),
            On::Client(client) => (vec![client], Part::Test),
            On::Server(_, members) | On::ServerTest(_, members, _) => (members.to_vec(), Part::Test),
            On::Model => return ask.values.fill(f64::NAN),
        };
        let sums = self.sums(&clients, [part], ask.state.model, effort);
        measure(&self.metrics, sums.iter().flatten(), ask);
    }

    /// The loss of each training rating of a client.
    fn rating_losses(&self, client: ClientId, model: &[f32], scratch: &mut Scratch) -> Vec<f64> {
        let network = self.network(client);
        let pairs = self.training(client);
        network.embed(model, scratch);
        let errors = network.errors(model, pairs, &all(pairs), scratch);
        errors.iter().map(|&error| f64::from(error) * f64::from(error)).collect()
    }
}

/// Features of all nodes.
fn random(holdings: &Holdings, width: usize, streams: &Streams) -> Vec<f32> {
    let scale = 1.0 / sqrt(width as f64);
    let mut features = Vec::with_capacity((holdings.users() + holdings.items()) * width);
    for (count, index) in [(holdings.users(), OF_USERS), (holdings.items(), OF_ITEMS)] {
        for entity in 0..count as u32 {
            let mut rng = streams.stream(Purpose::Example, entity, index);
            features.extend((0..width).map(|_| (scale * standard_normal(rng.uniform())) as f32));
        }
    }
    features
}

impl Task for RatingGraph {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        match &self.start {
            Some(start) => parameters.copy_from_slice(start),
            None => self.shape.init(&mut streams.stream(Purpose::ModelInit, 0, 0), parameters),
        }
    }

    fn describe(&self) -> &Description {
        self.holdings.describe()
    }

    fn appendix(&self) -> Appendix {
        self.holdings.appendix(&self.metrics)
    }

    fn controls_on(&self, parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        self.holdings.controls_on(parts, &self.metrics)
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        let graph = &self.holdings.clients()[client.index()].graph;
        let of_pass = 6 * (graph.nodes() * self.shape.parameters() + 2 * graph.edges() * self.shape.hidden);
        let examples = self.holdings.examples(client);
        let steps = settings.examples(examples) / settings.batch.min(examples.max(1)) as f64;
        steps * of_pass as f64
    }

    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure> {
        self.run(job, context, worker, Wanted::Update(update));
        Ok(())
    }

    fn tells_losses_after_an_epoch(&self) -> bool {
        true
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure> {
        for asks in asks.chunk_by_mut(|test, valid| test.goes_with(valid)) {
            match asks {
                [test, valid] => {
                    let parts = [Part::Test, Part::Valid];
                    let sums = self.sums(&self.everybody(), parts, test.state.model, effort);
                    measure(&self.metrics, sums.iter().map(|[of_test, _]| of_test), test);
                    measure(&self.metrics, sums.iter().map(|[_, of_valid]| of_valid), valid);
                }
                asks => asks.iter_mut().for_each(|ask| self.measure(ask, effort)),
            }
        }
        Ok(())
    }

    fn test_of_alone(&self, client: ClientId) -> On<'static> {
        On::Client(client)
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.shape.tensors()
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn dealt(&self) -> Option<&dyn DealtData> {
        Some(self)
    }
}

impl Losses for RatingGraph {
    fn has_gradient(&self) -> bool {
        true
    }

    fn gradient(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        self.run(job, context, worker, Wanted::Gradient(gradient));
        Ok(self.describe().examples_of(job.client) > 0)
    }

    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        let losses = self.rating_losses(client, state.model, &mut self.lend().scratch);
        Ok(losses.iter().sum::<f64>() / losses.len() as f64)
    }

    fn has_batch_losses(&self) -> bool {
        true
    }

    fn losses_of(&self, client: ClientId) -> usize {
        self.training(client).ends.len()
    }

    fn batch_loss(&self, client: ClientId, state: &ModelState<'_>, places: &[usize]) -> Result<f64, Failure> {
        let losses = self.rating_losses(client, state.model, &mut self.lend().scratch);
        Ok(places.iter().map(|&place| losses[place]).sum::<f64>() / places.len() as f64)
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> Result<f64, Failure> {
        let worker: &mut graph_network::Worker = worker.keep();
        Ok(self.rating_losses(client, state.model, &mut worker.scratch).iter().map(|loss| loss * loss).sum())
    }
}

impl DealtData for RatingGraph {
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        Some(self.holdings.categories())
    }
}

#[cfg(test)]
mod tests;
