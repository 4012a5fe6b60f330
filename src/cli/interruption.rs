//! Ctrl-C and SIGTERM during `fedgenie run`.
//!
//! At the first signal no run is begun any more, and those under way end with their round; complete runs are kept. The second one
//! ends the process at once, which loses no complete run either. On systems without these signals the process just ends.

use super::progress::Show;
use fedgenie::experiment::Threads;
use fedgenie::experiment::artefacts::shell_quoted;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// What a shell adds to the number of the signal that ended a process.
const SIGNALLED: i32 = 128;

/// Watches for signals until the process ends.
pub struct Interruption {
    signal: Arc<AtomicI32>,
}

impl Interruption {
    /// Begins to watch. `how_to_resume` is printed if the process ends at once.
    #[cfg(unix)]
    pub fn watch(threads: Arc<Threads>, progress: Arc<Show>, how_to_resume: String) -> std::io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let first = Arc::new(AtomicI32::new(0));
        let seen = first.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if seen.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                    progress.note(&how_to_resume);
                    std::process::exit(SIGNALLED + signal);
                }
                threads.cancel();
                progress.note(
                    "fedgenie: interrupted; runs under way stop after their round, a second signal ends them at once",
                );
            }
        });
        Ok(Self { signal: first })
    }

    /// Does not watch.
    #[cfg(not(unix))]
    pub fn watch(_: Arc<Threads>, _: Arc<Show>, _: String) -> std::io::Result<Self> {
        Ok(Self { signal: Arc::new(AtomicI32::new(0)) })
    }

    /// The exit code of the signal that came, if any.
    pub fn code(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        (signal != 0).then(|| u8::try_from(SIGNALLED + signal).unwrap_or(u8::MAX))
    }
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
