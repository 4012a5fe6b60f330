//! How a round is opened, and how its opening is undone: in one way under every protocol.

use super::Server;
use crate::run::error::RunError;
use crate::run::round::question::Asker;
use crate::run::timeline::Engine;
use fedgenie_core::id::{Round, Turn};
use fedgenie_core::time::VirtualTime;

/// A round under way, of the server or of the cloud.
///
/// [`Server::open_round`] alone makes one, and every way to end a round takes it: a protocol that opens a round without
/// the round's data does not compile.
#[derive(Debug)]
#[must_use]
pub(in crate::run) struct RoundUnderWay {
    /// When it was opened.
    opened: VirtualTime,
}

impl RoundUnderWay {
    /// When it was opened.
    pub const fn opened(&self) -> VirtualTime {
        self.opened
    }
}

impl Server<'_> {
    /// The round under way, or the last one.
    pub const fn round(&self) -> Round {
        self.round
    }

    /// Opens the next round, with the data of that round.
    pub fn open_round(&mut self, engine: &Engine<'_>) -> RoundUnderWay {
        assert!(engine.now() >= self.evaluated, "clients have answered to the last evaluation");
        self.count_rounds(self.round.next());
        RoundUnderWay { opened: engine.now() }
    }

    /// Undoes the opening of a round in which nothing happened.
    pub fn take_back(&mut self, round: RoundUnderWay) {
        let RoundUnderWay { opened: _ } = round;
        self.count_rounds(Round(self.round.0 - 1));
    }

    fn count_rounds(&mut self, round: Round) {
        self.round = round;
        if let Some(learning) = &mut self.learning {
            learning.take_data_of(round);
        }
    }

    /// The budget does not pay for a selection: the run is over, unless it has not begun.
    ///
    /// # Errors
    /// If it is the run's first: the policy's probe costs too much.
    pub fn give_up(&mut self, engine: &Engine<'_>, turn: Turn, asked: u64) -> Result<(), RunError> {
        self.is_spent = true;
        if engine.accounts.dispatched == 0 {
            let budget = engine.world.budget;
            return Err(RunError::Budget {
                policy: Asker::Server.policy(&self.label),
                turn,
                round: self.round(),
                budget: budget.bytes.unwrap_or(u64::MAX),
                least: budget.least,
                asked,
            });
        }
        Ok(())
    }
}
