//! Populations known by name.

use super::{DeviceConfig, GroupConfig};
use crate::population::law::{ClientNumber, LinkParameter, Parameter};
use fedgenie_core::units::Amount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `preset = "mab-frs"`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Table II of MAB-FRS: four clients with 8 cores at 1600, 1600, 100 and 100 Mbit/s each way, then four with 2
    /// cores at 6, 6, 2 and 2 Mbit/s. The speeds are not the table's: 16,000 examples per second for 8 cores, 4,000
    /// for 2.
    MabFrs,
}

/// Groups of two: name, examples per second, bits per second each way.
const MAB_FRS: [(&str, f64, f64); 4] = [
    ("8 cores, 1600 Mbit/s", 16_000.0, 1600e6),
    ("8 cores, 100 Mbit/s", 16_000.0, 100e6),
    ("2 cores, 6 Mbit/s", 4_000.0, 6e6),
    ("2 cores, 2 Mbit/s", 4_000.0, 2e6),
];

impl Preset {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MabFrs => "mab-frs",
        }
    }

    /// The preset's groups.
    pub fn groups(self) -> Vec<GroupConfig> {
        let group = |&(name, speed, rate): &(&str, f64, f64)| {
            let link = || LinkParameter::Rate(ClientNumber(Parameter::Fixed(Amount::new(rate))));
            let device = DeviceConfig {
                samples_per_second: ClientNumber(Parameter::Fixed(Amount::new(speed))),
                downlink: link(),
                uplink: link(),
                jitter: None,
            };
            let (name, count) = (Some(name.to_owned()), Some(2));
            GroupConfig { name, count, device: Some(device), ..GroupConfig::default() }
        };
        match self {
            Self::MabFrs => MAB_FRS.iter().map(group).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::population::config::PopulationConfig;
    use crate::population::config::Work;
    use fedgenie_core::rng::Streams;
    use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
    use serde_json::{Value, json};

    fn parsed(value: Value) -> PopulationConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_preset_is_the_groups_that_it_stands_for() {
        let group = |speed: f64, rate: &str| {
            let rate = format!("{rate} Mbit/s");
            let name = format!("{} cores, {rate}", speed / 2_000.0);
            let device = json!({"samples_per_second": speed, "downlink": rate, "uplink": rate});
            json!({"name": name, "count": 2, "device": device})
        };
        let groups = [group(16_000.0, "1600"), group(16_000.0, "100"), group(4_000.0, "6"), group(4_000.0, "2")];
        let (preset, whole) = (parsed(json!({"preset": "mab-frs"})), parsed(json!({ "group": groups })));
        assert_eq!(preset.client_count().unwrap(), 8);
        let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
        let training = LocalTraining::new(1, 4, &sgd).unwrap();
        let sizes = [9; 8];
        let work = Work { data_sizes: Some(&sizes), training: &training, payload_bytes: 1_000_000 };
        let [one, other] = [&preset, &whole].map(|config| config.build(&work, &Streams::new(1)).unwrap());
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }

    #[test]
    fn what_a_preset_says_is_not_said_again() {
        for (key, value) in [
            ("clients", json!(8)),
            ("group", json!([{"count": 8}])),
            ("device", json!({"samples_per_second": 5.0, "downlink": "1 Mbit/s", "uplink": "1 Mbit/s"})),
        ] {
            let error = parsed(json!({"preset": "mab-frs", key: value})).client_count().unwrap_err();
            assert_eq!(error.path, format!("population.{key}"));
            assert!(error.message.contains("leave it out, or the preset"), "{}", error.message);
        }
        // Other keys hold for all groups.
        let config = parsed(json!({"preset": "mab-frs", "data_quality": 0.5}));
        assert!(config.groups().unwrap().iter().all(|(_, group, _)| group.data_quality.is_some()));
        assert!(serde_json::from_value::<PopulationConfig>(json!({"preset": "mab"})).is_err());
    }
}
