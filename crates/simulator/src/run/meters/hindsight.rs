//! The regret in hindsight of a run: updates of the clients that were not chosen, and the best set of each selection.
//! The definition is in [`fedgenie_core::oracle::hindsight`].
//!
//! The candidates are noted when clients are chosen; the others train when the round of their server has closed, from
//! the model that it sent. Where clients are chosen one by one, all train at once. The run itself sees nothing of it.

mod judged;
mod looks;
mod sets;

pub(in crate::run) use judged::Judged;

use crate::protocol::{BufferedRule, RoundRule};
use crate::recorder::HindsightRound;
use crate::run::error::RunError;
use crate::run::learning::{Before, EdgeState, Learning, Trained};
use crate::run::timeline::{Engine, THE_SERVER};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round, Turn};
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightRegret, Judgement};
use fedgenie_core::oracle::utility::contribution::data_quality;
use fedgenie_core::oracle::utility::{HindsightClient, Utility};
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::Span;
use fedgenie_learning::layout::Update;
use fedgenie_learning::learned::SharedModels;
use fedgenie_learning::task::JobKey;
use sets::Foreseen;
use std::sync::Arc;

/// A selection whose jobs are under way.
pub(in crate::run) struct OpenRound<'w> {
    round: Round,
    turn: Turn,
    /// The model that is sent.
    start: Arc<[f32]>,
    /// All candidates, ascending.
    clients: Vec<ClientId>,
    /// The job of each, had it been chosen.
    numbers: Vec<JobNumber>,
    /// `−κ·T̃` of each.
    speeds: Vec<f64>,
    /// Whether the update of each would be there when the round closes.
    arrives: Vec<bool>,
    /// Bytes of each job, both ways together.
    bytes: Vec<u64>,
    /// How many could be chosen.
    cohort: usize,
    /// The answer of each, where a utility is of answers; 0 for clients whose update would not count.
    answers: Vec<f64>,
    /// The slope of the validation loss, where a utility is of that.
    slope: Vec<f32>,
    /// The start of the aggregation, where a utility is of sets.
    before: Option<Before<'w>>,
}

impl OpenRound<'_> {
    /// The candidates whose update would be there when the round closes, ascending: their positions and jobs.
    fn counting(&self, learning: &Learning<'_>) -> impl Iterator<Item = (usize, JobKey)> {
        let jobs = self.clients.iter().zip(&self.numbers).map(|(&client, &number)| JobKey { client, number });
        let counts = |&(index, job): &(usize, JobKey)| self.arrives[index] && learning.has_data(job.client);
        jobs.enumerate().filter(counts)
    }

    /// All but the parts that follow from the scenario.
    pub fn exchange(&mut self, models: &mut SharedModels, state: &mut State<'_>) {
        let Self { round, turn, start, clients, numbers, speeds, arrives, bytes, cohort, answers, slope, before } =
            self;
        state.field(round);
        state.field(turn);
        models.exchange(start, state);
        state.field(clients);
        state.field(numbers);
        state.field(speeds);
        state.field(arrives);
        state.field(bytes);
        state.field(cohort);
        state.field(answers);
        state.field(slope);
        before.iter_mut().for_each(|before| before.exchange(start, state));
        let count = clients.len();
        let lengths = [numbers.len(), speeds.len(), arrives.len(), bytes.len()];
        state.require(lengths == [count; 4] && (1..=count).contains(cohort));
        let are_looks = [0, count].contains(&answers.len()) && [0, start.len()].contains(&slope.len());
        state.require(are_looks);
    }
}

/// A server that selects, and how long it waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Window {
    server: EdgeId,
    /// Whether it is one of several.
    is_edge: bool,
    /// Whether a round has several selections.
    has_turns: bool,
    /// The longest it waits.
    cut: Option<Span>,
    /// Whether it always waits so long.
    full: bool,
}

impl Window {
    /// The one server in rounds.
    pub const fn of_rounds(rule: &RoundRule) -> Self {
        let RoundRule { cut, full_window: full, .. } = *rule;
        Self { server: THE_SERVER, is_edge: false, has_turns: false, cut, full }
    }

    /// An edge server.
    pub const fn of_edge(server: EdgeId, rule: &RoundRule) -> Self {
        Self { server, is_edge: true, has_turns: true, ..Self::of_rounds(rule) }
    }

    /// A server that asks one client after the other.
    pub const fn of_one(rule: &BufferedRule) -> Self {
        Self { server: THE_SERVER, is_edge: false, has_turns: true, cut: rule.timeout, full: false }
    }
}

