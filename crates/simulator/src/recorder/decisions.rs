//! What policies decided of a round beside selecting its clients.

use crate::policy::Selection;
use fedgenie_core::time::Span;
use serde::Serialize;
use serde_json::{Value, json};

/// Weights and work of the selected clients, and the deadline of their round, as far as policies decided them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundDecisions {
    /// The weight of each selected client; empty if no policy gave any, null where another one of several did.
    pub weights: Vec<Option<f64>>,
    /// The epochs of each selected client's job, likewise.
    pub work: Vec<Option<u32>>,
    /// The deadline of the round.
    pub deadline: Option<Span>,
}

impl RoundDecisions {
    /// Empties all parts and keeps their memory.
    pub fn clear(&mut self) {
        let Self { weights, work, deadline } = self;
        weights.clear();
        work.clear();
        *deadline = None;
    }

    /// Adds those of a selection, which `before` clients of the round precede.
    pub(super) fn add(&mut self, before: usize, selection: &Selection) {
        let Self { weights, work, deadline } = self;
        extend(weights, &selection.weights, before, selection.len());
        extend(work, &selection.work, before, selection.len());
        *deadline = deadline.or(selection.deadline);
    }

    /// The columns of the round that a policy decided.
    pub(super) fn columns(&self) -> impl Iterator<Item = (String, Value)> {
        let weights = column("weights", &self.weights);
        let deadline = self.deadline.map(|deadline| ("deadline_s".to_owned(), json!(deadline.seconds())));
        weights.into_iter().chain(column("work", &self.work)).chain(deadline)
    }
}

fn column<T: Serialize>(name: &str, values: &[T]) -> Option<(String, Value)> {
    (!values.is_empty()).then(|| (name.to_owned(), json!(values)))
}

/// Keeps a column parallel to the selected clients from the first decision on.
fn extend<T: Copy>(column: &mut Vec<Option<T>>, decided: &[T], before: usize, clients: usize) {
    if column.is_empty() && decided.is_empty() {
        return;
    }
    column.resize(before, None);
    column.extend(decided.iter().map(|&value| Some(value)));
    column.resize(before + clients, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::id::ClientId;

    #[test]
    fn columns_are_parallel_to_the_selected_clients() {
        let selection = |clients: &[u32], weights: &[f64], work: &[u32]| {
            let mut selection = Selection::default();
            selection.extend(clients.iter().map(|&client| ClientId(client)));
            selection.weights.extend(weights);
            selection.work.extend(work);
            selection
        };
        let mut decisions = RoundDecisions::default();
        decisions.add(0, &selection(&[4, 5], &[], &[]));
        assert_eq!(decisions.columns().count(), 0);
        decisions.add(2, &selection(&[1], &[0.5], &[]));
        decisions.add(3, &selection(&[2, 3], &[], &[2, 4]));
        let found: Vec<(String, Value)> = decisions.columns().collect();
        let expected = [
            ("weights".to_owned(), json!([null, null, 0.5, null, null])),
            ("work".to_owned(), json!([null, null, null, 2, 4])),
        ];
        assert_eq!(found, expected);
        decisions.clear();
        let deadline = Some(Span(1_500_000_000));
        let mut timed = selection(&[], &[], &[]);
        timed.deadline = deadline;
        decisions.add(0, &timed);
        assert_eq!(decisions.columns().collect::<Vec<_>>(), [("deadline_s".to_owned(), json!(1.5))]);
    }
}
