//! Numerics whose bits are the same on every platform.
//!
//! Rust's own `f64::exp`, `ln`, `powf`, `sin` … call the platform's C library and may differ in the last bit between
//! machines. Everything here goes through the `libm` crate, which is plain Rust, or through arithmetic in a fixed
//! order. `clippy.toml` bans the methods of `f64`, naming the replacement in [`float`].

pub mod beta;
pub mod float;
pub mod power;
pub mod quadrature;
pub mod ridge;
pub mod special;
pub mod statistics;
pub mod sum;
