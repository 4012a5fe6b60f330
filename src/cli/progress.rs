//! Progress of an experiment: a bar on a terminal, plain lines otherwise, nothing with `--quiet`.

use super::say;
use fedgenie::experiment::{Progress, RunId};
use fedgenie::id::Round;
use fedgenie::text::message;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

/// How progress is shown.
pub enum Show {
    /// Not at all.
    Nothing,
    /// One line now and then.
    Lines,
    /// A bar with runs, rounds per second and the time left.
    Bar {
        /// The bar.
        bar: ProgressBar,
        /// Rounds of ended runs.
        rounds: AtomicU64,
    },
}

impl Show {
    /// The right way for the destination of standard error.
    pub fn new(quiet: bool, runs: usize) -> Self {
        if quiet {
            return Self::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(runs as u64);
        let template = "{bar:30} {pos}/{len} runs  {msg}  {elapsed} elapsed, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self::Bar { bar, rounds: AtomicU64::new(0) }
    }

    /// Writes a line to standard error that progress does not overwrite.
    pub fn note(&self, text: &str) {
        match self {
            Self::Bar { bar, .. } => bar.suspend(|| say(text)),
            _ => say(text),
        }
    }

    /// Clears the bar.
    pub fn end(&self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Show {
    fn run_ended(&self, run: &RunId, done: usize, total: usize) {
        match self {
            Self::Nothing => {}
            // At most about twenty lines, however many runs.
            Self::Lines => {
                if done == total || done.is_multiple_of(total.div_ceil(20).max(1)) {
                    say(&format!("{done}/{total} runs ({})", run.name));
                }
            }
            Self::Bar { bar, .. } => bar.inc(1),
        }
    }

    fn rounds_played(&self, played: u64) {
        if let Self::Bar { bar, rounds } = self {
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

    fn warned(&self, warning: &str) {
        self.note(&format!("fedgenie: warning: {}", message(warning)));
    }
}
