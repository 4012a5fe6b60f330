//! Progress of an experiment: a bar on a terminal, plain lines otherwise, nothing with `--quiet`.

use super::say;
use fedgenie::experiment::{Progress, RunId};
use fedgenie::id::Round;
use fedgenie::text::message;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How progress is shown.
pub enum Show {
    /// Not at all.
    Nothing,
    /// One line now and then.
    Lines,
    /// A bar with runs, rounds per second and the time left.
    Bar {
        /// The bar, once runs have begun.
        bar: OnceLock<ProgressBar>,
        /// Rounds of ended runs.
        rounds: AtomicU64,
    },
}

impl Show {
    /// The right way for the destination of standard error.
    pub fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Nothing,
            (false, false) => Self::Lines,
            (false, true) => Self::Bar { bar: OnceLock::new(), rounds: AtomicU64::new(0) },
        }
    }

    /// The bar, if one is shown now.
    fn bar(&self) -> Option<&ProgressBar> {
        if let Self::Bar { bar, .. } = self { bar.get() } else { None }
    }

    /// Writes a line to standard error that progress does not overwrite.
    pub fn note(&self, text: &str) {
        match self.bar() {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

impl Progress for Show {
    fn warned(&self, warning: &str) {
        self.note(&format!("fedgenie: warning: {}", message(warning)));
    }

    fn runs_begin(&self, count: usize) {
        let Self::Bar { bar, .. } = self else { return };
        let bar = bar.get_or_init(|| ProgressBar::new(count as u64));
        let template = "{bar:30} {pos}/{len} runs  {msg}  {elapsed} elapsed, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
    }

    fn runs_ended(&self) {
        if let Some(bar) = self.bar() {
            bar.finish_and_clear();
        }
    }

    fn run_ended(&self, run: &RunId, done: usize, total: usize) {
        match (self, self.bar()) {
            (_, Some(bar)) => bar.inc(1),
            // At most about twenty lines, however many runs.
            (Self::Lines, None) if done == total || done.is_multiple_of(total.div_ceil(20).max(1)) => {
                say(&format!("{done}/{total} runs ({})", run.name));
            }
            _ => {}
        }
    }

    fn rounds_played(&self, played: u64) {
        if let (Self::Bar { rounds, .. }, Some(bar)) = (self, self.bar()) {
            let rounds = rounds.fetch_add(played, Ordering::Relaxed) + played;
            let seconds = bar.elapsed().as_secs_f64().max(1e-3);
            bar.set_message(format!("{:.0} rounds/s", rounds as f64 / seconds));
        }
    }

    fn run_goes_on(&self, run: &RunId, round: Round) {
        if !matches!(self, Self::Nothing) {
            self.note(&format!("run {} goes on after {round}", run.name));
        }
    }
}
