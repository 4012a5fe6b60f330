//! Keys of `[training]` without effect, for tasks without learning.
//!
//! With profiled devices, the work of a job is its examples times its epochs, or the examples of its steps; these keys
//! then count although no client learns. So do epochs that policies may choose: the time of a job follows.

use super::Sections;
use super::tree::{Node, Value};
use fedgenie_core::config::Complaint;
use fedgenie_simulator::population::PopulationConfig;
use fedgenie_simulator::task::TaskSettings;
use fedgenie_simulator::task::none::Config as Nothing;

/// Whether the work of any client's job decides how long it takes.
fn has_devices(population: &PopulationConfig) -> bool {
    population.preset.is_some()
        || population.device.is_some()
        || population.group.iter().any(|group| group.device.is_some())
}

/// Whether a key of `[training]` counts for a task without learning.
fn counts(key: &str, sections: &Sections) -> bool {
    let training = sections.training.as_ref();
    let has_steps = training.is_some_and(|training| training.steps.is_some());
    let has_choice = training.is_some_and(|training| training.most_epochs.is_some());
    match key {
        "most_epochs" => true,
        "epochs" => has_devices(&sections.population) || has_choice,
        "steps" => has_devices(&sections.population),
        "batch" => has_devices(&sections.population) && has_steps,
        _ => false,
    }
}

/// Whether a task learns nothing: a program's task may replace the scenario's.
fn is_nothing(task: &dyn TaskSettings) -> bool {
    task.about().name == Nothing::default().about().name
}

/// Refuses the first key of `[training]` that has no effect, and an optimizer that a task lacks. `tree` is the source
/// of the sections.
pub(super) fn check(sections: &Sections, tree: &Node, task: &dyn TaskSettings) -> Result<(), Complaint> {
    let Some(training) = &sections.training else { return Ok(()) };
    if task.about().trains && training.optimizer.is_none() {
        return Err(Complaint::new("training", MISSING_OPTIMIZER));
    }
    if !is_nothing(task) {
        return Ok(());
    }
    let Some(Node { value: Value::Table(written), origin }) = tree.get("training") else { return Ok(()) };
    // A user who removes the task of a whole scenario, with `--set task="none"`, need not remove its training too.
    if tree.get("task").is_some_and(|task| task.origin.source != origin.source) {
        return Ok(());
    }
    let Some((key, _)) = written.iter().find(|(key, _)| !counts(key, sections)) else { return Ok(()) };
    let why = match key.as_str() {
        "epochs" | "steps" => "epochs and steps count where a [population.device] says how fast clients train",
        "batch" => "a batch counts where `steps` are given and a [population.device] says how fast clients train",
        _ => "nothing is trained",
    };
    let message = format!("has no effect with the task \"none\": {why}; take the key out, or give a task that learns");
    Err(Complaint::new(format!("training.{key}"), message))
}

/// The error of `[training]` without an optimizer.
pub(super) const MISSING_OPTIMIZER: &str =
    "the key \"optimizer\" is missing; write for example optimizer = { sgd = { lr = 0.01 } }";

/// Removes defaults of the resolved `[training]` that would be refused on reading.
pub(super) fn without_defaults(resolved: &mut toml::Table, sections: &Sections, tree: &Node) {
    if !is_nothing(sections.task_settings()) {
        return;
    }
    let Some(toml::Value::Table(training)) = resolved.get_mut("training") else { return };
    let is_written = |key: &str| tree.get("training").is_some_and(|training| training.get(key).is_some());
    training.retain(|key, _| is_written(key) || counts(key, sections));
}
