//! Limits of size: every fixed limit, and the memory of this process.
//!
//! Data that cannot fit are refused before memory is taken for them, with an estimate of their size. Fixed limits lie
//! far beyond practical needs, and stand here alone; `docs/limits.md` has them in a table, which a test compares.

use std::fmt;
use std::fs;

/// A fixed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name of its constant.
    pub name: &'static str,
    /// The largest allowed number.
    pub most: u64,
}

macro_rules! limits {
    ($($(#[$of:meta])* $name:ident: $kind:ty = $most:expr;)+) => {
        $($(#[$of])* pub const $name: $kind = $most;)+

        /// All fixed limits.
        pub const ALL: &[Limit] = &[$(Limit { name: stringify!($name), most: $name as u64 }),+];
    };
}

limits! {
    /// Bytes of a scenario file.
    SCENARIO_BYTES: u64 = 1 << 24;
    /// Policies of a scenario.
    POLICIES: usize = 1_000;
    /// Settings that one policy overrides.
    OVERRIDES: usize = 1_000;
    /// Paths of a sweep.
    SWEEP_PATHS: usize = 100;
    /// Points of a sweep.
    POINTS: usize = 10_000;
    /// Seeds of a scenario.
    SEEDS: usize = 100_000;
    /// Runs of an experiment: policies × seeds × points.
    RUNS: usize = 1_000_000;
    /// Runs of an experiment that are kept in a folder each, if its scenario does not say.
    LOOSE_RUNS: usize = 10_000;
    /// Threads of a command.
    THREADS: usize = 1_024;
    /// Clients of a population.
    CLIENTS: usize = 100_000_000;
    /// Outputs of a hidden layer.
    LAYER_OUTPUTS: usize = 65_536;
    /// Parameters of a model.
    PARAMETERS: usize = 1 << 30;
    /// Clients of a policy whose actor has an input and an output for each.
    DENSE_CLIENTS: usize = 50_000;
    /// Bytes of a declared transfer: 1 PB.
    PAYLOAD_BYTES: u64 = 1_000_000_000_000_000;
    /// Seconds of a duration: 100 years of 365 days.
    DURATION_SECONDS: u64 = 3_153_600_000;
    /// Seconds of virtual time that a run may reach: 250 years of 365 days.
    CLOCK_SECONDS: u64 = 7_884_000_000;
    /// Rounds that may close at one instant of virtual time, where the number of rounds does not end a run.
    ROUNDS_AT_ONE_INSTANT: u32 = 100_000;
    /// Samples of an empirical law.
    SAMPLES: usize = 1 << 23;
    /// Bytes of a file of samples.
    SAMPLE_FILE_BYTES: u64 = 1 << 28;
    /// Bytes of a file of traces or of one number per client, after decompression.
    TRACE_BYTES: u64 = 1 << 30;
    /// Intervals, points or rows of such a file.
    TRACE_RECORDS: usize = 1 << 26;
    /// Bytes of a file of link speeds in JSON, after decompression.
    SPEEDS_BYTES: u64 = 1 << 23;
    /// Bytes of a table of examples or ratings, after decompression.
    TABLE_BYTES: u64 = 1 << 32;
    /// Bytes of a row of a table.
    ROW_BYTES: u64 = 1 << 24;
    /// Columns of a table of examples.
    COLUMNS: usize = 1 << 20;
    /// Numbers in a table of examples.
    TABLE_VALUES: usize = 1 << 28;
}

/// Bytes of a client beside its traces and its examples, as an estimate: in the world and in a run's accounts.
pub const CLIENT_BYTES: u64 = 208;
/// Bytes of a thread: its stack and its buffers.
pub const THREAD_BYTES: u64 = 3 << 20;
/// Copies of a model that a run holds at least: the server's, one under way, its update and that of its training.
pub const MODEL_COPIES: u64 = 4;
/// Bytes of a run of an experiment before and after it is under way.
pub const RUN_BYTES: u64 = 400;

/// Smaller amounts are not checked.
const SMALL: u128 = 1 << 26;

/// Something does not fit into memory. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} would take about {} of memory, and {} can be had", memory(*.needed), memory(u128::from(*.available)))]
pub struct Unaffordable {
    /// The data, with their number.
    pub what: String,
    /// The estimate, in bytes.
    pub needed: u128,
    /// Memory left to this process, in bytes.
    pub available: u64,
}

/// Checks that something fits into the memory that this process can have.
///
/// # Errors
/// The estimate, and the memory that is left.
pub fn afford(what: impl fmt::Display, needed: u128) -> Result<(), Unaffordable> {
    if needed < SMALL {
        return Ok(());
    }
    match available() {
        Some(available) if needed > u128::from(available) => {
            Err(Unaffordable { what: what.to_string(), needed, available })
        }
        _ => Ok(()),
    }
}

/// Memory for the contents of a file, counted while it is read: half of the memory that is left, because the contents
/// are converted to another form.
#[derive(Clone, Debug)]
pub struct Budget {
    taken: u64,
    /// Bytes that may be taken before the memory is looked at again.
    checked: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { taken: 0, checked: SMALL as u64 / 4 }
    }
}

impl Budget {
    /// Counts bytes before they are kept.
    ///
    /// # Errors
    /// If it is more than there is room for.
    pub fn take(&mut self, bytes: u64) -> Result<(), Unaffordable> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken <= self.checked {
            return Ok(());
        }
        // The counted bytes are taken by now: as much again is needed, to grow and to convert them.
        self.checked = self.taken.saturating_mul(2);
        let needed = u128::from(self.taken) * 2;
        match available() {
            Some(available) if needed > u128::from(available) => {
                Err(Unaffordable { what: "its contents".to_owned(), needed: needed * 2, available })
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of memory that this process can still have, where the system tells: the least of its own limits, its control
/// group's and the machine's.
pub fn available() -> Option<u64> {
    let own = |limit: &str, used: &str| {
        let most = field(&fs::read_to_string("/proc/self/limits").ok()?, limit)?;
        let used = 1024 * field(&fs::read_to_string("/proc/self/status").ok()?, used)?;
        Some(most.saturating_sub(used))
    };
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = || Some(number("/sys/fs/cgroup/memory.max")?.saturating_sub(number("/sys/fs/cgroup/memory.current")?));
    let machine = || {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        Some(1024 * (field(&text, "MemAvailable:")? + field(&text, "SwapFree:").unwrap_or(0)))
    };
    let all = [own("Max address space", "VmSize:"), own("Max data size", "VmData:"), group(), machine()];
    all.into_iter().flatten().min()
}

/// Bytes of memory that this process has in use, now and at most so far, where the system tells.
pub fn resident() -> Option<[u64; 2]> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some([1024 * field(&status, "VmRSS:")?, 1024 * field(&status, "VmHWM:")?])
}

/// The first number behind a name at the beginning of a line; `None` if there is none, such as `unlimited`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// An amount of memory in a readable unit.
pub fn memory(bytes: u128) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut size, mut unit) = (bytes as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_with_the_estimate() {
        let error = afford("1000000000 clients", 1 << 62).unwrap_err().to_string();
        assert!(error.starts_with("1000000000 clients would take about 4.0 EiB of memory, and "), "{error}");
        afford("20 clients", 20 * 208).unwrap();
    }

    #[test]
    fn a_budget_ends() {
        let mut budget = Budget::default();
        let taken = (0..80).take_while(|power| budget.take(1 << power.min(&62)).is_ok()).count();
        assert!((26..64).contains(&taken), "{taken}");
    }

    #[test]
    fn the_system_is_asked_for_numbers() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax data size   unlimited  unlimited  bytes\n\
                      Max address space         2147483648           unlimited            bytes\n";
        assert_eq!(field(limits, "Max address space"), Some(1 << 31));
        assert_eq!(field(limits, "Max data size"), None);
        if cfg!(target_os = "linux") {
            assert!(available().unwrap() > 0);
            let [now, most] = resident().unwrap();
            assert!(0 < now && now <= most);
        }
    }
}
