//! Ctrl-C, SIGTERM and SIGHUP during `fedgenie run`.
//!
//! At the first signal no further run begins, and running ones end with their round and are saved; complete runs are
//! kept. The second signal ends the process at once, as does the first one before any run has begun: complete runs
//! stay, and the others lose the rounds after their last checkpoint. When all runs are complete, the first signal
//! leaves out the report, or lets it be finished, and prints the command that makes it. On systems without these
//! signals the process just ends.

use super::progress::Show;
use fedgenie::experiment::Threads;
use fedgenie::experiment::artefacts::shell_quoted;
#[cfg(unix)]
use fedgenie::experiment::{artefacts::MANIFEST_FILE, below};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number that a shell adds to the signal that ended a process.
const SIGNALLED: i32 = 128;

/// The stage of a command when a signal comes.
#[derive(Clone)]
#[cfg_attr(not(unix), expect(dead_code, reason = "only signals ask, and there are none"))]
enum Stage {
    /// Before its first run.
    Before,
    /// A trial of its runs, which a signal stops.
    Trial(Arc<Threads>),
    /// Its runs, which a signal stops, and the display for messages.
    Runs(Arc<Threads>, Arc<Show>),
    /// All runs are complete; their summary and report are written into this folder.
    Writing(PathBuf),
}

/// Watches for signals until the process ends.
pub struct Interruption {
    signal: Arc<AtomicI32>,
    stage: Arc<Mutex<Stage>>,
}

impl Interruption {
    /// Begins to watch. `how_to_resume` is printed if the process ends at once while runs are under way.
    #[cfg(unix)]
    pub fn watch(how_to_resume: String) -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        // `nohup` has SIGHUP ignored, so that a command outlives its terminal.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
        let watching = Self { signal: Arc::default(), stage: Arc::new(Mutex::new(Stage::Before)) };
        let (seen, stage) = (watching.signal.clone(), watching.stage.clone());
        std::thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                let stage = stage.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let is_first = seen.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
                match stage {
                    Stage::Before => super::say("fedgenie: interrupted before the first run"),
                    Stage::Trial(threads) if is_first => {
                        threads.cancel();
                        super::say("fedgenie: interrupted");
                        continue;
                    }
                    Stage::Trial(_) => {}
                    Stage::Runs(threads, progress) if is_first => {
                        threads.cancel();
                        progress.note(
                            "fedgenie: interrupted; runs under way stop within a second, a second signal ends them at once",
                        );
                        continue;
                    }
                    Stage::Runs(_, progress) => progress.note(&how_to_resume),
                    Stage::Writing(folder) if is_first => {
                        super::say(&format!(
                            "fedgenie: interrupted; all runs are complete, and their report is being written; a second \
                             signal ends that at once, and {} later",
                            how_to_report(&folder)
                        ));
                        continue;
                    }
                    Stage::Writing(folder) => super::say(&remedy(&folder, &how_to_resume)),
                }
                std::process::exit(SIGNALLED + signal);
            }
        })?;
        Ok(watching)
    }

    /// Does not watch.
    #[cfg(not(unix))]
    pub fn watch(_: String) -> std::io::Result<Self> {
        Ok(Self { signal: Arc::default(), stage: Arc::new(Mutex::new(Stage::Before)) })
    }

    /// From here on a signal stops these runs, and no longer the process.
    pub fn runs_begin(&self, threads: Arc<Threads>, progress: Arc<Show>) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Runs(threads, progress);
    }

    /// From here on a signal stops the trial of these runs.
    pub fn trial_begins(&self, threads: Arc<Threads>) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Trial(threads);
    }

    /// From here on a signal finds all runs complete, and their results being written into a folder.
    pub fn writing_begins(&self, folder: &Path) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Writing(folder.to_owned());
    }

    /// The exit code of the signal that came, if any.
    pub fn code(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        (signal != 0).then(|| u8::try_from(SIGNALLED + signal).unwrap_or(u8::MAX))
    }
}

/// Whether the process was started with a signal ignored. Where the system does not tell, it is taken not to be.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Turns a file that grows beyond the user's limit (`ulimit -f`) into an error like that of a full disk, instead of the
/// end of the process.
pub fn outlive_limits_of_files() {
    #[cfg(unix)]
    {
        // Installing the handler is enough; it does nothing. Without it nothing is worse.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    }
}

/// The remedy for a user whose runs are all complete without a report.
#[cfg(unix)]
fn remedy(folder: &Path, how_to_resume: &str) -> String {
    match below::is_there(folder, MANIFEST_FILE) {
        true => format!("fedgenie: all runs are complete; {}", how_to_report(folder)),
        false => how_to_resume.to_owned(),
    }
}

/// The command that makes the report of a folder.
pub fn how_to_report(folder: &Path) -> String {
    format!("`fedgenie report {}` writes the report", shell_quoted(&folder.to_string_lossy()))
}

/// The command that goes on where this one, given by its arguments, was interrupted.
pub fn resumption(arguments: impl Iterator<Item = OsString>) -> String {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let mut arguments: Vec<String> = arguments.collect();
    // What follows `--` are no options.
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let names = arguments.split_off(end);
    arguments.retain(|argument| argument != "--overwrite");
    if !arguments.iter().any(|argument| argument == "--resume") {
        arguments.push("--resume".to_owned());
    }
    let words: Vec<String> = arguments.iter().chain(&names).map(|argument| shell_quoted(argument)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_resumes_keeps_every_option_but_overwrite() {
        let command = |words: &[&str]| resumption(words.iter().map(OsString::from));
        let set = "title=It's 3 % of \"all\"";
        assert_eq!(
            command(&[
                "./fedgenie",
                "run",
                "my study.toml",
                "--out",
                "out",
                "--overwrite",
                "--set",
                set,
                "--shard",
                "1/4"
            ]),
            "./fedgenie run 'my study.toml' --out out --set 'title=It'\\''s 3 % of \"all\"' --shard 1/4 --resume"
        );
        assert_eq!(command(&["f", "run", "--resume", "--out", "o", "--", "a"]), "f run --resume --out o -- a");
    }
}
