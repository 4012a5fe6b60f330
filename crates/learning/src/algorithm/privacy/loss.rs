//! ε from the distribution of the privacy loss of the sampled Gaussian mechanism.
//!
//! # Method
//! Without sampling `T` rounds are one Gaussian mechanism with `μ = √T/z`, whose δ(ε) is known in closed form. With
//! sampling, the mass of each cell of a grid of losses goes to the cell's two ends so that its mass under the other
//! distribution stays the same: then δ of the grid is a chord above δ, and an upper bound. The distribution of the sum
//! of `T` losses is a power of its Fourier transform on a window that all but a share of 1e-5 δ lies in; that share
//! counts as lost. Both directions, one client more and one less, are worked out, and the larger ε counts. Cells are
//! halved until ε moves by less than 2e-4 of itself.

use fedgenie_core::math::float::{cos, erfc, exp, expm1, ln, ln_1p, sin, sqrt};
use fedgenie_core::math::special::{erfcx, normal_cdf, normal_tail};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Below it rounding would show.
pub const LEAST_DELTA: f64 = 1e-9;

/// Where losses of one round end: so many standard deviations from the means, with a mass of 1e-19.
const FAR: f64 = 9.0;

/// The largest loss of one round that is worked with.
const LARGEST: f64 = 600.0;

/// Cells of the grid, at first and at most: powers of two.
const CELLS: [u32; 2] = [13, 18];

/// The least ε of so many rounds, or an upper bound within 1e-3 of it where clients are drawn with probability `q`.
pub fn epsilon(q: f64, z: f64, rounds: u64, delta: f64) -> f64 {
    let unsampled = gaussian(sqrt(rounds as f64) / z, delta);
    if q == 1.0 || unsampled == 0.0 || (Mixture { q, z }).loss(1.0 + FAR * z) > LARGEST {
        return unsampled;
    }
    let of = |direction| {
        let mut before = f64::INFINITY;
        for bits in CELLS[0]..=CELLS[1] {
            let found = composed(Mixture { q, z }, direction, rounds, delta, 1 << bits);
            if (before - found).abs() <= 2e-4 * found {
                return found;
            }
            before = found;
        }
        before
    };
    of(Direction::Less).max(of(Direction::More)).min(unsampled)
}

