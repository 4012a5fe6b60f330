//! Checks that every run passes, by sums over clients and a clock of their own.
//!
//! | check | when |
//! |---|---|
//! | time never decreases | at each record |
//! | a complete phase took its time at work, an update arrived after its phases and pauses | when a phase ends, when a job is settled |
//! | a delivered job moved the model both ways, with what its update brings; no job moved more | when a job is settled |
//! | jobs under way do not exceed the protocol's limit | at each dispatch |
//! | each job has one outcome; nothing is pending but jobs and timers | at the end of each round |
//! | an update is not older than the run | at each aggregation |
//! | bytes, computing and energy of clients add up to the totals; batteries have what they had, got and did not draw | at the end |
//!
//! A violation is a defect of the program. The run ends with the violation and the records before it.

use super::accounts::Accounts;
use super::accounts::{Cost, add};
use super::jobs::Job;
use crate::population::{Energies, Energy};
use crate::run::error::RunError;
use fedgenie_core::id::Round;
use fedgenie_core::record::{Phase, Record};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, TotalTime, VirtualTime};
use std::fmt::Display;
use std::ops::Add;

/// Records kept for the message.
const RECENT: usize = 12;
/// Of a client that never had a job.
const NO_ACCOUNT: u32 = u32::MAX;

/// The cost of a client's settled jobs, without energy: of a million clients, each byte is one.
#[derive(Clone, Copy, Debug, Default, Stateful)]
struct Account {
    compute: TotalTime,
    down_bytes: u64,
    up_bytes: u64,
}

impl Account {
    fn add(&mut self, Cost { compute, down_bytes, up_bytes, energy: _ }: Cost) {
        self.compute += compute;
        add(&mut self.down_bytes, down_bytes);
        add(&mut self.up_bytes, up_bytes);
    }
}

/// The checks of one run.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(in crate::run) struct Audit {
    clock: VirtualTime,
    /// A ring.
    #[state(skip = "read by messages alone")]
    recent: Vec<Record<'static>>,
    /// The place of the oldest of `recent`, once it is full.
    #[state(skip = "read by messages alone")]
    oldest: usize,
    /// The index of each client's account; clients without a job have none.
    #[state(each)]
    account_of: Vec<u32>,
    clients: Vec<Account>,
    settled: u64,
    /// What settled jobs drew from batteries.
    energy: Energy,
    /// Clients' work outside jobs.
    probed: Cost,
}

impl Audit {
    /// Whether all loaded accounts exist.
    fn is_sound(&self) -> bool {
        self.account_of.iter().all(|&index| index == NO_ACCOUNT || (index as usize) < self.clients.len())
    }
}

impl Audit {
    pub fn new(clients: usize) -> Self {
        Self {
            clock: VirtualTime::START,
            recent: Vec::with_capacity(RECENT),
            oldest: 0,
            account_of: vec![NO_ACCOUNT; clients],
            clients: Vec::new(),
            settled: 0,
            energy: Energy::ZERO,
            probed: Cost::default(),
        }
    }

    fn require(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), RunError> {
        if holds {
            return Ok(());
        }
        let (newer, older) = self.recent.split_at(self.oldest);
        let records: Vec<String> = older.iter().chain(newer).map(ToString::to_string).collect();
        Err(RunError::Violated { what: what(), records })
    }

    pub fn see(&mut self, record: &Record<'_>) -> Result<(), RunError> {
        if self.recent.len() < RECENT {
            self.recent.push(record.brief());
        } else {
            self.recent[self.oldest] = record.brief();
            self.oldest = (self.oldest + 1) % RECENT;
        }
        let Some(time) = record.time() else { return Ok(()) };
        let clock = self.clock;
        self.clock = time;
        self.require(time >= clock, || format!("time went back from {clock} to {time}"))
    }

    pub fn phase_left(&self, job: &Job, is_complete: bool, is_traced: bool) -> Result<(), RunError> {
        let (found, drawn) = (job.active[job.phase.index()], job.draw.phases[job.phase.index()]);
        // How long a transfer over a link that changes takes follows from the link alone.
        let holds = is_traced || found == drawn || !is_complete && found < drawn;
        self.require(holds, || {
            let Job { client, phase, .. } = job;
            format!("{client} spent {} s in {phase}, which takes {} s", found.seconds(), drawn.seconds())
        })
    }

    pub fn under_way(&self, live: usize, bound: usize) -> Result<(), RunError> {
        self.require(live <= bound, || format!("{live} jobs are under way; the protocol allows {bound}"))
    }

    pub fn concluded(&self, job: &Job) -> Result<(), RunError> {
        self.require(!job.is_concluded, || format!("the job of {} has a second outcome", job.client))
    }

