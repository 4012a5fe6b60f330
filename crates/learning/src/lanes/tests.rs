//! Every operation on every path against plain arithmetic.

use super::*;
use fedgenie_core::rng::{Purpose, Streams};

/// Zeros, denormals, infinities, NaNs, the ends of the range and random numbers of every size, in random order.
pub(super) fn awkward_numbers(count: usize) -> Vec<f32> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x8000_0001),
        f32::from_bits(0x007f_ffff),
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -f32::NAN,
    ];
    let mut rng = Streams::new(3).stream(Purpose::Example, 0, 0);
    (0..count)
        .map(|_| match rng.below(4) {
            0 => special[rng.below(special.len() as u64) as usize],
            1 => f32::from_bits(rng.bits() as u32),
            2 => f32::from_bits(rng.bits() as u32 & 0x807f_ffff),
            _ => 8.0 * rng.uniform() as f32 - 4.0,
        })
        .collect()
}

/// An operation on lanes, over whole rows.
struct Rows<'a, F> {
    x: &'a [f32],
    y: &'a [f32],
    z: &'a [f32],
    operation: F,
}

impl<F: Fn(Lanes, Lanes, Lanes) -> Lanes> Kernel for Rows<'_, F> {
    type Output = Vec<f32>;
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> Vec<f32> {
        let mut out = vec![0.0; self.x.len()];
        for start in (0..out.len()).step_by(LANES) {
            keep_vectors_whole();
            let [x, y, z] = [self.x, self.y, self.z].map(|row| Lanes::load(&row[start..]));
            (self.operation)(x, y, z).store(&mut out[start..]);
        }
        out
    }
}

/// Bits, where every NaN counts as one.
fn bits(number: f32) -> u32 {
    if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() }
}

/// Compares an operation on lanes with one on numbers.
macro_rules! check {
    ($name:literal, $on_lanes:expr, $alone:expr) => {{
        let numbers = awkward_numbers(3 * 256 * LANES);
        let (x, rest) = numbers.split_at(256 * LANES);
        let (y, z) = rest.split_at(256 * LANES);
        let alone: fn(f32, f32, f32) -> f32 = $alone;
        for path in Path::all() {
            let out = run(path, Rows { x, y, z, operation: $on_lanes });
            for place in 0..x.len() {
                let (x, y, z) = (x[place], y[place], z[place]);
                let expected = alone(x, y, z);
                assert_eq!(bits(out[place]), bits(expected), "{} of {x:e}, {y:e}, {z:e} on {path:?}", $name);
            }
        }
    }};
}

#[test]
fn operations_on_each_lane() {
    check!("sum", |x, y, _| x + y, |x, y, _| x + y);
    check!("difference", |x, y, _| x - y, |x, y, _| x - y);
    check!("product", |x, y, _| x * y, |x, y, _| x * y);
    check!("quotient", |x, y, _| x / y, |x, y, _| x / y);
    check!("mul_add", |x: Lanes, y, z| x.mul_add(y, z), |x, y, z| libm::fmaf(x, y, z));
    check!("max", |x: Lanes, y, _| x.max(y), |x, y, _| if x > y { x } else { y });
    check!("min", |x: Lanes, y, _| x.min(y), |x, y, _| if x < y { x } else { y });
    check!("sqrt", |x: Lanes, _, _| x.sqrt(), |x, _, _| libm::sqrtf(x));
    check!("abs", |x: Lanes, _, _| x.abs(), |x, _, _| libm::fabsf(x));
    check!("map", |x: Lanes, _, _| x.map(|x| 1.0 / (x + 2.0)), |x, _, _| 1.0 / (x + 2.0));
    check!("zip", |x: Lanes, y, _| x.zip(y, |x, y| x * y - 1.0), |x, y, _| x * y - 1.0);
    check!("if_positive", |x: Lanes, y, _| x.if_positive(y), |x, y, _| if x > 0.0 { y } else { 0.0 });
    check!("splat", |x, _, _| x + Lanes::splat(3.0), |x, _, _| x + 3.0);
}

#[test]
fn lanes_are_summed_in_halves() {
    struct Sums<'a>(&'a [f32]);
    impl Kernel for Sums<'_> {
        type Output = Vec<[f32; 2]>;
        const WIDE_PAYS: bool = true;

        #[inline(always)]
        fn run<const WIDE: bool>(self) -> Self::Output {
            self.0.as_chunks::<LANES>().0.iter().map(|lanes| [Lanes(*lanes).sum(), fold(lanes)]).collect()
        }
    }
    let numbers = awkward_numbers(512 * LANES);
    for path in Path::all() {
        for (sums, lanes) in run(path, Sums(&numbers)).into_iter().zip(numbers.chunks_exact(LANES)) {
            let mut halves = lanes.to_vec();
            while halves.len() > 1 {
                let (first, second) = halves.split_at(halves.len() / 2);
                halves = first.iter().zip(second).map(|(x, y)| x + y).collect();
            }
            assert_eq!(sums.map(bits), [bits(halves[0]); 2], "{lanes:?} on {path:?}");
        }
    }
}

#[test]
fn parts_of_vectors_are_loaded_with_zeros_behind() {
    let numbers: Vec<f32> = (1..=20).map(|number| number as f32).collect();
    assert_eq!(Lanes::load(&numbers[4..]).0.to_vec(), numbers[4..20]);
    for count in 0..=20 {
        let lanes = Lanes::load_partial(&numbers[..count]);
        for (place, lane) in lanes.0.into_iter().enumerate() {
            assert_eq!(lane, if place < count { numbers[place] } else { 0.0 });
        }
        for (place, lane) in Lanes::load(&numbers).first(count.min(LANES)).0.into_iter().enumerate() {
            assert_eq!(lane, if place < count { numbers[place] } else { 0.0 });
        }
    }
    let mut out = [7.0; LANES + 1];
    Lanes::splat(1.0).store(&mut out);
    assert_eq!(out[..LANES], [1.0; LANES]);
    assert_eq!(out[LANES], 7.0);
}

#[test]
fn the_first_lanes_are_stored_and_the_others_stay() {
    let lanes = Lanes(std::array::from_fn(|lane| lane as f32));
    for count in 0..=LANES {
        let mut out = [-1.0; LANES + 1];
        lanes.store_first(count, &mut out);
        for (place, number) in out.into_iter().enumerate() {
            assert_eq!(number, if place < count { place as f32 } else { -1.0 });
        }
    }
}

#[test]
fn a_square_is_transposed() {
    let mut square: [Lanes; LANES] =
        std::array::from_fn(|row| Lanes(std::array::from_fn(|lane| (LANES * row + lane) as f32)));
    transpose(&mut square);
    for (row, lanes) in square.iter().enumerate() {
        for (lane, number) in lanes.0.into_iter().enumerate() {
            assert_eq!(number, (LANES * lane + row) as f32);
        }
    }
}
