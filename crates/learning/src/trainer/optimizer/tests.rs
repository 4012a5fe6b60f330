//! Steps worked by hand, against the rules in double precision, and against PyTorch.

use super::*;
use approx::assert_relative_eq;
use fedgenie_core::rng::{Purpose, Streams};

const PLAIN: Regularisation<'_> = Regularisation { clip: None, correction: None, proximal: None, decays: &[] };

const fn sgd(lr: f64, momentum: f64, nesterov: bool, weight_decay: f64, dampening: f64) -> OptimizerConfig {
    OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay, dampening }
}

const fn adam(lr: f64, [beta1, beta2]: [f64; 2], epsilon: f64, weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay }
}

const fn adamw(lr: f64, [beta1, beta2]: [f64; 2], epsilon: f64, weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay }
}

/// A single parameter that starts at 1, after each of some gradients.
fn path(config: &OptimizerConfig, gradients: &[f32], mu: f32) -> Vec<f32> {
    let optimizer = Optimizer::new(config).unwrap();
    let (mut moments, mut parameters) = (Moments::default(), [1.0]);
    optimizer.begin(1, &mut moments);
    let extra = Regularisation { proximal: Some(Proximal { mu, start: &[1.0] }), ..PLAIN };
    let step = |&slope: &f32| {
        optimizer.step(&mut parameters, &mut [slope], 1.0, &extra, &mut moments);
        parameters[0]
    };
    gradients.iter().map(step).collect()
}

#[test]
fn descent_by_hand() {
    assert_eq!(path(&sgd(0.5, 0.0, false, 0.0, 0.0), &[1.0, 2.0, -1.0], 0.0), [0.5, -0.5, 0.0]);
    // Slopes 1 + 1/2, 1 + 1/8, 1 − 5/32.
    assert_eq!(path(&sgd(0.5, 0.0, false, 0.5, 0.0), &[1.0; 3], 0.0), [0.25, -0.3125, -0.734_375]);
    // Slopes 1, 1 − 1/4, 1 − 7/16: the pull is towards 1.
    assert_eq!(path(&sgd(0.5, 0.0, false, 0.0, 0.0), &[1.0; 3], 0.5), [0.5, 0.125, -0.156_25]);
}

#[test]
fn a_correction_comes_after_clipping_and_before_pull_and_decay() {
    // ‖(3, −4)‖ = 5 is clipped to 5/2: (1.5, −2), corrected (2.5, −1); pull 2·(w − s) = (−1, 2), decay w/2 = (0.25, 1).
    let optimizer = Optimizer::new(&sgd(0.5, 0.0, false, 0.5, 0.0)).unwrap();
    let (mut moments, mut parameters) = (Moments::default(), [0.5, 2.0]);
    optimizer.begin(2, &mut moments);
    let proximal = Some(Proximal { mu: 2.0, start: &[1.0, 1.0] });
    let extra = Regularisation { clip: Some(2.5), correction: Some(&[1.0, 1.0]), proximal, decays: &[] };
    optimizer.step(&mut parameters, &mut [3.0, -4.0], 1.0, &extra, &mut moments);
    for (found, expected) in parameters.iter().zip([0.5 - 0.5 * 1.75, 2.0 - 0.5 * 2.0]) {
        assert_relative_eq!(*found, expected, max_relative = 1e-6);
    }
}

#[test]
fn momentum_by_hand() {
    // Buffer 1, 3/2, 7/4.
    assert_eq!(path(&sgd(0.5, 0.5, false, 0.0, 0.0), &[1.0; 3], 0.0), [0.5, -0.25, -1.125]);
    // Buffer 1 (the first gradient is not dampened), 1/2 + 1/2, 1/2 + 1/2.
    assert_eq!(path(&sgd(0.5, 0.5, false, 0.0, 0.5), &[1.0; 3], 0.0), [0.5, 0.0, -0.5]);
    // Directions 1 + 1/2, 1 + 3/4, 1 + 7/8.
    assert_eq!(path(&sgd(0.5, 0.5, true, 0.0, 0.0), &[1.0; 3], 0.0), [0.25, -0.625, -1.562_5]);
    // Slopes 3/2, 9/8, 21/32; buffer 3/2, 15/8, 51/32.
    let expected = [0.25, -0.6875, -1.484_375];
    assert_eq!(path(&sgd(0.5, 0.5, false, 0.5, 0.0), &[1.0; 3], 0.0), expected);
}

