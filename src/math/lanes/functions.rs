//! Temporary.
#![allow(missing_docs)]
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    libm::expf(x)
}
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    libm::tanhf(x)
}
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    x * 0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}
#[inline(always)]
pub fn gelu_derivative(x: f32) -> f32 {
    0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)) + x * libm::expf(-0.5 * x * x) * 0.398_942_3
}
