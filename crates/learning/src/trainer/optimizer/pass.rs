//! The arithmetic of a step on a part of the parameters, each treated alone.

use crate::lanes::Kernel;
use fedgenie_core::math::float::sqrt_f32;

/// One pass over a part of the parameters. Whether the gradient is more than scaled is known when compiled, so that
/// plain descent reads nothing else and has the bits of `w − ηg`.
pub(super) struct Pass<'a> {
    pub parameters: &'a mut [f32],
    pub gradient: &'a [f32],
    pub start: &'a [f32],
    pub scale: f32,
    pub pull: f32,
    pub decay: f32,
}

pub(super) struct Momentum {
    pub lr: f32,
    pub keep: f32,
    pub take: f32,
    pub momentum: f32,
}

pub(super) struct Adam {
    pub shrink: f32,
    pub lr: f32,
    pub keep: [f32; 2],
    pub take: [f32; 2],
    pub root: f32,
    pub epsilon: f32,
}

/// A step of Adam, which divides and takes roots: worth the processor's widest vectors.
pub(super) struct AdamPass<'a, const ADJUSTED: bool> {
    pub pass: Pass<'a>,
    pub settings: &'a Adam,
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

impl<const ADJUSTED: bool> Kernel for AdamPass<'_, ADJUSTED> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        self.pass.adam::<ADJUSTED>(self.settings, self.first, self.second);
    }
}

impl Pass<'_> {
    pub fn descend<const ADJUSTED: bool>(self, lr: f32) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        for ((parameter, &slope), &start) in parameters.iter_mut().zip(gradient).zip(start) {
            let w = *parameter;
            let slope = adjusted::<ADJUSTED>([scale, pull, decay], slope, w, start);
            *parameter = w - lr * slope;
        }
    }

    pub fn descend_with_momentum<const ADJUSTED: bool, const NESTEROV: bool>(
        self,
        settings: &Momentum,
        buffer: &mut [f32],
    ) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        let &Momentum { lr, keep, take, momentum } = settings;
        for (((parameter, &slope), &start), buffer) in parameters.iter_mut().zip(gradient).zip(start).zip(buffer) {
            let w = *parameter;
            let slope = adjusted::<ADJUSTED>([scale, pull, decay], slope, w, start);
            let velocity = keep * *buffer + take * slope;
            *buffer = velocity;
            let direction = if NESTEROV { slope + momentum * velocity } else { velocity };
            *parameter = w - lr * direction;
        }
    }

    #[inline(always)]
    fn adam<const ADJUSTED: bool>(self, settings: &Adam, first: &mut [f32], second: &mut [f32]) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        let &Adam { shrink, lr, keep, take, root, epsilon } = settings;
        let moments = first.iter_mut().zip(second);
        for (((parameter, &slope), &start), (a, v)) in parameters.iter_mut().zip(gradient).zip(start).zip(moments) {
            let w = *parameter;
            let slope = adjusted::<ADJUSTED>([scale, pull, decay], slope, w, start);
            let mean = keep[0] * *a + take[0] * slope;
            let square = keep[1] * *v + take[1] * (slope * slope);
            *a = mean;
            *v = square;
            *parameter = shrink * w - lr * mean / (sqrt_f32(square) * root + epsilon);
        }
    }
}

#[inline(always)]
fn adjusted<const ADJUSTED: bool>([scale, pull, decay]: [f32; 3], slope: f32, parameter: f32, start: f32) -> f32 {
    let slope = scale * slope;
    if ADJUSTED { slope + pull * (parameter - start) + decay * parameter } else { slope }
}
