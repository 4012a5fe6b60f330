//! The jobs of a log as the fit takes them: durations in seconds per phase, and where a job was cut.

use crate::sample::{Cut, Sample};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::Phase;
use fedgenie_simulator::population::log::{Course, Ending, JobLog};

/// How phases are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each phase has a law of its own.
    Phases,
    /// All time counts as computing.
    Total,
}

/// A job whose time is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimedJob {
    pub client: ClientId,
    pub round: Round,
    /// Durations in seconds, up to the cut.
    pub phases: [f64; 3],
    /// The phase in which it was cut.
    pub cut: Option<Phase>,
    /// Whether its client was lost.
    pub is_lost: bool,
}

impl TimedJob {
    /// All phases together.
    pub fn total(&self) -> f64 {
        self.phases.iter().sum()
    }

    /// What the phases before one took.
    pub fn before(&self, phase: Phase) -> f64 {
        self.phases[..phase.index()].iter().sum()
    }
}

/// The jobs of a log of which it is known how long they took or were waited for.
pub(crate) fn timed(log: &JobLog, split: Split) -> Vec<TimedJob> {
    let job = |job: &fedgenie_simulator::population::log::LoggedJob| {
        let Course { phases, cut, .. } = job.course()?;
        let seconds = phases.map(fedgenie_core::time::Span::seconds);
        let (phases, cut) = match split {
            Split::Phases => (seconds, cut),
            // The sum of whole nanoseconds, so that rounding to seconds comes last.
            Split::Total => {
                let total: fedgenie_core::time::Span = phases.into_iter().sum();
                ([0.0, total.seconds(), 0.0], cut.map(|_| Phase::Compute))
            }
        };
        let is_lost = job.ending == Ending::Dropped;
        Some(TimedJob { client: job.client, round: job.round, phases, cut, is_lost })
    };
    log.jobs.iter().filter_map(job).collect()
}

/// The evidence of jobs about one phase; `cut` says what a job that was cut in it contributes.
pub(crate) fn sample<'a>(
    jobs: impl IntoIterator<Item = &'a TimedJob>,
    phase: Phase,
    cut: impl Fn(&TimedJob) -> Cut,
) -> Sample {
    let (mut exact, mut cuts) = (Vec::new(), Vec::new());
    for job in jobs {
        let x = job.phases[phase.index()];
        match job.cut {
            Some(at) if at < phase => {}
            Some(at) if at == phase => cuts.push(cut(job)),
            _ => exact.push(x),
        }
    }
    Sample::new(exact, cuts)
}

/// A job that was cut by something that does not depend on the rest of it.
pub(crate) fn plainly(job: &TimedJob) -> Cut {
    Cut::plain(job.cut.map_or(0.0, |phase| job.phases[phase.index()]))
}
