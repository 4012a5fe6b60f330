//! Wall time, for when a run is saved or stopped. No result depends on it.

use std::time::{Duration, Instant};

/// How long a round may go on after runs were cancelled.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// The instant.
#[expect(clippy::disallowed_methods, reason = "when a run is saved does not change what it computes")]
pub(super) fn now() -> Instant {
    Instant::now()
}
