//! Learning-rate schedules: the factor by which the learning rate of a round differs from the optimizer's.
//!
//! # Definition
//! With `W` warm-up rounds, round `r` (from 1) has the factor `r/(W + 1)` if `r ≤ W`. After that, with `t = r − W − 1`
//! (0 in the first round of all without warm-up):
//!
//! | schedule | factor |
//! |---|---|
//! | `constant` | 1 |
//! | `exponential` | `decayᵗ` |
//! | `step` | `factor^⌊t/every⌋` |
//! | `cosine` | `floor + (1 − floor)(1 + cos(πt/rounds))/2` while `t < rounds`, then `floor` |
//! | `linear` | `1 − (1 − floor)t/rounds` while `t < rounds`, then `floor` |
//!
//! # Inputs
//! The number of the round in which a job is dispatched.
//!
//! # Source
//! torch.optim.lr_scheduler of PyTorch 2, one of its epochs being a round: ExponentialLR, StepLR, CosineAnnealingLR (I.
//! Loshchilov, F. Hutter, "SGDR: Stochastic gradient descent with warm restarts", ICLR 2017, without restarts),
//! LinearLR from 1 to `floor`; warm-up as LinearLR from `1/(W + 1)` over `W` epochs, followed by the schedule
//! (SequentialLR).
//!
//! # Deviations from the source
//! PyTorch multiplies up the factor of the epoch before; here each is worked out by itself. Its cosine rises again
//! after `rounds` epochs; here it stays at `floor`. With a `floor` of 0, nothing is learned from then on.
//!
//! # Cost
//! At most one power or cosine per call.
//!
//! # Determinism
//! Portable functions of `math::float` only.
//!
//! # Example
//! ```toml
//! [training]
//! schedule = { cosine = { rounds = 200, warmup = 5 } }
//! # schedule = "constant"
//! # schedule = { exponential = { decay = 0.995 } }
//! ```

use super::TrainingError;
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::math::float::{cos, power};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Schedules that scenarios can name.
pub static CATALOGUE: Catalogue =
    Catalogue { kind: "schedule", definition: "Schedule", entries: &[], shared: include_str!("schedule.rs") };

/// A schedule as a scenario writes it; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum Schedule {
    /// Constant learning rate.
    Constant {
        /// Rounds in which the learning rate rises to its full height.
        #[serde(default)]
        warmup: u32,
    },
    /// Exponential decay: the learning rate shrinks by the same factor every round.
    Exponential {
        /// The factor; above 0 and at most 1.
        decay: f64,
        /// Rounds in which the learning rate rises to its full height.
        #[serde(default)]
        warmup: u32,
    },
    /// Step decay: the learning rate shrinks by a factor every so many rounds.
    Step {
        /// Rounds between the steps; at least 1.
        every: u32,
        /// The factor; above 0 and at most 1.
        factor: f64,
        /// Rounds in which the learning rate rises to its full height.
        #[serde(default)]
        warmup: u32,
    },
    /// Cosine annealing: the learning rate falls along half a wave of a cosine.
    Cosine {
        /// Rounds after warm-up until the floor is reached; at least 1.
        rounds: u32,
        /// The last factor; from 0 to 1.
        #[serde(default)]
        floor: f64,
        /// Rounds in which the learning rate rises to its full height.
        #[serde(default)]
        warmup: u32,
    },
    /// Linear decay: the learning rate falls along a straight line.
    Linear {
        /// Rounds after warm-up until the floor is reached; at least 1.
        rounds: u32,
        /// The last factor; from 0 to 1.
        #[serde(default)]
        floor: f64,
        /// Rounds in which the learning rate rises to its full height.
        #[serde(default)]
        warmup: u32,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Constant { warmup: 0 }
    }
}

impl Schedule {
    /// The kind's name, as a scenario writes it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Exponential { .. } => "exponential",
            Self::Step { .. } => "step",
            Self::Cosine { .. } => "cosine",
            Self::Linear { .. } => "linear",
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting out of its range by its key below [`Schedule::kind`].
    pub fn check(&self) -> Result<(), TrainingError> {
        let within = |key, found: f64, is_fine: bool, expected| {
            if is_fine { Ok(()) } else { Err(TrainingError { key, found, expected }) }
        };
        let factor = |key, found: f64| within(key, found, found > 0.0 && found <= 1.0, "above 0 and at most 1");
        let at_least_one = |key, found: u32| within(key, found.into(), found > 0, "at least 1");
        match *self {
            Self::Constant { .. } => Ok(()),
            Self::Exponential { decay, .. } => factor("decay", decay),
            Self::Step { every, factor: by, .. } => {
                at_least_one("every", every)?;
                factor("factor", by)
            }
            Self::Cosine { rounds, floor, .. } | Self::Linear { rounds, floor, .. } => {
                at_least_one("rounds", rounds)?;
                within("floor", floor, (0.0..=1.0).contains(&floor), "between 0 and 1")
            }
        }
    }

