//! Each client's part in a run: selections, outcomes of its jobs, computing and traffic.
//!
//! # Definition
//! `selections` counts all selections of a client. Outcomes are those of jobs of closed rounds: `arrived`, `late` and
//! `dropped` are disjoint; `joined` and `lost_late` say what became of late jobs. `compute_s`, `down_bytes` and
//! `up_bytes` are of all its jobs, those under way at the end included; the clients' sums are the run's totals but for
//! probes and charged evaluations, which belong to no job.
//!
//! # Cost
//! Of up to [`MOST_TOLD`] clients; nothing is kept of more.

use crate::recorder::RoundSummary;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use serde::{Deserialize, Serialize};

/// The most clients of which each is told.
pub const MOST_TOLD: usize = 1_000;

/// The clients of a run, in order; an outcome that no client has is an empty list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clients {
    /// Selections.
    pub selections: Vec<u64>,
    /// Epochs of their jobs, or steps where these are counted; empty where all clients have as many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<u64>,
    /// Updates that arrived in their round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<u64>,
    /// Jobs that were under way when their round closed, or whose update was too stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<u64>,
    /// Late updates that joined a later aggregation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<u64>,
    /// Jobs that were lost before their round closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<u64>,
    /// Late jobs that were lost afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_late: Vec<u64>,
    /// Virtual seconds of computing in jobs.
    pub compute_s: Vec<f64>,
    /// Bytes received.
    pub down_bytes: Vec<u64>,
    /// Bytes sent.
    pub up_bytes: Vec<u64>,
}

impl Clients {
    /// Whether all lists are of so many clients, or empty where that is allowed.
    pub fn are(&self, clients: usize) -> bool {
        let Self { selections, work, arrived, late, joined, dropped, lost_late, compute_s, down_bytes, up_bytes } =
            self;
        let outcomes = [work, arrived, late, joined, dropped, lost_late];
        [selections.len(), compute_s.len(), down_bytes.len(), up_bytes.len()].iter().all(|&len| len == clients)
            && outcomes.iter().all(|counts| counts.is_empty() || counts.len() == clients)
    }
}

/// Outcomes while a run goes on; nothing of more than [`MOST_TOLD`] clients.
#[derive(Debug, Stateful)]
pub(super) struct ClientFold {
    #[state(each)]
    arrived: Vec<u64>,
    #[state(each)]
    late: Vec<u64>,
    #[state(each)]
    joined: Vec<u64>,
    #[state(each)]
    dropped: Vec<u64>,
    #[state(each)]
    lost_late: Vec<u64>,
}

fn count(counts: &mut [u64], client: ClientId) {
    if let Some(count) = counts.get_mut(client.index()) {
        *count += 1;
    }
}

impl ClientFold {
    pub fn new(clients: usize) -> Self {
        let none = vec![0; if clients <= MOST_TOLD { clients } else { 0 }];
        Self { arrived: none.clone(), late: none.clone(), joined: none.clone(), dropped: none.clone(), lost_late: none }
    }

    pub fn add(&mut self, round: &RoundSummary<'_>) {
        let jobs = round.jobs;
        jobs.arrived.iter().for_each(|&client| count(&mut self.arrived, client));
        jobs.late.iter().for_each(|&client| count(&mut self.late, client));
        jobs.joined.iter().for_each(|&(client, _)| count(&mut self.joined, client));
        jobs.dropped.iter().for_each(|job| count(&mut self.dropped, job.client));
        jobs.lost_late.iter().for_each(|(job, _)| count(&mut self.lost_late, job.client));
    }

    /// The clients with their outcomes.
    pub fn finish(self, clients: Clients) -> Clients {
        let Self { arrived, late, joined, dropped, lost_late } = self;
        let told = |counts: Vec<u64>| if counts.iter().any(|&count| count > 0) { counts } else { Vec::new() };
        let (arrived, late, joined) = (told(arrived), told(late), told(joined));
        Clients { arrived, late, joined, dropped: told(dropped), lost_late: told(lost_late), ..clients }
    }
}
