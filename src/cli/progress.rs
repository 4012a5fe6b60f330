//! Progress of an experiment: a bar on a terminal, a line every half minute otherwise, nothing with `--quiet`.

mod clock;
mod work;

use super::amounts::duration;
use super::say;
use clock::now;
use fedgenie::error::Error;
use fedgenie::experiment::{Progress, RunId};
use fedgenie::id::Round;
use fedgenie::text::message;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use work::{Left, Work};

/// Seconds between two lines, where nothing is set.
const LINES_S: f64 = 30.0;
/// The variable that sets them. For tests, and for logs that are read while they grow.
const VARIABLE: &str = "FEDGENIE_PROGRESS_S";
/// The bar's own pace.
const TICK: Duration = Duration::from_millis(200);
/// Parts of the bar.
const PARTS: u64 = 1_000;

/// How progress is shown.
enum How {
    /// Not at all.
    Nothing,
    /// A line after each of these spans.
    Lines(Duration),
    /// A bar with runs, the share of the work and the time left.
    Bar(ProgressBar),
}

/// Shows progress.
pub struct Show {
    how: How,
    shared: Arc<Shared>,
    ticker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    course: Mutex<Course>,
    is_over: Condvar,
}

#[derive(Default)]
struct Course {
    /// `None` before the first run, and after the last.
    under_way: Option<(Instant, Work)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The span between two lines.
fn span(written: Option<&str>) -> Result<Duration, Error> {
    let Some(written) = written else { return Ok(Duration::from_secs_f64(LINES_S)) };
    let seconds = written.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|span| !span.is_zero());
    span.ok_or_else(|| Error::Usage(format!("found {VARIABLE}={written:?}; expected a positive number of seconds")))
}

impl Show {
    /// The right way for the destination of standard error.
    ///
    /// # Errors
    /// If the variable for the span between lines has no span.
    pub fn new(quiet: bool) -> Result<Self, Error> {
        let how = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => How::Nothing,
            (false, false) => How::Lines(span(std::env::var(VARIABLE).ok().as_deref())?),
            (false, true) => How::Bar(ProgressBar::hidden()),
        };
        Ok(Self { how, shared: Arc::default(), ticker: Mutex::default() })
    }

    /// Writes a line to standard error that progress does not overwrite.
    pub fn note(&self, text: &str) {
        match &self.how {
            How::Bar(bar) => bar.suspend(|| say(text)),
            How::Nothing | How::Lines(_) => say(text),
        }
    }

    /// Writes such a line, unless nothing is to be shown.
    pub fn noted(&self, text: &str) {
        if !matches!(self.how, How::Nothing) {
            self.note(&format!("fedgenie: {text}"));
        }
    }

    fn with_work(&self, change: impl FnOnce(&mut Work, f64)) {
        if matches!(self.how, How::Nothing) {
            return;
        }
        if let Some((began, work)) = &mut lock(&self.shared.course).under_way {
            change(work, began.elapsed().as_secs_f64());
        }
    }
}

/// The state in words, such as `12 of 45 runs, 31 % of the work, 3 min 20 s left`.
fn in_words((ended, runs): (usize, usize), left: Option<Left>) -> String {
    let runs = format!("{ended} of {runs} {}", if runs == 1 { "run" } else { "runs" });
    match left {
        Some(Left { share, seconds }) => {
            format!("{runs}, {:.0} % of the work, {} left", (100.0 * share).floor(), duration(seconds))
        }
        None => format!("{runs}, in their first rounds"),
    }
}

impl Shared {
    /// Does something after each span, with the state in words and the share that is done, until the runs are over.
    fn tick(&self, span: Duration, mut show: impl FnMut(&str, f64)) {
        let mut course = lock(&self.course);
        // Asked before the first wait too: short runs may be over before this thread begins, and nobody tells it then.
        while course.under_way.is_some() {
            let waited = self.is_over.wait_timeout(course, span).unwrap_or_else(PoisonError::into_inner);
            course = waited.0;
            if let (true, Some((began, work))) = (waited.1.timed_out(), &course.under_way) {
                let left = work.left(began.elapsed().as_secs_f64());
                let text = in_words(work.counts(), left);
                drop(course);
                show(&text, left.map_or(0.0, |left| left.share));
                course = lock(&self.course);
            }
        }
    }
}

impl Progress for Show {
    fn warned(&self, warning: &str) {
        self.note(&format!("fedgenie: warning: {}", message(warning)));
    }

    fn runs_planned(&self, runs: &[RunId]) {
        let (shared, count) = (self.shared.clone(), runs.len() as u64);
        let ticker: Box<dyn FnOnce() + Send> = match &self.how {
            How::Nothing => return,
            How::Lines(span) => {
                let span = *span;
                Box::new(move || shared.tick(span, |text, _| say(text)))
            }
            How::Bar(bar) => {
                // It may have been finished with the runs before.
                bar.reset();
                bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
                bar.set_length(PARTS);
                let style = ProgressStyle::with_template("{bar:30} {msg}, {elapsed} elapsed");
                style.into_iter().for_each(|style| bar.set_style(style));
                bar.set_message(in_words((0, count as usize), None));
                let bar = bar.clone();
                Box::new(move || {
                    shared.tick(TICK, |text, share| {
                        bar.set_message(text.to_owned());
                        bar.set_position((share * PARTS as f64) as u64);
                    });
                })
            }
        };
        lock(&self.shared.course).under_way = Some((now(), Work::of(runs)));
        // Without a thread for it nothing is shown, and the runs are the same.
        *lock(&self.ticker) = std::thread::Builder::new().spawn(ticker).ok();
    }

    fn runs_ended(&self) {
        lock(&self.shared.course).under_way = None;
        self.shared.is_over.notify_all();
        if let Some(ticker) = lock(&self.ticker).take() {
            let _ = ticker.join();
        }
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    fn run_advanced(&self, run: &RunId, share: f64) {
        self.with_work(|work, now| work.advance(run, share, now));
    }

    fn run_ended(&self, run: &RunId, _: usize, _: usize) {
        self.with_work(|work, now| work.end(run, now));
    }

    fn run_goes_on(&self, run: &RunId, round: Round) {
        if !matches!(self.how, How::Nothing) {
            self.note(&format!("run {} goes on after {round}", run.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_one_line() {
        let left = |share, seconds| Some(Left { share, seconds });
        assert_eq!(in_words((12, 45), left(0.319, 200.0)), "12 of 45 runs, 31 % of the work, 3 min 20 s left");
        assert_eq!(in_words((0, 1), None), "0 of 1 run, in their first rounds");
    }

    #[test]
    fn nothing_waits_for_runs_that_are_over() {
        let (ended, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            Shared::default().tick(Duration::from_secs(3_600), |_, _| {});
            ended.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(20)).expect("it returns at once");
    }

    #[test]
    fn a_span_is_a_positive_number_of_seconds() {
        assert_eq!(span(None).unwrap(), Duration::from_secs(30));
        assert_eq!(span(Some("0.25")).unwrap(), Duration::from_millis(250));
        for wrong in ["", "0", "-1", "nan", "inf", "1 s", "1e-30"] {
            let error = span(Some(wrong)).unwrap_err().to_string();
            assert!(error.contains(VARIABLE) && error.contains("expected a positive number of seconds"), "{error}");
        }
    }
}