    /// The factor of a round, counted from 1; 0 is taken as 1.
    pub fn factor(&self, round: u32) -> f64 {
        let (Self::Constant { warmup }
        | Self::Exponential { warmup, .. }
        | Self::Step { warmup, .. }
        | Self::Cosine { warmup, .. }
        | Self::Linear { warmup, .. }) = *self;
        let round = round.max(1);
        if round <= warmup {
            return f64::from(round) / (f64::from(warmup) + 1.0);
        }
        let t = round - warmup - 1;
        match *self {
            Self::Constant { .. } => 1.0,
            Self::Exponential { decay, .. } => power(decay, t.into()),
            Self::Step { every, factor, .. } => power(factor, (t / every).into()),
            Self::Cosine { rounds, floor, .. } | Self::Linear { rounds, floor, .. } if t >= rounds => floor,
            Self::Cosine { rounds, floor, .. } => {
                floor + (1.0 - floor) * (1.0 + cos(PI * (f64::from(t) / f64::from(rounds)))) / 2.0
            }
            Self::Linear { rounds, floor, .. } => 1.0 - (1.0 - floor) * (f64::from(t) / f64::from(rounds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    fn assert_factors(schedule: Schedule, expected: &[f64]) {
        schedule.check().unwrap();
        for (round, &expected) in (1..).zip(expected) {
            assert_abs_diff_eq!(schedule.factor(round), expected, epsilon = 1e-15);
        }
        assert_eq!(schedule.factor(0), schedule.factor(1));
    }

    #[test]
    fn factors_by_hand() {
        assert_factors(Schedule::Constant { warmup: 0 }, &[1.0; 5]);
        assert_factors(Schedule::Exponential { decay: 0.5, warmup: 0 }, &[1.0, 0.5, 0.25, 0.125]);
        let step = Schedule::Step { every: 2, factor: 0.5, warmup: 0 };
        assert_factors(step, &[1.0, 1.0, 0.5, 0.5, 0.25, 0.25]);
        // Cosines of 0, 60, 120 and 180 degrees.
        let cosine = Schedule::Cosine { rounds: 3, floor: 0.2, warmup: 0 };
        assert_factors(cosine, &[1.0, 0.8, 0.4, 0.2, 0.2, 0.2]);
        let linear = Schedule::Linear { rounds: 4, floor: 0.2, warmup: 0 };
        assert_factors(linear, &[1.0, 0.8, 0.6, 0.4, 0.2, 0.2]);
        assert_factors(Schedule::Linear { rounds: 2, floor: 0.0, warmup: 0 }, &[1.0, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn warm_up_comes_before_the_schedule() {
        assert_factors(Schedule::Constant { warmup: 1 }, &[0.5, 1.0, 1.0]);
        assert_factors(Schedule::Exponential { decay: 0.5, warmup: 3 }, &[0.25, 0.5, 0.75, 1.0, 0.5, 0.25]);
        assert_factors(Schedule::Linear { rounds: 2, floor: 0.5, warmup: 1 }, &[0.5, 1.0, 0.75, 0.5, 0.5]);
        let endless = Schedule::Constant { warmup: u32::MAX };
        assert_eq!(endless.factor(u32::MAX), f64::from(u32::MAX) / 4_294_967_296.0);
    }

    /// PyTorch 2.15: the learning rates of an optimizer with lr = 1 after `n` calls of the scheduler's `step`, for
    /// ExponentialLR(0.9), StepLR(3, 0.5), CosineAnnealingLR(8, 0.1), LinearLR(1.0, 0.1, 8) and SequentialLR of
    /// LinearLR(1/4, 1.0, 3) and ExponentialLR(0.9) from epoch 3.
    #[test]
    fn factors_are_those_of_pytorch() {
        let exponential = [1.0, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.4782969, 0.43046721, 0.387420489];
        assert_factors(Schedule::Exponential { decay: 0.9, warmup: 0 }, &exponential);
        let step = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125];
        assert_factors(Schedule::Step { every: 3, factor: 0.5, warmup: 0 }, &step);
        let cosine = [
            1.0,
            0.9657457896300791,
            0.8681980515339464,
            0.7222075445642905,
            0.55,
            0.3777924554357097,
            0.2318019484660537,
            0.134254210369921,
            0.1,
        ];
        assert_factors(Schedule::Cosine { rounds: 8, floor: 0.1, warmup: 0 }, &cosine);
        let linear = [1.0, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1, 0.1, 0.1, 0.1];
        assert_factors(Schedule::Linear { rounds: 8, floor: 0.1, warmup: 0 }, &linear);
        let warm = [0.25, 0.5, 0.75, 1.0, 0.9, 0.81, 0.729, 0.6561];
        assert_factors(Schedule::Exponential { decay: 0.9, warmup: 3 }, &warm);
    }

    #[test]
    fn the_schema_knows_just_the_name() {
        let schema = schemars::schema_for!(Schedule).to_value();
        let kinds = schema["oneOf"].as_array().unwrap();
        assert_eq!(kinds.len(), 6);
        assert_eq!(kinds[5]["enum"], serde_json::json!(["constant"]));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        for (schedule, key) in [
            (Schedule::Exponential { decay: 0.0, warmup: 0 }, "decay"),
            (Schedule::Exponential { decay: 1.5, warmup: 0 }, "decay"),
            (Schedule::Exponential { decay: f64::NAN, warmup: 0 }, "decay"),
            (Schedule::Step { every: 0, factor: 0.5, warmup: 0 }, "every"),
            (Schedule::Step { every: 1, factor: -0.5, warmup: 0 }, "factor"),
            (Schedule::Cosine { rounds: 0, floor: 0.0, warmup: 0 }, "rounds"),
            (Schedule::Cosine { rounds: 1, floor: -0.1, warmup: 0 }, "floor"),
            (Schedule::Linear { rounds: 1, floor: f64::NAN, warmup: 0 }, "floor"),
        ] {
            assert_eq!(schedule.check().unwrap_err().key, key);
        }
    }
}
