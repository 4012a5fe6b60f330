//! Records as sentences, for messages.

use super::Record;
use std::fmt;

impl fmt::Display for Record<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { round, time, selected } => {
                let ids: Vec<_> = selected.iter().map(|client| client.0).collect();
                write!(formatter, "{round} opened at {time}, selected {ids:?}")
            }
            Self::Selected { round, time, selected } => {
                let ids: Vec<_> = selected.iter().map(|client| client.0).collect();
                write!(formatter, "selected {ids:?} in {round} at {time}")
            }
            Self::EdgeSelected { edge, turn, time, selected } => {
                let ids: Vec<_> = selected.iter().map(|client| client.0).collect();
                write!(formatter, "{edge} selected {ids:?} in its {turn} at {time}")
            }
            Self::CloudOpened { round, time, edges } => {
                let ids: Vec<_> = edges.iter().map(|edge| edge.0).collect();
                write!(formatter, "{round} of the cloud opened at {time}, edges {ids:?}")
            }
            Self::Travelled { edge, round, down, time } => {
                let way = if *down { "cloud to edge" } else { "edge to cloud" };
                write!(formatter, "{round}: the model travelled from {way} ({edge}) by {time}")
            }
            Self::EdgeClosed { edge, turn, time } => write!(formatter, "{edge} closed its {turn} at {time}"),
            Self::Paused { client, round, phase, from, until } => {
                write!(formatter, "{client} (job of {round}) was away in {phase} from {from} until {until}")
            }
            Self::Lost { client, round, phase, reason, time } => {
                write!(formatter, "{client} (job of {round}) was lost in {phase} at {time}: {reason:?}")
            }
            Self::PhaseEnded { client, round, phase, time } => {
                write!(formatter, "{client} (job of {round}) ended {phase} at {time}")
            }
            Self::JobEnded { client, round, outcome, time } => {
                write!(formatter, "{client} (job of {round}) {outcome:?} at {time}")
            }
            Self::StaleEnded { client, round, delivered, time } => {
                let how = if *delivered { "delivered" } else { "was lost" };
                write!(formatter, "{client} (late job of {round}) {how} at {time}")
            }
            Self::Closed { round, time, reward, regret, .. } => {
                write!(formatter, "{round} closed at {time}, reward {reward:?}, {regret:?}")
            }
            Self::Model { round, parameters } => {
                write!(formatter, "model after {round}, {} parameters", parameters.len())
            }
            Self::Private { round, client, values } => {
                write!(formatter, "{} private numbers of {client} after {round}", values.len())
            }
            Self::Metric { round, metric, value } => write!(formatter, "{metric} = {value} after {round}"),
        }
    }
}
