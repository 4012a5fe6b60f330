//! The mean of everything observed so far, per client, by the running update of BSFL (11).

use super::Explanation;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;

/// See the [module](self).
#[derive(Clone, Debug, Default, Stateful)]
pub(crate) struct SampleMeans {
    means: Vec<f64>,
    counts: Vec<u32>,
}

impl SampleMeans {
    pub(crate) fn new(clients: usize) -> Self {
        Self { means: vec![0.0; clients], counts: vec![0; clients] }
    }

    pub(crate) fn observe(&mut self, client: ClientId, value: f64) {
        let (mean, count) = (&mut self.means[client.index()], &mut self.counts[client.index()]);
        let seen = f64::from(*count);
        *mean = (*mean * seen + value) / (seen + 1.0);
        *count += 1;
    }

    /// Mean and number of observations.
    pub(crate) fn of(&self, client: ClientId) -> (f64, u32) {
        (self.means[client.index()], self.counts[client.index()])
    }

    /// Mean and number of observations of some clients, under such names.
    pub(crate) fn explain(&self, clients: &[ClientId], mean: &str, explanation: &mut Explanation) {
        explanation.array(
            mean,
            clients.iter().map(|&client| self.of(client)).map(|(mean, count)| if count > 0 { mean } else { f64::NAN }),
        );
        explanation.array("observations", clients.iter().map(|&client| f64::from(self.of(client).1)));
    }
}
