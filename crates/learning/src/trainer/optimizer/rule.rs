//! Update rules of optimizers for each number, in one place for all parameters at once and for rows of tables.

use crate::lanes::Lanes;
use fedgenie_core::math::float::{sqrt, sqrt_f32};
use std::ops::{Add, Div, Mul, Sub};

/// One number, or several side by side: each operation rounds each of them by itself.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The same number in every place.
    fn splat(number: f32) -> Self;

    /// Square roots.
    fn root(self) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn splat(number: f32) -> Self {
        number
    }

    #[inline(always)]
    fn root(self) -> Self {
        sqrt_f32(self)
    }
}

impl Number for Lanes {
    #[inline(always)]
    fn splat(number: f32) -> Self {
        Self::splat(number)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
}

/// Plain descent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent<N> {
    pub lr: N,
}

/// Descent with a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Momentum<N> {
    pub lr: N,
    /// Shares of the buffer and of the slope that make the next buffer, where there was a step before.
    pub keep: N,
    pub take: N,
    pub nesterov: bool,
}

/// Adam and AdamW.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adam<N> {
    pub shrink: N,
    pub lr: N,
    /// Of means, then of squares.
    pub keep: [N; 2],
    pub take: [N; 2],
    pub root: N,
    pub epsilon: N,
}

// Every number is spread by name: `array::map` may be compiled for the oldest processor.
impl Descent<f32> {
    #[inline(always)]
    pub fn spread<N: Number>(self) -> Descent<N> {
        Descent { lr: N::splat(self.lr) }
    }
}

impl Momentum<f32> {
    #[inline(always)]
    pub fn spread<N: Number>(self) -> Momentum<N> {
        let Self { lr, keep, take, nesterov } = self;
        Momentum { lr: N::splat(lr), keep: N::splat(keep), take: N::splat(take), nesterov }
    }
}

impl Adam<f32> {
    #[inline(always)]
    pub fn spread<N: Number>(self) -> Adam<N> {
        let Self { shrink, lr, keep, take, root, epsilon } = self;
        Adam {
            shrink: N::splat(shrink),
            lr: N::splat(lr),
            keep: [N::splat(keep[0]), N::splat(keep[1])],
            take: [N::splat(take[0]), N::splat(take[1])],
            root: N::splat(root),
            epsilon: N::splat(epsilon),
        }
    }
}

impl<N: Number> Descent<N> {
    /// Where `w` moves.
    #[inline(always)]
    pub fn step(&self, w: N, slope: N) -> N {
        w - self.lr * slope
    }
}

impl<N: Number> Momentum<N> {
    /// Where `w` moves; `[keep, take]` are those of this step, which its first step has of its own.
    #[inline(always)]
    pub fn step(&self, [keep, take]: [N; 2], w: N, slope: N, buffer: &mut N) -> N {
        let velocity = keep * *buffer + take * slope;
        *buffer = velocity;
        let direction = if self.nesterov { slope + self.keep * velocity } else { velocity };
        w - self.lr * direction
    }

    /// The shares of a step: the first one forgets the buffer.
    #[inline(always)]
    pub fn shares(&self, is_first: bool) -> [N; 2] {
        if is_first { [N::splat(0.0), N::splat(1.0)] } else { [self.keep, self.take] }
    }
}

impl<N: Number> Adam<N> {
    /// Where `w` moves.
    #[inline(always)]
    pub fn step(&self, w: N, slope: N, mean: &mut N, square: &mut N) -> N {
        *mean = self.keep[0] * *mean + self.take[0] * slope;
        *square = self.keep[1] * *square + self.take[1] * (slope * slope);
        self.shrink * w - self.lr * *mean / (square.root() * self.root + self.epsilon)
    }
}

/// The update rule of one step for each number that it moves, in single precision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Descent(Descent<f32>),
    Momentum(Momentum<f32>),
    Adam(Adam<f32>),
}

/// β₁ᵗ and β₂ᵗ of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Powers(pub [f64; 2]);

impl Default for Powers {
    /// Those before the first step.
    fn default() -> Self {
        Self([1.0; 2])
    }
}

impl Adam<f32> {
    /// Settings of the next step: combined in double precision, rounded once.
    pub fn next([lr, decoupled_decay]: [f64; 2], betas: [f64; 2], epsilon: f32, Powers(powers): &mut Powers) -> Self {
        powers.iter_mut().zip(&betas).for_each(|(power, beta)| *power *= beta);
        Self {
            shrink: (1.0 - lr * decoupled_decay) as f32,
            lr: (lr / (1.0 - powers[0])) as f32,
            keep: betas.map(|beta| beta as f32),
            take: betas.map(|beta| (1.0 - beta) as f32),
            root: (1.0 / sqrt(1.0 - powers[1])) as f32,
            epsilon,
        }
    }
}
