//! Sentences about names that do not exist: they propose the nearest one that does.

use fedgenie_core::text;

/// The known name nearest to the written one, if any is near: at most a third of its letters differ.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A text longer than any name is near to none.
    let written = Some(written).filter(|written| written.len() <= 100)?.to_lowercase();
    // Letters to insert, delete, replace or swap with their neighbour.
    let distance = |name: &str| strsim::osa_distance(&written, name);
    let best = names.into_iter().min_by_key(|name| distance(name))?;
    (distance(best) <= 1 + written.len().max(best.len()) / 3).then_some(best)
}

/// The sentence for a name that does not exist among `names`.
pub fn unknown_name(what: &str, written: &str, names: &[&str]) -> String {
    let proposal = nearest(written, names.iter().copied()).map(|name| format!("did you mean {name:?}? "));
    format!("unknown {what} {}; {}known: {}", text::quoted(written), proposal.unwrap_or_default(), names.join(", "))
}

/// The same for a policy under a label. A label that is no kind may have been meant as the user's own.
pub fn unknown_policy(label: &str, kind: &str, names: &[&str], has_kind: bool) -> String {
    let mut message = unknown_name("policy", kind, names);
    if !has_kind {
        let near = nearest(kind, names.iter().copied()).unwrap_or("random");
        message.push_str(&format!("; a label of one's own goes with a kind: [policy.{label}] with kind = {near:?}"));
    }
    message
}
