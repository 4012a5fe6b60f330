//! A step on a part of the parameters, each treated alone.

use super::rule::{Adam, Descent, Momentum, Rule};
use crate::lanes::{Kernel, Path, run};

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

/// A step of a rule on the processor's path.
struct RulePass<'a, R, const ADJUSTED: bool> {
    pass: Pass<'a>,
    rule: R,
    moments: [&'a mut [f32]; 2],
    is_first: bool,
}

/// Whether a momentum of Nesterov's is known when compiled.
struct WithMomentum<const NESTEROV: bool>(Momentum<f32>);

impl<const ADJUSTED: bool> Kernel for RulePass<'_, Descent<f32>, ADJUSTED> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        self.pass.descend::<ADJUSTED>(self.rule);
    }
}

impl<const ADJUSTED: bool, const NESTEROV: bool> Kernel for RulePass<'_, WithMomentum<NESTEROV>, ADJUSTED> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let [buffer, _] = self.moments;
        self.pass.descend_with::<ADJUSTED, NESTEROV>(self.rule.0, self.is_first, buffer);
    }
}

/// Adam divides and takes roots: worth the processor's widest vectors.
impl<const ADJUSTED: bool> Kernel for RulePass<'_, Adam<f32>, ADJUSTED> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        self.pass.adam::<ADJUSTED>(self.rule, self.moments);
    }
}

impl Pass<'_> {
    /// Makes the step; `first` and `second` are the moments of these parameters, empty where the rule has no moments.
    pub fn run<const ADJUSTED: bool>(self, rule: Rule, is_first: bool, moments: [&mut [f32]; 2]) {
        let (path, pass) = (Path::detect(), self);
        match rule {
            Rule::Descent(rule) => run(path, RulePass::<'_, _, ADJUSTED> { pass, rule, moments, is_first }),
            Rule::Momentum(rule) if rule.nesterov => {
                let rule = WithMomentum::<true>(rule);
                run(path, RulePass::<'_, _, ADJUSTED> { pass, rule, moments, is_first });
            }
            Rule::Momentum(rule) => {
                let rule = WithMomentum::<false>(rule);
                run(path, RulePass::<'_, _, ADJUSTED> { pass, rule, moments, is_first });
            }
            Rule::Adam(rule) => run(path, RulePass::<'_, _, ADJUSTED> { pass, rule, moments, is_first }),
        }
    }

    #[inline(always)]
    fn descend<const ADJUSTED: bool>(self, rule: Descent<f32>) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        for ((w, &slope), &start) in parameters.iter_mut().zip(gradient).zip(start) {
            *w = rule.step(*w, adjusted::<ADJUSTED>([scale, pull, decay], slope, *w, start));
        }
    }

    #[inline(always)]
    fn descend_with<const ADJUSTED: bool, const NESTEROV: bool>(
        self,
        rule: Momentum<f32>,
        is_first: bool,
        buffer: &mut [f32],
    ) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        // Known when compiled.
        let rule = Momentum { nesterov: NESTEROV, ..rule };
        let shares = rule.shares(is_first);
        for (((w, &slope), &start), buffer) in parameters.iter_mut().zip(gradient).zip(start).zip(buffer) {
            let slope = adjusted::<ADJUSTED>([scale, pull, decay], slope, *w, start);
            *w = rule.step(shares, *w, slope, buffer);
        }
    }

    #[inline(always)]
    fn adam<const ADJUSTED: bool>(self, rule: Adam<f32>, [first, second]: [&mut [f32]; 2]) {
        let Self { parameters, gradient, start, scale, pull, decay } = self;
        let moments = first.iter_mut().zip(second);
        for (((w, &slope), &start), (mean, square)) in parameters.iter_mut().zip(gradient).zip(start).zip(moments) {
            let slope = adjusted::<ADJUSTED>([scale, pull, decay], slope, *w, start);
            *w = rule.step(*w, slope, mean, square);
        }
    }
}

#[inline(always)]
fn adjusted<const ADJUSTED: bool>([scale, pull, decay]: [f32; 3], slope: f32, parameter: f32, start: f32) -> f32 {
    let slope = scale * slope;
    if ADJUSTED { slope + pull * (parameter - start) + decay * parameter } else { slope }
}
