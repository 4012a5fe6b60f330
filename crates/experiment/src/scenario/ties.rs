//! `ties`: the order of events of the same instant and class.

use fedgenie_core::kernel::Ties;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `ties`: what decides between events of the same instant and class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TiesConfig {
    /// What was scheduled first comes first.
    #[default]
    Fifo,
    /// A random order that belongs to this number.
    Shuffle(u64),
}

impl TiesConfig {
    pub(super) const fn ties(self) -> Ties {
        match self {
            Self::Fifo => Ties::Fifo,
            Self::Shuffle(seed) => Ties::Shuffled(seed),
        }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
