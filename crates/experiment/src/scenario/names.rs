//! Sentences about names that do not exist: they propose the nearest one that does.

use fedgenie_core::text;

/// The known name nearest to the written one, if any is near: at most a third of its letters differ, or it is the only
/// one that begins with it.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Fewer letters are the beginning of too many words.
    const LEAST: usize = 3;
    // A text longer than any name is near to none.
    let written = Some(written).filter(|written| written.len() <= 100)?.to_lowercase();
    // Letters to insert, delete, replace or swap with their neighbour.
    let distance = |name: &str| strsim::osa_distance(&written, name);
    let names: Vec<&str> = names.into_iter().collect();
    let best = *names.iter().min_by_key(|name| distance(name))?;
    if distance(best) <= 1 + written.len().max(best.len()) / 3 {
        return Some(best);
    }
    let mut begun = names.into_iter().filter(|name| written.len() >= LEAST && name.starts_with(&written));
    begun.next().filter(|_| begun.next().is_none())
}

/// First words of the field and of other simulators: the word, the name here, and the place where that stands.
const FIRST_WORDS: [(&str, &str, &str); 25] = [
    (
        "fedavg",
        "random",
        "[policy.random] selects as FedAvg does, and [aggregation] averages as it does unless told otherwise",
    ),
    ("fedprox", "fedprox", "FedProx is [algorithm.fedprox], beside any policy"),
    ("scaffold", "scaffold", "SCAFFOLD is [algorithm.scaffold], beside any policy"),
    ("fednova", "fednova", "FedNova is [algorithm.fednova], beside any policy"),
    ("feddyn", "feddyn", "FedDyn is [algorithm.feddyn], beside any policy"),
    ("moon", "moon", "MOON is [algorithm.moon], beside any policy"),
    ("krum", "krum", "Krum is [algorithm.krum], beside any policy"),
    ("fedadam", "adam", "FedAdam is server = { adam = {} } in [aggregation]"),
    ("fedyogi", "yogi", "FedYogi is server = { yogi = {} } in [aggregation]"),
    ("fedbuff", "buffered", "FedBuff is [protocol.buffered]"),
    ("clients_per_round", "cohort", "it is cohort in [protocol.synchronous]"),
    ("fraction_fit", "cohort", "it is cohort in [protocol.synchronous], a number of clients"),
    ("num_clients", "clients", "it is clients in [population]"),
    ("local_epochs", "epochs", "it is epochs in [training]"),
    ("num_epochs", "epochs", "it is epochs in [training]"),
    ("batch_size", "batch", "it is batch in [training]"),
    ("learning_rate", "lr", "it is optimizer = { sgd = { lr = 0.01 } } in [training]"),
    ("lr", "lr", "it is optimizer = { sgd = { lr = 0.01 } } in [training]"),
    ("momentum", "momentum", "it is optimizer = { sgd = { lr = 0.01, momentum = 0.9 } } in [training]"),
    ("rounds", "rounds", "it is rounds in [stop]"),
    ("num_rounds", "rounds", "it is rounds in [stop]"),
    ("global_rounds", "rounds", "it is rounds in [stop]"),
    ("seed", "seeds", "it is seeds = [7], a list, or a number of seeds from 1 on"),
    ("dataset", "data", "it is data in the section of the task, such as [task.classification]"),
    ("model", "model", "it is model in the section of the task, such as [task.classification]"),
];

/// The beginning of a proposal for a first word of the field.
fn of_the_field(written: &str, names: &[&str]) -> Option<String> {
    let word = written.to_lowercase().replace('-', "_");
    let (_, name, place) = FIRST_WORDS.iter().find(|(known, ..)| *known == word)?;
    Some(if names.contains(name) && *name != "random" {
        format!("did you mean {name:?}? ")
    } else {
        format!("{place}; ")
    })
}

/// The sentence for a name that does not exist among `names`.
pub fn unknown_name(what: &str, written: &str, names: &[&str]) -> String {
    let near = || nearest(written, names.iter().copied()).map(|name| format!("did you mean {name:?}? "));
    let proposal = of_the_field(written, names).or_else(near);
    let known = match names.is_empty() {
        true => format!("no {what} is known here"),
        false => format!("known: {}", names.join(", ")),
    };
    format!("unknown {what} {}; {}{known}", text::quoted(written), proposal.unwrap_or_default())
}

/// The same for a policy under a label. A label that is no kind may have been meant as the user's own.
pub fn unknown_policy(label: &str, kind: &str, names: &[&str], has_kind: bool) -> String {
    let mut message = unknown_name("policy", kind, names);
    if !has_kind && of_the_field(kind, names).is_none() {
        let near = nearest(kind, names.iter().copied()).unwrap_or("random");
        message.push_str(&format!("; a label of one's own goes with a kind: [policy.{label}] with kind = {near:?}"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_of_the_field_lead_to_where_they_are() {
        let policy = unknown_policy("fedavg", "fedavg", &["fedacs", "random"], false);
        assert_eq!(
            policy,
            "unknown policy \"fedavg\"; [policy.random] selects as FedAvg does, and [aggregation] averages as it does unless told \
             otherwise; known: fedacs, random"
        );
        let key = |written: &str, names: &[&str]| unknown_name("key", written, names);
        assert!(key("rounds", &["name", "stop"]).contains("it is rounds in [stop]; known"));
        assert!(key("num_rounds", &["rounds", "traffic"]).contains("did you mean \"rounds\"? known"));
        assert!(key("local-epochs", &["epochs", "batch"]).contains("did you mean \"epochs\"?"));
        assert!(key("Clients_Per_Round", &["cohort", "timeout"]).contains("did you mean \"cohort\"?"));
        assert!(key("sync", &["deadline", "synchronous"]).contains("did you mean \"synchronous\"?"));
        assert!(!key("syn", &["synchronous", "synthesised"]).contains("did you mean"), "two begin with it");
        assert!(key("cohrt", &["cohort", "timeout"]).contains("did you mean \"cohort\"?"), "others by their letters");
    }
}
