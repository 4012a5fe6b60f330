//! Training of jobs, with the data that their clients had when they were asked.

use super::{Learning, Work};
use crate::policy::Wants;
use crate::protocol::Rule;
use crate::run::error::RunError;
use crate::world::FirstJob;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::{Context, Need, Task};
use fedgenie_learning::training::{Assignment, Rules, train};
use std::collections::BTreeSet;

impl Learning<'_> {
    fn rules(&self) -> Rules<'_> {
        let algorithm = &self.learner.algorithm;
        let (hostile, compression) = (self.world.adversaries.as_ref(), algorithm.compression.as_ref());
        Rules { job: algorithm.job.as_deref(), hostile, compression }
    }

    /// Trains jobs; update `i` is that of job `i`. A fault is noted. A client has the data of the round in which it was
    /// asked.
    pub(super) fn train_jobs(
        &self,
        context: &Context<'_>,
        jobs: &[Assignment<'_>],
        parallel: bool,
        updates: &mut [Update],
    ) {
        let changes = |job: &Assignment<'_>| match self.world.protocol.rule {
            Rule::Hierarchical(_) => self.changes,
            Rule::Rounds(_) | Rule::Buffered(_) => self.world.changes_by(job.job.round),
        };
        let of_jobs: Vec<usize> = jobs.iter().map(changes).collect();
        let distinct: BTreeSet<usize> = of_jobs.iter().copied().collect();
        for &changes in &distinct {
            let earlier = self.world.task_after(changes).filter(|_| changes != self.changes);
            let task = earlier.unwrap_or(self.task);
            if distinct.len() == 1 {
                return self.train_with((task, changes), context, jobs, parallel, updates);
            }
            let places: Vec<usize> = (0..jobs.len()).filter(|&place| of_jobs[place] == changes).collect();
            let of_these: Vec<Assignment<'_>> = places.iter().map(|&place| jobs[place].clone()).collect();
            let mut made: Vec<Update> = places.iter().map(|&place| std::mem::take(&mut updates[place])).collect();
            self.train_with((task, changes), context, &of_these, parallel, &mut made);
            places.into_iter().zip(made).for_each(|(place, update)| updates[place] = update);
        }
    }

    /// Trains jobs with the data after so many changes. What other runs of the world have trained from the model that
    /// all begin with is not trained again.
    fn train_with(
        &self,
        (task, changes): (&dyn Task, usize),
        context: &Context<'_>,
        jobs: &[Assignment<'_>],
        parallel: bool,
        updates: &mut [Update],
    ) {
        let rules = self.rules();
        let first = &self.world.first_updates;
        let key = |job: &Assignment<'_>| first.key(job, context.loss_rms);
        // A trial wants to know what training costs.
        let may_share = changes == 0 && task.together().is_none() && self.trial.is_none();
        let keys: Vec<Option<FirstJob>> = if may_share { jobs.iter().map(key).collect() } else { Vec::new() };
        if keys.iter().all(Option::is_none) {
            return self.faults.note(train((task, rules), context, jobs, parallel, updates));
        }
        let (mut others, mut places) = (Vec::new(), Vec::new());
        for (place, (job, key)) in jobs.iter().zip(&keys).enumerate() {
            match key.and_then(|key| first.find(key)) {
                Some(known) => updates[place].clone_from(&known),
                None => {
                    others.push(job.clone());
                    places.push(place);
                }
            }
        }
        let mut fresh: Vec<Update> = places.iter().map(|&place| std::mem::take(&mut updates[place])).collect();
        let trained = train((task, rules), context, &others, parallel, &mut fresh);
        let is_whole = trained.is_ok() && !context.halt.is_due();
        self.faults.note(trained);
        for (place, update) in places.into_iter().zip(fresh) {
            keys[place].filter(|_| is_whole).into_iter().for_each(|key| first.keep(key, &update));
            updates[place] = update;
        }
    }

    /// Trains the given work; the updates lie in `self.updates`, in the order of the list that is returned: ascending
    /// (client, job), without clients that have no data.
    ///
    /// # Errors
    /// The first client whose update is not finite, the task's failure, or [`RunError::Halted`].
    pub(super) fn train(
        &mut self,
        round: Round,
        mut work: Vec<Work>,
        wants: Wants,
        parallel: bool,
    ) -> Result<Vec<Work>, RunError> {
        // A client without data has nothing to train on.
        work.retain(|work| self.examples_at(work) > 0);
        work.sort_unstable_by_key(|work| (work.client, work.number));
        let clients: Vec<ClientId> = work.iter().map(|work| work.client).collect();
        self.check(round, Need::Losses(&clients))?;
        let jobs: Vec<Assignment<'_>> = work.iter().map(Work::assignment).collect();
        if self.updates.len() < jobs.len() {
            self.updates.resize_with(jobs.len(), Update::default);
        }
        let context = Context { loss_rms: wants.loss_rms, halt: &self.halt, ..self.world.context() };
        let mut updates = std::mem::take(&mut self.updates);
        self.train_jobs(&context, &jobs, parallel, &mut updates[..jobs.len()]);
        if let Some(hostile) = &self.world.adversaries {
            let sent: Vec<(ClientId, &[f32])> = jobs.iter().map(|one| (one.job.client, one.job.start)).collect();
            hostile.forge_together(&sent, &mut updates[..jobs.len()]);
        }
        self.updates = updates;
        self.faults.check(round)?;
        if self.halt.is_due() {
            return Err(RunError::Halted);
        }
        for (work, update) in work.iter().zip(&self.updates) {
            if update.diverged {
                let why = if self.world.adversaries.is_some() { "; hostile clients may be why" } else { "" };
                return Err(RunError::Diverged { client: work.client, round, why });
            }
            let parcel = self.task.parcel(update, &context);
            let found = work.bytes_of(&self.learner.algorithm, parcel);
            if !self.layout.is_empty() && found != work.up_bytes {
                let what = format!("the update of {} has {found} bytes; {} travelled", work.client, work.up_bytes);
                return Err(RunError::Violated { what, records: Vec::new() });
            }
        }
        Ok(work)
    }
}