    pub fn settled(&mut self, job: &Job) -> Result<(), RunError> {
        self.settled += 1;
        let index = &mut self.account_of[job.client.index()];
        if *index == NO_ACCOUNT {
            *index = self.clients.len() as u32;
            self.clients.push(Account::default());
        }
        self.clients[*index as usize].add(job.cost());
        self.energy += job.energy;
        let client = job.client;
        self.require(job.is_concluded, || format!("the job of {client} has no outcome"))?;
        let worked: Span = job.active.into_iter().sum();
        let (down, up) = job.bytes;
        if let Some(arrived) = job.arrived_at {
            let expected = job.dispatched + worked + job.paused;
            self.require(arrived == expected, || {
                format!("{client} arrived at {arrived}; its phases and pauses end at {expected}")
            })?;
            let [whole, update] = job.transfer;
            let expected = [whole, update.saturating_add(job.brings)];
            return self.require([down, up] == expected, || {
                format!("{client} delivered; it moved {down} and {up} bytes of {expected:?}")
            });
        }
        self.require(down <= job.transfer[0] && up <= job.transfer[1], || {
            format!("{client} moved {down} and {up} bytes of {:?}", job.transfer)
        })
    }

    /// The cost of each client's settled jobs, without energy.
    pub fn by_client(&self) -> Vec<Cost> {
        let of = |&index: &u32| {
            let Account { compute, down_bytes, up_bytes } =
                self.clients.get(index as usize).copied().unwrap_or_default();
            Cost { compute, down_bytes, up_bytes, energy: Energy::ZERO }
        };
        self.account_of.iter().map(of).collect()
    }

    /// What settled jobs drew from batteries.
    pub const fn energy(&self) -> Energy {
        self.energy
    }

    pub fn probed(&mut self, cost: Cost) {
        self.probed += cost;
    }

    pub fn within(&self, budget: Option<u64>, accounts: &Accounts) -> Result<(), RunError> {
        let moved = accounts.down_bytes.saturating_add(accounts.up_bytes);
        self.require(budget.is_none_or(|budget| moved <= budget), || {
            format!("clients moved {moved} bytes, more than the budget")
        })
    }

    pub fn age(&self, of: impl Display, sent: Round, now: Round) -> Result<(), RunError> {
        self.require(sent <= now, || format!("{of} was sent the model of {sent}, and it is {now}"))
    }

    pub fn pending(&self, pending: usize, expected: usize) -> Result<(), RunError> {
        self.require(pending == expected, || format!("{pending} events are pending; expected {expected}"))
    }

    pub fn busy(&self, busy: usize, live: usize, expected: usize) -> Result<(), RunError> {
        self.require(busy == live && live == expected, || {
            format!("{busy} clients are busy with {live} jobs; expected {expected}")
        })
    }

    /// Energy of all batteries at the beginning and now, against what they drew and got; and what jobs drew.
    pub fn stored(&self, [start, now]: [Energy; 2], energies: &Energies, of_jobs: Energy) -> Result<(), RunError> {
        let drawn = energies.drawn.into_iter().fold(Energy::ZERO, Energy::add);
        self.require(start + energies.charged == now + drawn, || {
            let [start, charged, now, drawn] = [start, energies.charged, now, drawn].map(Energy::joules);
            format!("batteries had {start} J, got {charged} J and gave {drawn} J; they have {now} J")
        })?;
        self.require(of_jobs == energies.of_jobs(), || {
            let [jobs, total] = [of_jobs, energies.of_jobs()].map(Energy::joules);
            format!("jobs drew {jobs} J; the total is {total} J")
        })
    }

