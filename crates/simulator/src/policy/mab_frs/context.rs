//! The features (24) of clients: what is known of them when they can be selected, standardised over those who can.

use super::utility::{Pull, Utilities};
use crate::policy::DeclaredDevice;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::state::Stateful;

/// 1, then R, Δ, U, D̃, seconds of computing, seconds of transfer.
pub(super) type Context = [f64; 7];

/// A deviation that is no larger a share of the mean is the rounding of numbers that are alike.
const ALIKE: f64 = 1e-12;

/// Of all clients.
#[derive(Debug, Stateful)]
pub(super) struct Contexts {
    /// Seconds of computing and of transfer, as last seen or declared.
    times: Vec<[f64; 2]>,
    /// As of the last selection in which each client could be selected.
    contexts: Vec<Context>,
}

impl Contexts {
    pub fn new(declared: &[DeclaredDevice]) -> Self {
        let times = declared.iter().map(|device| [device.compute_seconds, device.transfer_seconds]).collect();
        Self { times, contexts: vec![[0.0; 7]; declared.len()] }
    }

    pub fn of(&self, client: ClientId) -> &Context {
        &self.contexts[client.index()]
    }

    /// Works out the contexts of the clients that can be selected.
    pub fn prepare(&mut self, available: &[ClientId], utilities: &Utilities) {
        let scaled = utilities.scaled();
        for &client in available {
            let known = utilities.of(client);
            let [computing, transfer] = self.times[client.index()];
            let (gain, quality) = (known.gain, scaled[client.index()]);
            self.contexts[client.index()] =
                [1.0, known.reputation, gain, known.relevance, quality, computing, transfer];
        }
        let count = available.len() as f64;
        for feature in 1..7 {
            let values = || available.iter().map(|client| self.contexts[client.index()][feature]);
            let mean = values().sum::<f64>() / count;
            let sd = sqrt(values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count);
            for client in available {
                let value = &mut self.contexts[client.index()][feature];
                *value = if sd > ALIKE * mean.abs() { (*value - mean) / sd } else { 0.0 };
            }
        }
    }

    /// A job showed how long the client takes.
    pub fn learn(&mut self, pull: &Pull) {
        if let Some([download, compute, upload]) = pull.phases {
            self.times[pull.client.index()] = [compute.seconds(), download.seconds() + upload.seconds()];
        }
    }
}
