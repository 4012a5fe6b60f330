//! Devices are always available (the default).
//!
//! # Definition
//! Every device is available at every instant.
//!
//! # Inputs
//! None.
//!
//! # Source
//! Elementary.
//!
//! # Cost
//! None: if all groups are like this, a run skips every availability check.
//!
//! # Determinism
//! Nothing is drawn.
//!
//! # Example
//! ```toml
//! availability = "always"
//! ```