/// A judgement of a selection.
pub(in crate::run) struct Found {
    /// Its regret.
    pub lost: f64,
    /// The best set, and the values of sets.
    pub judged: HindsightRound,
}

/// The meter of one server of a run.
#[derive(Stateful)]
pub(in crate::run) struct HindsightMeter<'w> {
    #[state(skip = "from the scenario")]
    hindsight: &'w Hindsight,
    #[state(skip = "from the scenario")]
    window: Window,
    utility: Utility,
    pub regret: HindsightRegret,
    /// Buffers of the models of the clients that were not chosen.
    #[state(skip = "a buffer of one round")]
    updates: Vec<Update>,
    /// `S_i` of the candidates of the last round.
    #[state(skip = "read before the next round is judged")]
    pub utilities: Vec<f64>,
    /// The best set of the selection under way, where the policy was told of it.
    #[state(skip = "of the selection under way")]
    foreseen: Option<Foreseen>,
}

impl<'w> HindsightMeter<'w> {
    /// Before the first round. `None` without `hindsight`.
    pub fn new(world: &'w World, window: Window) -> Option<Self> {
        let hindsight = world.hindsight.as_ref()?;
        Some(Self {
            hindsight,
            window,
            utility: Utility::new(hindsight.utility.clone(), world.population.len()),
            regret: HindsightRegret::default(),
            updates: Vec::new(),
            utilities: Vec::new(),
            foreseen: None,
        })
    }

