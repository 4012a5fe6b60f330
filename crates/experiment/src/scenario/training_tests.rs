//! How a scenario writes optimizers and schedules.

use super::read::read;
use super::tree::parse;
use fedgenie_learning::trainer::{OptimizerConfig, Schedule};
use serde::de::DeserializeOwned;
use std::path::Path;

fn from<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, String> {
    let tree = parse(Path::new("a.toml"), &format!("{key} = {text}")).unwrap();
    read(tree.get(key).unwrap(), "").map_err(|error| error.complaint.message)
}

const fn sgd(lr: f64, momentum: f64, nesterov: bool) -> OptimizerConfig {
    OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay: 0.0, dampening: 0.0 }
}

const fn adamw(lr: f64) -> OptimizerConfig {
    OptimizerConfig::AdamW { lr, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 }
}

#[test]
fn an_optimizer_needs_its_learning_rate_and_has_defaults_for_the_rest() {
    let from = |text| from::<OptimizerConfig>("optimizer", text);
    assert_eq!(from("{ sgd = { lr = 5e-3 } }").unwrap(), sgd(5e-3, 0.0, false));
    let adam = OptimizerConfig::Adam { lr: 1.0, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
    assert_eq!(from("{ adam = { lr = 1 } }").unwrap(), adam);
    assert_eq!(from("{ adamw = { lr = 1 } }").unwrap(), adamw(1.0));
    let found = from("{ sgd = { lr = 1, momentun = 0.9 } }").unwrap_err();
    assert!(found.contains("did you mean \"momentum\"?"), "{found}");
    for config in [sgd(5e-3, 0.9, true), adamw(1.0)] {
        let written = toml::to_string(&config).unwrap();
        assert!(written.starts_with(&format!("[{}]\n", config.kind())), "{written}");
        assert_eq!(toml::from_str::<OptimizerConfig>(&written).unwrap(), config);
    }
}

#[test]
fn a_schedule_without_required_settings_may_be_just_its_name() {
    let from = |text| from::<Schedule>("schedule", text);
    assert_eq!(from("\"constant\"").unwrap(), Schedule::default());
    let exponential = Schedule::Exponential { decay: 0.995, warmup: 0 };
    assert_eq!(from("{ exponential = { decay = 0.995 } }").unwrap(), exponential);
    assert!(from("\"cosine\"").unwrap_err().contains("the key \"rounds\" is missing"));
    assert!(from("{ step = { evry = 1 } }").unwrap_err().contains("did you mean \"every\"?"));
    let written = toml::to_string(&exponential).unwrap();
    assert_eq!(toml::from_str::<Schedule>(&written).unwrap(), exponential);
}
