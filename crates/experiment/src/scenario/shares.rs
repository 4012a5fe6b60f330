//! The numbers of examples of overlapping shares: `size` of the partition is a number, or what `data_size` of the
//! population may be as well.

use super::read::ScenarioError;
use super::tree::{Node, Value};

/// Where the population says the same.
const DATA_SIZE: &str = "population.data_size";

/// Moves a `size` that differs from client to client to the population, which draws, lists or reads such numbers.
///
/// # Errors
/// If the population, or a group of it, has numbers of examples already.
pub(super) fn resolve_sizes(rest: &mut Node) -> Result<(), ScenarioError> {
    let Some(Value::Table(kinds)) = rest.get("task").map(|task| &task.value) else { return Ok(()) };
    let Some(path) = kinds
        .iter()
        .map(|(kind, _)| format!("task.{kind}.partition.overlapping.size"))
        .find(|path| rest.at(path).is_some_and(|size| matches!(size.value, Value::Table(_))))
    else {
        return Ok(());
    };
    let is_said = rest.at(DATA_SIZE).is_some()
        || matches!(rest.at("population.group").map(|groups| &groups.value), Some(Value::List(groups))
            if groups.iter().any(|group| group.get("data_size").is_some()));
    if is_said {
        let message = "data_size of the population says this as well; take one of the two out";
        return Err(ScenarioError::new(rest, path, message));
    }
    let size = rest.at(&path).cloned().expect("it was found");
    rest.remove(&path, "")?;
    rest.set(DATA_SIZE, size)?;
    Ok(())
}