    /// Sums over clients against totals. `under_way` are the jobs that are not settled.
    pub fn finished<'a>(&self, accounts: &Accounts, under_way: impl Iterator<Item = &'a Job>) -> Result<(), RunError> {
        let Cost { down_bytes: mut down, up_bytes: mut up, compute: probed, energy: _ } = self.probed;
        let (mut compute, mut jobs) = (TotalTime::ZERO, self.settled);
        for account in &self.clients {
            add(&mut down, account.down_bytes);
            add(&mut up, account.up_bytes);
            compute += account.compute;
        }
        for job in under_way {
            add(&mut down, job.bytes.0);
            add(&mut up, job.bytes.1);
            compute += job.active[Phase::Compute.index()];
            jobs += 1;
        }
        self.require((down, up, compute) == (accounts.down_bytes, accounts.up_bytes, accounts.compute), || {
            let Accounts { down_bytes, up_bytes, compute: total, .. } = accounts;
            let (computed, total) = (compute.seconds(), total.seconds());
            format!(
                "clients moved {down} and {up} bytes and computed {computed} s; the totals are {down_bytes}, {up_bytes} and \
                 {total} s"
            )
        })?;
        self.require(probed == accounts.probe_compute, || {
            let (found, total) = (probed.seconds(), accounts.probe_compute.seconds());
            format!("clients computed {found} s for probes; the total is {total} s")
        })?;
        self.require(jobs == accounts.dispatched, || {
            format!("{} jobs were dispatched and {jobs} are accounted for", accounts.dispatched)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::JobDraw;
    use crate::run::timeline::jobs::{Names, Terms};
    use fedgenie_core::id::{ClientId, EdgeId};
    use fedgenie_core::id::{JobNumber, Turn};

    fn said(result: Result<(), RunError>) -> String {
        match result {
            Err(error @ RunError::Violated { .. }) => error.to_string(),
            other => panic!("a violation was expected, found {other:?}"),
        }
    }

    /// A job of 1 + 10 + 1 ns that was delivered at 15 after a pause of 3, with 100 bytes each way.
    fn delivered() -> Job {
        let draw = JobDraw { phases: [Span(1), Span(10), Span(1)], loss: None };
        let names = Names {
            client: ClientId(2),
            turn: Turn(1),
            round: Round(1),
            number: JobNumber(1),
            terms: Terms::default(),
            selected: 1,
        };
        let mut job = Job::new(names, [100; 2], draw, VirtualTime(0));
        job.active = draw.phases;
        (job.paused, job.bytes, job.arrived_at) = (Span(3), (100, 100), Some(VirtualTime(15)));
        job.is_concluded = true;
        job
    }

    #[test]
    fn time_that_goes_back_is_shown_with_the_records_before() {
        let mut audit = Audit::new(3);
        let ended = |client, time| Record::PhaseEnded {
            client: ClientId(client),
            round: Round(1),
            phase: Phase::Compute,
            time: VirtualTime(time),
        };
        audit.see(&ended(0, 5)).unwrap();
        audit.see(&ended(1, 5)).unwrap();
        let message = said(audit.see(&ended(2, 4)));
        assert!(message.contains("time went back") && message.contains("client 0 (job of round 1)"), "{message}");
    }

    #[test]
    fn the_latest_records_are_shown_in_their_order() {
        let mut audit = Audit::new(3);
        for second in 0..20 {
            let time = VirtualTime(second * 1_000_000_000);
            audit.see(&Record::EdgeClosed { edge: EdgeId(0), turn: Turn(1), time }).unwrap();
        }
        let Err(RunError::Violated { records, .. }) = audit.busy(2, 2, 1) else { panic!("a violation") };
        let expected = (8..20).map(|second| format!("at {second} s"));
        assert_eq!(records.len(), RECENT);
        assert!(records.iter().zip(expected).all(|(record, end)| record.ends_with(&end)), "{records:?}");
    }

    #[test]
    fn a_delivered_job_takes_its_phases_and_pauses_and_moves_the_model_both_ways() {
        let settled = |job: &Job| Audit::new(3).settled(job);
        settled(&delivered()).unwrap();
        let wrong = |change: fn(&mut Job)| {
            let mut job = delivered();
            change(&mut job);
            said(settled(&job))
        };
        assert!(wrong(|job| job.paused = Span(4)).contains("arrived at"));
        assert!(wrong(|job| job.bytes.1 = 99).contains("moved 100 and 99 bytes of [100, 100]"));
        assert!(wrong(|job| job.brings = 8).contains("moved 100 and 100 bytes of [100, 108]"));
        assert!(wrong(|job| job.is_concluded = false).contains("has no outcome"));
        assert!(wrong(|job| (job.arrived_at, job.bytes.0) = (None, 101)).contains("moved 101"));
    }

    #[test]
    fn a_phase_takes_what_was_drawn() {
        let (audit, mut job) = (Audit::new(3), delivered());
        job.phase = Phase::Compute;
        audit.phase_left(&job, true, false).unwrap();
        job.active[Phase::Compute.index()] = Span(9);
        audit.phase_left(&job, false, false).unwrap();
        audit.phase_left(&job, true, true).unwrap();
        assert!(said(audit.phase_left(&job, true, false)).contains("spent"));
        job.active[Phase::Compute.index()] = Span(11);
        assert!(said(audit.phase_left(&job, false, false)).contains("spent"));
    }

    #[test]
    fn clients_add_up_to_the_totals() {
        let mut audit = Audit::new(3);
        audit.settled(&delivered()).unwrap();
        audit.settled(&delivered()).unwrap();
        audit.probed(Cost { compute: TotalTime(5), down_bytes: 7, up_bytes: 8, energy: Energy::ZERO });
        let totals = Accounts {
            down_bytes: 207,
            up_bytes: 208,
            compute: TotalTime(20),
            probe_compute: TotalTime(5),
            dispatched: 2,
            ..Accounts::default()
        };
        audit.finished(&totals, std::iter::empty()).unwrap();
        let three = Accounts { dispatched: 3, ..totals };
        assert!(said(audit.finished(&three, std::iter::empty())).contains("3 jobs were dispatched and 2"));
        let more = Accounts { up_bytes: 209, ..totals };
        assert!(said(audit.finished(&more, std::iter::empty())).contains("totals are 207, 209"));
        let longer = Accounts { probe_compute: TotalTime(6), ..totals };
        assert!(said(audit.finished(&longer, std::iter::empty())).contains("for probes"));
    }

    #[test]
    fn bounds_and_outcomes() {
        let audit = Audit::new(3);
        assert!(said(audit.under_way(6, 5)).contains("6 jobs are under way; the protocol allows 5"));
        assert!(said(audit.concluded(&delivered())).contains("second outcome"));
        assert!(said(audit.age(ClientId(0), Round(3), Round(2))).contains("was sent the model of round 3"));
        assert!(said(audit.pending(2, 1)).contains("2 events"));
        assert!(said(audit.busy(2, 2, 1)).contains("expected 1"));
    }
}
