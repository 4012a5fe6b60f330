//! A task's description of its data: values without behaviour.

use crate::data::partition::Skew;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::MetricId;

/// The description of a task whose data lie at clients. A task makes it once and keeps it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Number of each client's training examples: the weight of its updates. A client without any never trains.
    pub examples: Vec<u32>,
    /// Number of training examples of all clients.
    pub all_examples: u64,
    /// Whether a client without examples can be selected, though it never trains.
    pub selects_without_examples: bool,
    /// Whether updates say a loss, for policies that compare losses.
    pub has_losses: bool,
    /// Whether there are validation data, where the task's settings say that there may be.
    pub has_valid: bool,
    /// Whether clients add the noise of [`LocalTraining::noise`](crate::trainer::LocalTraining::noise) to their
    /// updates.
    pub has_noise: bool,
    /// Features of each client's user, as many and in the same order for all; `None` if users have no metadata.
    pub user_features: Option<Vec<Vec<f64>>>,
    /// How unevenly the training examples are spread over clients, where that is known.
    pub skew: Option<Skew>,
    /// Numbers of the parts of the data, and of dropped records.
    pub counts: Vec<(&'static str, u64)>,
    /// Warnings about the data.
    pub warnings: Vec<String>,
}

impl Description {
    /// Clients with so many examples; nothing else is known. Updates say losses, and there are validation data where
    /// the settings say so.
    pub fn of(examples: impl IntoIterator<Item = usize>) -> Self {
        let examples: Vec<u32> = examples.into_iter().map(|examples| examples as u32).collect();
        Self {
            all_examples: examples.iter().map(|&examples| u64::from(examples)).sum(),
            examples,
            selects_without_examples: true,
            has_losses: true,
            has_valid: true,
            has_noise: false,
            user_features: None,
            skew: None,
            counts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Number of a client's training examples.
    pub fn examples_of(&self, client: ClientId) -> usize {
        self.examples[client.index()] as usize
    }

    /// Whether a client can ever be selected.
    pub fn is_candidate(&self, client: ClientId) -> bool {
        self.selects_without_examples || self.examples[client.index()] > 0
    }
}

/// Controls by name, each with values of metrics.
pub type Controls = Vec<(&'static str, Vec<(MetricId, f64)>)>;

/// Facts for a run's files beside its records. They can be large and slow to make, and are made when a run ends.
#[derive(Clone, Debug, Default)]
pub struct Appendix {
    /// CSV tables that explain numbers in other files of a run, by name; each is written beside them.
    pub tables: Vec<(&'static str, String)>,
    /// Controls: metrics reached without the model.
    pub controls: Controls,
    /// The graph of each client in numbers, where clients have graphs: see
    /// [`Holdings::described`](crate::task::rating_graph::Holdings::described).
    pub graph: Option<serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_examples_are_those_of_clients() {
        let description = Description::of([3, 0, 4]);
        assert_eq!((description.all_examples, description.examples_of(ClientId(2))), (7, 4));
        assert!(description.is_candidate(ClientId(1)));
        let description = Description { selects_without_examples: false, ..description };
        assert_eq!([0, 1, 2].map(|client| description.is_candidate(ClientId(client))), [true, false, true]);
    }
}
