//! The `dropout` key of a population: how clients are lost with their jobs.
//!
//! # Definition
//! `probability` loses a job with this probability, however long it takes: one uniform of the job decides whether it is
//! lost, a second one the instant, uniformly over the job's undisturbed duration, download, compute and upload
//! together. Among jobs that nothing else ends, this share is lost; a deadline ends some jobs before their loss. A
//! phase loses its client by a hazard, `compute = "0.01 /s"`: after an exponentially distributed time, if that is
//! shorter than the phase; or with a probability of its own, `compute = { probability = 0.1 }`, at an instant that is
//! uniform over the phase. Of several losses of a job the first happens.
//!
//! The server does not see that a client is lost, and waits for it until its timeout or deadline.
//!
//! # Inputs
//! Hazards of at least 0 per unit of time, probabilities of at least 0 and below 1.
//!
//! # Example
//! ```toml
//! dropout = { probability = 0.2 }
//! dropout = { compute = "0.01 /s", upload = { probability = 0.05 } }
//! ```

use fedgenie_core::config::{Complaint, check};
use fedgenie_core::record::Phase;
use fedgenie_core::units::{Amount, PerSecond, Quantity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess, Unexpected};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Dropout: how clients are lost with their jobs, by a probability per job, or by hazards or probabilities per phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropoutConfig {
    /// Probability that a job is lost, at an instant that is uniform over its duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// While downloading: a hazard such as "0.01 /s", or { probability = 0.1 }.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<PhaseDropout>,
    /// While computing: as download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<PhaseDropout>,
    /// While uploading: as download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<PhaseDropout>,
}

/// How clients are lost in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PhaseDropout {
    /// At a rate: after an exponentially distributed time, if that is shorter than the phase.
    Hazard(Amount<PerSecond>),
    /// With a probability, however long the phase is.
    Probability {
        /// The probability.
        probability: f64,
    },
}

/// A checked `DropoutConfig`: hazards per phase, in events per second, and the probabilities of loss over the whole job
/// and in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    pub hazards: [f64; 3],
    pub probabilities: [f64; 4],
}

impl DropoutConfig {
    /// Checks the ranges. The path of a complaint is below `dropout`.
    pub(super) fn losses(&self) -> Result<Losses, Complaint> {
        let likely = |key: &str, found| check(key, found, 0.0..1.0, "a probability of at least 0 and below 1");
        let mut losses = Losses::default();
        losses.probabilities[0] = self.probability.map_or(Ok(0.0), |found| likely("probability", found))?;
        for (phase, dropout) in Phase::ALL.into_iter().zip([self.download, self.compute, self.upload]) {
            match dropout {
                None => {}
                Some(PhaseDropout::Hazard(rate)) if rate.0 >= 0.0 => losses.hazards[phase.index()] = rate.0,
                Some(PhaseDropout::Hazard(rate)) => {
                    let message = format!("found {} /s; expected a hazard rate of at least 0", rate.0);
                    return Err(Complaint::new(phase.to_string(), message));
                }
                Some(PhaseDropout::Probability { probability }) => {
                    losses.probabilities[1 + phase.index()] = likely(&format!("{phase}.probability"), probability)?;
                }
            }
        }
        Ok(losses)
    }
}

impl<'de> Deserialize<'de> for PhaseDropout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DropoutVisitor)
    }
}

/// Reads a rate, or `{ probability = .. }`.
struct DropoutVisitor;

impl<'de> de::Visitor<'de> for DropoutVisitor {
    type Value = PhaseDropout;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, or {{ probability = 0.1 }}", PerSecond::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PhaseDropout, E> {
        let rate = Amount::deserialize(IntoDeserializer::<E>::into_deserializer(text));
        rate.map(PhaseDropout::Hazard).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PhaseDropout, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            probability: f64,
        }
        let Table { probability } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PhaseDropout::Probability { probability })
    }
}

impl JsonSchema for PhaseDropout {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PhaseDropout".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = json_schema!({
            "type": "object",
            "properties": { "probability": { "type": "number", "minimum": 0, "exclusiveMaximum": 1 } },
            "required": ["probability"], "additionalProperties": false,
        });
        json_schema!({ "anyOf": [Amount::<PerSecond>::json_schema(generator), table] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn losses(value: serde_json::Value) -> Result<Losses, String> {
        let config: DropoutConfig = serde_json::from_value(value).map_err(|error| error.to_string())?;
        config.losses().map_err(|complaint| complaint.to_string())
    }

    #[test]
    fn hazards_and_probabilities_stand_side_by_side() {
        let found = losses(json!({ "probability": 0.2, "compute": "6 /min", "upload": { "probability": 0.05 } }));
        assert_eq!(found, Ok(Losses { hazards: [0.0, 0.1, 0.0], probabilities: [0.2, 0.0, 0.0, 0.05] }));
        let config = DropoutConfig {
            probability: Some(0.2),
            upload: Some(PhaseDropout::Probability { probability: 0.05 }),
            ..DropoutConfig::default()
        };
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(written, json!({ "probability": 0.2, "upload": { "probability": 0.05 } }));
        assert_eq!(serde_json::from_value::<DropoutConfig>(written).unwrap(), config);
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for wrong in [1.0, -0.1, 1.5] {
            let expected = format!("probability: found {wrong}; expected a probability of at least 0 and below 1");
            assert_eq!(losses(json!({ "probability": wrong })), Err(expected.clone()));
            let expected = format!("compute.{expected}");
            assert_eq!(losses(json!({ "compute": { "probability": wrong } })), Err(expected));
        }
        for wrong in [json!(0.2), json!("20 s"), json!({ "share": 0.2 })] {
            let error = losses(json!({ "compute": wrong })).unwrap_err();
            assert!(error.contains("0.01 /s") || error.contains("`probability`"), "{error}");
        }
    }
}