    /// Notes the candidates of a selection, which chooses at most `most`, the latency of each one's job, and the model
    /// that is sent: an edge server's own, where there are any.
    pub fn open(
        &self,
        engine: &Engine<'_>,
        (round, turn): (Round, Turn),
        most: usize,
        number: impl Fn(ClientId) -> JobNumber,
        (learning, parallel): (&Learning<'w>, bool),
        edge: Option<(Arc<[f32]>, EdgeState<'w>)>,
    ) -> Result<OpenRound<'w>, RunError> {
        let Window { server, cut, full, .. } = self.window;
        let clients = engine.candidates(server).list().to_vec();
        let numbers: Vec<JobNumber> = clients.iter().map(|&client| number(client)).collect();
        let (mut speeds, mut arrives, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for (&client, &number) in clients.iter().zip(&numbers) {
            let (draw, [down, up]) = engine.job(Purpose::Latency, client, number)?;
            let waited = match cut {
                Some(cut) if full => cut,
                _ => draw.effective(cut),
            };
            speeds.push(self.hindsight.speed(waited));
            bytes.push(down.saturating_add(up));
            arrives.push(draw.loss.is_none() && cut.is_none_or(|cut| draw.total() <= cut));
        }
        let cohort = most.min(clients.len());
        let start = edge.as_ref().map_or_else(|| learning.model(0), |(start, _)| start.clone());
        let before = self.utility.config().of_sets().map(|_| learning.before(round, edge));
        let (answers, slope) = (Vec::new(), Vec::new());
        let mut open =
            OpenRound { round, turn, start, clients, numbers, speeds, arrives, bytes, cohort, answers, slope, before };
        self.look(&mut open, learning, parallel);
        learning.check_work(round)?;
        Ok(open)
    }

    /// An edge server's round under way, of which everything else is to be loaded.
    pub fn begun(&self, learning: &Learning<'w>, start: Arc<[f32]>, edge: EdgeState<'w>) -> OpenRound<'w> {
        let before = self.utility.config().of_sets().map(|_| learning.before(Round(0), Some((start.clone(), edge))));
        OpenRound {
            round: Round(0),
            turn: Turn(0),
            start,
            clients: Vec::new(),
            numbers: Vec::new(),
            speeds: Vec::new(),
            arrives: Vec::new(),
            bytes: Vec::new(),
            cohort: 0,
            answers: Vec::new(),
            slope: Vec::new(),
            before,
        }
    }

    /// Whether it compares sets, and not sums over clients.
    pub fn is_of_sets(&self) -> bool {
        self.hindsight.utility.of_sets().is_some()
    }

    /// Whether a round is judged.
    pub fn is_due(&self, round: Round) -> bool {
        round.0.is_multiple_of(self.hindsight.every)
    }

    /// Judges a selection, whose updates, if `learning` has just trained them, are those of `trained`: without them, or
    /// with those of all selected clients that arrived.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    ///
    /// # Panics
    /// If a client was selected that was no candidate: a broken invariant.
    pub fn close(
        &mut self,
        open: &OpenRound<'_>,
        (learning, trained): (&Learning<'_>, &[Trained]),
        selected: &[ClientId],
        parallel: bool,
    ) -> Result<Found, RunError> {
        let index = |client: &ClientId| open.clients.binary_search(client).expect("selected clients were candidates");
        let mut chosen: Vec<u32> = selected.iter().map(|client| index(client) as u32).collect();
        chosen.sort_unstable();
        let sizes = self.hindsight.sizes(open.cohort);
        if let Some((judgement, of_clients)) = self.recall(open, (learning, trained), &chosen) {
            let lost = self.regret.add_judged(judgement, sizes.contains(&chosen.len()));
            learning.check_work(open.round)?;
            return Ok(self.found(open, lost, of_clients));
        }
        if let Some(lost) = self.judge_looks(open, (learning, trained), &chosen, parallel)? {
            return Ok(self.found(open, lost, Vec::new()));
        }
        let mut imagined = std::mem::take(&mut self.updates);
        let updates = imagine(open, (learning, trained), parallel, &mut imagined)?;
        let mut of_clients = Vec::new();
        let lost = if self.is_of_sets() {
            let (judgement, contributions) = self.judge_sets(open, learning, &updates, &chosen, parallel);
            learning.check_work(open.round)?;
            of_clients = contributions;
            self.regret.add_judged(judgement, sizes.contains(&chosen.len()))
        } else {
            let sent = learning.score_sent(&open.start, parallel);
            let clients = self.clients(open, learning, &updates, parallel);
            learning.check_work(open.round)?;
            self.utility.of(sent, &clients, &mut self.utilities);
            let lost = self.regret.add(&open.speeds, &self.utilities, sizes, &chosen);
            self.utility.remember(sent, chosen.iter().map(|&index| &clients[index as usize]));
            lost
        };
        drop(updates);
        self.updates = imagined;
        Ok(self.found(open, lost, of_clients))
    }

    /// The last judgement, with each candidate's contribution where that is known.
    fn found(&self, open: &OpenRound<'_>, lost: f64, contributions: Vec<f64>) -> Found {
        let contributions = open.clients.iter().copied().zip(contributions).collect();
        let Judgement { best, best_value, own_value } = self.regret.last();
        let best = best.iter().map(|&index| open.clients[index as usize]).collect();
        let judged = HindsightRound {
            turn: self.window.has_turns.then_some(open.turn),
            server: self.window.is_edge.then_some(self.window.server),
            best,
            best_value: *best_value,
            own_value: *own_value,
            contributions,
        };
        Found { lost, judged }
    }

    /// All candidates, with the scores of the updates of those whose job would end in time.
    fn clients(
        &self,
        open: &OpenRound,
        learning: &Learning<'_>,
        updates: &[(ClientId, &Update)],
        parallel: bool,
    ) -> Vec<HindsightClient> {
        let scores = learning.score_updates(&open.start, updates, parallel);
        let squares = match self.utility.config().needs_data_quality() {
            true => learning.squared_losses(&open.start, &open.clients, parallel),
            false => vec![0.0; open.clients.len()],
        };
        let one = |(&client, squares): (&ClientId, f64)| {
            let update = updates.binary_search_by_key(&client, |(client, _)| *client);
            HindsightClient {
                client,
                update: update.ok().and_then(|index| scores[index]),
                data_quality: data_quality(learning.examples(client), squares),
            }
        };
        open.clients.iter().zip(squares).map(one).collect()
    }
}

/// The updates of all candidates whose job would end in time, ascending: those that were just trained, and `others` of
/// clients that were not asked.
fn imagine<'a>(
    open: &OpenRound<'_>,
    (learning, trained): (&'a Learning<'_>, &[Trained]),
    parallel: bool,
    others: &'a mut Vec<Update>,
) -> Result<Vec<(ClientId, &'a Update)>, RunError> {
    let all: Vec<JobKey> = open.counting(learning).map(|(_, job)| job).collect();
    let mut updates: Vec<(ClientId, &Update)> =
        trained.iter().enumerate().map(|(index, trained)| (trained.client, learning.update(index))).collect();
    let is_trained = |client| updates.binary_search_by_key(client, |(client, _)| *client).is_ok();
    let unasked: Vec<JobKey> = all.iter().filter(|job| !is_trained(&job.client)).copied().collect();
    assert_eq!(all.len(), unasked.len() + updates.len(), "the clients that arrived are those expected to arrive");
    learning.train_in_hindsight(&open.start, open.round, &unasked, parallel, others)?;
    updates.extend(unasked.iter().map(|job| job.client).zip(&*others));
    updates.sort_unstable_by_key(|(client, _)| *client);
    Ok(updates)
}

#[cfg(test)]
mod tests;
