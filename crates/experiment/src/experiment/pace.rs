//! Onlookers of a run while it is played: one that tells how far it is, one that sees nothing.

use super::{Ended, Progress, RunId};
use crate::scenario::Sections;
use fedgenie_core::id::Round;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_simulator::run::{End, Run, RunError};
use fedgenie_simulator::world::World;

/// Looks at a run.
pub(super) trait Pace {
    /// Before the first round that is played here.
    fn begin(&mut self, _run: &mut Run<'_>) {}

    /// A round has closed and was observed; `is_over` says that the run ends with it. Returns why it ends here
    /// nevertheless, if it does.
    ///
    /// # Errors
    /// If the run fails to tell what is asked of it.
    fn closed(&mut self, run: &Run<'_>, is_over: bool) -> Result<Option<Ended>, RunError>;
}

/// Sees nothing.
pub(super) struct Unwatched;

impl Pace for Unwatched {
    fn closed(&mut self, _: &Run<'_>, _: bool) -> Result<Option<Ended>, RunError> {
        Ok(None)
    }
}

/// How often a run tells how far it is, from its beginning to its end.
const STEPS: f64 = 256.0;

/// Tells how far a run is. A round costs three comparisons; the others are paid for [`STEPS`] times in a run.
pub(super) struct Advance<'a> {
    run: &'a RunId,
    progress: &'a dyn Progress,
    end: End,
    /// At the first round that reaches one of these it tells again.
    next: (u32, VirtualTime, u64),
}

impl<'a> Advance<'a> {
    /// Of a run in its world.
    pub(super) fn of(run: &'a RunId, (sections, world): (&Sections, &World), progress: &'a dyn Progress) -> Self {
        Self { run, progress, end: end_of(sections, world.budget.bytes), next: (0, VirtualTime::START, 0) }
    }

    /// Tells how far the run is, and when it will do so again.
    fn tell(&mut self, run: &Run<'_>) {
        self.progress.run_advanced(self.run, share(&self.end, run));
        let End { rounds, time, bytes } = self.end;
        let step = |whole: f64| (whole / STEPS).ceil().max(1.0);
        let rounds = rounds.map_or(u32::MAX, |rounds| run.round().0.saturating_add(step(rounds.into()) as u32));
        let time = time.map_or(VirtualTime(u64::MAX), |time| run.now() + Span(step(time.0 as f64) as u64));
        let bytes = bytes.map_or(u64::MAX, |bytes| moved(run).saturating_add(step(bytes) as u64));
        self.next = (rounds, time, bytes);
    }
}

impl Pace for Advance<'_> {
    fn begin(&mut self, run: &mut Run<'_>) {
        self.tell(run);
    }

    fn closed(&mut self, run: &Run<'_>, is_over: bool) -> Result<Option<Ended>, RunError> {
        let (Round(round), (rounds, time, bytes)) = (run.round(), self.next);
        if !is_over && (round >= rounds || run.now() >= time || moved(run) >= bytes) {
            self.tell(run);
        }
        Ok(None)
    }
}

/// What ends a run for certain, as far as that is known beforehand; `budget` are the bytes that clients may move.
pub(super) fn end_of(sections: &Sections, budget: Option<u64>) -> End {
    let end = sections.stop.end();
    let budget = budget.map(|bytes| bytes as f64);
    let bytes = [end.bytes, budget].into_iter().flatten().reduce(f64::min);
    End { bytes, ..end }
}

/// Bytes of clients, both ways together.
pub(super) fn moved(run: &Run<'_>) -> u64 {
    run.accounts().down_bytes.saturating_add(run.accounts().up_bytes)
}

/// How much of a run is over, from 0 to 1.
pub(super) fn share(end: &End, run: &Run<'_>) -> f64 {
    let of_rounds = end.rounds.map(|rounds| f64::from(run.round().0) / f64::from(rounds));
    let of_time = end.time.map(|time| run.now().0 as f64 / time.0 as f64);
    let of_bytes = end.bytes.map(|bytes| moved(run) as f64 / bytes);
    [of_rounds, of_time, of_bytes].into_iter().flatten().fold(0.0, f64::max).min(1.0)
}
