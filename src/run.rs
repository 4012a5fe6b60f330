//! One run: one policy in one world, round by round.
//!
//! ```text
//! policy.select ─▶ dispatch ─▶ kernel: download ▸ compute ▸ upload ─▶ boundary: who arrived?
//!       ▲                                                                 │
//!       └── feedback ◀── evaluate ◀── aggregate ◀── train what arrived ◀──┘
//! ```
//!
//! Training is lazy: what an update contains depends on the model at dispatch, the client's data and the client's streams,
//! never on the clock. All updates that count are therefore trained in one batch at the boundary; a job that was lost or
//! late and called off is never trained, but its virtual time and traffic are accounted.
//!
//! *Classes of simultaneous events*: phases end first, then clients are lost, then timers ring. An update that arrives at
//! the instant of the deadline counts.

mod accounts;
mod closing;
mod evaluations;
mod jobs;
mod learning;
mod results;

pub use accounts::Accounts;
pub use evaluations::{End, Evaluations};

use crate::id::{ClientId, Round};
use crate::kernel::{Fired, Kernel};
use crate::oracle::regret::{MeteredRound, Meters};
use crate::oracle::reward::{History, bottleneck};
use crate::policy::{Policy, PolicyRng, Probe, SelectionRequest, ServerView};
use crate::population::{JobDraw, LatencyError};
use crate::record::{Outcome, Phase, Record, Regret};
use crate::recorder::{Digests, RoundMark, Sink};
use crate::rng::Purpose;
use crate::time::{Span, VirtualTime};
use crate::world::World;
use jobs::{Job, JobId, Jobs};
use learning::Learning;
use std::io;

/// Phase completions, before everything else of the same instant.
const CLASS_PHASE: u8 = 0;
/// Losses of clients.
const CLASS_LOSS: u8 = 1;
/// Deadlines, timeouts and the end of probes.
const CLASS_TIMER: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    PhaseEnded(JobId),
    Lost(JobId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Timer {
    Boundary,
    ProbeEnd,
}

/// Why a run ended early. What was recorded up to then stands.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A policy's decision breaks the rules.
    #[error("policy {policy:?}, {round}: {what}")]
    BadSelection {
        /// The policy's label.
        policy: String,
        /// The round.
        round: Round,
        /// What is wrong with it.
        what: String,
    },
    /// A law gave an impossible duration.
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// Training left the finite numbers.
    #[error(
        "the model diverged: the update of {client} in {round} is not finite; a smaller learning rate, in [training] or in \
         [aggregation], may help, or smaller features (normalize = true)"
    )]
    Diverged {
        /// Whose update.
        client: ClientId,
        /// The round in which it counted.
        round: Round,
    },
    /// The server's step left the finite numbers.
    #[error(
        "the model diverged: the global model after the aggregation of {round} is not finite; a smaller learning rate in \
         [aggregation] may help"
    )]
    ServerDiverged {
        /// The round of the aggregation.
        round: Round,
    },
    /// Records could not be kept.
    #[error("cannot keep the records: {0}")]
    Io(#[from] io::Error),
}

/// How a run is carried out, apart from what it computes.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// When the global model is evaluated; where its `end` does not say which round is the last, it is by [`Run::finish`].
    pub evaluate: Evaluations,
    /// Rounds between recorded rounds.
    pub record_every: u32,
    /// Whether clients are trained on all cores of the current rayon pool.
    pub parallel: bool,
}

/// A run in progress.
pub struct Run<'w, S> {
    world: &'w World,
    label: String,
    policy: Box<dyn Policy>,
    settings: RunSettings,
    sink: S,

    kernel: Kernel<Event, Timer>,
    jobs: Jobs,
    round: Round,
    counts: Vec<u32>,
    everyone: Vec<ClientId>,
    /// Clients without a job of their own, if not everyone.
    idle: Option<Vec<ClientId>>,
    meters: Meters,
    learning: Option<Learning<'w>>,
    digests: Digests,
    mark: RoundMark,
    accounts: Accounts,
    group_selections: Vec<(String, u64)>,
    metrics: Vec<(&'static str, f64)>,
    reward: Option<f64>,
    regret: Regret,

    // Buffers of the round under way.
    selection: Vec<ClientId>,
    current: Vec<JobId>,
    arrived: Vec<JobId>,
    joining: Vec<JobId>,
    speeds: Vec<f64>,
    gains: Vec<f64>,
    /// `(α/m)·g_k` of the available clients, where metered.
    available_gains: Vec<f64>,
}

