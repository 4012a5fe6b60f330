//! Logs of jobs: each is fitted, and replayed.

use super::assert_told;
use super::files::write;
use fedgenie::fit::{fit, fleet, told};
use fedgenie::population::Recording;
use fedgenie::population::log::{RunOfLog, read};

const HEADER: &str = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n";

/// With phases and cuts; totals alone, of several clients; a run among others, with further columns.
const GOOD: [&str; 3] = [
    "0,1,0,0.5,2,0.25,2.75,arrived\n1,1,0,1,4,,5,late\n0,2,5,0.5,1.5,,2,dropped\n1,2,5,1,3,0.25,4.25,arrived\n",
    "7,3,,,,,1.5,arrived\n7,4,,,,,2,arrived\n9,3,,,,,9,late\n9,4,,,,,3e0,arrived\n7,5,,,,,,dropped\n",
    "4,1,0,,1.25,,1.5,arrived\n4,2,2,,1.5,,1.75,arrived\n5,2,2,,9,,10,arrived\n5,12,20,,8,,10,arrived\n",
];

pub mod job_log {
    use super::*;

    pub fn corpus() -> Vec<Vec<u8>> {
        GOOD.iter().map(|rows| [HEADER, rows].concat().into_bytes()).collect()
    }

    /// A fleet is written that a scenario reads, without texts of the file but its numbers.
    pub fn run(input: &[u8]) -> Result<(), String> {
        let refused = |message: String| {
            assert_told(&message, &["log"]);
            message
        };
        let log = read(&write("log", input), &RunOfLog::default()).map_err(|error| refused(error.to_string()))?;
        if let Ok(recording) = Recording::new(&log) {
            assert_eq!(recording.clients(), log.clients.len());
            assert_eq!(recording.choices().iter().map(Vec::len).sum::<usize>(), log.jobs.len());
        }
        let found = fit(&log).map_err(|error| error.to_string())?;
        let text = fleet::scenario(&found, "log", "0");
        let whole: toml::Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(whole.contains_key("population") && !told::told(&found).is_empty());
        Ok(())
    }
}
