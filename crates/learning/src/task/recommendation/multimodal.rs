//! The same by users, items, text and images: all parameters travel, whole, both ways.
//!
//! # Definition
//! The model is [`dmrl`]. A client's examples are the positive pairs that it holds, but those of users who
//! rated, as far as the client knows, everything: they have no negative. A client may hold pairs of many users, and a
//! user's pairs may lie at several clients; the *home* of a user is the client with most of them, the first among
//! equals.
//!
//! Measures: those of [`ranking`](crate::ranking), and `loss`: the mean over held-out pairs of the loss of a pair with
//! negatives that are fixed for a seed, which are none of the items that are known (not to be ranked) or to be found;
//! pairs of a user for whom no item is left do not count. A client's and an edge server's data are test ratings of the
//! users whose homes they are. A client's loss is the mean over its training examples, with negatives that are fixed as
//! well. All these losses are of single examples, without the distance correlation and without dropout; the losses that
//! a job reports are those of its steps, with dropout. Where nobody has a candidate to be found and another, all
//! measures but the loss are NaN, and the loss as well if nobody has a held-out pair.
//!
//! # Cost
//! As the model. Fixed negatives: 4 bytes each, `K` for each held-out pair.
//!
//! # Determinism
//! Start: stream (ModelInit, 0, 0). A job: streams (BatchOrder, client, job) and (TrainingNoise, client, job). Fixed
//! negatives: streams (Example, user, 13) of test and (Example, user, 14) of validation data, pair by pair in ascending
//! order of items; (Example, client, 8) of a client's loss, in the order of its positives.

use super::{HeldOut, Source};
use crate::data::partition::Partition;
use crate::dmrl::{self, Features, ItemScores, Network, Objective, Pairs, Shape};
use crate::layout::{Layout, Scope, Segment, Update};
use crate::metric::loss::LOSS;
use crate::model::weights::TensorLayout;
use crate::ranking::{Ranker, ScoreItems};
use crate::ratings::RatingsSplit;
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::task::{Appendix, Ask, Context, Description, Job, Losses, ModelState, On, Task, Worker};
use crate::trainer::{LocalTraining, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::{Purpose, Streams};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of streams, as documented above.
const OF_CLIENT: u32 = 8;
const OF_TEST: u32 = 13;
const OF_VALID: u32 = 14;

/// Examples that are looked at together outside of training.
const TOGETHER: usize = 128;

/// The model and its measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How large the parts of the model are.
    pub shape: Shape,
    /// The loss that a step descends.
    pub objective: Objective,
    /// Cutoffs of the measures; each at least 1.
    pub cutoffs: Vec<usize>,
}

impl Settings {
    /// The measures; `quality` names the one by which models are compared. `None` if there is no such measure.
    pub fn measures(cutoffs: &[usize], quality: &str, has_valid: bool) -> Option<Measures> {
        let mut of_data = Ranker::measures(cutoffs);
        of_data.push(LOSS.measure);
        let main = of_data.iter().position(|measure| measure.name == quality)?;
        Some(Measures { of_data, has_valid, main, ..Measures::default() })
    }
}

/// Ratings, features of items, and the model.
#[derive(Debug)]
pub struct Multimodal {
    settings: Settings,
    layout: Layout,
    source: Source,
    features: Features,
    start: Option<Vec<f32>>,
    description: Description,
    test: Fixed,
    valid: Fixed,
    streams: Streams,
}

/// The data before ratings are spread over clients.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// Features of all items.
    pub features: Features,
    /// Items without features, by mode.
    pub missing: [usize; 2],
    /// As many for each example as it has negatives, one after the other.
    pub triplets: Option<Vec<Triplet>>,
    /// The model to start from, if it is not drawn.
    pub start: Option<Vec<f32>>,
    /// Warnings about the files.
    pub notes: Vec<String>,
}

/// Negatives of held-out pairs.
#[derive(Debug, Default)]
struct Fixed {
    /// User `u` has `negatives[first[u]..first[u + 1]]`, which is empty if no item is left.
    first: Vec<usize>,
    negatives: Vec<u32>,
}