impl<'w, S: Sink> Run<'w, S> {
    /// A run before its first round.
    pub fn new(world: &'w World, label: &str, policy: Box<dyn Policy>, settings: RunSettings, sink: S) -> Self {
        let clients = world.population.len();
        let named = world.population.groups().iter().any(|group| group.name.is_some());
        let name = |(index, group): (usize, &crate::population::Group)| {
            (group.name.clone().unwrap_or_else(|| format!("group {}", index + 1)), 0)
        };
        Self {
            world,
            label: label.to_owned(),
            policy,
            settings,
            sink,
            kernel: Kernel::default(),
            jobs: Jobs::default(),
            round: Round(0),
            counts: vec![0; clients],
            everyone: (0..clients).map(ClientId::from_index).collect(),
            idle: None,
            meters: Meters::new(&world.meters, world.expected.clone(), world.all_sets.clone()),
            learning: world.learner.as_ref().map(|learner| Learning::new(world, learner)),
            digests: Digests::default(),
            mark: RoundMark::default(),
            accounts: Accounts::default(),
            group_selections: match named {
                true => world.population.groups().iter().enumerate().map(name).collect(),
                false => Vec::new(),
            },
            metrics: Vec::new(),
            reward: None,
            regret: Regret::default(),
            selection: Vec::new(),
            current: Vec::new(),
            arrived: Vec::new(),
            joining: Vec::new(),
            speeds: Vec::new(),
            gains: Vec::new(),
            available_gains: Vec::new(),
        }
    }

    /// Plays one round.
    ///
    /// # Errors
    /// If the policy's choice breaks the rules, a law gives an impossible duration, or records cannot be kept.
    pub fn step(&mut self) -> Result<(), RunError> {
        let opened = self.kernel.now();
        self.round = self.round.next();
        self.wait_for_candidates()?;
        self.select()?;
        self.measure()?;
        self.dispatch()?;
        self.wait_for_boundary()?;
        self.close(opened)
    }

    /// Everyone available may be busy with late jobs: then time passes until somebody is free.
    fn wait_for_candidates(&mut self) -> Result<(), RunError> {
        while self.available().is_empty() {
            let fired = self.kernel.next().expect("a busy client has an event pending");
            self.handle(fired)?;
        }
        self.finish_instant()
    }

    /// Late jobs that end at this very instant end before anything is decided at it.
    fn finish_instant(&mut self) -> Result<(), RunError> {
        while self.idle.is_some() && self.kernel.peek() == Some(self.kernel.now()) {
            let fired = self.kernel.next().expect("an event was seen to be pending");
            self.handle(fired)?;
        }
        Ok(())
    }

    fn available(&self) -> &[ClientId] {
        self.idle.as_deref().unwrap_or(&self.everyone)
    }

    fn select(&mut self) -> Result<(), RunError> {
        let streams = &self.world.streams;
        let mut policy_rng = streams.stream(Purpose::Policy, 0, self.round.0);
        let mut solver_rng = streams.stream(Purpose::Solver, 0, self.round.0);
        let everyone = self.idle.as_deref().unwrap_or(&self.everyone);
        let ask = request(self.world, self.round, self.kernel.now(), everyone);
        let probe = self.policy.probe(&ask, &view(self.world, &self.counts, &[], &[]), &mut policy_rng);
        let mut probed = Vec::new();
        match probe {
            Probe::None => {}
            Probe::Context(span) => self.pass(span)?,
            Probe::Losses(candidates) => probed = self.probe_losses(&candidates)?,
        }
        let available = self.idle.as_deref().unwrap_or(&self.everyone);
        let ask = request(self.world, self.round, self.kernel.now(), available);
        if let Some(genie) = self.world.genie.as_ref().filter(|_| !self.world.meters.is_empty()) {
            genie.reward.gains(&history(self.world, self.round, &self.counts), available, &mut self.available_gains);
        }
        let gains = &self.available_gains;
        let mut rng = PolicyRng { policy: &mut policy_rng, solver: &mut solver_rng };
        self.selection.clear();
        self.policy.select(&ask, &view(self.world, &self.counts, &probed, gains), &mut rng, &mut self.selection);
        check_selection(&self.selection, &ask).map_err(|what| RunError::BadSelection {
            policy: self.label.clone(),
            round: self.round,
            what,
        })
    }

    /// Lets virtual time pass before the selection; late jobs of earlier rounds go on meanwhile.
    fn pass(&mut self, span: Span) -> Result<(), RunError> {
        if span == Span::ZERO {
            return Ok(());
        }
        self.kernel.set_timer(Timer::ProbeEnd, self.kernel.now() + span, CLASS_TIMER);
        while let Some(fired) = self.kernel.next() {
            if fired == Fired::Timer(Timer::ProbeEnd) {
                break;
            }
            self.handle(fired)?;
        }
        Ok(())
    }

