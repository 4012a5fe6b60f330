//! Winograd's minimal filtering F(2 × 2, 3 × 3) and F(4 × 4, 3 × 3): convolutions with 3 × 3 kernels that move one step
//! at a time, with 16 multiplications for four outputs where the definition has 36, or 36 for 16 where it has 144.
//!
//! The input is cut into tiles of `N × N` numbers, `M` apart, each of which gives `M × M` outputs, `N = M + 2`. Tiles
//! and kernels are transformed to `N²` numbers ("positions"), the products are taken at each position, summed over
//! channels, and transformed back.
//!
//! # Definition
//! With `Y` the outputs, `d` the tile and `g` the 3 × 3 kernel of a channel, `∘` the product position by position:
//! - forward: `Y = Aᵀ (Σ_c U_c ∘ V_c) A` with `U = G g Gᵀ`, `V = Bᵀ d B`;
//! - by the input: the same, from the slopes and kernels turned by 180°, with padding `2 − p`;
//! - by the weights: `dg = Gᵀ (Σ_tiles S ∘ V) G` with `S = A s Aᵀ` of the `M × M` slopes `s`.
//!
//! For F(2 × 2, 3 × 3)
//! ```text
//!      | 1  0 -1  0 |       | 1   0   0 |
//! Bᵀ = | 0  1  1  0 |   G = | ½   ½   ½ |   Aᵀ = | 1  1  1  0 |
//!      | 0 -1  1  0 |       | ½  -½   ½ |        | 0  1 -1  1 |
//!      | 0 -1  0  1 |       | 0   0   1 |
//! ```
//! and for F(4 × 4, 3 × 3), with `p = ⅝`, `q = 3/2`, `P = p²`, `Q = q²`,
//! ```text
//!      | PQ   0  -P-Q   0   1  0 |       | 1/PQ              0     0 |
//!      | 0  -pQ   -Q    p   1  0 |       | 1, p, P over 2P (P - Q)   |        | 1  1  1  1  1  0 |
//! Bᵀ = | 0   pQ   -Q   -p   1  0 |   G = | 1, -p, P over the same    |   Aᵀ = | 0  p -p  q -q  0 |
//!      | 0  -qP   -P    q   1  0 |       | 1, q, Q over 2Q (Q - P)   |        | 0  P  P  Q  Q  0 |
//!      | 0   qP   -P   -q   1  0 |       | 1, -q, Q over the same    |        | 0  p³ -p³ q³ -q³ 1 |
//!      | 0   PQ   0   -P-Q  0  1 |       | 0                 0     1 |
//! ```
//! Numbers outside the input, and outside the slopes, are zero.
//!
//! # Source
//! A. Lavin, S. Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016, sections 4.1 and 4.3; after S.
//! Winograd, *Arithmetic Complexity of Computations*, 1980. Deviations: the last row of `Bᵀ` and with it the last
//! column of `Aᵀ` of F(2 × 2, 3 × 3) have the other sign, which saves a negation. The points of F(4 × 4, 3 × 3) are 0,
//! ±⅝, ±3/2 instead of 0, ±1, ±2, which halve the error (as B. Barabasz and others, *Error Analysis and Improving the
//! Accuracy of Winograd Convolution for Deep Neural Networks*, ACM TOMS 2020, choose points): all numbers of `Bᵀ` and
//! `Aᵀ` are exact.
//!
//! # Error
//! Root of the mean square of the difference to the definition in `f64`, relative to that of the result, with numbers
//! between -1 and 1 and 32 to 128 channels. Tiles of 2 × 2: 4·10⁻⁷, less than direct kernels forward and by the input.
//! Tiles of 4 × 4: at most 1.2·10⁻⁶, 1.8 to 2.3 times that of direct kernels forward and by the input, and up to 6.4
//! times by the weights, whose direct kernels have many partial sums.
//!
//! # Order of sums
//! All transforms go over rows first, then over columns; of three terms of F(2 × 2, 3 × 3) the order is `(x₀ + x₁) ±
//! x₂` for `Aᵀ`, `(x₀ + x₂) ± x₁` for `G`; [`filters`] has that of F(4 × 4, 3 × 3). The sum over channels at a position
//! is a chain of fused multiply-adds, channels ascending; then bias is added to an output. The sum over tiles is a
//! chain for each [block](tiles::Block), by tile row, tile column, example; the chains are added in ascending order of
//! blocks. Blocks and the size of tiles depend on sizes only.
//!
//! # Cost
//! `N²` multiplications for each input channel, output channel and tile, and of the order of `6 N²` additions, loads
//! and stores for each tile and channel. The transformed numbers of a block of tiles stay within the cache of a core.

pub mod filters;
pub mod gradient;
pub mod product;
pub mod tiles;
pub mod transform;

use crate::lanes::LANES;

/// Numbers from a position to the next where each has `count`: an odd number of cache lines, so that the positions
/// of one tile do not compete for the same lines of the first cache.
pub const fn position_stride(count: usize) -> usize {
    (count.div_ceil(LANES) | 1) * LANES
}
