//! The same ratings predicted by factors of users and items, at one client that holds everything: centralised training
//! as a reference.
//!
//! # Definition
//! With rows `p_u`, `q_i` of `factors` numbers and `n` training ratings, a step on a batch `B` descends
//!
//! `mean_B ½ (r̂_ui − r_ui)² + (λ/2n) (‖P‖² + ‖Q‖²) + social/n`
//!
//! | model | `r̂_ui` | social |
//! |---|---|---|
//! | `mf` | `μ + p_u·q_i` with the mean `μ` of the training ratings | none |
//! | `sorec` | `g(p_u·q_i)` for ratings brought to `[0, 1]`, `g(x) = 1/(1+e^{−x})` | `(λ_C/2) Σ (g(p_u·z_v) − c_uv)² + (λ/2) ‖Z‖²` over both directions of trust, `c_uv = √(d_v/(d_u+d_v))`, `d` the number of those who trust each other |
//! | `soreg` | `μ + p_u·q_i` | `(β/2) Σ s_uv ‖p_u − p_v‖²` over both directions of trust, `s_uv = (ρ+1)/2` with Pearson's correlation `ρ` of the ratings of items that both rated, means over all of a user's ratings; 0 where that is not defined |
//!
//! Rows start from `N(0, 0.1²)`. What a job reports as loss, and the measures, are squared errors in units of the
//! ratings.
//!
//! # Source
//! A. Mnih, R. Salakhutdinov, "Probabilistic matrix factorization", NIPS 2007; H. Ma et al., "SoRec: social
//! recommendation using probabilistic matrix factorization", CIKM 2008; H. Ma et al., "Recommender systems with social
//! regularization", WSDM 2011 (individual-based).
//!
//! # Deviations from the source
//! Trust goes both ways. `soreg` and `mf` have the mean, which the sources leave out: without it, an item with few
//! ratings is predicted near 0. DenseJob is that of `[training]`.
//!
//! # Determinism
//! Start: stream (ModelInit, 0, 0), users, items, trust. A job: stream (BatchOrder, 0, job). Plain `f32` arithmetic, in
//! the order of ratings, then of trust; sums of losses in `f64`.

use super::{Holdings, all, measure, metrics};
use crate::lanes::functions;
use crate::layout::{Layout, Scope, Segment, Update};
use crate::local::Told;
use crate::metric::Definition;
use crate::model::weights::TensorLayout;
use crate::ratings::Part;
use crate::task::{Appendix, Ask, Context, Description, Job, Losses, ModelState, On, Task, Worker};
use crate::trainer::{Buffers, DenseJob, LocalTraining, Slopes, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile as standard_normal;
use fedgenie_core::rng::{Purpose, Streams};
use std::ops::Range;

/// Standard deviation of the numbers of first rows.
const DEVIATION: f64 = 0.1;

/// Which model, with the weights of its terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Matrix factorisation.
    Mf,
    /// Trust is predicted from the users' rows as well, with weight λ_C.
    SoRec {
        /// λ_C.
        trust: f32,
    },
    /// Users with trust between them have similar rows, with weight β.
    SoReg {
        /// β.
        trust: f32,
    },
}

/// A scenario's settings of such a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Which.
    pub kind: Kind,
    /// Length of a row; at least 1.
    pub factors: usize,
    /// λ.
    pub lambda: f32,
    /// Least and largest rating.
    pub range: [f32; 2],
}

/// All ratings, and rows of factors.
#[derive(Debug)]
pub struct RatingFactors {
    settings: Settings,
    layout: Layout,
    holdings: Holdings,
    mean: f32,
    /// Both directions of trust with `c` or `s`.
    ties: Vec<(u32, u32, f32)>,
    start: Option<Vec<f32>>,
    metrics: Vec<&'static Definition>,
}

/// A thread's buffers.
#[derive(Default)]
struct Kept {
    order: Vec<u32>,
    buffers: Buffers,
}

/// The losses of factors on training ratings.
struct Ratings<'a>(&'a RatingFactors);

impl Slopes for Ratings<'_> {
    fn slopes(&mut self, parameters: &mut [f32], batch: &[u32], gradient: &mut [f32], mut tally: Told<'_>) -> bool {
        let mut sum = 0.0;
        self.0.slopes(parameters, batch, gradient, |loss| {
            sum += loss;
            if let Some(tally) = &mut tally {
                tally.tell(loss);
            }
        });
        f64::is_finite(sum)
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).fold(0.0, |sum, (x, y)| sum + x * y)
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + functions::exp(-x))
}