    /// Each candidate downloads the model, passes once over its data and answers with one number, which takes no time.
    fn probe_losses(&mut self, candidates: &[ClientId]) -> Result<Vec<(ClientId, f64)>, RunError> {
        let learning = self.learning.as_mut().expect("a policy asks for losses only where clients train");
        let losses = learning.losses(candidates, self.settings.parallel);
        let mut longest = Span::ZERO;
        for &client in candidates {
            let draw = self.world.population.draw(&self.world.streams, Purpose::Probe, client, self.round)?;
            let [download, compute, _] = draw.phases;
            let inference = Span((compute.0 as f64 * self.world.inference_of_job(client)) as u64);
            longest = longest.max(download + inference);
        }
        self.accounts.down_bytes += self.world.payload_bytes * candidates.len() as u64;
        self.accounts.up_bytes += 8 * candidates.len() as u64;
        self.pass(longest)?;
        Ok(losses)
    }

    /// Judges the selection against the genie's, before the history takes it in.
    fn measure(&mut self) -> Result<(), RunError> {
        let world = self.world;
        self.current.clear();
        let now = self.kernel.now();
        for &client in &self.selection {
            let draw = world.population.draw(&world.streams, Purpose::Latency, client, self.round)?;
            self.current.push(self.jobs.add(Job::new(client, self.round, draw, now)));
        }
        let Some(genie) = &world.genie else { return Ok(()) };
        let available = self.idle.as_deref().unwrap_or(&self.everyone);
        let history = history(world, self.round, &self.counts);
        let take = world.rule.take.min(self.selection.len());
        let cut = world.rule.cut;
        self.speeds.clear();
        let speeds = self.current.iter().map(|&id| genie.reward.speed(self.jobs[id].draw.effective(cut)));
        self.speeds.extend(speeds);
        genie.reward.gains(&history, &self.selection, &mut self.gains);
        self.reward = Some(bottleneck(&self.speeds, take) + self.gains.iter().sum::<f64>());
        let round = MeteredRound {
            genie,
            history,
            gains: &self.available_gains,
            take: world.rule.take,
            available,
            selected: &self.selection,
        };
        let (selection, speeds, number) = (&self.selection, &self.speeds, self.round);
        self.regret = self.meters.measure(&round, |client| {
            // What the selected will do was drawn above.
            if let Some(place) = selection.iter().position(|&selected| selected == client) {
                return Ok(speeds[place]);
            }
            let draw: JobDraw = world.population.draw(&world.streams, Purpose::Latency, client, number)?;
            Ok::<_, LatencyError>(genie.reward.speed(draw.effective(cut)))
        })?;
        Ok(())
    }

    fn dispatch(&mut self) -> Result<(), RunError> {
        let now = self.kernel.now();
        let record = Record::Opened { round: self.round, time: now, selected: &self.selection };
        note(&mut self.digests, &mut self.sink, &record)?;
        for &client in &self.selection {
            self.counts[client.index()] += 1;
            if let Some((_, count)) = self.group_selections.get_mut(self.world.population.group_of(client)) {
                *count += 1;
            }
        }
        if let Some(learning) = &mut self.learning {
            let model = learning.model();
            for &id in &self.current {
                self.jobs[id].start = Some(model.clone());
            }
        }
        for place in 0..self.current.len() {
            self.begin_phase(self.current[place], Phase::Download);
        }
        if let Some(cut) = self.world.rule.cut {
            self.kernel.set_timer(Timer::Boundary, now + cut, CLASS_TIMER);
        }
        Ok(())
    }

    fn begin_phase(&mut self, id: JobId, phase: Phase) {
        let now = self.kernel.now();
        let job = &mut self.jobs[id];
        job.phase = phase;
        job.phase_began = now;
        let (span, class, event) = match job.draw.loss {
            Some((lost_in, after)) if lost_in == phase => (after, CLASS_LOSS, Event::Lost(id)),
            _ => (job.draw.phases[phase.index()], CLASS_PHASE, Event::PhaseEnded(id)),
        };
        job.pending = Some(self.kernel.schedule_cancellable(now + span, class, event));
    }

    /// Events until enough updates have arrived or the boundary's timer rings.
    fn wait_for_boundary(&mut self) -> Result<(), RunError> {
        self.arrived.clear();
        let take = self.world.rule.take.min(self.current.len());
        while self.arrived.len() < take {
            let fired = self.kernel.next().expect("a round that is open has a job or a timer pending");
            if fired == Fired::Timer(Timer::Boundary) {
                return Ok(());
            }
            self.handle(fired)?;
        }
        self.kernel.clear_timer(&Timer::Boundary);
        self.finish_instant()
    }

