//! A step of all parameters, part by part.

use super::pass::Pass;
use super::rule::Rule;
use super::{Decay, Proximal};
use std::ops::Range;

/// A step that parts of the parameters make one after the other, each once.
pub(crate) struct Step<'a> {
    pub rule: Rule,
    pub is_first: bool,
    /// Factor of the gradient.
    pub scale: f32,
    /// With a weight that is not zero.
    pub proximal: Option<Proximal<'a>>,
    /// Weight decay of all parameters.
    pub decay: f64,
    /// That of parts, beside it.
    pub decays: &'a [Decay],
    /// As long as the parameters, where the rule has them.
    pub moments: [Option<&'a mut [f32]>; 2],
}

impl Step<'_> {
    /// Moves the parameters from a number on, which have these slopes.
    ///
    /// # Panics
    /// If the lengths differ, or there are fewer moments or parameters in the model that was sent.
    pub fn take(&mut self, first: usize, parameters: &mut [f32], gradient: &[f32]) {
        assert_eq!(gradient.len(), parameters.len(), "a gradient has one slope for each parameter");
        let end = first + parameters.len();
        let mut done = first;
        let decays = self.decays;
        let mut part = |to: usize, further: f64| {
            let range = done..to.clamp(done, end);
            done = range.end;
            if !range.is_empty() {
                let own = range.start - first..range.end - first;
                self.pass(range, further, &mut parameters[own.clone()], &gradient[own]);
            }
        };
        for Decay { range, rate } in decays {
            part(range.start, 0.0);
            part(range.end, *rate);
        }
        part(end, 0.0);
    }

    /// Moves a part that decays in the same way.
    fn pass(&mut self, range: Range<usize>, further: f64, parameters: &mut [f32], gradient: &[f32]) {
        let Self { rule, is_first, scale, proximal, .. } = *self;
        let decay = (self.decay + further) as f32;
        // Without a proximal term, any slice stands in for the start: it is not read, or multiplied by 0.
        let (pull, start) = proximal.map_or((0.0, gradient), |proximal| (proximal.mu, &proximal.start[range.clone()]));
        let [one, two] = &mut self.moments;
        let moments = [one, two].map(|buffer| match buffer {
            Some(buffer) => &mut buffer[range.clone()],
            None => &mut [],
        });
        let pass = Pass { parameters, gradient, start, scale, pull, decay };
        if proximal.is_some() || decay != 0.0 {
            pass.run::<true>(rule, is_first, moments);
        } else {
            pass.run::<false>(rule, is_first, moments);
        }
    }
}
