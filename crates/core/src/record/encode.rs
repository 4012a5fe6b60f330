//! The canonical bytes of records, over which digests are taken.

use super::{Outcome, Record, Regret};
use crate::id::{ClientId, EdgeId, Round};
use crate::time::VirtualTime;

impl Record<'_> {
    /// Appends the canonical bytes: a tag and the fields, little endian, floats by their bits. Part of the replay
    /// contract; a change raises [`FORMAT_VERSION`](super::FORMAT_VERSION).
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Opened { round, time, selected } => {
                bytes.push(1);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                bytes.extend_from_slice(&time.0.to_le_bytes());
                encode_clients(bytes, selected);
            }
            Self::PhaseEnded { client, round, phase, time } => {
                bytes.extend_from_slice(&[2, phase as u8]);
                encode_job(bytes, client, round, time);
            }
            Self::JobEnded { client, round, outcome, time } => {
                let (code, phase) = match outcome {
                    Outcome::Arrived => (0, 0),
                    Outcome::Late => (1, 0),
                    Outcome::Dropped { phase, reason } => (2 + reason as u8, phase as u8),
                };
                bytes.extend_from_slice(&[3, code, phase]);
                encode_job(bytes, client, round, time);
            }
            Self::StaleEnded { client, round, delivered, time } => {
                bytes.extend_from_slice(&[4, u8::from(delivered)]);
                encode_job(bytes, client, round, time);
            }
            Self::Closed { round, time, reward, regret, down_bytes, up_bytes } => {
                bytes.push(5);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                bytes.extend_from_slice(&time.0.to_le_bytes());
                encode_optional(bytes, reward);
                let Regret { mean, realised, expected, expected_exact, hindsight: _, assignment: _ } = regret;
                for value in [mean, realised, expected, expected_exact] {
                    encode_optional(bytes, value);
                }
                bytes.extend_from_slice(&down_bytes.to_le_bytes());
                bytes.extend_from_slice(&up_bytes.to_le_bytes());
            }
            Self::Model { round, parameters } => {
                bytes.push(6);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                encode_floats(bytes, parameters);
            }
            Self::Selected { round, time, selected } => encode_selected(bytes, u32::MAX, round.0, time, selected),
            Self::EdgeSelected { edge, turn, time, selected } => {
                encode_selected(bytes, edge.0, turn.0, time, selected);
            }
            Self::CloudOpened { round, time, edges } => {
                bytes.push(9);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                bytes.extend_from_slice(&time.0.to_le_bytes());
                bytes.extend_from_slice(&(edges.len() as u32).to_le_bytes());
                for edge in edges {
                    bytes.extend_from_slice(&edge.0.to_le_bytes());
                }
            }
            Self::Travelled { edge, round, down, time } => {
                bytes.extend_from_slice(&[10, u8::from(down)]);
                encode_edge(bytes, edge, round.0, time);
            }
            Self::EdgeClosed { edge, turn, time } => {
                bytes.push(11);
                encode_edge(bytes, edge, turn.0, time);
            }
            Self::Paused { client, round, phase, from, until } => {
                bytes.extend_from_slice(&[12, phase as u8]);
                encode_job(bytes, client, round, from);
                bytes.extend_from_slice(&until.0.to_le_bytes());
            }
            Self::Lost { client, round, phase, reason, time } => {
                bytes.extend_from_slice(&[13, phase as u8, reason as u8]);
                encode_job(bytes, client, round, time);
            }
            Self::Private { round, client, values } => {
                bytes.push(14);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                bytes.extend_from_slice(&client.0.to_le_bytes());
                encode_floats(bytes, values);
            }
            Self::Metric { round, metric, value } => {
                let name = metric.to_string();
                bytes.push(7);
                bytes.extend_from_slice(&round.0.to_le_bytes());
                bytes.push(name.len() as u8);
                bytes.extend_from_slice(name.as_bytes());
                bytes.extend_from_slice(&value.to_bits().to_le_bytes());
            }
        }
    }
}

fn encode_job(bytes: &mut Vec<u8>, client: ClientId, round: Round, time: VirtualTime) {
    // In one piece: most records are of jobs.
    let mut job = [0; 16];
    job[..4].copy_from_slice(&client.0.to_le_bytes());
    job[4..8].copy_from_slice(&round.0.to_le_bytes());
    job[8..].copy_from_slice(&time.0.to_le_bytes());
    bytes.extend_from_slice(&job);
}

fn encode_edge(bytes: &mut Vec<u8>, edge: EdgeId, number: u32, time: VirtualTime) {
    bytes.extend_from_slice(&edge.0.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&time.0.to_le_bytes());
}

/// A selection within a round; `server` is the selecting edge server, if any, and `number` its turn or else the round.
fn encode_selected(bytes: &mut Vec<u8>, server: u32, number: u32, time: VirtualTime, selected: &[ClientId]) {
    bytes.push(8);
    bytes.extend_from_slice(&server.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&time.0.to_le_bytes());
    encode_clients(bytes, selected);
}

fn encode_clients(bytes: &mut Vec<u8>, clients: &[ClientId]) {
    bytes.extend_from_slice(&(clients.len() as u32).to_le_bytes());
    for client in clients {
        bytes.extend_from_slice(&client.0.to_le_bytes());
    }
}

fn encode_floats(bytes: &mut Vec<u8>, values: &[f32]) {
    bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
    for value in values {
        bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }
}

fn encode_optional(bytes: &mut Vec<u8>, value: Option<f64>) {
    match value {
        None => bytes.push(0),
        Some(value) => {
            bytes.push(1);
            bytes.extend_from_slice(&value.to_bits().to_le_bytes());
        }
    }
}
