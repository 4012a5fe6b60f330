//! The models of a run: lazy local training, aggregation, evaluation, for any task.

mod accuracy;
mod before;
mod data;
mod evaluation;
mod faults;
mod files;
mod hindsight;
mod intake;
mod jobs;
mod subsets;
mod trial;
mod tuning;

pub(super) use before::{Before, EdgeState};
pub(super) use evaluation::{Evaluated, Measured, ServerScope};
pub(super) use intake::{EdgeModel, Intake, Sought, Trained, Work};
pub use trial::Trial;
pub use tuning::Tuned;

use crate::policy::{DeviationFrom, Wants};
use crate::protocol::{Combine, Rule};
use crate::run::error::{Failed, Role, RunError};
use crate::world::{Training, World};
use faults::Faults;
use fedgenie_core::halt::{Effort, Halt};
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::oracle::utility::ModelScore;
use fedgenie_core::oracle::utility::contribution::{deviation, norm};
use fedgenie_core::state::State;
use fedgenie_learning::algorithm::privacy::{DpFedAvg, Released};
use fedgenie_learning::algorithm::{Aging, Algorithm};
use fedgenie_learning::layout::{Layout, Update};
use fedgenie_learning::learned;
use fedgenie_learning::learned::{Arrival, Folded, Learner, Remember, Sent, SharedModels, Tier, Unfolded};
use fedgenie_learning::task::{Context, Need, PrivateView, Task};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The models of a run, and the private state of its clients.
pub(super) struct Learning<'w> {
    world: &'w World,
    /// With the data of the round under way.
    task: &'w dyn Task,
    /// How many changes of the data have taken place.
    pub changes: usize,
    layout: &'w Layout,
    learner: Learner,
    state: learned::State,
    /// Buffers of updates, kept from round to round.
    updates: Vec<Update>,
    /// The work of the updates aggregated last, where a policy evaluates subsets of them.
    folded: Vec<Work>,
    /// The models that edge servers have sent for the present one, where these are measured; nothing otherwise.
    edges: Vec<Option<Arc<[f32]>>>,
    /// When work may end early.
    pub halt: Halt,
    /// Where the run is only tried out.
    pub trial: Option<Arc<dyn Trial>>,
    faults: Faults,
}

impl<'w> Learning<'w> {
    /// The start of a run; `clusters` is the number of cluster models, `expected` that of clients that a private mean
    /// expects in a round, where it does not count them.
    pub fn new(world: &'w World, task: &'w dyn Task, clusters: u32, expected: Option<f64>) -> Self {
        let aging = match &world.protocol.rule {
            Rule::Buffered(_) => Aging::Discounting,
            Rule::Hierarchical(rule) if rule.buffer.is_some() => Aging::Discounting,
            Rule::Rounds(_) | Rule::Hierarchical(_) => Aging::Relative,
        };
        let (layout, clients) = (task.layout(), world.population.len());
        let Training { aggregation, algorithm, .. } = &world.training;
        let of_run = |privacy: &Arc<DpFedAvg>| Arc::new(DpFedAvg { expected, ..(**privacy).clone() });
        let algorithm = Algorithm { privacy: algorithm.privacy.as_ref().map(of_run), ..algorithm.clone() };
        let learner = Learner::new(layout, &algorithm, aggregation, aging, clients);
        let state = learned::State::new(task, &learner, clusters, world.servers(), &world.streams);
        world.first_updates.begin(&state.models);
        let (updates, folded, halt, trial, faults) = Default::default();
        let edges = vec![None; if world.evaluated.edges { world.servers() } else { 0 }];
        Self { world, task, changes: 0, layout, learner, state, updates, folded, edges, halt, trial, faults }
    }

    /// The models, and the memory of clients, servers and the algorithm.
    pub fn exchange(&mut self, state: &mut State<'_>, shared: &mut SharedModels) {
        let Self {
            world: _,
            task: _,
            changes: _,
            layout: _,
            learner: _,
            state: learned,
            updates: _,
            folded: _,
            edges,
            halt: _,
            trial: _,
            faults: _,
        } = self;
        let learned::State { round, models, servers, private, moved, memories, memory } = learned;
        models.iter_mut().for_each(|model| shared.exchange(model, state));
        edges.iter_mut().for_each(|model| shared.exchange_option(model, state));
        state.fields(servers);
        state.field(Arc::make_mut(private));
        state.fields(Arc::make_mut(moved).as_mut_slice());
        Arc::make_mut(memories).iter_mut().for_each(|memory| state.fields(memory));
        state.field(round);
        state.field(memory);
    }

    /// The start of a job of a cluster's client now.
    pub fn sent(&self, cluster: u32, client: ClientId) -> Sent {
        self.sent_by(self.model(cluster), cluster, client)
    }

    /// The start of a job whose edge server has this model.
    pub fn sent_by(&self, model: Arc<[f32]>, cluster: u32, client: ClientId) -> Sent {
        self.state.sent(model, cluster, client)
    }

