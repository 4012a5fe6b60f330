//! Errors against `f64`, special values, and equal bits on all paths.

use super::super::{Kernel, LANES, Lanes, Path, run};
use super::*;
use rayon::prelude::*;
use std::f64::consts::{PI, SQRT_2};

struct Map<'a, F> {
    numbers: &'a mut [f32],
    function: F,
}

impl<F: Fn(Lanes) -> Lanes> Kernel for Map<'_, F> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for lanes in self.numbers.as_chunks_mut::<LANES>().0 {
            *lanes = (self.function)(Lanes(*lanes)).0;
        }
    }
}

struct Case {
    name: &'static str,
    alone: fn(f32) -> f32,
    on_lanes: fn(Path, &mut [f32]),
    exact: fn(f64) -> f64,
}

macro_rules! case {
    ($function:ident, $exact:expr) => {
        Case {
            name: stringify!($function),
            alone: $function,
            on_lanes: |path, numbers| run(path, Map { numbers, function: |x: Lanes| x.map($function) }),
            exact: $exact,
        }
    };
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

const CASES: [Case; 6] = [
    case!(exp, libm::exp),
    case!(ln, libm::log),
    case!(tanh, libm::tanh),
    case!(erf, libm::erf),
    case!(gelu, |x| if x == f64::NEG_INFINITY { 0.0 } else { x * normal_cdf(x) }),
    case!(gelu_derivative, |x| {
        let density = libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt();
        normal_cdf(x) + if density > 0.0 { x * density } else { 0.0 }
    }),
];

/// Functions of a part of the numbers, from and to.
const WITHIN: [(Case, [f32; 2]); 2] = [(case!(exp_to_one, libm::exp), [-87.0, 0.0]), (RECIPROCAL, [7.9e-31, 1.3e36])];

/// Of whole vectors.
const RECIPROCAL: Case = Case {
    name: "reciprocal",
    alone: |x| reciprocal(Lanes::splat(x)).0[0],
    on_lanes: |path, numbers| run(path, Map { numbers, function: reciprocal }),
    exact: |x| 1.0 / x,
};

/// The distance from the exact value in units of its last place; infinite where one is finite or a number and the other
/// is not.
fn error_in_ulp(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if nearest.is_nan() {
        return if got.to_bits() == f32::NAN.to_bits() { 0.0 } else { f64::INFINITY };
    }
    if nearest.is_infinite() || got.is_infinite() {
        // The smallest number that rounds to infinity and the largest finite number are neighbours.
        return if got == nearest {
            0.0
        } else if got.abs().max(nearest.abs()).is_infinite() && got.abs().min(nearest.abs()) == f32::MAX {
            1.0
        } else {
            f64::INFINITY
        };
    }
    let exponent = (nearest.abs().to_bits() >> 23).max(1) as i32 - 150;
    (f64::from(got) - exact).abs() / libm::ldexp(1.0, exponent)
}

/// The largest error over some bit patterns, and where it is.
fn worst(case: &Case, patterns: impl Iterator<Item = u32>) -> (f64, f32) {
    patterns.map(f32::from_bits).fold((0.0, 0.0), |worst, x| {
        let error = error_in_ulp((case.alone)(x), (case.exact)(f64::from(x)));
        if error > worst.0 { (error, x) } else { worst }
    })
}

#[test]
fn a_million_numbers_are_within_2_ulp() {
    for case in &CASES {
        let (error, x) = worst(case, (0..=u32::MAX).step_by(4_001));
        assert!(error <= 2.0, "{}({x:e}) is off by {error} ulp", case.name);
    }
}

#[test]
fn numbers_of_a_part_are_within_2_ulp_and_the_same_on_all_paths() {
    for (case, [least, most]) in &WITHIN {
        let inside = |bits: &u32| (*least..=*most).contains(&f32::from_bits(*bits));
        let (error, x) = worst(case, (0..=u32::MAX).step_by(401).filter(inside));
        assert!(error <= 2.0, "{}({x:e}) is off by {error} ulp", case.name);
        let mut numbers: Vec<f32> = (0..=u32::MAX).step_by(40_001).filter(inside).map(f32::from_bits).collect();
        numbers.extend([f32::NAN, -f32::NAN]);
        numbers.resize(numbers.len().next_multiple_of(LANES), *most);
        for path in Path::all() {
            let mut results = numbers.clone();
            (case.on_lanes)(path, &mut results);
            for (x, result) in numbers.iter().zip(results) {
                assert_eq!(result.to_bits(), (case.alone)(*x).to_bits(), "{}({x:e}) on {path:?}", case.name);
            }
        }
    }
    assert!(exp_to_one(-1e9) > 0.0 && exp_to_one(-1e9) < 2e-38);
}

#[test]
fn numbers_where_a_case_begins_are_within_2_ulp() {
    let edges = [
        88.0_f32,
        88.722_84,
        88.73,
        89.0,
        -87.0,
        -87.336_55,
        -103.0,
        -103.972,
        -105.0,
        1.0,
        0.707_106_77,
        std::f32::consts::SQRT_2,
        10.0,
        9.010_9,
        4.0,
        3.92,
        15.0,
        -15.0,
        14.1,
        -14.1,
        -0.751_791_5,
        0.751_791_5,
        -1.0,
        f32::MIN_POSITIVE,
        1e-45,
        0.0,
        -0.0,
    ];
    for case in &CASES {
        for edge in edges {
            let bits = edge.to_bits();
            let (error, x) = worst(case, (0..4_000).map(|offset: u32| bits.wrapping_add(offset).wrapping_sub(2_000)));
            assert!(error <= 2.0, "{}({x:e}) is off by {error} ulp", case.name);
        }
    }
}

#[test]
#[ignore = "all 2^32 numbers take a quarter of an hour in a release build"]
fn all_numbers_are_within_2_ulp() {
    const BLOCK: u32 = 1 << 16;
    let path = Path::detect();
    for case in &CASES {
        let blocks = (0..BLOCK).into_par_iter().map(|block| {
            let numbers = || (0..BLOCK).map(|place| f32::from_bits(block * BLOCK + place));
            let mut results: Vec<f32> = numbers().collect();
            (case.on_lanes)(path, &mut results);
            numbers().zip(results).fold((0.0, 0.0), |worst, (x, got)| {
                let error = error_in_ulp(got, (case.exact)(f64::from(x)));
                if error > worst.0 { (error, x) } else { worst }
            })
        });
        let (error, x) = blocks.reduce(|| (0.0, 0.0), |one, two| if two.0 > one.0 { two } else { one });
        println!("{}: at most {error:.3} ulp, at {x:e}", case.name);
        assert!(error <= 2.0, "{}({x:e}) is off by {error} ulp", case.name);
    }
}

#[test]
fn all_paths_give_the_same_bits() {
    let mut numbers: Vec<f32> = super::super::tests::awkward_numbers(64 * LANES);
    numbers.extend((0..20_000 * LANES as u32).map(|place| f32::from_bits(place.wrapping_mul(0x9e37_79b9))));
    // Random bits are seldom close to 1, where the functions have most to do.
    numbers.extend((0..2_000 * LANES).map(|place| (place as f32 - 16_000.0) / 1_000.0));
    for case in &CASES {
        for path in Path::all() {
            let mut results = numbers.clone();
            (case.on_lanes)(path, &mut results);
            for (x, result) in numbers.iter().zip(results) {
                let alone = (case.alone)(*x);
                assert_eq!(
                    result.to_bits(),
                    alone.to_bits(),
                    "{}({x:e}) on {path:?}: {result:e}, not {alone:e}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn special_values() {
    let (zero, infinity, nan) = (0.0_f32, f32::INFINITY, f32::NAN);
    type Cases<'a> = (fn(f32) -> f32, &'a [(f32, f32)]);
    let expected: [Cases<'_>; 6] = [
        (exp, &[(zero, 1.0), (-zero, 1.0), (infinity, infinity), (-infinity, 0.0), (89.0, infinity), (-110.0, 0.0)]),
        (
            ln,
            &[
                (zero, -infinity),
                (-zero, -infinity),
                (infinity, infinity),
                (1.0, 0.0),
                (-1.0, nan),
                (-infinity, nan),
                (-1e-45, nan),
            ],
        ),
        (tanh, &[(zero, zero), (-zero, -zero), (infinity, 1.0), (-infinity, -1.0), (1e-45, 1e-45), (-1e-45, -1e-45)]),
        (erf, &[(zero, zero), (-zero, -zero), (infinity, 1.0), (-infinity, -1.0)]),
        (
            gelu,
            &[
                (zero, zero),
                (-zero, -zero),
                (infinity, infinity),
                (-infinity, -zero),
                (f32::MAX, f32::MAX),
                (f32::MIN, -zero),
            ],
        ),
        (
            gelu_derivative,
            &[(zero, 0.5), (-zero, 0.5), (infinity, 1.0), (-infinity, -zero), (f32::MAX, 1.0), (f32::MIN, -zero)],
        ),
    ];
    for (place, (function, pairs)) in expected.into_iter().enumerate() {
        let nans =
            [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xff80_0001, 0x7fff_ffff].map(|bits| (f32::from_bits(bits), nan));
        for &(x, y) in pairs.iter().chain(&nans) {
            let got = function(x);
            assert_eq!(got.to_bits(), y.to_bits(), "{}({x:e}) is {got:e}, not {y:e}", CASES[place].name);
        }
    }
}
