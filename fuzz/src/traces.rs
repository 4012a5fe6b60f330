//! Published traces in their publishers' forms. The first byte of an input says which.

use super::assert_told;
use super::files::write;
use fedgenie::population::trace::published::{ALL, convert};

/// A good file of each set that is converted, in the order of the list.
const GOOD: [&str; 7] = [
    "{\"a\": {\"messages\": \"2020-01-02 00:00:10\\twifi\\n2020-01-02 00:00:11\\tbattery_charged_on\\n2020-01-02 00:00:12\\tscreen_lock\\n2020-01-02 00:01:00\\t4g\\n\"}}",
    r#"{"7": {"isSuccess": true, "trace_start": 1.0, "trace_end": 9.5, "ready_time": [[2.0, 3.0], [4, 4]]}, "3": {"isSuccess": false, "trace_start": null, "trace_end": null, "ready_time": []}}"#,
    r#"[{"Phone Model": "A, \"1\"", "Vit Latency": null, "ResNet Latency": 54.22, "ResNet STD": 0.343}]"#,
    r#"{"p": {"tcp_speed_results": [100.5, 7]}, "q": {"tcp_speed_results": []}}"#,
    "0 1.5\n0.5 0\n\n2 3e1\n",
    r#"{"1": {"duration": 50, "inactive": [20, 90], "finish_time": 80, "active": [10, 70], "model": "x"}}"#,
    r#"{"1": {"computation": 50.0, "communication": 5000.0}, "2": {"computation": 0.0, "communication": 1.0}}"#,
];

pub mod published {
    use super::*;

    pub fn corpus() -> Vec<Vec<u8>> {
        (0..).zip(GOOD).map(|(index, text)| [&[index], text.as_bytes()].concat()).collect()
    }

    /// Tables have as many cells in every row.
    pub fn run(input: &[u8]) -> Result<(), String> {
        let (first, rest) = input.split_first().ok_or("empty")?;
        let kinds: Vec<&str> = ALL.iter().filter(|set| set.is_converted).map(|set| set.kind).collect();
        assert_eq!(kinds.len(), GOOD.len());
        let made = convert(kinds[usize::from(*first) % kinds.len()], &[write("published", rest)]).unwrap();
        let made = made.map_err(|error| {
            let message = error.to_string();
            assert_told(&message, &["published"]);
            message
        })?;
        for (name, table) in made.tables {
            let mut rows = csv::Reader::from_reader(table.as_bytes());
            assert!(rows.records().all(|row| row.is_ok()), "{name}: {table}");
        }
        Ok(())
    }
}