/// ε of a Gaussian mechanism of sensitivity μ and deviation 1.
fn gaussian(mu: f64, delta: f64) -> f64 {
    // e^ε Φ(−b) = e^(−a²/2)·erfcx(b/√2)/2, as b² − a² = 2ε.
    let found = |epsilon: f64| {
        let (a, b) = (mu / 2.0 - epsilon / mu, mu / 2.0 + epsilon / mu);
        0.5 * (erfc(-a * FRAC_1_SQRT_2) - exp(-a * a / 2.0) * erfcx(b * FRAC_1_SQRT_2))
    };
    if found(0.0) <= delta {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, mu);
    while found(high) > delta {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if found(middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// Which of the neighbours the output is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The one with the client.
    Less,
    /// The one without.
    More,
}

/// `(1 − q)N(0, z²) + qN(1, z²)` beside `N(0, z²)`.
#[derive(Clone, Copy, Debug)]
struct Mixture {
    q: f64,
    z: f64,
}

impl Mixture {
    /// The logarithm of the density of the mixture over that of the other.
    fn loss(&self, x: f64) -> f64 {
        let Self { q, z } = *self;
        let exponent = (2.0 * x - 1.0) / (2.0 * z * z);
        if exponent > 0.0 { exponent + ln(q + (1.0 - q) * exp(-exponent)) } else { ln_1p(q * expm1(exponent)) }
    }

    /// Where the loss has a value.
    fn place(&self, loss: f64) -> f64 {
        let Self { q, z } = *self;
        let ratio = expm1(loss) / q;
        if ratio <= -1.0 { f64::NEG_INFINITY } else { z * z * ln_1p(ratio) + 0.5 }
    }

    /// The mass of the mixture and of the other between two places.
    fn masses(&self, from: f64, to: f64) -> [f64; 2] {
        let Self { q, z } = *self;
        let between = |mean: f64| {
            let [from, to] = [from, to].map(|place| (place - mean) / z);
            if from > 0.0 { normal_tail(from) - normal_tail(to) } else { normal_cdf(to) - normal_cdf(from) }
        };
        let (near, far) = (between(0.0), between(1.0));
        [(1.0 - q) * near + q * far, near]
    }

    /// The masses of the output's distribution and of its neighbour's where the loss is between two values.
    fn cell(&self, direction: Direction, from: f64, to: f64) -> [f64; 2] {
        match direction {
            Direction::Less => self.masses(self.place(from), self.place(to)),
            Direction::More => {
                let [mixture, other] = self.masses(self.place(-to), self.place(-from));
                [other, mixture]
            }
        }
    }

    /// The losses of all but a negligible mass.
    fn support(&self, direction: Direction) -> [f64; 2] {
        match direction {
            Direction::Less => [self.loss(-FAR * self.z), self.loss(1.0 + FAR * self.z)],
            Direction::More => [-self.loss(FAR * self.z), -ln_1p(-self.q)],
        }
    }
}

/// Masses at consecutive multiples of a step, and the mass of an infinite loss.
struct Masses {
    step: f64,
    first: i64,
    masses: Vec<f64>,
    infinite: f64,
}

impl Masses {
    fn of(mixture: Mixture, direction: Direction, step: f64) -> Self {
        let [low, high] = mixture.support(direction);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let at = |index: i64| index as f64 * step;
        let mut masses = vec![0.0; (last - first + 1) as usize];
        // Losses below the grid are taken to be at its beginning.
        masses[0] = mixture.cell(direction, f64::NEG_INFINITY, at(first))[0];
        for (place, index) in (first..last).enumerate() {
            let [mass, other] = mixture.cell(direction, at(index), at(index + 1));
            let lower = ((other * exp(at(index + 1)) - mass) / expm1(step)).clamp(0.0, mass);
            masses[place] += lower;
            masses[place + 1] += mass - lower;
        }
        let [mass, other] = mixture.cell(direction, at(last), f64::INFINITY);
        let finite = (other * exp(at(last))).min(mass);
        *masses.last_mut().expect("a grid has a place") += finite;
        Self { step, first, masses, infinite: mass - finite }
    }

    /// The logarithm of the mean of `e^(λ·loss)`, of finite losses.
    fn cumulant(&self, lambda: f64) -> f64 {
        let exponents = (self.first..).zip(&self.masses).filter(|(_, mass)| **mass > 0.0);
        let exponents: Vec<f64> =
            exponents.map(|(index, mass)| lambda * index as f64 * self.step + ln(*mass)).collect();
        let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + ln(exponents.iter().map(|exponent| exp(exponent - largest)).sum())
    }
}

/// An upper bound of ε by a grid of so many cells.
fn composed(mixture: Mixture, direction: Direction, rounds: u64, delta: f64, cells: usize) -> f64 {
    let count = rounds as f64;
    let [low, high] = mixture.support(direction);
    let coarse = Masses::of(mixture, direction, (high - low) / 4096.0);
    let beyond = ln(1e-5 * delta);
    // Markov's bound, for the best of many λ, upwards and downwards.
    let lambdas = (-24..=48).map(|power| exp(0.25 * f64::from(power)));
    let [mut top, mut bottom] = [(f64::INFINITY, 0.0), (f64::NEG_INFINITY, 0.0)];
    for lambda in lambdas {
        let above = (count * coarse.cumulant(lambda) - beyond) / lambda;
        if above < top.0 {
            top = (above, lambda);
        }
        let below = -(count * coarse.cumulant(-lambda) - beyond) / lambda;
        if below > bottom.0 {
            bottom = (below, lambda);
        }
    }
    let step = (top.0 - bottom.0) / cells as f64;
    let one = Masses::of(mixture, direction, step);
    let first = (bottom.0 / step).floor() as i64;
    // What lies outside of the window may hide anywhere in it; so may rounding, which grows with the rounds.
    let outside = exp((count * one.cumulant(top.1) - top.1 * (first + cells as i64 - 1) as f64 * step).min(0.0));
    let lost = outside + 2e-16 * count - expm1(count * ln_1p(-one.infinite));
    let (mut real, mut imaginary) = (vec![0.0; cells], vec![0.0; cells]);
    for (index, mass) in (one.first..).zip(&one.masses) {
        real[index.rem_euclid(cells as i64) as usize] += mass;
    }
    transform(&mut real, &mut imaginary);
    real.iter_mut().zip(&mut imaginary).for_each(|(real, imaginary)| {
        // The conjugate, of which the transform is the way back.
        let [power, of_imaginary] = power([*real, *imaginary], rounds);
        (*real, *imaginary) = (power, -of_imaginary);
    });
    transform(&mut real, &mut imaginary);
    let mass = |index: i64| real[index.rem_euclid(cells as i64) as usize] / cells as f64;
    smallest((first..first + cells as i64).rev().map(|index| (index as f64 * step, mass(index))), step, delta - lost)
}

/// The smallest ε whose δ is within what is left: of losses from the largest down, with their masses.
fn smallest(losses: impl Iterator<Item = (f64, f64)>, step: f64, left: f64) -> f64 {
    if left <= 0.0 {
        return f64::INFINITY;
    }
    // Mass above ε, and the neighbour's.
    let [mut own, mut other] = [0.0; 2];
    for (loss, mass) in losses {
        own += mass;
        other += mass * exp(-loss);
        let below = loss - step;
        if own - exp(below) * other > left {
            return ln((own - left) / other).clamp(below, loss).max(0.0);
        }
        if below <= 0.0 {
            break;
        }
    }
    0.0
}

/// A power of a complex number, by squaring.
fn power([mut real, mut imaginary]: [f64; 2], mut exponent: u64) -> [f64; 2] {
    let times = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a * c - b * d, a * d + b * c];
    let mut product = [1.0, 0.0];
    while exponent > 0 {
        if exponent % 2 == 1 {
            product = times(product, [real, imaginary]);
        }
        [real, imaginary] = times([real, imaginary], [real, imaginary]);
        exponent /= 2;
    }
    product
}

/// The discrete Fourier transform, of a power of two of numbers: the one of this program, because bits of a library's
/// depend on the processor.
fn transform(real: &mut [f64], imaginary: &mut [f64]) {
    let count = real.len();
    let bits = count.trailing_zeros();
    for index in 0..count {
        let other = index.reverse_bits() >> (usize::BITS - bits);
        if other > index {
            real.swap(index, other);
            imaginary.swap(index, other);
        }
    }
    let angle = |place: usize| -2.0 * PI * place as f64 / count as f64;
    let roots: Vec<[f64; 2]> = (0..count / 2).map(|place| [cos(angle(place)), sin(angle(place))]).collect();
    let mut half = 1;
    while half < count {
        for begin in (0..count).step_by(2 * half) {
            for place in 0..half {
                let [cosine, sine] = roots[place * (count / (2 * half))];
                let (one, other) = (begin + place, begin + place + half);
                let (a, b) =
                    (real[other] * cosine - imaginary[other] * sine, real[other] * sine + imaginary[other] * cosine);
                (real[other], imaginary[other]) = (real[one] - a, imaginary[one] - b);
                (real[one], imaginary[one]) = (real[one] + a, imaginary[one] + b);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests;