#[test]
fn adam_by_hand() {
    // Means 1/2, −1/4, 11/8, corrected by 1/2, 3/4, 7/8: 1, −1/3, 11/7. Mean squares corrected: 1, 1, 165/37. ε = 1.
    let steps = [1.0 / 2.0, -1.0 / 6.0, 11.0 / 7.0 / ((165.0_f64 / 37.0).sqrt() + 1.0)];
    let found = path(&adam(0.5, [0.5, 0.75], 1.0, 0.0), &[1.0, -1.0, 3.0], 0.0);
    let mut expected = 1.0;
    for (&found, step) in found.iter().zip(steps) {
        expected -= 0.5 * step;
        assert_relative_eq!(f64::from(found), expected, max_relative = 1e-6);
    }
    // The decay of 1/4 of each step's start is apart from the moments.
    let found = path(&adamw(0.5, [0.5, 0.75], 1.0, 0.5), &[1.0, -1.0, 3.0], 0.0);
    let mut expected = 1.0;
    for (&found, step) in found.iter().zip(steps) {
        expected = 0.75 * expected - 0.5 * step;
        assert_relative_eq!(f64::from(found), expected, max_relative = 1e-6);
    }
    // With decay in the gradient, the first step still has the length lr/(1 + ε/|g|): here g is 1 + 1.
    assert_eq!(path(&adam(0.5, [0.5, 0.75], 2.0, 1.0), &[1.0], 0.0), [0.75]);
}

#[test]
fn gradients_are_clipped_before_anything_is_added() {
    let optimizer = Optimizer::new(&sgd(1.0, 0.0, false, 1.0, 0.0)).unwrap();
    let (mut moments, mut parameters) = (Moments::default(), [1.0, -1.0]);
    optimizer.begin(2, &mut moments);
    let proximal = Some(Proximal { mu: 2.0, start: &[0.0, 0.0] });
    optimizer.step(
        &mut parameters,
        &mut [3.0, -4.0],
        1.0,
        &Regularisation { clip: Some(1.0), proximal, ..PLAIN },
        &mut moments,
    );
    // 3/5 + 2 + 1 and −4/5 − 2 − 1.
    assert_relative_eq!(parameters[0], 1.0 - 3.6, max_relative = 1e-6);
    assert_relative_eq!(parameters[1], -1.0 + 3.8, max_relative = 1e-6);
    assert_eq!(clip_factor(5.0, 10.0), 1.0);
    assert_eq!(clip_factor(5.0, 1.0), (1.0 / 5.000_001) as f32);
    assert_eq!(clip_factor(f64::NAN, 1.0), 1.0);
}

#[test]
fn the_norm_has_16_sums() {
    for length in [0, 1, 15, 16, 17, 100] {
        let mut rng = Streams::new(1).stream(Purpose::Example, length, 0);
        let numbers: Vec<f32> = (0..length).map(|_| rng.uniform() as f32 - 0.5).collect();
        let mut sums = [0.0; 16];
        numbers.iter().enumerate().for_each(|(j, &x)| sums[j % 16] += f64::from(x) * f64::from(x));
        let eight: Vec<f64> = (0..8).map(|i| sums[i] + sums[i + 8]).collect();
        let four: Vec<f64> = (0..4).map(|i| eight[i] + eight[i + 4]).collect();
        let total: f64 = (four[0] + four[2]) + (four[1] + four[3]);
        assert_eq!(norm(&numbers).to_bits(), total.sqrt().to_bits());
    }
    // Squares that overflow or vanish in single precision.
    assert_eq!(norm(&[3e30, 4e30]) as f32, 5e30);
    assert_eq!(norm(&[3e-30, 4e-30]) as f32, 5e-30);
}

/// The rules of the module in double precision, for one parameter.
struct Reference<'a> {
    config: &'a OptimizerConfig,
    first: f64,
    second: f64,
    step: i32,
}

impl Reference<'_> {
    fn step(&mut self, w: f64, mut g: f64, factor: f64) -> f64 {
        self.step += 1;
        match *self.config {
            OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay, dampening } => {
                g += weight_decay * w;
                self.first = if self.step == 1 { g } else { momentum * self.first + (1.0 - dampening) * g };
                let direction = match (momentum == 0.0, nesterov) {
                    (true, _) => g,
                    (false, true) => g + momentum * self.first,
                    (false, false) => self.first,
                };
                w - lr * factor * direction
            }
            OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                self.adam(w, g + weight_decay * w, lr * factor, [beta1, beta2], epsilon)
            }
            OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay } => {
                let w = w - lr * factor * weight_decay * w;
                self.adam(w, g, lr * factor, [beta1, beta2], epsilon)
            }
        }
    }

    fn adam(&mut self, w: f64, g: f64, lr: f64, [beta1, beta2]: [f64; 2], epsilon: f64) -> f64 {
        self.first = beta1 * self.first + (1.0 - beta1) * g;
        self.second = beta2 * self.second + (1.0 - beta2) * g * g;
        let mean = self.first / (1.0 - beta1.powi(self.step));
        let square = self.second / (1.0 - beta2.powi(self.step));
        w - lr * mean / (square.sqrt() + epsilon)
    }
}

