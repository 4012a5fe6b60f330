//! The file a person writes.
pub mod read;
pub mod tree;