/// Adds multiples of one row to another's slopes.
fn add(slopes: &mut [f32], factor: f32, row: &[f32]) {
    slopes.iter_mut().zip(row).for_each(|(slope, x)| *slope += factor * x);
}

impl Settings {
    /// Names and rows of the tables.
    pub fn tables(&self, users: usize, items: usize) -> Vec<(&'static str, usize)> {
        let mut tables = vec![("users.weight", users), ("items.weight", items)];
        if matches!(self.kind, Kind::SoRec { .. }) {
            tables.push(("trust.weight", users));
        }
        tables
    }
}

impl RatingFactors {
    /// The task of one client that holds everything; `start` are parameters to start from, if they are not drawn.
    ///
    /// # Panics
    /// If there are several clients, or a start is not as long as the parameters.
    pub fn new(settings: Settings, holdings: Holdings, start: Option<Vec<f32>>) -> Self {
        assert_eq!(holdings.clients().len(), 1, "everything is at one client");
        let train = holdings.clients()[0].part(Part::Train);
        let sum: f64 = train.values.iter().map(|&value| f64::from(value)).sum();
        let mean = (sum / train.values.len().max(1) as f64) as f32;
        let ties = match settings.kind {
            Kind::Mf => Vec::new(),
            Kind::SoRec { .. } => confidences(&holdings),
            Kind::SoReg { .. } => similarities(&holdings),
        };
        let tables = settings.tables(holdings.users(), holdings.items()).into_iter();
        let segments = tables.map(|(name, rows)| Segment::dense(name, rows * settings.factors, Scope::Shared));
        let layout = Layout::new(segments.collect());
        assert!(start.as_ref().is_none_or(|start| start.len() == layout.len()), "a start is checked");
        Self { settings, layout, holdings, mean, ties, start, metrics: metrics(&[]) }
    }

