//! How the clients of a world train: jobs, and policies' choices about them.

use super::World;
use fedgenie_core::id::ClientId;
use fedgenie_learning::algorithm::{AggregationConfig, Algorithm};
use fedgenie_learning::trainer::LocalTraining;

/// How clients train, and how the server aggregates.
#[derive(Clone, Debug)]
pub struct Training {
    /// How clients train.
    pub local: LocalTraining,
    /// Most epochs that a policy may choose for a job; `None` where a job is counted in steps.
    pub most_epochs: Option<u32>,
    /// Duration of an inference pass over the local data as a share of one training epoch.
    pub inference_share: f64,
    /// Bytes of the whole model.
    pub payload_bytes: u64,
    /// How updates are folded into the global model.
    pub aggregation: AggregationConfig,
    /// The rules of jobs and of the combination.
    pub algorithm: Algorithm,
}

impl Training {
    /// Epochs as a share of the usual ones; the whole of them if none were chosen.
    pub(crate) fn share_of(&self, epochs: Option<u32>) -> [u32; 2] {
        epochs.zip(self.local.epochs()).map_or([1, 1], |(chosen, usual)| [chosen, usual])
    }

    /// The epochs of the longest job, if that is longer than the usual one.
    pub(super) fn longest(&self) -> Option<u32> {
        self.most_epochs.filter(|_| self.most_epochs > self.local.epochs())
    }
}

impl World {
    /// How many numbers a whole model has.
    fn numbers(&self) -> usize {
        self.task.as_ref().map_or(0, |task| task.layout().len())
    }

    /// Seconds that a client computes for after it has trained, before it sends an update that is one of so many that
    /// are summed: to encode it, and to mask it.
    pub(crate) fn seconds_after(&self, selected: usize) -> f64 {
        let Algorithm { compression, secure, .. } = &self.training.algorithm;
        let encoding = compression.as_ref().map_or(0.0, |compression| compression.seconds(self.numbers()));
        let numbers = match self.numbers() as u64 {
            0 => self.training.payload_bytes.div_ceil(4),
            learned => learned,
        };
        let masked = self.training.algorithm.numbers_up(numbers);
        encoding + secure.as_ref().map_or(0.0, |secure| secure.seconds(selected, masked))
    }

    /// Duration of the work that the algorithm adds to a client's job of so many epochs, as a share of a usual job's
    /// compute phase.
    pub(crate) fn beside_job(&self, client: ClientId, epochs: Option<u32>) -> f64 {
        let Training { local, algorithm, .. } = &self.training;
        let loss = if algorithm.needs_loss() { self.inference_of_job(client) } else { 0.0 };
        let size = self.population.data_sizes()[client.index()] as usize;
        let usual = local.examples_of(client, size);
        let first = algorithm.private_epochs().filter(|_| usual > 0.0);
        let loss = loss + first.map_or(0.0, |epochs| f64::from(epochs) * size as f64 / usual);
        let Some(own) = algorithm.own_models else { return loss };
        let of_own = match local.of_job(client, own.epochs.or(epochs)) {
            Some(own) => own.examples(size),
            None => usual,
        };
        loss + if usual > 0.0 { of_own / usual } else { 0.0 }
    }

    /// Duration of a client's inference pass as a share of a whole job's compute phase.
    pub fn inference_of_job(&self, client: ClientId) -> f64 {
        let size = self.population.data_sizes()[client.index()] as usize;
        let epochs = if size == 0 { 1.0 } else { self.training.local.examples_of(client, size) / size as f64 };
        self.training.inference_share / epochs
    }
}
