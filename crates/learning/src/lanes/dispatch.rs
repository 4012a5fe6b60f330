//! Code on lanes, compiled once for each path of a processor family, chosen when it runs.
//!
//! # Definition
//! A [`Path`] is a set of processor features. One list of features decides both whether a processor has the path and
//! how the path's clone of a [`Kernel`] is compiled: the two cannot differ. A clone has one body and no fallback
//! inside.
//!
//! | path | processors | compiled with |
//! |---|---|---|
//! | `portable` | all | the target's guarantees. On x86-64 they lack a fused multiply-add: training takes about 50 times as long |
//! | `avx2` | x86-64 since Haswell and Zen | AVX2, FMA |
//! | `avx512` | x86-64 since Skylake-X and Zen 4 | AVX-512 F, BW, CD, DQ, VL, which early and late AVX-512 have in common; AVX2, FMA |
//! | `neon` | AArch64 | the target's guarantees: NEON, with a fused multiply-add |
//!
//! A path exists only where its features were detected, because only [`Path::all`] and [`Path::detect`] make one.
//!
//! # Determinism
//! The path changes the speed and never the bits. Tests and benchmarks take every path of the processor to show it.

#![cfg_attr(
    target_arch = "x86_64",
    allow(
        unsafe_code,
        reason = "a processor feature that was detected cannot be proved to the compiler in another way"
    )
)]

use std::fmt;

/// A piece of code on lanes. `run` and everything it calls in a loop should be `#[inline(always)]`, so that it is
/// compiled with the features of the path.
pub trait Kernel {
    /// The computation.
    type Output;

    /// Whether it has a clone of its own for processors with AVX-512, which take the clone for AVX2 otherwise. Clones
    /// cost every build compile time: say so where a measurement shows that one is worth it (`benches/RESULTS.md`). Of
    /// kernels that arrange numbers by `WIDE` for another, it is the other's.
    const WIDE_PAYS: bool = false;

    /// Computes it. `WIDE` says that there are 32 vector registers of 16 lanes; it may choose the shape of register
    /// tiles but must not change a result.
    fn run<const WIDE: bool>(self) -> Self::Output;
}

/// A set of processor features that this processor has. The default is the fastest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Path(Features);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Features {
    /// The target's guarantees.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// A module with the clone of a path: it is detected and compiled by one list of features.
#[cfg(target_arch = "x86_64")]
macro_rules! clone_with {
    ($path:ident, wide: $wide:literal, $($feature:tt)+) => {
        mod $path {
            /// The features of the clone, and whether this processor has each.
            pub fn features() -> Vec<(&'static str, bool)> {
                vec![$(($feature, std::arch::is_x86_feature_detected!($feature))),+]
            }

            /// Whether this processor has all of them.
            pub fn is_detected() -> bool {
                features().iter().all(|&(_, is_there)| is_there)
            }

            #[target_feature($(enable = $feature),+)]
            pub fn run<K: super::Kernel>(kernel: K) -> K::Output {
                kernel.run::<$wide>()
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
clone_with!(avx2, wide: false, "avx2" "fma");
#[cfg(target_arch = "x86_64")]
clone_with!(avx512, wide: true, "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx2" "fma");

mod baseline {
    /// Never inlined, so that kernels are compiled once and not in every caller.
    #[inline(never)]
    pub fn run<K: super::Kernel>(kernel: K) -> K::Output {
        kernel.run::<false>()
    }
}

/// The processor features of each path of this processor family, with whether this processor has them, the slowest path
/// first.
pub fn features_of_paths() -> Vec<(&'static str, Vec<(&'static str, bool)>)> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut, reason = "other processors have one path"))]
    let mut paths = vec![(Path::BASELINE.name(), Vec::new())];
    #[cfg(target_arch = "x86_64")]
    paths.extend([("avx2", avx2::features()), ("avx512", avx512::features())]);
    paths
}

impl Path {
    /// The path without detected features: there on every processor.
    pub const BASELINE: Self = Self(Features::Baseline);

    /// The paths of this processor, the fastest last.
    pub fn all() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut, reason = "other processors have one path"))]
        let mut paths = vec![Self::BASELINE];
        #[cfg(target_arch = "x86_64")]
        {
            paths.extend(avx2::is_detected().then_some(Self(Features::Avx2)));
            paths.extend(avx512::is_detected().then_some(Self(Features::Avx512)));
        }
        paths
    }

    /// The fastest path of this processor.
    pub fn detect() -> Self {
        static FASTEST: std::sync::LazyLock<Path> =
            std::sync::LazyLock::new(|| Path::all().pop().unwrap_or(Path::BASELINE));
        *FASTEST
    }

    /// Its name: `portable`, `avx2`, `avx512` or `neon`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Features::Baseline if cfg!(all(target_arch = "aarch64", target_feature = "neon")) => "neon",
            Features::Baseline => "portable",
            #[cfg(target_arch = "x86_64")]
            Features::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Features::Avx512 => "avx512",
        }
    }

    /// Whether its clones have a fused multiply-add. Without one a library routine rounds the same way, about 50 times
    /// slower.
    pub const fn has_fma(self) -> bool {
        match self.0 {
            Features::Baseline => cfg!(any(target_feature = "fma", target_feature = "neon")),
            #[cfg(target_arch = "x86_64")]
            Features::Avx2 | Features::Avx512 => true,
        }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self::detect()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Runs a kernel on a path.
#[inline]
pub fn run<K: Kernel>(path: Path, kernel: K) -> K::Output {
    match path.0 {
        Features::Baseline => baseline::run(kernel),
        // SAFETY: a path with these features is made by `Path::all` alone, and only where `is_detected` found all of
        // them.
        #[cfg(target_arch = "x86_64")]
        Features::Avx512 if K::WIDE_PAYS => unsafe { avx512::run(kernel) },
        // SAFETY: as above; the features of `avx512` are those of `avx2` and more.
        #[cfg(target_arch = "x86_64")]
        Features::Avx2 | Features::Avx512 => unsafe { avx2::run(kernel) },
    }
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod clone_tests;
