//! Every device is there all the time; the default.
//!
//! # Definition
//! Available at every instant.
//!
//! # Inputs
//! None.
//!
//! # Source
//! Elementary.
//!
//! # Cost
//! None: where all groups are like this, runs do not ask.
//!
//! # Determinism
//! Nothing is drawn.
//!
//! # Example
//! ```toml
//! availability = "always"
//! ```
