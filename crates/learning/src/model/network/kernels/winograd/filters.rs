//! The matrices of minimal filtering, along one side of a tile: F(2, 3) and F(4, 3).
//!
//! See [`super`] for what they are applied to. Where a term of `F(4, 3)` is a product and a sum, it is one fused
//! multiply-add.

use crate::lanes::Lanes;

/// Tiles of `M` outputs along a side, from `N = M + 2` numbers.
pub struct Side<const M: usize, const N: usize>;

/// The matrices of one size of tile.
pub trait Filter<const M: usize, const N: usize> {
    /// `Bᵀ x`, of a tile.
    fn tile(x: [Lanes; N]) -> [Lanes; N];
    /// `Aᵀ x`, back to outputs.
    fn output(x: [Lanes; N]) -> [Lanes; M];
    /// `A x`, of slopes.
    fn slopes(x: [Lanes; M]) -> [Lanes; N];
    /// `G x`, of a kernel.
    fn kernel(x: [Lanes; 3]) -> [Lanes; N];
    /// `Gᵀ x`, back to a kernel.
    fn gradient(x: [Lanes; N]) -> [Lanes; 3];
}

impl Filter<2, 4> for Side<2, 4> {
    #[inline(always)]
    fn tile(x: [Lanes; 4]) -> [Lanes; 4] {
        [x[0] - x[2], x[1] + x[2], x[2] - x[1], x[3] - x[1]]
    }

    #[inline(always)]
    fn output(x: [Lanes; 4]) -> [Lanes; 2] {
        [(x[0] + x[1]) + x[2], (x[1] - x[2]) + x[3]]
    }

    #[inline(always)]
    fn slopes(x: [Lanes; 2]) -> [Lanes; 4] {
        [x[0], x[0] + x[1], x[0] - x[1], x[1]]
    }

    #[inline(always)]
    fn kernel(x: [Lanes; 3]) -> [Lanes; 4] {
        let half = Lanes::splat(0.5);
        let ends = x[0] + x[2];
        [x[0], half * (ends + x[1]), half * (ends - x[1]), x[2]]
    }

    #[inline(always)]
    fn gradient(x: [Lanes; 4]) -> [Lanes; 3] {
        let half = Lanes::splat(0.5);
        let (sum, difference) = (half * (x[1] + x[2]), half * (x[1] - x[2]));
        [x[0] + sum, difference, sum + x[3]]
    }
}

/// The points of F(4, 3) are 0, ±P, ±Q and infinity; these and their powers are exact.
const P: f32 = 0.625;
const Q: f32 = 1.5;
const P2: f32 = P * P;
const Q2: f32 = Q * Q;
/// What the points' rows of `G` are divided by.
const AT_0: f64 = P2 as f64 * Q2 as f64;
const AT_P: f64 = 2.0 * P2 as f64 * (P2 as f64 - Q2 as f64);
const AT_Q: f64 = 2.0 * Q2 as f64 * (Q2 as f64 - P2 as f64);

/// `a · x + b`.
#[inline(always)]
fn add(b: Lanes, a: f32, x: Lanes) -> Lanes {
    Lanes::splat(a).mul_add(x, b)
}

impl Filter<4, 6> for Side<4, 6> {
    #[inline(always)]
    fn tile(x: [Lanes; 6]) -> [Lanes; 6] {
        let (p, p_odd) = (add(x[4], -Q2, x[2]), add(x[3], -Q2, x[1]));
        let (q, q_odd) = (add(x[4], -P2, x[2]), add(x[3], -P2, x[1]));
        let first = add(add(x[4], -(P2 + Q2), x[2]), P2 * Q2, x[0]);
        let last = add(add(x[5], -(P2 + Q2), x[3]), P2 * Q2, x[1]);
        [first, add(p, P, p_odd), add(p, -P, p_odd), add(q, Q, q_odd), add(q, -Q, q_odd), last]
    }

    #[inline(always)]
    fn output(x: [Lanes; 6]) -> [Lanes; 4] {
        let (p, p_odd) = (x[1] + x[2], x[1] - x[2]);
        let (q, q_odd) = (x[3] + x[4], x[3] - x[4]);
        [
            (x[0] + p) + q,
            add(Lanes::splat(P) * p_odd, Q, q_odd),
            add(Lanes::splat(P2) * p, Q2, q),
            add(add(x[5], P * P2, p_odd), Q * Q2, q_odd),
        ]
    }

    #[inline(always)]
    fn slopes(x: [Lanes; 4]) -> [Lanes; 6] {
        let (p, p_odd) = (add(x[0], P2, x[2]), add(x[1], P2, x[3]));
        let (q, q_odd) = (add(x[0], Q2, x[2]), add(x[1], Q2, x[3]));
        [x[0], add(p, P, p_odd), add(p, -P, p_odd), add(q, Q, q_odd), add(q, -Q, q_odd), x[3]]
    }

    #[inline(always)]
    fn kernel(x: [Lanes; 3]) -> [Lanes; 6] {
        let [p, p_minus] = at_points(x, P, AT_P);
        let [q, q_minus] = at_points(x, Q, AT_Q);
        [Lanes::splat((1.0 / AT_0) as f32) * x[0], p, p_minus, q, q_minus, x[2]]
    }

    #[inline(always)]
    fn gradient(x: [Lanes; 6]) -> [Lanes; 3] {
        let (p, p_odd) = from_points([x[1], x[2]], P, AT_P);
        let (q, q_odd) = from_points([x[3], x[4]], Q, AT_Q);
        [add(p, (1.0 / AT_0) as f32, x[0]) + q, p_odd + q_odd, add(add(x[5], P2, p), Q2, q)]
    }
}

/// The rows of `G x` of a point and its negative.
#[inline(always)]
fn at_points(x: [Lanes; 3], point: f32, by: f64) -> [Lanes; 2] {
    let even = Lanes::splat((1.0 / by) as f32) * add(x[0], point * point, x[2]);
    let odd = (f64::from(point) / by) as f32;
    [add(even, odd, x[1]), add(even, -odd, x[1])]
}

/// What a point and its negative give to `Gᵀ x`: to the numbers of even powers, and of odd ones.
#[inline(always)]
fn from_points(x: [Lanes; 2], point: f32, by: f64) -> (Lanes, Lanes) {
    let (even, odd) = ((1.0 / by) as f32, (f64::from(point) / by) as f32);
    (Lanes::splat(even) * (x[0] + x[1]), Lanes::splat(odd) * (x[0] - x[1]))
}