    /// What a private mean remembers; `None` without one.
    pub fn released(&self) -> Option<Released> {
        self.state.servers[0].released()
    }

    /// Whether these are updates of as many clients as a private mean needs. Clients without examples send none.
    pub fn has_enough(&self, work: &[Work]) -> bool {
        let least = self.state.servers[0].least_updates();
        let trains = |work: &&Work| self.examples_at(work) > 0;
        least == 0 || work.iter().filter(trains).map(|work| work.client).collect::<BTreeSet<_>>().len() >= least
    }

    /// The current model of a cluster; there is one, number 0, where there are no clusters.
    pub fn model(&self, cluster: u32) -> Arc<[f32]> {
        self.state.models[cluster as usize].clone()
    }

    /// All parameters as the digest has them: the shared segments and cluster 0's, then those of the other clusters.
    pub fn digested(&self) -> Vec<Arc<[f32]>> {
        self.state.models.clone()
    }

    fn context(&self, wants: Wants) -> Context<'_> {
        Context { loss_rms: wants.loss_rms, halt: &self.halt, ..self.world.context() }
    }

    const fn effort(&self, parallel: bool) -> Effort<'_> {
        Effort { parallel, halt: &self.halt }
    }

    /// Looks whether the work since the last look is whole: nothing has failed, nothing was stopped.
    ///
    /// # Errors
    /// The task's failure, or [`RunError::Halted`].
    pub fn check_work(&self, round: Round) -> Result<(), RunError> {
        self.faults.check(round)?;
        if self.halt.is_due() { Err(RunError::Halted) } else { Ok(()) }
    }

    /// The training reports of the updates of `work`, which was just trained, and the numbers that they bring.
    fn said(&self, work: &[Work], sought: Sought, parallel: bool) -> Vec<Trained> {
        let said = |(work, update): (&Work, &Update)| Trained {
            client: work.client,
            turn: work.turn,
            round: work.round,
            staleness: work.staleness,
            examples: self.examples_at(work),
            loss: update.first_loss,
            loss_rms: update.loss_rms,
            quality: None,
            deviation: None,
            norm: None,
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

    /// Looks at the updates themselves, as far as that is wanted. `aggregated` is their aggregate.
    fn inspect(&self, work: &[Work], wants: Wants, aggregated: &[f32], trained: &mut [Trained], parallel: bool) {
        if !wants.quality && !wants.change && !wants.norm && wants.deviation.is_none() {
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
            trained.norm = wants.norm.then(|| norm(&model[..length], &work.sent.model));
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
        let private = PrivateView { table: &self.state.private, instead };
        self.score(&self.state.view(model, private), false)
    }

    /// Changes of private state by the updates just aggregated.
    pub fn kept<'a>(&'a self, trained: &'a [Trained]) -> impl Iterator<Item = (ClientId, &'a [f32])> {
        let pairs = trained.iter().zip(&self.updates).filter(|(_, update)| !update.private.is_empty());
        pairs.map(|(trained, update)| (trained.client, &*update.private))
    }

    /// The update that a report is about, in the order of the reports of the last aggregation.
    pub fn update(&self, index: usize) -> &Update {
        &self.updates[index]
    }

    /// Private state that the combination gives clients in the place of their updates.
    fn note_kept(&mut self, private: Option<Vec<Vec<f32>>>) {
        let kept = private.into_iter().flatten();
        self.updates.iter_mut().zip(kept).for_each(|(update, private)| update.private = private);
    }

    /// See [`Learning::aggregate`].
    fn take_in(
        &mut self,
        round: Round,
        intake: Intake<'_>,
        sought: Sought,
        parallel: bool,
    ) -> Result<(Vec<Trained>, bool), RunError> {
        let wants = sought.wants;
        self.folded.clear();
        self.edges.fill(None);
        match intake {
            Intake::Nothing => Ok((Vec::new(), self.fold(round, &[], &[])?.is_new)),
            Intake::Updates(work, combine) => {
                let work = self.train(round, work, wants, parallel)?;
                let mut trained = self.said(&work, sought, parallel);
                let current = (combine == Combine::Models).then(|| self.state.models.clone());
                let updates = std::mem::take(&mut self.updates);
                let arrivals = arrivals(self.world, self.task, (&work, &updates), current.as_deref());
                let clients = work.iter().map(|work| work.client).collect();
                let folded = self.fold(round, &arrivals, &[(EdgeId(0), clients)]);
                self.updates = updates;
                let Folded { is_new, private, .. } = folded?;
                self.note_kept(private);
                if wants.quality {
                    self.check_measures()?;
                }
                let aggregated = self.state.models[0].clone();
                self.inspect(&work, wants, &aggregated, &mut trained, parallel);
                self.check_work(round)?;
                self.folded = if sought.subsets { work } else { Vec::new() };
                Ok((trained, is_new))
            }
            Intake::EdgeModels(models) => {
                if !self.edges.is_empty() {
                    models.iter().for_each(|model| self.edges[model.of.edge.index()] = Some(model.model.clone()));
                }
                let parts: Vec<Update> = models.iter().map(|model| model.part(self.layout)).collect();
                let starts = self.state.models.clone();
                let arrivals: Vec<Arrival<'_>> =
                    models.iter().zip(&parts).map(|(model, part)| model.arrival(part, &starts)).collect();
                // A server may have sent several models.
                let mut arrived: Vec<(EdgeId, Vec<ClientId>)> = Vec::new();
                for EdgeModel { of: EdgeState { edge, aggregated: clients, .. }, .. } in &models {
                    match arrived.iter_mut().find(|(known, _)| known == edge) {
                        Some((_, known)) => known.extend(clients),
                        None => arrived.push((*edge, clients.clone())),
                    }
                }
                Ok((Vec::new(), self.fold(round, &arrivals, &arrived)?.is_new))
            }
        }
    }

    /// Folds the arrivals into the models, and lets every server remember whose updates it has taken in.
    ///
    /// # Errors
    /// If a model is not finite, or the task lacks the servers' memory.
    fn fold(
        &mut self,
        round: Round,
        arrivals: &[Arrival<'_>],
        arrived: &[(EdgeId, Vec<ClientId>)],
    ) -> Result<Folded, RunError> {
        for (_, clients) in arrived {
            self.check(round, Need::Aggregation(clients))?;
        }
        let open = self.state.open(round, self.task);
        let folded = self.state.fold(&self.learner, open, Tier::Server, arrivals, Remember::All(arrived));
        folded.map_err(|why| unfolded(why, round))
    }

    /// Checks that the task has the parts that a round needs.
    ///
    /// # Errors
    /// The missing part.
    fn check(&self, round: Round, need: Need<'_>) -> Result<(), RunError> {
        let checked = self.task.script().map_or(Ok(()), |script| script.check(need));
        checked.map_err(|message| RunError::Task { round, message })
    }

    /// Checks that the task can measure the current models.
    fn check_measures(&self) -> Result<(), RunError> {
        let learned::State { round, memories, .. } = &self.state;
        self.check(*round, Need::Measures { round: *round, servers: memories.len() })
    }

    /// See [`Learning::aggregate_at_edge`].
    fn take_in_at_edge(
        &mut self,
        round: Round,
        work: Vec<Work>,
        (model, edge): (&mut Arc<[f32]>, &mut EdgeState<'_>),
        sought: Sought,
        parallel: bool,
    ) -> Result<Vec<Trained>, RunError> {
        let wants = sought.wants;
        self.folded.clear();
        let work = self.train(round, work, wants, parallel)?;
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let EdgeState { cluster, rows, aggregated, .. } = edge;
        let cluster = *cluster;
        let mut state = self.state.at_edge(cluster, model.clone(), rows, round);
        let open = state.open(round, self.task);
        // The memory of clients does not depend on the server that folds; held once, it is not copied.
        (self.state.private, self.state.memory) = Default::default();
        let arrivals = arrivals(self.world, self.task, (&work, &self.updates), None);
        let folded = state.fold(&self.learner, open, Tier::Edge(cluster), &arrivals, Remember::Nobody);
        let learned::State { models, private: table, memory, .. } = state;
        (self.state.private, self.state.memory) = (table, memory);
        let Folded { rows: moved, private, .. } = folded.map_err(|why| unfolded(why, round))?;
        *model = models[cluster as usize].clone();
        rows.extend(moved);
        rows.sort_unstable();
        rows.dedup();
        aggregated.extend(work.iter().map(|work| work.client));
        self.note_kept(private);
        let mut trained = self.said(&work, sought, parallel);
        self.inspect(&work, wants, model, &mut trained, parallel);
        self.check_work(round)?;
        self.folded = if sought.subsets { work } else { Vec::new() };
        Ok(trained)
    }
}

/// Updates that were just trained, in the order of their work, for folding. They count against the model sent, or
/// against `current`.
fn arrivals<'a>(
    world: &World,
    task: &dyn Task,
    (work, updates): (&'a [Work], &'a [Update]),
    current: Option<&'a [Arc<[f32]>]>,
) -> Vec<Arrival<'a>> {
    let one = |(work, update): (&'a Work, &'a Update)| Arrival {
        client: work.client,
        number: work.number,
        cluster: work.sent.cluster,
        examples: world.data_of(work.round, task).examples(work.client),
        age: work.staleness_weight,
        weight: work.weight,
        rate: Some(f64::from(world.training.local.rate(work.round))),
        start: current.map_or(&*work.sent.model, |current| &*current[work.sent.cluster as usize]),
        update,
    };
    work.iter().zip(updates).map(one).collect()
}

/// Why a round has no new model.
fn unfolded(why: Unfolded, round: Round) -> RunError {
    match why {
        Unfolded::NotFinite => RunError::ServerDiverged { round },
        Unfolded::Failed(source) => Failed { method: "fold", source }.told(Role::Algorithm, round),
    }
}

/// A client's change of the trained parameters.
fn change(own: &[f32], sent: &[f32]) -> Vec<f32> {
    own.iter().zip(sent).map(|(own, sent)| own - sent).collect()
}
