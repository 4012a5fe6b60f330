//! Code on lanes, compiled for several sets of processor features, chosen when it runs.
//!
//! The choice changes the speed and never the bits; tests and benchmarks force each path to show it.

use multiversion::multiversion;
use std::sync::OnceLock;

/// A piece of code on lanes. `run` and everything it calls in a loop should be `#[inline(always)]`, so that it is compiled
/// with the features of the path.
pub trait Kernel {
    /// What it computes.
    type Output;

    /// Computes it. `WIDE` says that there are 32 vector registers of 16 lanes; it may choose the shape of register tiles
    /// but must not change a result.
    fn run<const WIDE: bool>(self) -> Self::Output;
}

/// A set of processor features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// What every processor of the target has.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL).
    Avx512,
}

impl Path {
    /// The fastest path of this processor.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<Path> = OnceLock::new();
        *DETECTED.get_or_init(|| Self::all().last().copied().unwrap_or(Self::Portable))
    }

    /// The paths of this processor, the fastest last.
    pub fn all() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => &[Self::Portable, Self::Avx2, Self::Avx512],
                (true, false) => &[Self::Portable, Self::Avx2],
                _ => &[Self::Portable],
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        &[Self::Portable]
    }
}

/// Runs a kernel on a path. A path that this processor lacks falls back to the portable one.
#[inline]
pub fn run<K: Kernel>(path: Path, kernel: K) -> K::Output {
    match path {
        Path::Portable => kernel.run::<false>(),
        Path::Avx2 => avx2(kernel),
        Path::Avx512 => avx512(kernel),
    }
}

#[multiversion(targets("x86_64+avx2+fma"), dispatcher = "direct")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<false>()
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+avx2+fma"), dispatcher = "direct")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}
