//! Special functions of probability: the normal and the gamma distribution, both tails to full relative precision.

pub mod incomplete_gamma;
pub mod normal;

pub use incomplete_gamma::{gamma_lower, gamma_lower_inverse, gamma_upper, gamma_upper_inverse, stirling_ratio};
pub use normal::{erfcx, normal_cdf, normal_quantile, normal_tail, normal_upper_quantile};