    /// With these metrics beside the usual ones.
    #[must_use]
    pub fn with_metrics(mut self, more: &[&'static Definition]) -> Self {
        self.metrics = metrics(more);
        self
    }

    /// Does a job; a batch of all ratings has their own order.
    fn run(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, mut wanted: Wanted<'_>) {
        let dense = DenseJob { keeps_whole: true, ..job.dense(context, self.layout.len()) };
        let Kept { order, buffers } = worker.keep();
        order.clear();
        order.extend(all(self.holdings.clients()[job.client.index()].part(Part::Train)));
        dense.run(order, &mut Ratings(self), buffers, &mut wanted);
    }

    fn row(&self, row: usize) -> Range<usize> {
        row * self.settings.factors..(row + 1) * self.settings.factors
    }

    /// The row of `z_u`.
    fn of_trust(&self, user: u32) -> Range<usize> {
        self.row(self.holdings.users() + self.holdings.items() + user as usize)
    }

    /// The rows of a pair: a client that holds everything numbers nodes as they are numbered among all.
    fn rows(&self, (user, node): (u32, u32)) -> [Range<usize>; 2] {
        let client = &self.holdings.clients()[0];
        [user, node].map(|node| self.row(client.nodes[node as usize] as usize))
    }

    /// Prediction, and its slope by the product of the rows, in units of the ratings.
    fn predict(&self, model: &[f32], pair: (u32, u32)) -> (f32, f32) {
        let [user, item] = self.rows(pair);
        let product = dot(&model[user], &model[item]);
        let [least, most] = self.settings.range;
        match self.settings.kind {
            Kind::Mf | Kind::SoReg { .. } => (self.mean + product, 1.0),
            Kind::SoRec { .. } => {
                let share = logistic(product);
                (least + (most - least) * share, (most - least) * share * (1.0 - share))
            }
        }
    }

    /// Errors of predictions for a part.
    fn errors(&self, part: Part, model: &[f32]) -> impl Iterator<Item = f64> {
        let pairs = self.holdings.clients()[0].part(part);
        let both = pairs.ends.iter().zip(&pairs.values);
        both.map(move |(&pair, &value)| f64::from(self.predict(model, pair).0 - value))
    }

    /// The slopes of a batch; tells the loss of each rating.
    fn slopes(&self, model: &[f32], batch: &[u32], gradient: &mut [f32], mut tell: impl FnMut(f64)) {
        gradient.fill(0.0);
        let pairs = self.holdings.clients()[0].part(Part::Train);
        // SoRec's errors are those of ratings brought to [0, 1].
        let [least, most] = self.settings.range;
        let unit = if matches!(self.settings.kind, Kind::SoRec { .. }) { most - least } else { 1.0 };
        let share = 1.0 / (batch.len() as f32 * unit * unit);
        for &number in batch {
            let pair = pairs.ends[number as usize];
            let (found, slope) = self.predict(model, pair);
            let error = found - pairs.values[number as usize];
            tell(f64::from(error) * f64::from(error));
            let factor = error * slope * share;
            let [user, item] = self.rows(pair);
            add(&mut gradient[user.clone()], factor, &model[item.clone()]);
            add(&mut gradient[item], factor, &model[user]);
        }
        let of_all = 1.0 / pairs.ends.len().max(1) as f32;
        match self.settings.kind {
            Kind::Mf => {}
            Kind::SoRec { trust } => {
                for &(one, other, confidence) in &self.ties {
                    let (user, of_trust) = (self.row(one as usize), self.of_trust(other));
                    let share = logistic(dot(&model[user.clone()], &model[of_trust.clone()]));
                    let factor = trust * of_all * (share - confidence) * share * (1.0 - share);
                    add(&mut gradient[user.clone()], factor, &model[of_trust.clone()]);
                    add(&mut gradient[of_trust], factor, &model[user]);
                }
            }
            Kind::SoReg { trust } => {
                for &(one, other, similarity) in &self.ties {
                    let (user, friend) = (self.row(one as usize), self.row(other as usize));
                    for (own, of_friend) in user.zip(friend) {
                        let slope = trust * of_all * similarity * (model[own] - model[of_friend]);
                        gradient[own] += slope;
                        gradient[of_friend] -= slope;
                    }
                }
            }
        }
        add(gradient, self.settings.lambda * of_all, model);
    }
}

/// `c_uv` of both directions of trust.
fn confidences(holdings: &Holdings) -> Vec<(u32, u32, f32)> {
    let mut degrees = vec![0_u32; holdings.users()];
    for &(one, other) in holdings.trust() {
        degrees[one as usize] += 1;
        degrees[other as usize] += 1;
    }
    let of = |user: u32| f64::from(degrees[user as usize]);
    let tie = |one: u32, other: u32| (one, other, sqrt(of(other) / (of(one) + of(other))) as f32);
    holdings.trust().iter().flat_map(|&(one, other)| [tie(one, other), tie(other, one)]).collect()
}

/// `s_uv` of both directions of trust, where it is not 0.
fn similarities(holdings: &Holdings) -> Vec<(u32, u32, f32)> {
    let mut of_users = vec![Vec::new(); holdings.users()];
    for rating in holdings.split().part(Part::Train) {
        of_users[rating.user as usize].push((rating.item, f64::from(rating.value)));
    }
    of_users.iter_mut().for_each(|rated| rated.sort_unstable_by_key(|&(item, _)| item));
    let mean = |rated: &Vec<(u32, f64)>| rated.iter().map(|(_, value)| value).sum::<f64>() / rated.len() as f64;
    let similarity = |one: u32, other: u32| {
        let [one, other] = [one, other].map(|user| &of_users[user as usize]);
        let (of_one, of_other) = (mean(one), mean(other));
        let (mut both, mut squares) = (0.0, [0.0; 2]);
        for &(item, value) in one {
            if let Ok(place) = other.binary_search_by_key(&item, |&(item, _)| item) {
                let (x, y) = (value - of_one, other[place].1 - of_other);
                both += x * y;
                squares = [squares[0] + x * x, squares[1] + y * y];
            }
        }
        let scale = sqrt(squares[0] * squares[1]);
        (scale > 0.0).then(|| f64::midpoint(both / scale, 1.0) as f32)
    };
    let ties = holdings.trust().iter().filter_map(|&(one, other)| Some((one, other, similarity(one, other)?)));
    ties.flat_map(|(one, other, s)| [(one, other, s), (other, one, s)]).collect()
}

impl Task for RatingFactors {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        match &self.start {
            Some(start) => parameters.copy_from_slice(start),
            None => {
                let mut rng = streams.stream(Purpose::ModelInit, 0, 0);
                parameters.fill_with(|| (DEVIATION * standard_normal(rng.uniform())) as f32);
            }
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
        settings.examples(self.holdings.examples(client)) * 6.0 * self.settings.factors as f64
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

