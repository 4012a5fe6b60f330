//! Parameters of Oort, and each variant's defaults.

use super::super::{BuildContext, Known, Policy, PolicySettings};
use super::pacer::Pacer;
use super::{Decision, Oort};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the parameters of a policy that ranks clients as `oort` does, after parameters of its own.
macro_rules! ranks_as_oort {
    ($(#[$of_table:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$of_table])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// The variant's rules.
            #[serde(default)]
            pub variant: crate::policy::oort::Variant,
            /// Rounds `W` of a window.
            #[serde(default = "crate::policy::oort::config::twenty")]
            pub pacer_step: u32,
            /// By how much a window changes the preferred duration: `paper`, a duration `Δ` (the median of declared
            /// latencies if left out); `released`, points of the threshold (10).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub pacer_delta: Option<crate::policy::oort::Step>,
            /// `released`: the percentile of latencies that is the preferred duration, at least 0; from 100 on it is
            /// infinite. 30 if left out.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub threshold: Option<f64>,
            /// Share of the last exploited rank's score that is admitted, from 0 to 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cutoff: Option<f64>,
            /// Exponent of the penalty of slow clients, at least 0.
            #[serde(default = "crate::policy::oort::config::two")]
            pub penalty: f64,
            /// Place among the utilities, from 0 to 1, beyond which they are cut.
            #[serde(default = "crate::policy::oort::config::of_clip")]
            pub clip: f64,
            /// Share ε that explores before the first decay, from 0 to 1.
            #[serde(default = "crate::policy::oort::config::of_exploration")]
            pub exploration: f64,
            /// Factor of ε before each selection, above 0 and at most 1.
            #[serde(default = "crate::policy::oort::config::of_decay")]
            pub exploration_decay: f64,
            /// Where ε stops falling, from 0 to 1.
            #[serde(default = "crate::policy::oort::config::of_least")]
            pub exploration_min: f64,
            /// Updates after which a client is a candidate no more; never if left out.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub blacklist_rounds: Option<u32>,
        }
    };
}

pub(in crate::policy) use ranks_as_oort;

ranks_as_oort! {
    /// Parameters of `oort`. The variant gives the defaults.
    Config {}
}

/// The variant's rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Algorithm 1.
    #[default]
    Paper,
    /// The program.
    Released,
}

/// A step of the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a duration such as \"5 s\" (variant paper), or a number of points (variant released)")]
pub enum Step {
    /// Points of the percentile.
    Points(f64),
    /// A step of the preferred duration.
    Time(Duration),
}

pub(in crate::policy) const fn twenty() -> u32 {
    20
}
pub(in crate::policy) const fn two() -> f64 {
    2.0
}
pub(in crate::policy) const fn of_clip() -> f64 {
    0.95
}
pub(in crate::policy) const fn of_exploration() -> f64 {
    0.9
}
pub(in crate::policy) const fn of_decay() -> f64 {
    0.98
}
pub(in crate::policy) const fn of_least() -> f64 {
    0.2
}

impl PolicySettings for Config {
    fn resolve(&mut self, _: Known<'_>) -> Result<(), Complaint> {
        if self.variant == Variant::Released {
            self.pacer_delta.get_or_insert(Step::Points(10.0));
            self.threshold.get_or_insert(30.0);
        }
        let cutoff = self.default_cutoff();
        self.cutoff.get_or_insert(cutoff);
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(self.oort(context)?))
    }
}

impl Config {
    /// Makes the policy.
    ///
    /// # Errors
    /// If the parameters do not fit the scenario.
    pub(in crate::policy) fn oort(&self, context: &BuildContext<'_>) -> Result<Oort, Complaint> {
        if self.pacer_step == 0 {
            return Err(Complaint::new("pacer_step", "found 0; expected at least 1"));
        }
        let share = |key, value| check(key, value, 0.0..=1.0, "a number from 0 to 1");
        let declared = |client| context.devices.declared(client).seconds();
        let decay = self.exploration_decay;
        Ok(Oort {
            variant: self.variant,
            pacer: self.pacer()?,
            cutoff: share("cutoff", self.cutoff.unwrap_or(self.default_cutoff()))?,
            penalty: check("penalty", self.penalty, 0.0.., "a number of at least 0")?,
            clip: share("clip", self.clip)?,
            epsilon: share("exploration", self.exploration)?,
            decay: check("exploration_decay", decay, f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?,
            least: share("exploration_min", self.exploration_min)?,
            blacklist: self.blacklist_rounds,
            turn: 0,
            latency: (0..context.clients).map(ClientId::from_index).map(declared).collect(),
            utility: vec![f64::NAN; context.clients],
            last: vec![0; context.clients],
            updates: vec![0; context.clients],
            is_exploited: vec![false; context.clients],
            race: Vec::new(),
            made: Decision::default(),
        })
    }

    const fn default_cutoff(&self) -> f64 {
        match self.variant {
            Variant::Paper => 0.95,
            Variant::Released => 0.7,
        }
    }

    fn pacer(&self) -> Result<Pacer, Complaint> {
        let wrong = |message: &str| Err(Complaint::new("pacer_delta", message));
        match (self.variant, self.pacer_delta) {
            (Variant::Paper, Some(Step::Points(points))) => {
                wrong(&format!("found {points}; expected a duration such as \"5 s\", or variant = \"released\""))
            }
            (Variant::Released, Some(Step::Time(_))) => {
                wrong("found a duration; expected a number of points, such as 10, or variant = \"paper\"")
            }
            (Variant::Paper, _) if self.threshold.is_some() => {
                let message = "is of variant = \"released\"; take it out, or take that variant";
                Err(Complaint::new("threshold", message))
            }
            (Variant::Paper, None) => Ok(Pacer::relaxing(self.pacer_step, None)),
            (Variant::Paper, Some(Step::Time(delta))) => Ok(Pacer::relaxing(self.pacer_step, Some(delta.0.seconds()))),
            (Variant::Released, delta) => {
                let points = if let Some(Step::Points(points)) = delta { points } else { 10.0 };
                let points = check("pacer_delta", points, 0.0..=100.0, "a number of points from 0 to 100")?;
                let threshold = self.threshold.unwrap_or(30.0);
                let threshold = check("threshold", threshold, 0.0.., "a percentile, or 100 and more for none")?;
                Ok(Pacer::percentile(self.pacer_step, points, threshold))
            }
        }
    }
}
