//! When the global model is evaluated, and the cost of that where clients are charged.

use crate::run::error::RunError;
use crate::run::learning::{Evaluated, ServerScope};
use crate::run::timeline::{Accounts, Charge, Cost, Engine};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};

/// When a run is over, as far as that can be seen without evaluating the model: at the end of the first round at which
/// one of these is reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// This many rounds.
    pub rounds: Option<u32>,
    /// This instant.
    pub time: Option<VirtualTime>,
    /// This many bytes, both ways together.
    pub bytes: Option<f64>,
}

impl End {
    /// Whether one of them is reached.
    pub fn is_reached(&self, round: Round, now: VirtualTime, accounts: &Accounts) -> bool {
        self.rounds.is_some_and(|rounds| round.0 >= rounds)
            || self.time.is_some_and(|time| now >= time)
            || self.bytes.is_some_and(|bytes| accounts.down_bytes.saturating_add(accounts.up_bytes) as f64 >= bytes)
    }
}

/// The times of the global model's evaluation, and its data: at the end of a round that one of these names, and of the
/// last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluations {
    /// Every so many rounds; 0 for none.
    pub every: u32,
    /// The round at whose end, or in which, such an instant is reached; ascending.
    pub at: Vec<VirtualTime>,
    /// As `at`, for each multiple of this; zero for none.
    pub period: Span,
    /// Also on each client's own data.
    pub clients: bool,
    /// Also on the data of each edge server's clients.
    pub servers: bool,
    /// Which round is the last.
    pub end: End,
}

impl Evaluations {
    /// After every so many rounds, on the test data.
    pub const fn every(rounds: u32) -> Self {
        let end = End { rounds: None, time: None, bytes: None };
        Self { every: rounds, at: Vec::new(), period: Span::ZERO, clients: false, servers: false, end }
    }

    /// The data of an evaluation; `scopes` are the edge servers.
    pub(in crate::run) const fn evaluated<'a>(&self, scopes: &'a [ServerScope<'a>], parallel: bool) -> Evaluated<'a> {
        Evaluated { clients: self.clients, servers: self.servers, scopes, parallel }
    }

    /// Whether the model is evaluated at the end of a round that began at `opened`.
    pub(in crate::run) fn is_due(&self, round: Round, opened: VirtualTime, now: VirtualTime) -> bool {
        let reached = |time: VirtualTime| self.at.partition_point(|&at| at <= time);
        self.every > 0 && round.0.is_multiple_of(self.every)
            || reached(now) > reached(opened)
            || self.period > Span::ZERO && now.0 / self.period.0 > opened.0 / self.period.0
    }
}

/// A client's answer: a number, which travels in no time.
const ANSWER_BYTES: u64 = 8;

/// Books the evaluation of a round: every client with training examples downloads the model, makes an inference pass
/// and answers. Returns how long the slowest takes.
pub(in crate::run) fn charge(engine: &mut Engine<'_>, round: Round) -> Result<Span, RunError> {
    let world = engine.world;
    let Some(task) = &world.task else { return Ok(Span::ZERO) };
    let mut charge = Charge::default();
    let clients = (0..world.population.len()).map(ClientId::from_index);
    for client in clients.filter(|&client| task.examples(client) > 0) {
        let [download, compute, _] = engine.draw(Purpose::Probe, client, JobNumber(u32::MAX - round.0))?.phases;
        let inference = Span((compute.0 as f64 * world.inference_of_job(client)) as u64);
        charge.span = charge.span.max(Span(download.0.saturating_add(inference.0)));
        let (down_bytes, up_bytes) = (world.training.payload_bytes, ANSWER_BYTES);
        charge.cost += Cost { compute: inference.into(), down_bytes, up_bytes, ..Cost::default() };
    }
    engine.accounts.probe(charge.cost);
    engine.audit.probed(charge.cost);
    Ok(charge.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_reached_by_rounds_time_or_bytes() {
        let accounts = Accounts { down_bytes: 6, up_bytes: 4, ..Accounts::default() };
        let reached = |end: &End| end.is_reached(Round(5), VirtualTime(9), &accounts);
        assert!(!reached(&End::default()));
        for (least, is_reached) in [(4, true), (5, true), (6, false)] {
            assert_eq!(reached(&End { rounds: Some(least), ..End::default() }), is_reached);
            assert_eq!(reached(&End { time: Some(VirtualTime(u64::from(least) + 4)), ..End::default() }), is_reached);
            assert_eq!(reached(&End { bytes: Some(f64::from(least) + 5.0), ..End::default() }), is_reached);
        }
    }

    #[test]
    fn an_instant_belongs_to_the_round_in_which_or_at_whose_end_it_is_reached() {
        let time = |seconds: u64| VirtualTime::default() + Span(seconds * 1_000_000_000);
        let due = |evaluations: &Evaluations, round, opened, closed| {
            evaluations.is_due(Round(round), time(opened), time(closed))
        };
        let never = Evaluations::every(0);
        let at = Evaluations { at: vec![time(5), time(6)], ..never.clone() };
        let period = Evaluations { period: Span(5_000_000_000), ..never.clone() };
        for evaluations in [&at, &period] {
            assert!(!due(evaluations, 1, 0, 4));
            assert!(due(evaluations, 1, 0, 5), "at its end");
            assert!(!due(evaluations, 2, 5, 5), "once only");
            assert!(due(evaluations, 2, 4, 9));
        }
        assert!(due(&at, 2, 5, 6) && !due(&period, 2, 5, 6));
        assert!(due(&period, 2, 9, 31) && !due(&at, 2, 9, 31));
        let every = Evaluations { at: vec![time(5)], ..Evaluations::every(3) };
        assert!(due(&every, 3, 0, 1) && !due(&every, 4, 1, 2) && due(&every, 5, 2, 7));
        assert!(!due(&never, 1, 0, 100));
    }
}
