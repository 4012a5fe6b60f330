//! Winograd's minimal filtering F(2 × 2, 3 × 3): convolutions with 3 × 3 kernels that move one step at a time, with 16
//! multiplications for four outputs where the definition has 36.
//!
//! The input is cut into tiles of 4 × 4 numbers, two apart, each of which gives 2 × 2 outputs. Tiles and kernels are
//! transformed to 16 numbers ("positions"), the products are taken at each position, summed over channels, and
//! transformed back.
//!
//! # Definition
//! With `Y` the 2 × 2 outputs, `d` the 4 × 4 tile and `g` the 3 × 3 kernel of a channel, `∘` the product position by
//! position:
//! - forward: `Y = Aᵀ (Σ_c U_c ∘ V_c) A` with `U = G g Gᵀ`, `V = Bᵀ d B`;
//! - by the input: the same, from the slopes and kernels turned by 180°, with padding `2 − p`;
//! - by the weights: `dg = Gᵀ (Σ_tiles S ∘ V) G` with `S = A s Aᵀ` of the 2 × 2 slopes `s`.
//!
//! ```text
//!      | 1  0 -1  0 |       | 1   0   0 |
//! Bᵀ = | 0  1  1  0 |   G = | ½   ½   ½ |   Aᵀ = | 1  1  1  0 |
//!      | 0 -1  1  0 |       | ½  -½   ½ |        | 0  1 -1  1 |
//!      | 0 -1  0  1 |       | 0   0   1 |
//! ```
//! Numbers outside the input, and outside the slopes, are zero.
//!
//! # Source
//! A. Lavin, S. Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016, section 4.1; after S. Winograd,
//! *Arithmetic Complexity of Computations*, 1980. Deviation: the last row of `Bᵀ` and with it the last column of `Aᵀ`
//! have the other sign, which saves a negation.
//!
//! # Order of sums
//! All transforms go over rows first, then over columns; of three terms the order is `(x₀ + x₁) ± x₂` for `Aᵀ`,
//! `(x₀ + x₂) ± x₁` for `G`. The sum over channels at a position is a chain of fused multiply-adds, channels ascending;
//! then bias is added to an output. The sum over tiles is a chain for each [block](tiles::Block), by tile row, tile
//! column, example; the chains are added in ascending order of blocks. Blocks depend on sizes only.
//!
//! # Cost
//! 16 multiplications for each input channel, output channel and tile, and of the order of 100 additions, loads and
//! stores for each tile and channel. The transformed numbers of a block of tiles stay within the cache of a core.

pub mod gradient;
pub mod product;
pub mod tiles;
pub mod transform;

use crate::lanes::LANES;

/// Numbers that a tile or a kernel is transformed to.
pub const POSITIONS: usize = 16;

/// Numbers from a position to the next where each has `count`: an odd number of cache lines, so that the 16 positions
/// of one tile do not compete for the same lines of the first cache.
pub const fn position_stride(count: usize) -> usize {
    (count.div_ceil(LANES) | 1) * LANES
}