impl Fixed {
    fn draw(held_out: &HeldOut, items: usize, count: usize, streams: &Streams, index: u32) -> Self {
        let users = held_out.relevant.users();
        let mut fixed = Self { first: vec![0], negatives: Vec::new() };
        let mut known = Vec::new();
        for user in 0..users as u32 {
            let relevant = held_out.relevant.of(user);
            known.clear();
            known.extend_from_slice(held_out.excluded.of(user));
            known.extend_from_slice(relevant);
            known.sort_unstable();
            known.dedup();
            let mut draws = streams.stream(Purpose::Example, user, index);
            let all = (0..relevant.len() * count).map_while(|_| negative(&mut draws, items as u32, &known));
            fixed.negatives.extend(all);
            fixed.first.push(fixed.negatives.len());
        }
        fixed
    }

    fn of(&self, user: u32) -> &[u32] {
        &self.negatives[self.first[user as usize]..self.first[user as usize + 1]]
    }
}

/// Scores of items, and on the way the losses of users' held-out pairs.
struct WithLosses<'a> {
    scores: ItemScores<'a>,
    objective: &'a Objective,
    parts: &'a [PartLosses<'a>],
}

/// Losses of the pairs of a held-out part.
struct PartLosses<'a> {
    held_out: &'a HeldOut,
    fixed: &'a Fixed,
    /// For each user, the bits of the sum of losses.
    sums: Vec<AtomicU64>,
}

impl PartLosses<'_> {
    fn add(&self, user: u32, scores: &[f32], Objective { negatives: count, margin, .. }: Objective) {
        let pairs = self.held_out.relevant.of(user).iter().zip(self.fixed.of(user).chunks_exact(count));
        let score = |item: u32| f64::from(scores[item as usize]);
        let loss = |(&positive, negatives): (&u32, &[u32])| {
            let short = |&negative: &u32| {
                let short = f64::from(margin) - score(positive) + score(negative);
                if short <= 0.0 { 0.0 } else { short }
            };
            negatives.iter().map(short).sum::<f64>() / count as f64
        };
        let sum: f64 = pairs.map(loss).sum();
        self.sums[user as usize].store(sum.to_bits(), Ordering::Relaxed);
    }

    /// The mean loss of these users' pairs; NaN without pairs.
    fn mean(&self, users: &[u32]) -> f64 {
        let (mut sum, mut pairs) = (0.0, 0);
        for &user in users.iter().filter(|&&user| !self.fixed.of(user).is_empty()) {
            sum += f64::from_bits(self.sums[user as usize].load(Ordering::Relaxed));
            pairs += self.held_out.relevant.of(user).len();
        }
        let mean = sum / pairs as f64;
        // One NaN.
        if mean.is_nan() { f64::NAN } else { mean }
    }
}

impl ScoreItems for WithLosses<'_> {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        self.scores.score(users, scores);
        let items = scores.len() / users.len();
        for (&user, scores) in users.iter().zip(scores.chunks_exact(items)) {
            self.parts.iter().for_each(|part| part.add(user, scores, *self.objective));
        }
    }
}

