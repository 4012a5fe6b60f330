//! When a server selects, and when its round ends: a file for each protocol.

mod buffered;
mod hierarchy;
mod rounds;

pub(super) use buffered::Buffered;
pub(super) use hierarchy::{Between, Hierarchy};
pub(super) use rounds::Rounds;
