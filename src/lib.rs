//! FedGenie: a deterministic discrete-event simulator of federated learning under client selection.

pub mod id;
pub mod math;
pub mod rng;
pub mod time;