impl Multimodal {
    /// The task of a split whose training ratings lie at clients as a partition says, at their own users if
    /// `is_by_user`.
    ///
    /// # Panics
    /// If a setting is out of range, or features or a model have not the shape's lengths.
    pub fn new(
        settings: Settings,
        split: &RatingsSplit,
        (partition, is_by_user): (&Partition, bool),
        material: Material,
        streams: &Streams,
    ) -> Self {
        let Settings { shape, objective, .. } = &settings;
        let Material { features, missing, triplets, start, notes } = material;
        assert_eq!((shape.users, shape.items), (split.users(), split.items()), "the model has these users and items");
        for (values, width) in features.0.iter().zip(shape.features) {
            assert_eq!(values.len(), width.unwrap_or(0) * shape.items, "every item has its features");
        }
        assert!(
            start.as_ref().is_none_or(|start| start.len() == shape.parameters()),
            "a model to start from is checked"
        );
        let source = Source::new(split, (partition, is_by_user), triplets.as_deref(), &settings.cutoffs);
        let mut examples = Vec::with_capacity(source.holdings.clients());
        let mut knows_all = vec![false; shape.users];
        for client in (0..source.holdings.clients()).map(ClientId::from_index) {
            let mut begin = 0;
            let mut count = 0;
            for (&user, &end) in source.holdings.users(client).iter().zip(source.holdings.ends(client)) {
                let own = (end - begin) as usize;
                begin = end;
                if own < shape.items || triplets.is_some() {
                    count += own;
                } else {
                    knows_all[user as usize] = true;
                }
            }
            let given = source.holdings.triplets(client);
            examples.push(given.map_or(count, |given| given.len() / objective.negatives));
        }
        let without_negative = knows_all.iter().filter(|&&knows_all| knows_all).count();
        let draw = |held_out: &HeldOut, index| Fixed::draw(held_out, shape.items, objective.negatives, streams, index);
        Self {
            layout: Layout::new(
                shape
                    .tensors()
                    .iter()
                    .map(|tensor| Segment::dense(&*tensor.name, tensor.entries(), Scope::Shared))
                    .collect(),
            ),
            test: draw(&source.test, OF_TEST),
            valid: source.valid.as_ref().map(|valid| draw(valid, OF_VALID)).unwrap_or_default(),
            description: Description {
                counts: counts(&source, without_negative, missing),
                warnings: warnings(&source, shape, without_negative, missing, notes),
                ..source.describe(examples)
            },
            source,
            features,
            start,
            streams: streams.clone(),
            settings,
        }
    }

    /// Ratings, and their holders.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    fn pairs(&self, client: ClientId) -> Pairs<'_> {
        let holdings = &self.source.holdings;
        Pairs {
            users: holdings.users(client),
            positives: holdings.positives(client),
            ends: holdings.ends(client),
            given: holdings.triplets(client),
        }
    }

    fn run(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, wanted: Wanted<'_>) {
        let Settings { shape, objective, .. } = &self.settings;
        let draws = context.streams.stream(Purpose::TrainingNoise, job.client.0, job.number.0);
        let data = dmrl::Data { shape, features: &self.features, objective, pairs: self.pairs(job.client), draws };
        let worker: &mut dmrl::Worker = worker.keep();
        worker.run(data, &job.dense(context, self.layout.len()), wanted);
    }

    /// The measures of one kind of data.
    fn measure(&self, ask: &mut Ask<'_>, effort: Effort<'_>) {
        let Some((users, held_out)) = self.source.asked(ask.on) else {
            return ask.values.fill(f64::NAN);
        };
        let fixed = if ask.on == On::Valid { &self.valid } else { &self.test };
        self.ranked(&users.collect::<Vec<u32>>(), [(held_out, fixed)], effort, [ask]);
    }

    /// The measures of one model by each of the held-out parts, for which users' items are scored once.
    fn ranked<const PARTS: usize>(
        &self,
        users: &[u32],
        parts: [(&HeldOut, &Fixed); PARTS],
        effort: Effort<'_>,
        asks: [&mut Ask<'_>; PARTS],
    ) {
        let Settings { shape, objective, .. } = &self.settings;
        let losses = parts.map(|(held_out, fixed)| {
            let nothing = || AtomicU64::new(f64::NAN.to_bits());
            PartLosses { held_out, fixed, sums: (0..shape.users).map(|_| nothing()).collect() }
        });
        let scores = ItemScores::new(shape, &self.features, asks[0].state.model);
        let model = WithLosses { scores, objective, parts: &losses };
        let held_out = parts.map(|(held_out, _)| held_out);
        let means = self.source.rank(users.iter().copied(), held_out, &model, effort);
        for ((means, losses), ask) in means.iter().zip(&losses).zip(asks) {
            let (of_ranking, loss) = ask.values.split_at_mut(means.values.len());
            of_ranking.copy_from_slice(&means.values);
            loss[0] = losses.mean(users);
            ask.weight = means.users as f64;
        }
    }

    /// Tells the loss of each of a client's training examples, with fixed negatives.
    fn each_loss(&self, client: ClientId, model: &[f32], worker: &mut dmrl::Worker, mut tell: impl FnMut(f64)) {
        let Settings { shape, objective, .. } = &self.settings;
        let dmrl::Worker { scratch, examples, order, losses, .. } = worker;
        let network = Network { shape, features: &self.features };
        let pairs = self.pairs(client);
        let mut draws = self.streams.stream(Purpose::Example, client.0, OF_CLIENT);
        examples.list(&pairs, shape.items, objective.negatives, order);
        for chosen in order.chunks(TOGETHER) {
            let batch = examples.batch(&pairs, shape.items, objective.negatives, chosen, &mut draws);
            network.losses(model, batch, objective, losses, scratch);
            losses.iter().for_each(|&loss| tell(f64::from(loss)));
        }
    }
}