#[test]
fn fifty_steps_agree_with_double_precision() {
    const LENGTH: usize = 37;
    let betas = [0.9, 0.999];
    let mut moments = Moments::default();
    for (case, config) in [
        sgd(0.05, 0.0, false, 0.0, 0.0),
        sgd(0.05, 0.0, false, 0.01, 0.0),
        sgd(0.05, 0.9, false, 0.01, 0.0),
        sgd(0.05, 0.9, false, 0.0, 0.3),
        sgd(0.05, 0.9, true, 0.01, 0.0),
        adam(0.01, betas, 1e-8, 0.0),
        adam(0.01, betas, 1e-3, 0.1),
        adamw(0.01, betas, 1e-8, 0.1),
        adamw(0.01, [0.0, 0.5], 1e-3, 0.1),
    ]
    .iter()
    .enumerate()
    {
        for (clip, mu) in [(None, 0.0), (Some(1.5), 0.0), (None, 0.1), (Some(1.5), 0.1)] {
            let mut rng = Streams::new(1).stream(Purpose::Example, case as u32, 0);
            let start: Vec<f32> = (0..LENGTH).map(|_| rng.uniform() as f32 + 0.5).collect();
            let optimizer = Optimizer::new(config).unwrap();
            optimizer.begin(LENGTH, &mut moments);
            let mut parameters = start.clone();
            let mut exact: Vec<f64> = start.iter().map(|&w| w.into()).collect();
            let mut references: Vec<Reference<'_>> =
                (0..LENGTH).map(|_| Reference { config, first: 0.0, second: 0.0, step: 0 }).collect();
            for _ in 0..50 {
                let factor = rng.uniform() as f32;
                // Away from 0, where Adam's first steps have the gradient's sign.
                let gradient: Vec<f32> = (0..LENGTH).map(|_| 0.1 + 0.5 * rng.uniform() as f32).collect();
                let extra = Regularisation { clip, proximal: Some(Proximal { mu, start: &start }), ..PLAIN };
                optimizer.step(&mut parameters, &mut gradient.clone(), factor, &extra, &mut moments);
                let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
                let scale = clip.map_or(1.0, |clip| (f64::from(clip) / (norm + 1e-6)).min(1.0));
                for index in 0..LENGTH {
                    let w = exact[index];
                    let slope = scale * f64::from(gradient[index]) + f64::from(mu) * (w - f64::from(start[index]));
                    exact[index] = references[index].step(w, slope, factor.into());
                }
            }
            for (&found, &exact) in parameters.iter().zip(&exact) {
                assert!((f64::from(found) - exact).abs() < 2e-5, "{config:?}, {clip:?}, {mu}: {found} for {exact}");
            }
        }
    }
}

/// PyTorch 2.15 on a processor, in single precision: `w = tensor([0.5, -1.25, 2, 0])`, five steps with
/// `w.grad = tensor([((7*t + 3*i) % 11 - 5) / 4 for i in range(4)])` for `t` from 1, then `clip_grad_norm_([w], clip)`,
/// then `w.grad += mu * (w - start)`, then `step()`; from `t = 4` on with half the learning rate.
#[test]
fn steps_are_those_of_pytorch() {
    let start = [0.5, -1.25, 2.0, 0.0];
    let betas = [0.9, 0.999];
    let half = [0.8, 0.95];
    for (config, clip, mu, expected) in [
        (sgd(0.1, 0.0, false, 0.0, 0.0), None, 0.0, [0.400000006, -1.37499988, 1.98750007, 0.100000001]),
        (sgd(0.1, 0.0, false, 0.01, 0.0), None, 0.0, [0.39818424, -1.36963308, 1.97946274, 0.0998688638]),
        (sgd(0.1, 0.9, false, 0.01, 0.25), None, 0.0, [0.262821257, -1.68146157, 2.08203721, 0.160352767]),
        (sgd(0.1, 0.9, true, 0.0, 0.0), Some(1.0), 0.1, [0.303724825, -1.58842432, 2.01992154, 0.191718206]),
        (adam(0.1, betas, 1e-8, 0.01), Some(1.0), 0.0, [0.316700518, -1.49465632, 2.0669775, 0.120354332]),
        (adam(0.05, half, 1e-3, 0.0), None, 0.0, [0.411514342, -1.36547542, 2.03465605, 0.0575457811]),
        (adamw(0.1, betas, 1e-8, 0.05), None, 0.1, [0.312350124, -1.4643271, 2.03513694, 0.113423675]),
    ] {
        let optimizer = Optimizer::new(&config).unwrap();
        let mut moments = Moments::default();
        optimizer.begin(4, &mut moments);
        let mut parameters = start;
        for t in 1..=5 {
            let gradient = [0, 1, 2, 3].map(|i: i16| f32::from((7 * t + 3 * i) % 11 - 5) / 4.0);
            let extra = Regularisation { clip, proximal: Some(Proximal { mu, start: &start }), ..PLAIN };
            optimizer.step(&mut parameters, &mut gradient.clone(), if t < 4 { 1.0 } else { 0.5 }, &extra, &mut moments);
        }
        for (found, expected) in parameters.into_iter().zip(expected) {
            // A few roundings of numbers near 1.
            assert!((f64::from(found) - expected).abs() <= 3e-7, "{config:?}: {found} for {expected}");
        }
    }
}

