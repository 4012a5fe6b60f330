//! The processor that an experiment ran on: it changes how long training takes, and no result.

use super::Experiment;
use crate::scenario::Scenario;
use fedgenie_learning::lanes::Path;
use serde::{Deserialize, Serialize};

/// The processor and path of training, as `manifest.json` notes them. No digest covers them, and `verify` ignores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The set of processor features that training uses.
    pub path: String,
    /// The processor's name, or `unknown`.
    pub processor: String,
}

impl Cpu {
    /// This machine's.
    pub fn detect() -> Self {
        Self {
            path: Path::detect().name().to_owned(),
            processor: Self::brand().unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    /// The name that the processor gives itself: an x86-64 processor does, on any operating system.
    pub fn brand() -> Option<String> {
        brand()
    }
}

/// The warning before networks are trained on a path.
fn warning(path: Path) -> Option<String> {
    (!path.has_fma()).then(|| {
        format!(
            "training takes the path {path}: it finds no fused multiply-add (FMA) on this processor and takes about 50 times as long; \
             results are the same to the bit"
        )
    })
}

impl Experiment {
    /// The warning that this machine trains slowly, where the experiment trains.
    pub fn warning_of_cpu(&self) -> Option<String> {
        let trains = |scenario: &Scenario| scenario.plan.task.about().trains;
        self.points.iter().any(|(_, scenario)| trains(scenario)).then(|| warning(Path::detect())).flatten()
    }
}

#[cfg(target_arch = "x86_64")]
fn brand() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const HIGHEST: u32 = 0x8000_0000;
    const BRAND: std::ops::RangeInclusive<u32> = 0x8000_0002..=0x8000_0004;
    if __cpuid(HIGHEST).eax < *BRAND.end() {
        return None;
    }
    let words = BRAND.flat_map(|leaf| {
        let found = __cpuid(leaf);
        [found.eax, found.ebx, found.ecx, found.edx]
    });
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).take_while(|&byte| byte != 0).collect();
    // Some processors pad their name with blanks, in front or inside.
    let name = String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

#[cfg(not(target_arch = "x86_64"))]
const fn brand() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slow_path_is_warned_of() {
        for path in Path::all() {
            assert_eq!(warning(path).is_some(), !path.has_fma());
        }
        #[cfg(target_arch = "x86_64")]
        assert!(warning(Path::BASELINE).is_some_and(|text| text.contains("50 times")));
    }

    /// Where Linux tells the processor's name as well, it is the same.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_processors_name_is_the_systems() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let Some((_, known)) = line else { return };
        let known = known.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(Cpu::detect().processor, known);
    }
}
