//! Availability forecasts: whether a client will be online throughout an interval, right with some probability.
//!
//! # Definition
//! The answer to (client, from, to) is whether the device is available at every instant of `[from, to)`, which is so
//! for an empty interval. With probability `1 − accuracy` the answer is the opposite, each question by itself. The same
//! question has the same answer in every round and for every policy. A question beyond `now + horizon` is refused: it
//! ends the run.
//!
//! # Example
//! ```toml
//! [population.forecast]
//! horizon = "1 h"
//! accuracy = 0.9
//! ```
//!
//! # Cost
//! A cursor for each client of a run whose policy asks; a question costs a look at its client's stretch, and a draw
//! unless `accuracy` is 1.
//!
//! # Determinism
//! Stream (forecast, client, mixture of from and to): one uniform.

use super::{Cursors, Population};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// `[population.forecast]`: what policies may ask about the availability of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastConfig {
    /// How far ahead.
    pub horizon: Duration,
    /// The probability that an answer is right, between 0 and 1.
    #[serde(default = "always")]
    pub accuracy: f64,
}

const fn always() -> f64 {
    1.0
}

/// What forecasts of a population are like, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// How far ahead.
    pub horizon: Span,
    /// The probability that an answer is right.
    pub accuracy: f64,
}

impl ForecastConfig {
    /// Checks the ranges.
    pub(super) fn checked(&self) -> Result<Forecast, Complaint> {
        if self.horizon.0 == Span::ZERO {
            return Err(Complaint::new("horizon", "found 0; expected a positive duration"));
        }
        let accuracy = check("accuracy", self.accuracy, 0.0..=1.0, "a probability between 0 and 1")?;
        Ok(Forecast { horizon: self.horizon.0, accuracy })
    }
}

/// A question that has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForecastError {
    /// It reaches further than forecasts do.
    #[error(
        "asks for a forecast of {client} until {until}, and forecasts reach until {end}; ask for less, or raise \
         [population.forecast] horizon"
    )]
    Beyond {
        /// Whose forecast.
        client: ClientId,
        /// The end of the interval.
        until: VirtualTime,
        /// The end of forecasts at this moment.
        end: VirtualTime,
    },
    /// The interval ends before it begins.
    #[error("asks for a forecast of {client} from {from} until {until}, before it begins; give the earlier time first")]
    Backwards {
        /// Whose forecast.
        client: ClientId,
        /// The beginning of the interval.
        from: VirtualTime,
        /// Its end.
        until: VirtualTime,
    },
    /// The client belongs to another server, or is none.
    #[error("asks for a forecast of {client}, which is no client of its server; ask about the server's own")]
    Stranger {
        /// Whose forecast.
        client: ClientId,
    },
    /// The policy does not say that it asks.
    #[error("asks for a forecast, and does not declare it; let its capabilities say so")]
    Undeclared,
}

/// Answers the questions of one server's policy. It remembers nothing that an answer depends on.
#[derive(Debug)]
pub struct Forecaster<'w> {
    forecast: Forecast,
    streams: &'w Streams,
    cursors: Cursors<'w>,
    /// The server's clients, ascending; none for all.
    members: Option<&'w [ClientId]>,
    clients: usize,
    now: Cell<VirtualTime>,
    /// The first question since the last selection that had no answer.
    refused: Cell<Option<ForecastError>>,
}

impl<'w> Forecaster<'w> {
    /// For the policy of a server with these clients, or with all; none where the population has no forecasts.
    pub fn new(population: &'w Population, streams: &'w Streams, members: Option<&'w [ClientId]>) -> Option<Self> {
        Some(Self {
            forecast: population.forecast?,
            streams,
            cursors: population.availability().cursors(streams),
            members,
            clients: population.len(),
            now: Cell::new(VirtualTime::START),
            refused: Cell::new(None),
        })
    }

