//! A policy's explanation of a decision, and of the lesson from it.
//!
//! # Definition
//! In `rounds.jsonl`, with `[record] explain = true`, a round has `explain`: a list with one object for each selection.
//!
//! | key | content |
//! |---|---|
//! | `turn`, `server` | selection and server, where a round has several: the edge server's number, or `"cloud"` |
//! | `clients` | ids of the clients that the numbers are about: the candidates that were compared |
//! | others | arrays in that order, or single numbers; `null` is infinite or unknown |
//! | `admitted`, `active`, `uniform`, `order`, `drawn`, `resting`, `unknown` | ids of some of them, where a policy singles them out |
//! | `distributions`, `tier_…` | by distribution or tier, where a policy has them |
//! | `number` | numbers about something other than clients, in arrays of their own length |
//! | `after` | `clients`, the selected ones, and the policy's numbers for them after it was told of the round |

use fedgenie_core::id::ClientId;
use serde_json::{Map, Value};

/// The numbers behind a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    object: Map<String, Value>,
}

impl Explanation {
    /// The clients that arrays describe, in their order.
    pub fn clients(&mut self, clients: impl IntoIterator<Item = ClientId>) {
        self.ids("clients", clients);
    }

    /// A number for each client.
    pub fn array(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        let values = values.into_iter().map(number).collect();
        self.object.insert(name.to_owned(), Value::Array(values));
    }

    /// Lists of numbers under one name.
    pub fn table(&mut self, name: &str, lists: impl IntoIterator<Item = Vec<f64>>) {
        let list = |values: Vec<f64>| Value::Array(values.into_iter().map(number).collect());
        self.object.insert(name.to_owned(), Value::Array(lists.into_iter().map(list).collect()));
    }

    /// A number of the decision as a whole.
    pub fn scalar(&mut self, name: &str, value: f64) {
        self.object.insert(name.to_owned(), number(value));
    }

    /// Clients that the decision singles out, under a name of their own.
    pub fn ids(&mut self, name: &str, clients: impl IntoIterator<Item = ClientId>) {
        let ids = clients.into_iter().map(|client| Value::from(client.0)).collect();
        self.object.insert(name.to_owned(), Value::Array(ids));
    }

    /// Numbers about something other than clients, under a name of their own.
    pub fn part(&mut self, name: &str, part: Self) {
        self.object.insert(name.to_owned(), part.object.into());
    }

    /// The explanation as JSON.
    pub fn into_json(self) -> Map<String, Value> {
        self.object
    }
}

/// JSON has neither infinities nor NaN: they are `null`.
fn number(value: f64) -> Value {
    Value::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_null() {
        let mut explanation = Explanation::default();
        explanation.clients([ClientId(3), ClientId(1)]);
        explanation.array("ucb", [f64::INFINITY, 0.5]);
        explanation.scalar("bottleneck", f64::NAN);
        let text = serde_json::to_string(&explanation.into_json()).unwrap();
        assert_eq!(text, r#"{"clients":[3,1],"ucb":[null,0.5],"bottleneck":null}"#);
    }
}
