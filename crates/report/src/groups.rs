//! Several experiments of a report: their names, and which are drawn together.

use super::source::Results;
use fedgenie_experiment::experiment::stored::distinct;

/// The prefix of each experiment's policies: nothing if there is one experiment, else its folder's name, made unique.
pub(super) fn prefixes(results: &[Results]) -> Vec<String> {
    if results.len() == 1 {
        return vec![String::new()];
    }
    distinct(results.iter().map(|result| result.name.as_str()))
}

/// The labels of each experiment's policies.
pub(super) fn labels(results: &[Results], prefixes: &[String]) -> Vec<Vec<String>> {
    let of_one = |(results, prefix): (&Results, &String)| {
        let label = |label: &String| if prefix.is_empty() { label.clone() } else { format!("{prefix}: {label}") };
        results.labels.iter().map(label).collect()
    };
    results.iter().zip(prefixes).map(of_one).collect()
}

/// Experiments with the same points.
pub(super) fn blocks(results: &[Results]) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for (folder, result) in results.iter().enumerate() {
        match blocks.iter_mut().find(|block| results[block[0]].summary.points == result.summary.points) {
            Some(block) => block.push(folder),
            None => blocks.push(vec![folder]),
        }
    }
    blocks
}
