//! Examples to paste for missing keys.

/// Keys that a section needs, with an example to paste where each is missing. A key that is not here has another value
/// in each section.
const EXAMPLES: [(&str, &str); 27] = [
    ("name", "name = \"my-study\""),
    ("seeds", "seeds = 20"),
    (
        "population",
        "[population] and below it clients = 20 and latency = { download = { constant = \"1 s\" }, compute = { \
         exponential = { mean = \"10 s\" } }, upload = { constant = \"2 s\" } }",
    ),
    ("protocol", "[protocol.synchronous] and below it cohort = 10"),
    ("cohort", "cohort = 10"),
    ("ask", "ask = 12"),
    ("take", "take = 10"),
    ("deadline", "deadline = \"30 s\""),
    ("buffer", "buffer = 10"),
    ("concurrency", "concurrency = 20"),
    ("edges", "edges = 4"),
    ("download", "download = { constant = \"1 s\" }"),
    ("compute", "compute = { exponential = { mean = \"10 s\" } }"),
    ("upload", "upload = { constant = \"2 s\" }"),
    ("samples_per_second", "samples_per_second = 100"),
    ("downlink", "downlink = \"10 Mbit/s\""),
    ("uplink", "uplink = \"5 Mbit/s\""),
    ("on", "on = { exponential = { mean = \"1 h\" } }"),
    ("off", "off = { exponential = { mean = \"30 min\" } }"),
    ("mean_on", "mean_on = \"30 min\""),
    ("file", "file = \"measured.csv\""),
    ("train", "train = \"train.csv\""),
    ("optimizer", "optimizer = { sgd = { lr = 0.01 } }"),
    ("lr", "lr = 0.01"),
    ("metric", "metric = \"test_accuracy\""),
    ("evaluations", "evaluations = 5"),
    ("tau_min", "tau_min = \"1 s\""),
];

/// The error of a missing key, with an example where there is one.
pub fn missing_key(key: &str) -> String {
    match EXAMPLES.iter().find(|(known, _)| *known == key) {
        Some((_, example)) => format!("the key {key:?} is missing; write for example {example}"),
        None => format!("the key {key:?} is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tree::parse;
    use crate::scenario::{Kinds, Point, Reach, Scenario, Surroundings, schema};
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Each example is read in its place, in a scenario that has all of them.
    #[test]
    fn examples_are_good() {
        let of = |key: &str| EXAMPLES.iter().find(|(known, _)| *known == key).unwrap().1;
        let lines = |key: &str| of(key).replace(" and below it ", "\n").replace(" and latency", "\nlatency");
        let device = ["samples_per_second", "downlink", "uplink"].map(of).join("\n");
        let latency = ["download", "compute", "upload"].map(of).join("\n");
        let on_off = ["on", "off"].map(of).join(", ");
        let texts = [
            format!(
                "{}\n{}\nstop.rounds = 3\n{}\n{}\n[policy.random]",
                of("name"),
                of("seeds"),
                lines("population"),
                lines("protocol")
            ),
            format!(
                "name = \"x\"\nseeds = 1\n[stop]\nrounds = 3\nplateau = {{ {}, {} }}\n[population]\nclients = 20\n\
                 availability = {{ on-off = {{ {on_off} }} }}\n[population.device]\n{device}\n[protocol.deadline]\n{}\n{}\n\
                 [task.linear-regression]\nexamples = 100\n[training]\n{}\n[policy.random]",
                of("metric").replace("accuracy", "loss"),
                of("evaluations"),
                of("cohort"),
                of("deadline"),
                of("optimizer")
            ),
            format!(
                "name = \"x\"\nseeds = 1\n[stop]\nrounds = 3\n[population]\nclients = 20\n[population.latency]\n{latency}\n\
                 [protocol.buffered]\n{}\n{}\n[task.linear-regression]\nexamples = 100\n[training]\noptimizer = {{ adam = \
                 {{ {} }} }}\n[policy.random]",
                of("buffer"),
                of("concurrency"),
                of("lr")
            ),
            format!(
                "name = \"x\"\nseeds = 1\n[stop]\nrounds = 3\n[population]\nclients = 20\n[population.latency]\n{latency}\n\
                 [protocol.over-selection]\n{}\n{}\n[regret]\n{}\n[policy.random]",
                of("ask"),
                of("take"),
                of("tau_min")
            ),
        ];
        let surroundings =
            Surroundings { reach: &Reach::default(), kinds: &Kinds::default(), point: &Point::default() };
        for text in texts {
            let tree = parse(Path::new("a.toml"), &text).unwrap();
            Scenario::new(&tree, surroundings).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }

    #[test]
    fn what_every_scenario_needs_has_an_example() {
        let schema = schema::schema();
        let required = |of: &serde_json::Value| -> BTreeSet<String> {
            let keys = of["required"].as_array().into_iter().flatten();
            keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
        };
        let mut keys = required(&schema);
        for section in ["LatencyConfig", "DeviceConfig", "SynchronousConfig", "DeadlineConfig", "BufferedConfig"] {
            keys.extend(required(&schema["$defs"][section]));
        }
        keys.remove("policy");
        assert!(keys.len() > 10, "{keys:?}");
        for key in keys {
            assert!(missing_key(&key).contains("write for example"), "{key}");
        }
    }
}