#[test]
fn parts_move_as_all_at_once() {
    const LENGTH: usize = 101;
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let mut numbers = || Vec::from_iter((0..LENGTH).map(|_| rng.uniform() as f32 - 0.5));
    let (sent, start) = (numbers(), numbers());
    let gradients = [numbers(), numbers(), numbers()];
    let decays = [Decay { range: 7..20, rate: 0.3 }, Decay { range: 40..90, rate: 0.1 }];
    for config in [
        sgd(0.1, 0.0, false, 0.0, 0.0),
        sgd(0.1, 0.9, true, 0.0, 0.0),
        sgd(0.1, 0.9, false, 0.2, 0.3),
        adam(0.1, [0.9, 0.999], 1e-3, 0.1),
    ] {
        let optimizer = Optimizer::new(&config).unwrap();
        for (mu, decays) in [(0.0, &[][..]), (0.5, &decays)] {
            let extra = Regularisation { proximal: Some(Proximal { mu, start: &sent }), decays, ..PLAIN };
            assert!(extra.is_by_parts() && !Regularisation { clip: Some(1.0), ..extra }.is_by_parts());
            let mut moments = [Moments::default(), Moments::default()];
            moments.iter_mut().for_each(|moments| optimizer.begin(LENGTH, moments));
            let [mut whole, mut parts] = [start.clone(), start.clone()];
            for gradient in &gradients {
                optimizer.step(&mut whole, &mut gradient.clone(), 0.5, &extra, &mut moments[0]);
                let step = &mut optimizer.next_step(0.5, &extra, &mut moments[1]);
                for range in [60..LENGTH, 15..60, 15..15, 0..15] {
                    step.take(range.start, &mut parts[range.clone()], &gradient[range]);
                }
            }
            let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&parts), bits(&whole), "{config:?}, {mu}");
        }
    }
}

#[test]
fn plain_descent_is_one_product_and_one_difference() {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let mut numbers = || Vec::from_iter((0..1_000).map(|_| rng.uniform() as f32 - 0.5));
    let (mut parameters, gradient) = (numbers(), numbers());
    let expected: Vec<u32> = parameters.iter().zip(&gradient).map(|(w, g)| (w - 5e-3_f32 * g).to_bits()).collect();
    let optimizer = Optimizer::new(&sgd(5e-3, 0.0, false, 0.0, 0.0)).unwrap();
    optimizer.step(&mut parameters, &mut gradient.clone(), 1.0, &PLAIN, &mut Moments::default());
    assert_eq!(parameters.iter().map(|w| w.to_bits()).collect::<Vec<_>>(), expected);
}

#[test]
fn a_job_knows_nothing_of_the_one_before() {
    for config in [sgd(0.1, 0.9, false, 0.0, 0.5), adam(0.1, [0.9, 0.999], 1e-8, 0.0)] {
        let optimizer = Optimizer::new(&config).unwrap();
        let mut moments = Moments::default();
        let job = |moments: &mut Moments, length: usize| {
            optimizer.begin(length, moments);
            let mut parameters = vec![1.0; length];
            for slope in [1.0, -2.0, 0.5] {
                optimizer.step(&mut parameters, &mut vec![slope; length], 1.0, &PLAIN, moments);
            }
            parameters[0]
        };
        let first = job(&mut moments, 20);
        let buffer = moments.first.as_ptr();
        assert_eq!(job(&mut moments, 7), first);
        assert_eq!(job(&mut moments, 20), first);
        assert_eq!(moments.first.as_ptr(), buffer, "the buffer was long enough");
    }
}
