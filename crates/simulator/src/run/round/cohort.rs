//! The jobs of one selection whose clients are asked together: of a round, or of an edge server's round.

use crate::policy::{Feedback, Policy, Selection, Waited};
use crate::recorder::RoundJobs;
use crate::run::error::{Failed, RunError};
use crate::run::timeline::{Engine, JobId, Names, Terms};
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_learning::learned::Sent;

/// A selection and its jobs.
#[derive(Debug, Default, Stateful)]
pub(in crate::run) struct Cohort {
    /// The selected clients, in dispatch order, and their terms.
    pub selection: Selection,
    /// Their jobs.
    pub jobs: Vec<JobId>,
    /// Jobs whose update arrived, in order of arrival.
    pub arrived: Vec<JobId>,
}

impl Cohort {
    /// Draws the jobs of the selection, which have the number of the turn.
    pub fn prepare(&mut self, engine: &mut Engine<'_>, round: Round, turn: Turn) -> Result<(), RunError> {
        let selected = self.selection.len() as u32;
        for (place, &client) in self.selection.iter().enumerate() {
            let (number, terms) = (JobNumber::from(turn), Terms::of(&self.selection, place));
            self.jobs.push(engine.prepare(Names { client, turn, round, number, terms, selected })?);
        }
        Ok(())
    }

    /// Sends each of them its `sent`. `bound` is the most jobs that may be under way.
    pub fn begin(
        &self,
        engine: &mut Engine<'_>,
        sent: impl Fn(ClientId) -> Option<Sent>,
        bound: usize,
    ) -> Result<(), RunError> {
        self.jobs.iter().try_for_each(|&id| {
            let client = engine.jobs[id].client;
            engine.begin(id, sent(client), bound)
        })
    }

    /// The server no longer waits for the others. Late jobs go on if they are carried, and are called off otherwise;
    /// returns how many go on.
    pub fn stop_waiting(
        &self,
        engine: &mut Engine<'_>,
        is_carried: bool,
        round: &mut RoundJobs,
    ) -> Result<usize, RunError> {
        let mut carried = 0;
        for &id in &self.jobs {
            if engine.jobs[id].arrived_at.is_some() {
                continue;
            }
            let outcome = engine.jobs[id].outcome();
            engine.conclude(id, outcome)?;
            match engine.jobs[id].dropped() {
                Some(job) => round.dropped.push(job),
                None => {
                    round.late.push(engine.jobs[id].client);
                    if is_carried {
                        engine.jobs[id].is_late = true;
                        carried += 1;
                    } else {
                        engine.call_off(id)?;
                    }
                }
            }
        }
        round.arrived.extend(self.arrived.iter().map(|&id| engine.jobs[id].client));
        Ok(carried)
    }

    /// Tells the policy of each job: arrivals in their order, then the others in dispatch order. `timeout` is the time
    /// after dispatch at which the server stopped waiting, if that is why; `now` is the
    /// server's round.
    pub fn report(
        &self,
        engine: &Engine<'_>,
        policy: &mut dyn Policy,
        now: Round,
        timeout: Option<Span>,
    ) -> Result<(), Failed> {
        let others = self.jobs.iter().filter(|&&id| engine.jobs[id].arrived_at.is_none());
        for &id in self.arrived.iter().chain(others) {
            let job = &engine.jobs[id];
            let waited = match (job.arrived_at, timeout) {
                (Some(time), _) => Waited::Arrived(time - job.dispatched),
                (None, Some(timeout)) => Waited::TimedOut(timeout),
                (None, None) => Waited::CalledOff(engine.now() - job.dispatched),
            };
            let report = Feedback::Job(job.report(waited, now, engine.now()));
            policy.observe(&report).map_err(Failed::of("observe"))?;
        }
        Ok(())
    }

    /// Forgets the jobs that are over; their clients are free.
    pub fn settle(&mut self, engine: &mut Engine<'_>) -> Result<(), RunError> {
        engine.accounts.arrived += self.arrived.len() as u64;
        self.arrived.clear();
        for id in self.jobs.drain(..) {
            if !engine.jobs[id].is_late {
                engine.release(engine.jobs[id].client);
                engine.settle(id)?;
            }
        }
        Ok(())
    }
}
