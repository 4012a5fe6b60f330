//! The shape of the source, as far as a machine can see it.
//!
//! A rule is a function from files to violations. Its tests run it on the source, on planted violations and on clean
//! files.

mod banned;
mod coverage;
mod functions;
mod layers;
mod reached;
mod rooms;
mod shape;
pub mod source;
