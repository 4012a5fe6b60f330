//! One client's training.

use super::Shape;
use super::pull::{AddPull, Pull, Pulled};
use super::step::{Scratch, Step};
use super::weights::{Plan, fill_up, take_out, turn};
use crate::lanes::{Kernel, Path, run};
use crate::matrix_factorisation::{
    self as mf, BprTraining, Footprint, Job, LocalRows, Moment, RowModel, RowRegularisation, RowStep, Triple, is_finite,
};
use crate::trainer::optimizer::{Moments, Proximal, Regularisation};

/// A job's result. Keeps its buffers from job to job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Statistics of its rows and of its losses.
    pub rows: mf::Outcome,
    /// All weights, in the order of files.
    pub weights: Vec<f32>,
}

/// A thread's buffers from job to job.
#[derive(Default)]
pub struct Worker {
    rows: mf::Worker,
    networks: Networks,
}

/// The networks during a job.
#[derive(Default)]
struct Networks {
    shape: Option<Shape>,
    weights: Vec<f32>,
    starts: Vec<f32>,
    /// Corrections of weights that travel; empty without any.
    corrections: Vec<f32>,
    gradient: Vec<f32>,
    turned: Vec<f32>,
    moments: Moments,
    scratch: Scratch,
    pulled: Pulled,
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { rows: mf::Worker::on(path), networks: Networks::default() }
    }

    /// Trains one job, with these weights of all networks, which the optimizer treats as it treats rows.
    ///
    /// # Panics
    /// As [`BprTraining::train`], or if the weights are not as many as the shape says.
    pub fn train(
        &mut self,
        shape: &Shape,
        settings: &BprTraining,
        (job, weights): (&Job<'_>, &[f32]),
        outcome: &mut Outcome,
    ) {
        self.train_pulled(shape, settings, (job, weights, None), outcome);
    }

    /// As [`Worker::train`], with the rows of the job's positives pulled towards others.
    ///
    /// # Panics
    /// As [`Worker::train`], or if an item has no row to be pulled to.
    pub fn train_pulled(
        &mut self,
        shape: &Shape,
        settings: &BprTraining,
        (job, weights, pull): (&Job<'_>, &[f32], Option<Pull<'_>>),
        outcome: &mut Outcome,
    ) {
        assert_eq!(weights.len(), shape.weights(), "the networks have all their weights");
        self.networks.begin(shape, settings, (job, weights));
        self.networks.pulled.begin(pull, job, settings.dimensions);
        self.rows.train_with(&mut self.networks, settings, job, &mut outcome.rows);
        outcome.weights.clear();
        take_out(shape, &self.networks.weights, &mut outcome.weights);
        if !is_finite(&outcome.weights) {
            outcome.rows.diverged = true;
            outcome.weights.iter_mut().filter(|weight| weight.is_nan()).for_each(|weight| *weight = f32::NAN);
        }
    }
}

impl Networks {
    fn begin(&mut self, shape: &Shape, settings: &BprTraining, (job, weights): (&Job<'_>, &[f32])) {
        fill_up(shape, weights, &mut self.weights);
        self.starts.clear();
        self.starts.extend_from_slice(&self.weights);
        self.gradient.resize(self.weights.len(), 0.0);
        settings.optimizer.begin(self.weights.len(), &mut self.moments);
        let corrections = job.correction.map_or(&[][..], |correction| correction.weights);
        fill_up(shape, corrections, &mut self.corrections);
        self.shape = Some(*shape);
        self.turn();
    }

    fn turn(&mut self) {
        let plan = Plan::of(&self.shape.expect("a job has begun"));
        self.turned.resize(2 * plan.side(), 0.0);
        let sides = self.weights[..2 * plan.side()].chunks_exact(plan.side());
        sides.zip(self.turned.chunks_exact_mut(plan.side())).for_each(|(side, turned)| turn(plan, side, turned));
    }
}

impl RowModel for Networks {
    fn footprint(&self) -> Footprint {
        if self.pulled.is_some() { Footprint::default().with_all_positives() } else { Footprint::default() }
    }

    fn meet(&mut self, job: &Job<'_>, _triplets: &[Triple], rows: (&mut LocalRows, usize), step: u64) {
        self.pulled.meet(job, rows, step);
    }

    fn step(
        &mut self,
        path: Path,
        triplets: &[Triple],
        losses: &mut [f32],
        rows: &mut LocalRows,
        Moment { settings, rule, lr_factor }: Moment<'_>,
    ) {
        let Self { shape, weights, starts, corrections, gradient, turned, moments, scratch, pulled } = self;
        let (shape, extra) = (shape.expect("a job has begun"), settings.extra);
        run(path, Step { shape, triplets, losses, rows, weights, turned, gradient, scratch });
        run(path, AddPull { pulled, rows });
        let others = if extra.clip.is_some() { square(gradient) } else { 0.0 };
        let scale = run(path, MoveRows { rows, extra, rule, others });
        if scale != 1.0 {
            gradient.iter_mut().for_each(|slope| *slope *= scale);
        }
        let extra = Regularisation {
            correction: (!corrections.is_empty()).then_some(corrections),
            proximal: Some(Proximal { mu: extra.proximal, start: starts }),
            ..Regularisation::default()
        };
        settings.optimizer.step(weights, gradient, lr_factor, &extra, moments);
        self.turn();
    }
}

/// The square of the norm of the networks' slopes.
fn square(gradient: &[f32]) -> f64 {
    let norm = crate::trainer::optimizer::norm(gradient);
    norm * norm
}

/// Moves the rows that were met; returns the factor by which all slopes, of rows and networks, are scaled.
struct MoveRows<'a> {
    rows: &'a mut LocalRows,
    extra: RowRegularisation,
    rule: RowStep,
    others: f64,
}

impl Kernel for MoveRows<'_> {
    type Output = f32;
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> f32 {
        let Self { rows, extra, rule, others } = self;
        let scale = if extra.is_some() { extra.apply(rows, others) } else { 1.0 };
        match rows.vectors {
            1 => rule.apply::<1>(rows),
            2 => rule.apply::<2>(rows),
            4 => rule.apply::<4>(rows),
            _ => rule.apply::<0>(rows),
        }
        scale
    }
}