    /// The same, at an instant.
    pub fn at(&self, now: VirtualTime) -> &Self {
        self.now.set(now);
        self
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// If it has none.
    pub fn ask(&self, client: ClientId, from: VirtualTime, until: VirtualTime) -> Result<bool, ForecastError> {
        let answer = self.answer(client, from, until);
        if let (Err(error), None) = (answer, self.refused.get()) {
            self.refused.set(Some(error));
        }
        answer
    }

    fn answer(&self, client: ClientId, from: VirtualTime, until: VirtualTime) -> Result<bool, ForecastError> {
        let is_own = match self.members {
            Some(members) => members.binary_search(&client).is_ok(),
            None => client.index() < self.clients,
        };
        let end = VirtualTime(self.now.get().0.saturating_add(self.forecast.horizon.0));
        if !is_own {
            return Err(ForecastError::Stranger { client });
        }
        if until < from {
            return Err(ForecastError::Backwards { client, from, until });
        }
        if until > end {
            return Err(ForecastError::Beyond { client, until, end });
        }
        let stretch = self.cursors.stretch(client, from);
        let is_online = from == until || stretch.available && stretch.until >= until;
        let wrong = 1.0 - self.forecast.accuracy;
        let is_wrong = wrong > 0.0 && self.chance(client, from, until) < wrong;
        Ok(is_online != is_wrong)
    }

    /// The draw that belongs to a question.
    fn chance(&self, client: ClientId, from: VirtualTime, until: VirtualTime) -> f64 {
        let mixed = mixed(mixed(from.0) ^ until.0);
        self.streams.stream(Purpose::Forecast, client.0, (mixed >> 32) as u32).uniform()
    }

    /// The first question without an answer since this was last looked at.
    pub fn refused(&self) -> Option<ForecastError> {
        self.refused.take()
    }
}

/// A bijection of 64-bit numbers in which every bit depends on every other: the finalizer of `SplitMix64` (G. L.
/// Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{PopulationConfig, Work};
    use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};

    const S: u64 = 1_000_000_000;

    /// Three devices that are online for 3 s and away for 2 s on average.
    fn population(accuracy: f64, streams: &Streams) -> Population {
        let lines = format!(
            "clients = 3\n[latency]\ndownload = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\n\
             upload = {{ constant = \"1 s\" }}\n[availability.on-off]\non = {{ exponential = {{ mean = \"3 s\" }} }}\n\
             off = {{ exponential = {{ mean = \"2 s\" }} }}\n[forecast]\nhorizon = \"1 h\"\naccuracy = {accuracy}\n"
        );
        let config: PopulationConfig = toml::from_str(&lines).unwrap();
        let sgd = OptimizerConfig::Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
        let training = LocalTraining::new(1, 32, &sgd).unwrap();
        config.build(&Work { data_sizes: None, training: &training, payload_bytes: 8 }, streams).unwrap()
    }

    /// Every interval of a grid, beside the stretches themselves.
    fn grid() -> impl Iterator<Item = (ClientId, VirtualTime, VirtualTime)> {
        let at = |half: u64| VirtualTime(half * S / 2);
        (0..3).flat_map(move |client| {
            (0..60).flat_map(move |from| (from..from + 12).map(move |to| (ClientId(client), at(from), at(to))))
        })
    }

    /// Online at every tenth of a millisecond of an interval, which no stretch of these devices falls between.
    fn is_online(cursors: &Cursors<'_>, (client, from, to): (ClientId, VirtualTime, VirtualTime)) -> bool {
        (from.0..to.0).step_by(100_000).all(|time| cursors.is_available(client, VirtualTime(time)))
    }

    #[test]
    fn accurate_forecasts_are_what_happens() {
        let streams = Streams::new(1);
        let population = population(1.0, &streams);
        let forecaster = Forecaster::new(&population, &streams, None).unwrap();
        let cursors = population.availability().cursors(&streams);
        let mut online = 0;
        for question @ (client, from, to) in grid().step_by(7) {
            let answer = forecaster.ask(client, from, to).unwrap();
            assert_eq!(answer, is_online(&cursors, question), "{question:?}");
            online += u32::from(answer);
        }
        assert!((50..260).contains(&online), "{online} of 309 intervals");
    }

    /// 2,160 questions with accuracy 0.8: 432 wrong answers are expected, with a standard deviation of 18.6.
    #[test]
    fn each_answer_is_wrong_by_itself_and_stays_so() {
        let streams = Streams::new(1);
        let [right, unsure] = [1.0, 0.8].map(|accuracy| population(accuracy, &streams));
        let sure = Forecaster::new(&right, &streams, None).unwrap();
        let forecaster = Forecaster::new(&unsure, &streams, None).unwrap();
        let wrong = |(client, from, to): &(ClientId, VirtualTime, VirtualTime)| {
            forecaster.ask(*client, *from, *to) != sure.ask(*client, *from, *to)
        };
        let found: Vec<bool> = grid().map(|question| wrong(&question)).collect();
        let count = found.iter().filter(|wrong| **wrong).count();
        assert!((350..514).contains(&count), "{count} of {}", found.len());
        let again: Vec<bool> = grid().map(|question| wrong(&question)).collect();
        assert_eq!(found, again);
        // Neighbouring questions are wrong together as often as by chance: 86 of 2,159 pairs, give or take 9.
        let both = found.windows(2).filter(|pair| pair[0] && pair[1]).count();
        assert!((46..126).contains(&both), "{both}");
    }

    #[test]
    fn questions_without_an_answer_are_kept() {
        let streams = Streams::new(1);
        let population = population(1.0, &streams);
        let members = [ClientId(0), ClientId(2)];
        let forecaster = Forecaster::new(&population, &streams, Some(&members)).unwrap();
        forecaster.at(VirtualTime(10 * S));
        let hour = VirtualTime(3610 * S);
        assert!(forecaster.ask(ClientId(2), VirtualTime(0), hour).is_ok());
        assert_eq!(forecaster.refused(), None);
        let beyond = ForecastError::Beyond { client: ClientId(2), until: VirtualTime(hour.0 + 1), end: hour };
        assert_eq!(forecaster.ask(ClientId(2), VirtualTime(0), VirtualTime(hour.0 + 1)), Err(beyond));
        let stranger = ForecastError::Stranger { client: ClientId(1) };
        assert_eq!(forecaster.ask(ClientId(1), VirtualTime(0), VirtualTime(1)), Err(stranger));
        let backwards = forecaster.ask(ClientId(0), VirtualTime(2), VirtualTime(1));
        assert!(matches!(backwards, Err(ForecastError::Backwards { .. })), "{backwards:?}");
        assert_eq!((forecaster.refused(), forecaster.refused()), (Some(beyond), None));
    }
}
