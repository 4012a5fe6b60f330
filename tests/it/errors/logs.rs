//! Logs of jobs: nothing of them is kept.

use super::{Case, Provoked, told};
use crate::support::Workplace;
use fedgenie::fit::fit;
use fedgenie::population::log::{JobLog, LogError, RunOfLog, read};

const HEADER: &str = "seed,client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n";

fn log(rows: &str) -> Result<JobLog, LogError> {
    let place = Workplace::new();
    place.write("log.csv", format!("{HEADER}{rows}"));
    read(&place.path("log.csv"), &RunOfLog::default())
}

fn refused(rows: &str) -> Provoked {
    told(log(rows).unwrap_err())
}

pub const CASES: &[Case] = &[
    ("LogError::Data", || refused("1,0,1,,1,1,1,3,lost\n")),
    ("LogError::SeveralRuns", || refused("1,0,1,,1,1,1,3,arrived\n2,0,1,,1,1,1,3,arrived\n")),
    ("LogError::Empty", || refused("")),
    ("NothingArrived", || told(fit(&log("1,0,1,,,,,3,late\n").unwrap()).unwrap_err())),
];
