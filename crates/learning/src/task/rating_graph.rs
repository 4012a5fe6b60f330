//! Ratings predicted on graphs: each client has a graph of users, items and trust, and all learn one network.
//!
//! # Definition
//! The models are those of [`graph_network`]; of a client everything but the network's parameters
//! stays with it. A client's graph has as nodes the users and items of the ratings that it holds, whatever these are
//! for, and as edges its training ratings and the trust between its users. Features of nodes, where they are drawn, are
//! the same on every client and never sent.
//!
//! Measures, on test and validation ratings: `rmse`, `mae` and `loss` (the mean squared error), pooled over clients,
//! each of which predicts its own ratings on its own graph. A client's data are its test ratings, an edge server's
//! those of its clients. The loss of a client is the mean over its training ratings.
//!
//! # Cost
//! Evaluation: one pass of the network over every client's graph, which test and validation ratings share. Memory: the
//! graphs and `4·embedding` bytes a node and client.
//!
//! # Determinism
//! Start: stream (ModelInit, 0, 0). Features: streams (Example, user, 15) and (Example, item, 16). A job: stream
//! (BatchOrder, client, job). Sums over ratings are in `f64`, in the order of clients.

/// What tasks on these data tell of what clients hold, whatever they learn.
macro_rules! of_holdings {
    () => {
        fn has_valid(&self) -> bool {
            self.holdings.has_valid()
        }

        fn tables(&self) -> Vec<(&'static str, String)> {
            self.holdings.maps()
        }

        fn references(&self) -> References {
            self.holdings.references()
        }

        fn counts(&self) -> Vec<(&'static str, u64)> {
            self.holdings.count()
        }

        fn graph(&self) -> Option<serde_json::Value> {
            Some(self.holdings.described())
        }

        fn skew(&self) -> Option<&Skew> {
            Some(self.holdings.skew())
        }

        fn warnings(&self) -> Vec<String> {
            self.holdings.warnings()
        }
    };
}

pub mod factors;
mod holdings;

pub use holdings::{ClientGraph, Holdings};

use super::{Context, Job, ModelState, On, PrivateView, References, Task, Worker, evaluate_apart};
use crate::data::partition::Skew;
use crate::graph_network::{self, Network, Pairs, Prepared, Scratch, Shape};
use crate::layout::{Layout, Scope, Segment, Update};
use crate::metric::loss::LOSS;
use crate::metric::mae::MAE;
use crate::metric::rmse::RMSE;
use crate::metric::{Definition, Errors};
use crate::model::weights::Tensor;
use crate::ratings::Part;
use crate::trainer::LocalTraining;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile as standard_normal;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::{Purpose, Streams};
use rayon::prelude::*;

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

/// What is measured on data, in the order of the values.
const METRICS: [&Definition; 3] = [&RMSE, &MAE, &LOSS];

/// What is measured on data.
pub fn measures(has_valid: bool) -> Measures {
    let of_data = METRICS.map(|metric| metric.measure).to_vec();
    Measures { of_data, of_model: Vec::new(), has_valid, main: 0 }
}

/// Graphs of all clients, and the network.
#[derive(Debug)]
pub struct RatingGraph {
    shape: Shape,
    layout: Layout,
    holdings: Holdings,
    prepared: Vec<Prepared>,
    start: Option<Vec<f32>>,
}

