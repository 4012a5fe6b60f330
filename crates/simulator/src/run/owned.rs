//! A run that owns its world, for callers that cannot lend it one: an object of another language, for example.
//!
//! # Definition
//! The run borrows the world from a future, which has both and waits for work between two calls. The future is polled
//! by the caller alone, once for each piece of work, on the caller's thread.

use super::Run;
use crate::world::World;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Work on the run.
type Work = Box<dyn for<'w> FnOnce(&mut Run<'w>) + Send>;
/// Makes the run.
type Begin<E> = Box<dyn for<'w> FnOnce(&'w World) -> Result<Run<'w>, E> + Send>;

/// A run with its world.
///
/// # Example
/// ```
/// # use fedgenie_simulator::run::{OwnedRun, Run, RunError, RunSettings};
/// # use fedgenie_simulator::policy::Policy;
/// # use fedgenie_simulator::recorder::NoSink;
/// # use fedgenie_simulator::world::World;
/// # use std::sync::Arc;
/// fn begin(world: Arc<World>, policy: Box<dyn Policy>) -> Result<OwnedRun, RunError> {
///     let mut run =
///         OwnedRun::new(world, |world| Ok::<_, RunError>(Run::new(world, "mine", policy, RunSettings::default(), NoSink)))?;
///     run.with(|run| run.step())?;
///     Ok(run)
/// }
/// ```
pub struct OwnedRun {
    waits: Pin<Box<dyn Future<Output = ()> + Send>>,
    work: Arc<Mutex<Option<Work>>>,
}

impl std::fmt::Debug for OwnedRun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OwnedRun")
    }
}

impl OwnedRun {
    /// A run of a world, made by `begin`.
    ///
    /// # Errors
    /// Those of `begin`.
    pub fn new<E: Send + 'static>(
        world: Arc<World>,
        begin: impl for<'w> FnOnce(&'w World) -> Result<Run<'w>, E> + Send + 'static,
    ) -> Result<Self, E> {
        let work = Arc::<Mutex<Option<Work>>>::default();
        let (desk, begin) = (work.clone(), Box::new(begin) as Begin<E>);
        let failed = Arc::<Mutex<Option<E>>>::default();
        let place = failed.clone();
        let waits = Box::pin(async move {
            let mut run = match begin(&world) {
                Ok(run) => run,
                Err(error) => return put(&place, error),
            };
            drop(place);
            poll_fn(move |_| {
                if let Some(work) = take(&desk) {
                    work(&mut run);
                }
                Poll::<()>::Pending
            })
            .await;
        });
        let mut owned = Self { waits, work };
        owned.poll();
        take(&failed).map_or(Ok(owned), Err)
    }

    /// Does something with the run.
    ///
    /// # Panics
    /// As `work` does; and if earlier work has panicked: the run cannot go on then.
    pub fn with<T: Send + 'static>(&mut self, work: impl for<'w> FnOnce(&mut Run<'w>) -> T + Send + 'static) -> T {
        let result = Arc::<Mutex<Option<T>>>::default();
        let place = result.clone();
        put(&self.work, Box::new(move |run: &mut Run<'_>| put(&place, work(run))) as Work);
        self.poll();
        take(&result).expect("work that does not panic is done")
    }

    fn poll(&mut self) {
        let _ = self.waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

fn put<T>(place: &Mutex<Option<T>>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}
