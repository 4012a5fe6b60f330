//! The shares of classes, or of categories, in clients' training examples, as they declare them.

use super::BuildContext;
use fedgenie_core::config::Complaint;

/// Of each client the share of each class; all 0 for one without examples.
///
/// # Errors
/// If the clients of the task have neither classes nor categories.
pub(super) fn label_shares(context: &BuildContext<'_>, policy: &str) -> Result<Vec<Vec<f64>>, Complaint> {
    let Some(counts) = context.devices.categories() else {
        let message = format!(
            "{policy} groups clients by classes or categories of examples, and the clients of this task have neither; \
             take another task or policy"
        );
        return Err(Complaint::new("", message));
    };
    let share = |counts: &Vec<u64>| {
        let all: u64 = counts.iter().sum();
        counts.iter().map(|&count| count as f64 / all.max(1) as f64).collect()
    };
    Ok(counts.iter().map(share).collect())
}
