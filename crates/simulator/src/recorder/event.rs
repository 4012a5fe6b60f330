//! A record as a line of `events.jsonl.gz`.

use fedgenie_core::record::Record;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Writes an object with the given keys, in their order, without making a tree of it first: a run has millions of them.
macro_rules! object {
    ($to:ident, { $($key:literal: $value:expr),+ $(,)? }) => {{
        let mut object = $to.serialize_map(None)?;
        $(object.serialize_entry($key, &$value)?;)+
        object.end()
    }};
}

/// A record as an object; trained parameters only by their number.
pub(super) struct Event<'a>(pub &'a Record<'a>);

/// A record as a line of `events.jsonl.gz`; trained parameters only by their number.
pub fn event_json(record: &Record<'_>) -> serde_json::Value {
    serde_json::to_value(Event(record)).expect("a record is an object of names, numbers and lists")
}

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Record::Opened { round, time, selected } => {
                object!(to, { "event": "opened", "round": round, "time_ns": time, "selected": selected })
            }
            Record::Selected { round, time, selected } => {
                object!(to, { "event": "selected", "edge": (), "round": round, "time_ns": time, "selected": selected })
            }
            Record::EdgeSelected { edge, turn, time, selected } => {
                object!(to, { "event": "selected", "edge": edge, "round": turn, "time_ns": time, "selected": selected })
            }
            Record::CloudOpened { round, time, edges } => {
                object!(to, { "event": "cloud-opened", "round": round, "time_ns": time, "edges": edges })
            }
            Record::Travelled { edge, round, down, time } => {
                object!(to, { "event": "travelled", "edge": edge, "round": round, "down": down, "time_ns": time })
            }
            Record::EdgeClosed { edge, turn, time } => {
                object!(to, { "event": "edge-closed", "edge": edge, "round": turn, "time_ns": time })
            }
            Record::Paused { client, round, phase, from, until } => object!(to, {
                "event": "paused", "client": client, "round": round, "phase": phase, "from_ns": from, "until_ns": until
            }),
            Record::Lost { client, round, phase, reason, time } => object!(to, {
                "event": "lost", "client": client, "round": round, "phase": phase, "reason": reason, "time_ns": time
            }),
            Record::PhaseEnded { client, round, phase, time } => {
                object!(to, { "event": "phase-ended", "client": client, "round": round, "phase": phase, "time_ns": time })
            }
            Record::JobEnded { client, round, outcome, time } => {
                object!(to, { "event": "job-ended", "client": client, "round": round, "outcome": outcome, "time_ns": time })
            }
            Record::StaleEnded { client, round, delivered, time } => {
                object!(to, { "event": "stale-ended", "client": client, "round": round, "delivered": delivered, "time_ns": time })
            }
            Record::Closed { round, time, reward, regret, down_bytes, up_bytes } => object!(to, {
                "event": "closed", "round": round, "time_ns": time, "reward": reward, "regret": regret,
                "down_bytes": down_bytes, "up_bytes": up_bytes
            }),
            Record::Model { round, parameters } => {
                object!(to, { "event": "model", "round": round, "parameters": parameters.len() })
            }
            Record::Private { round, client, values } => {
                object!(to, { "event": "private", "round": round, "client": client, "parameters": values.len() })
            }
            Record::Metric { round, metric, value } => {
                let name = metric.to_string();
                object!(to, { "event": "metric", "round": round, "name": name, "value": value })
            }
        }
    }
}