/// Writes the measures of sums in their order, and gives the number of ratings.
pub(super) fn measure<'a>(all: impl Iterator<Item = &'a Errors>, values: &mut [f64]) -> f64 {
    let total = Errors::total(all);
    values.iter_mut().zip(METRICS).for_each(|(value, metric)| *value = metric.of_errors(&total));
    total.count
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
        Self { layout: Layout::new(segments.collect()), shape, holdings, prepared, start }
    }

    /// Who holds what.
    pub const fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    fn network(&self, client: ClientId) -> Network<'_> {
        let graph = &self.holdings.clients()[client.index()].graph;
        Network { shape: &self.shape, graph, prepared: &self.prepared[client.index()] }
    }

    /// Sums over the ratings of some parts that each of some clients holds.
    fn sums<const PARTS: usize>(
        &self,
        clients: &[ClientId],
        parts: [Part; PARTS],
        model: &[f32],
        parallel: bool,
    ) -> Vec<[Errors; PARTS]> {
        let one = |scratch: &mut Scratch, client: &ClientId| {
            let network = self.network(*client);
            network.embed(model, scratch);
            parts.map(|part| {
                let pairs = self.holdings.clients()[client.index()].part(part);
                let errors = network.errors(model, pairs, &all(pairs), scratch);
                Errors::of(errors.iter().map(|&error| f64::from(error)))
            })
        };
        if parallel {
            clients.par_iter().map_init(Scratch::default, one).collect()
        } else {
            let mut scratch = Scratch::default();
            clients.iter().map(|client| one(&mut scratch, client)).collect()
        }
    }

    fn everybody(&self) -> Vec<ClientId> {
        (0..self.prepared.len()).map(ClientId::from_index).collect()
    }

    /// The loss of each training rating of a client.
    fn losses(&self, client: ClientId, model: &[f32], scratch: &mut Scratch) -> Vec<f64> {
        let network = self.network(client);
        let pairs = self.holdings.clients()[client.index()].part(Part::Train);
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

    fn examples(&self, client: ClientId) -> usize {
        self.holdings.examples(client)
    }

    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        Some(self.holdings.categories())
    }

    fn all_examples(&self) -> u64 {
        self.holdings.all_examples()
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        let graph = &self.holdings.clients()[client.index()].graph;
        let of_pass = 6 * (graph.nodes() * self.shape.parameters() + 2 * graph.edges() * self.shape.hidden);
        let steps = settings.examples(self.examples(client)) / settings.batch.min(self.examples(client).max(1)) as f64;
        steps * of_pass as f64
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, update: &mut Update) {
        let Context { settings, streams, loss_rms } = *context;
        let Job { client, round, number, start, .. } = *job;
        let todo = graph_network::Job {
            start,
            pairs: self.holdings.clients()[client.index()].part(Part::Train),
            lr_factor: settings.schedule.factor(round.0) as f32,
            order: streams.stream(Purpose::BatchOrder, client.0, number.0),
        };
        update.clear();
        let worker: &mut graph_network::Worker = worker.keep();
        let outcome = worker.train(&self.network(client), settings, &todo, &mut update.parameters);
        update.first_loss = outcome.loss;
        update.loss_rms = loss_rms.then_some(outcome.loss_rms);
        update.diverged = outcome.diverged;
    }

    fn evaluate(&self, on: On<'_>, state: &ModelState<'_>, parallel: bool, values: &mut [f64]) -> f64 {
        let (clients, part) = match on {
            On::Test => (self.everybody(), Part::Test),
            On::Valid => (self.everybody(), Part::Valid),
            On::Client(client) => (vec![client], Part::Test),
            On::Server(_, members) | On::ServerTest(_, members, _) => (members.to_vec(), Part::Test),
            On::Model => {
                values.fill(f64::NAN);
                return 0.0;
            }
        };
        let sums = self.sums(&clients, [part], state.model, parallel);
        measure(sums.iter().flatten(), values)
    }

    fn evaluate_both(&self, state: &ModelState<'_>, parallel: bool, [test, valid]: [&mut [f64]; 2]) {
        if !self.has_valid() {
            return evaluate_apart(self, state, parallel, [test, valid]);
        }
        let sums = self.sums(&self.everybody(), [Part::Test, Part::Valid], state.model, parallel);
        measure(sums.iter().map(|[of_test, _]| of_test), test);
        measure(sums.iter().map(|[_, of_valid]| of_valid), valid);
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> f64 {
        let worker: &mut graph_network::Worker = worker.keep();
        self.losses(client, state.model, &mut worker.scratch).iter().map(|loss| loss * loss).sum()
    }

    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> f64 {
        let losses = self.losses(client, state.model, &mut Scratch::default());
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    fn tensors(&self, models: &[&[f32]], _private: &PrivateView<'_>) -> Vec<Tensor> {
        let tensors = self.shape.tensors().into_iter();
        tensors
            .map(|tensor| {
                let values = models[0][tensor.offset..][..tensor.entries()].to_vec();
                Tensor { name: tensor.name, shape: tensor.shape, values }
            })
            .collect()
    }

    of_holdings!();
}

#[cfg(test)]
mod tests;