    fn handle(&mut self, fired: Fired<Event, Timer>) -> Result<(), RunError> {
        let now = self.kernel.now();
        match fired {
            Fired::Timer(timer) => unreachable!("the timer {timer:?} is waited for where it is set"),
            Fired::Event(Event::PhaseEnded(id)) => {
                let job = &mut self.jobs[id];
                job.pending = None;
                let (client, round, phase) = (job.client, job.round, job.phase);
                let full = job.draw.phases[phase.index()];
                self.accounts.spend(phase, full, full, self.world.payload_bytes);
                note(&mut self.digests, &mut self.sink, &Record::PhaseEnded { client, round, phase, time: now })?;
                match phase.next() {
                    Some(next) => self.begin_phase(id, next),
                    None => self.arrive(id)?,
                }
            }
            Fired::Event(Event::Lost(id)) => {
                let job = &mut self.jobs[id];
                job.pending = None;
                let (phase, spent) = (job.phase, now - job.phase_began);
                let full = job.draw.phases[phase.index()];
                self.accounts.spend(phase, spent, full, self.world.payload_bytes);
                let wasted = job.compute_spent(now);
                self.accounts.wasted_compute += wasted;
                if job.is_late {
                    self.end_late_job(id, false)?;
                } else {
                    job.is_lost = true;
                }
            }
        }
        Ok(())
    }

    fn arrive(&mut self, id: JobId) -> Result<(), RunError> {
        let job = &mut self.jobs[id];
        if job.is_late {
            self.joining.push(id);
            return self.end_late_job(id, true);
        }
        job.arrived_at = Some(self.kernel.now());
        self.arrived.push(id);
        let (client, round, time) = (job.client, job.round, self.kernel.now());
        let record = Record::JobEnded { client, round, outcome: Outcome::Arrived, time };
        note(&mut self.digests, &mut self.sink, &record)
    }

    /// A carried job delivered or was lost: the client is free again.
    fn end_late_job(&mut self, id: JobId, delivered: bool) -> Result<(), RunError> {
        let (client, round) = (self.jobs[id].client, self.jobs[id].round);
        let time = self.kernel.now();
        note(&mut self.digests, &mut self.sink, &Record::StaleEnded { client, round, delivered, time })?;
        if !delivered {
            self.jobs.remove(id);
        }
        if let Some(idle) = &mut self.idle {
            let place = idle.partition_point(|&other| other < client);
            idle.insert(place, client);
            if idle.len() == self.everyone.len() {
                self.idle = None;
            }
        }
        Ok(())
    }
}

/// Hands a record to the digests and the sink.
fn note(digests: &mut Digests, sink: &mut impl Sink, record: &Record<'_>) -> Result<(), RunError> {
    digests.add(record);
    sink.record(record).map_err(RunError::from)
}

/// Checks a decision: between one and `cohort` clients, all available, none twice.
fn check_selection(selection: &[ClientId], ask: &SelectionRequest<'_>) -> Result<(), String> {
    if selection.is_empty() || selection.len() > ask.cohort {
        return Err(format!("selected {} clients; expected between 1 and {}", selection.len(), ask.cohort));
    }
    let mut sorted = selection.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("selected {} twice", pair[0]));
    }
    match sorted.iter().find(|client| ask.available.binary_search(client).is_err()) {
        Some(client) => Err(format!("selected {client}, which is not available")),
        None => Ok(()),
    }
}

fn request<'a>(world: &World, round: Round, now: VirtualTime, available: &'a [ClientId]) -> SelectionRequest<'a> {
    let cohort = world.rule.ask.min(available.len());
    SelectionRequest { round, now, cohort, take: world.rule.take.min(cohort), available }
}

fn history<'a>(world: &'a World, round: Round, counts: &'a [u32]) -> History<'a> {
    History { round, cohort: world.rule.ask, shares: &world.shares, counts }
}

fn view<'a>(world: &'a World, counts: &'a [u32], probed: &'a [(ClientId, f64)], gains: &'a [f64]) -> ServerView<'a> {
    ServerView {
        gains: world.genie.as_ref().map(|genie| (&genie.reward, gains)).filter(|(_, gains)| !gains.is_empty()),
        data_sizes: world.population.data_sizes(),
        shares: &world.shares,
        counts,
        probed,
        genie: world.genie.as_ref(),
    }
}
