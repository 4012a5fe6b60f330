//! Asynchronous: a fixed number of clients is busy, and every `buffer` updates make a new model (FedBuff, FedAsync).
//!
//! # Definition
//! `concurrency` clients are kept busy. Whenever one has delivered, the policy chooses its successor, which gets the
//! newest model; successors of the same instant are chosen after everything else of that instant, one after the other.
//! With every `buffer`-th update the model changes, and a *round* is over. An update is as many rounds *stale* as
//! models were made since the client was sent its own. With base weights `b_k` of `[aggregation]` and the staleness
//! weight `s`, the change is `Δ = Σ_k b_k s(stale_k) δ_k / Σ_k b_k`: what staleness takes away stays with the old
//! model. `δ_k` is what the client changed (`combine = "changes"`, FedBuff), or the difference between what it sent and
//! the current model (`"models"`, FedAsync; with `buffer = 1` and a server that averages with `lr = α`, the new model
//! is `(1 − αs) w + αs w_k`). An update older than `max_staleness` is late: it is not used.
//!
//! A policy's weights are coefficients: with them, `Δ = Σ_k weight_k s(stale_k) δ_k`. All selections of a run have
//! weights then, since updates of any of them may meet. A selection is never empty.
//!
//! A lost client counts as busy until `timeout` after dispatch, when the server stops waiting for it. A selection
//! chooses one client: a policy's m is 1 and its t counts selections. A policy that asks clients first waits for their
//! answers before each selection, while jobs go on.
//!
//! | `staleness` | weight of an update `s` rounds old |
//! |---|---|
//! | `"constant"` | 1 |
//! | `{ polynomial = { exponent = a } }` | `(1 + s)^−a`, `a` 0.5 if left out |
//! | `{ hinge = { slope = a, grace = b } }` | 1 up to `s = b`, then `1/(1 + a (s − b))` |
//!
//! The run ends with an error when very many jobs in a row have ended without an update that could be used (100 times
//! `concurrency` and 10,000 more): the timeout is shorter than every job. When the run's virtual time is over, the
//! round under way is closed without a new model.
//!
//! # Example
//! ```toml
//! [protocol.buffered]
//! concurrency = 10
//! buffer = 5
//! staleness = { hinge = { slope = 0.5, grace = 4 } }
//! max_staleness = 20
//! timeout = "10 min"
//! ```
//!
//! # Source
//! J. Nguyen, K. Malik, H. Zhan, A. Yousefpour, M. Rabbat, M. Malek, D. Huba, "Federated Learning with Buffered
//! Asynchronous Aggregation", AISTATS 2022, Algorithm 1; C. Xie, S. Koyejo, I. Gupta, "Asynchronous Federated
//! Optimization", 2019.
//!
//! # Deviations from the source
//! FedBuff weights all clients alike: `weighting = "uniform"`.

use super::{ProtocolSettings, Rule, Staleness, positive, within};
use fedgenie_core::config::Complaint;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[protocol.buffered]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferedConfig {
    /// Clients at work at the same time.
    pub concurrency: usize,
    /// Updates per new model; at most as many as there are clients.
    pub buffer: usize,
    /// How much an update counts that is some rounds old.
    #[serde(default)]
    pub staleness: Staleness,
    /// Updates older than this many rounds are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_staleness: Option<u32>,
    /// What is averaged.
    #[serde(default)]
    pub combine: Combine,
    /// The longest that the server waits for a client; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// What is averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// What each client changed in the model that it was sent.
    #[default]
    Changes,
    /// The models that came back, against the current one.
    Models,
}

/// The protocol's rule, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferedRule {
    /// Clients at work at the same time.
    pub concurrency: usize,
    /// Updates per new model.
    pub buffer: usize,
    /// How much an update counts that is some rounds old.
    pub staleness: Staleness,
    /// The oldest update that is used.
    pub max_staleness: u32,
    /// What is averaged.
    pub combine: Combine,
    /// The longest that the server waits for a client.
    pub timeout: Option<Span>,
}

impl ProtocolSettings for BufferedConfig {
    fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        Ok(Rule::Buffered(BufferedRule {
            concurrency: within("concurrency", self.concurrency, clients, "the number of clients")?,
            buffer: within("buffer", self.buffer, clients, "the number of clients")?,
            staleness: self.staleness.checked("staleness")?,
            max_staleness: self.max_staleness.unwrap_or(u32::MAX),
            combine: self.combine,
            timeout: self.timeout.map(|timeout| positive("timeout", timeout)).transpose()?,
        }))
    }
}