    fn evaluate(&self, asks: &mut [Ask<'_>], _effort: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            let part = match ask.on {
                On::Test | On::Client(_) | On::Server(..) | On::ServerTest(..) => Part::Test,
                On::Valid => Part::Valid,
                On::Model => {
                    ask.values.fill(f64::NAN);
                    continue;
                }
            };
            let sums = self.holdings.errors(ClientId(0), part, self.errors(part, ask.state.model));
            measure(&self.metrics, [&sums].into_iter(), ask);
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        let tables = self.settings.tables(self.holdings.users(), self.holdings.items()).into_iter();
        TensorLayout::in_turn(tables.map(|(name, rows)| (name.to_owned(), vec![rows, self.settings.factors])))
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }
}

impl Losses for RatingFactors {
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
        let sum: f64 = self.errors(Part::Train, state.model).map(|error| error * error).sum();
        Ok(sum / self.holdings.examples(client) as f64)
    }

    fn squared_losses(&self, _client: ClientId, state: &ModelState<'_>, _worker: &mut Worker) -> Result<f64, Failure> {
        Ok(self.errors(Part::Train, state.model).map(|error| error * error * error * error).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::holdings;
    use super::*;

    #[test]
    fn slopes_of_factors_are_those_of_the_definition() {
        let streams = Streams::new(6);
        for kind in [Kind::Mf, Kind::SoRec { trust: 3.0 }, Kind::SoReg { trust: 2.0 }] {
            let settings = Settings { kind, factors: 3, lambda: 0.5, range: [1.0, 5.0] };
            let task = RatingFactors::new(settings, holdings(6, None, true), None);
            let model = (&task as &dyn Task).initial_model(0, &streams);
            let mut gradient = vec![0.0; model.len()];
            let train = task.holdings.clients()[0].part(Part::Train).clone();
            let batch: Vec<u32> = (0..train.ends.len() as u32).filter(|number| number % 2 == 0).collect();
            task.slopes(&model, &batch, &mut gradient, |_| {});
            let mut exact: Vec<f64> = model.iter().map(|&x| f64::from(x)).collect();
            let row = |model: &[f64], row: usize| -> Vec<f64> { model[3 * row..3 * row + 3].to_vec() };
            let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            let g = |x: f64| 1.0 / (1.0 + (-x).exp());
            let (users, items) = (task.holdings.users(), task.holdings.items());
            let objective = |model: &[f64]| {
                let of_rating = |&number: &u32| {
                    let (user, item) = train.ends[number as usize];
                    let [user, item] =
                        [user, item].map(|node| task.holdings.clients()[0].nodes[node as usize] as usize);
                    let product = product(&row(model, user), &row(model, item));
                    let value = f64::from(train.values[number as usize]);
                    let error = match kind {
                        Kind::SoRec { .. } => g(product) - (value - 1.0) / 4.0,
                        _ => f64::from(task.mean) + product - value,
                    };
                    error * error / 2.0
                };
                let loss = batch.iter().map(of_rating).sum::<f64>() / batch.len() as f64;
                let tie = |&(one, other, weight): &(u32, u32, f32)| {
                    let (own, weight) = (row(model, one as usize), f64::from(weight));
                    match kind {
                        Kind::SoRec { .. } => {
                            let other = row(model, users + items + other as usize);
                            3.0 * (g(product(&own, &other)) - weight).powi(2)
                        }
                        _ => {
                            let other = row(model, other as usize);
                            2.0 * weight * own.iter().zip(&other).map(|(x, y)| (x - y) * (x - y)).sum::<f64>()
                        }
                    }
                };
                let of_all = 1.0 / train.ends.len() as f64;
                let square = 0.5 * model.iter().map(|x| x * x).sum::<f64>();
                loss + of_all * (task.ties.iter().map(tie).sum::<f64>() + square) / 2.0
            };
            assert_eq!(task.ties.is_empty(), kind == Kind::Mf);
            for place in (0..model.len()).step_by(7) {
                let own = exact[place];
                let mut at = |number: f64| {
                    exact[place] = number;
                    objective(&exact)
                };
                let expected = (at(own + 1e-5) - at(own - 1e-5)) / 2e-5;
                exact[place] = own;
                let found = f64::from(gradient[place]);
                assert!(
                    (found - expected).abs() < 1e-6 + 1e-3 * expected.abs(),
                    "{kind:?}, {place}: {found}, {expected}"
                );
            }
        }
    }
}
