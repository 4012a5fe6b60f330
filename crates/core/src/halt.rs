//! Stopping work in the middle: a flag that long loops look at.
//!
//! Training looks at it between batches, an evaluation between blocks of examples, a run between events. Work that is
//! stopped returns early with something that is not used: the run that asked for it looks at the flag afterwards, and
//! ends. A flag that is set stays set.
//!
//! # Determinism
//! A run that is not stopped never notices the flag.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A flag that stops work. Clones are the same flag; that of `default` is never set.
#[derive(Clone, Debug, Default)]
pub struct Halt(Option<Arc<Flag>>);

#[derive(Debug, Default)]
struct Flag {
    is_asked: AtomicBool,
    /// When work is to stop.
    at: OnceLock<Instant>,
}

/// A flag that is never set.
pub static NEVER: Halt = Halt(None);

impl Halt {
    /// A flag that can be set.
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// Lets work stop after so much wall time, for good. The first call decides when.
    ///
    /// # Panics
    /// If this is the flag that is never set.
    pub fn ask(&self, grace: Duration) {
        let flag = self.0.as_ref().expect("a flag of `Halt::new`");
        flag.at.get_or_init(|| now() + grace);
        flag.is_asked.store(true, Ordering::Release);
    }

    /// Whether work is to stop, now or soon.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.is_asked.load(Ordering::Acquire))
    }

    /// Whether work is to stop now.
    #[inline]
    pub fn is_due(&self) -> bool {
        let is_over = |flag: &Flag| flag.at.get().is_some_and(|&at| now() >= at);
        self.0.as_deref().is_some_and(|flag| flag.is_asked.load(Ordering::Acquire) && is_over(flag))
    }
}

/// Wall time, for when work is stopped. No result depends on it.
#[expect(clippy::disallowed_methods, reason = "work that is stopped has no result")]
fn now() -> Instant {
    Instant::now()
}

/// How a piece of work is done: on how many threads, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Effort<'a> {
    /// Whether on all cores of the current pool.
    pub parallel: bool,
    /// When it may return early.
    pub halt: &'a Halt,
}

/// Work that nothing stops, on all cores or on one.
impl From<bool> for Effort<'_> {
    fn from(parallel: bool) -> Self {
        Self { parallel, halt: &NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_set_once_for_all_its_clones() {
        let (halt, never) = (Halt::new(), Halt::default());
        let other = halt.clone();
        assert!(!other.is_asked() && !other.is_due());
        halt.ask(Duration::from_secs(3_600));
        assert!(other.is_asked() && !other.is_due(), "there is an hour left");
        halt.ask(Duration::ZERO);
        assert!(!other.is_due(), "the first call decides");
        let at_once = Halt::new();
        at_once.ask(Duration::ZERO);
        assert!(at_once.is_asked() && at_once.is_due());
        assert!(!never.is_asked() && !never.is_due() && !NEVER.is_due());
    }
}
