//! `fedgenie verify`

use super::{VerifyWords, print};
use fedgenie::error::Error;
use fedgenie::experiment::Threads;
use fedgenie::experiment::verify;

pub fn verify(words: &VerifyWords) -> Result<u8, Error> {
    let threads = Threads::new(words.threads)?;
    let verdict = verify::verify(&words.folder, words.data.as_deref(), &threads)?;
    if words.json {
        let text = serde_json::to_string_pretty(&verdict).map_err(|error| Error::Usage(error.to_string()))?;
        print(&format!("{text}\n"))?;
        return Ok(u8::from(verdict.difference.is_some()));
    }
    match &verdict.difference {
        None => {
            print(&format!("{}: {} runs replayed, no difference\n", words.folder.display(), verdict.runs))?;
            Ok(0)
        }
        Some(difference) => {
            let mut place = Vec::new();
            place.extend(difference.run.iter().map(|run| format!("run {run}")));
            place.extend(difference.round.iter().map(|round| format!("round {round}")));
            place.extend(difference.event.iter().map(|event| format!("event {event}")));
            let place = if place.is_empty() { "files".to_owned() } else { place.join(", ") };
            print(&format!("first difference: {place}: {}\n", difference.what))?;
            if verdict.differing > 0 {
                print(&format!("{} of {} runs differ\n", verdict.differing, verdict.runs))?;
            }
            Ok(1)
        }
    }
}