impl Task for Multimodal {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        match &self.start {
            Some(start) => parameters.copy_from_slice(start),
            None => self.settings.shape.init(&mut streams.stream(Purpose::ModelInit, 0, 0), parameters),
        }
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn appendix(&self) -> Appendix {
        self.source.appendix()
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        let Settings { shape, objective, .. } = &self.settings;
        let layers: usize = shape.features.iter().flatten().map(|width| shape.hidden * (width + shape.dim)).sum();
        let of_pair = 6 * (layers + shape.channels() * shape.dim * (shape.attention + 4));
        settings.examples(self.description.examples_of(client)) * (of_pair * (1 + objective.negatives)) as f64
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
        for asks in asks.chunk_by_mut(|test, valid| self.source.valid.is_some() && test.goes_with(valid)) {
            match (asks, &self.source.valid) {
                ([test, valid], Some(of_valid)) => {
                    let users: Vec<u32> = self.source.everybody().collect();
                    let parts = [(&self.source.test, &self.test), (of_valid, &self.valid)];
                    self.ranked(&users, parts, effort, [test, valid]);
                }
                (asks, _) => asks.iter_mut().for_each(|ask| self.measure(ask, effort)),
            }
        }
        Ok(())
    }

    fn test_of_alone(&self, client: ClientId) -> On<'static> {
        On::Client(client)
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.settings.shape.tensors()
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }
}

impl Losses for Multimodal {
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
        let (mut sum, mut count) = (0.0, 0_u32);
        self.each_loss(client, state.model, &mut dmrl::Worker::default(), |loss| {
            sum += loss;
            count += 1;
        });
        Ok(sum / f64::from(count))
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> Result<f64, Failure> {
        let mut sum = 0.0;
        self.each_loss(client, state.model, worker.keep(), |loss| sum += loss * loss);
        Ok(sum)
    }
}

/// How many there are of everything.
fn counts(source: &Source, without_negative: usize, missing: [usize; 2]) -> Vec<(&'static str, u64)> {
    let mut counts = source.count();
    let more = [
        ("users_without_negatives", without_negative),
        ("items_without_text", missing[0]),
        ("items_without_image", missing[1]),
    ];
    counts.extend(more.into_iter().filter(|&(_, count)| count > 0).map(|(name, count)| (name, count as u64)));
    counts
}

/// Warnings about ratings and features.
fn warnings(
    source: &Source,
    shape: &Shape,
    without_negative: usize,
    missing: [usize; 2],
    notes: Vec<String>,
) -> Vec<String> {
    let mut warnings = source.dirt();
    warnings.extend(notes);
    for ((width, missing), name) in shape.features.iter().zip(missing).zip(dmrl::MODES) {
        match (width, missing) {
            (None, _) => warnings.push(format!("there are no {name} features: the model goes without this channel")),
            (Some(_), 0) => {}
            (Some(_), missing) => {
                warnings.push(format!("{missing} of {} items have no {name} features: zeros", source.items()));
            }
        }
    }
    if without_negative > 0 {
        warnings.push(format!("{without_negative} users have rated everything that there is, and give no example"));
    }
    if source.test.users == 0 {
        warnings.push("nobody has an item to be found for testing and another: there is nothing to rank".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests;
