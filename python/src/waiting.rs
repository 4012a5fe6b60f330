//! Work on a thread of its own, while Python's thread waits: the interpreter is free for other threads, and signals are
//! looked at.

use fedgenie::error::DEFECT;
use fedgenie::experiment::Threads;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often signals are looked at: a `KeyboardInterrupt` follows a Ctrl-C by this and the end of the work.
const LOOK: Duration = Duration::from_millis(50);

/// A place for a result.
struct Place<T> {
    result: Mutex<Option<T>>,
    is_filled: Condvar,
}

impl<T> Place<T> {
    fn fill(&self, result: T) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_filled.notify_all();
    }

    /// The result, if it is there in time.
    fn wait(&self) -> Option<T> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut result, _) = self
            .is_filled
            .wait_timeout_while(result, LOOK, |result| result.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        result.take()
    }
}

/// Does some work, whose runs are stopped by a signal whose handler raises, or if `look` does, which is called now and
/// then.
pub fn in_background<T: Send + 'static>(
    py: Python<'_>,
    threads: &Threads,
    work: impl FnOnce() -> T + Send + 'static,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let place = Arc::new(Place { result: Mutex::new(None), is_filled: Condvar::new() });
    let filled = place.clone();
    let thread = std::thread::Builder::new().name("fedgenie".to_owned());
    let thread = thread.spawn(move || filled.fill(catch_unwind(AssertUnwindSafe(work))))?;
    let mut stopped = None;
    let result = loop {
        if let Some(result) = py.detach(|| place.wait()) {
            break result;
        }
        // The first exception is told; the others say the same.
        if let Err(error) = py.check_signals().and_then(|()| look(py)) {
            threads.cancel();
            stopped.get_or_insert(error);
        }
    };
    py.detach(|| thread.join()).map_err(|_| PyRuntimeError::new_err(DEFECT))?;
    if let Some(error) = stopped {
        return Err(error);
    }
    look(py)?;
    result.map_err(|_| PyRuntimeError::new_err(DEFECT))
}
