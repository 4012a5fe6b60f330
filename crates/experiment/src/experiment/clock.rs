//! Wall time, for when a run is saved. No result depends on it.

use std::time::Instant;

/// The instant.
#[expect(clippy::disallowed_methods, reason = "when a run is saved does not change what it computes")]
pub(super) fn now() -> Instant {
    Instant::now()
}
