//! FLASH's link speeds: a normal law per user and direction.
//!
//! # Definition
//! A JSON object, user → `{ down_u, down_sigma, up_u, up_sigma }`: mean and standard deviation of the user's speeds. A
//! client's rate is drawn once from the normal law of its user, given that it is above 0.
//!
//! # Inputs
//! JSON, plain or gzip. Errors name file and user: a number that is missing, not above 0 or not finite. The scenario
//! gives the unit: the source's comment has kb/s, while its code divides kilobytes by it.
//!
//! # Source
//! `speed_distri.json` (19 users) of Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon
//! Large-Scale Smartphone Data", WWW 2021.
//!
//! # Deviations from the source
//! There, each transfer draws again; here, a client keeps its rate, which `jitter` may vary.

use super::{Defects, Imported};
use fedgenie_core::law::TruncatedNormal;
use fedgenie_core::limits::SPEEDS_BYTES;
use fedgenie_learning::data::DataError;
use fedgenie_learning::data::bytes::ByteReader;
use serde_json::{Map, Value};
use std::path::Path;

/// From server to user, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `down_u`, `down_sigma`.
    Down,
    /// `up_u`, `up_sigma`.
    Up,
}

/// Reads the law of each user's speed, in the file's unit; see the [module](self).
///
/// # Errors
/// File, user, found and expected value.
pub fn read(path: &Path, direction: Direction) -> Result<Imported<Vec<TruncatedNormal>>, DataError> {
    let mut reader = ByteReader::open(path)?;
    let text = reader.take(SPEEDS_BYTES)?;
    reader.expect_end()?;
    let wrong = |line, message| DataError::Table { path: path.to_owned(), line, message };
    let users: Map<String, Value> = serde_json::from_slice(&text)
        .map_err(|error| wrong(error.line() as u64, format!("is no JSON object of users: {error}")))?;
    let keys = match direction {
        Direction::Down => ["down_u", "down_sigma"],
        Direction::Up => ["up_u", "up_sigma"],
    };
    let law = |(user, speeds): (&String, &Value)| {
        let number = |key: &str| {
            let found = &speeds[key];
            found
                .as_f64()
                .filter(|number| *number > 0.0)
                .ok_or_else(|| wrong(1, format!("user {user:?}: {key} is {found}; expected a number above 0")))
        };
        TruncatedNormal::new(number(keys[0])?, number(keys[1])?, 0.0, f64::INFINITY)
            .map_err(|error| wrong(1, format!("user {user:?}: {error}")))
    };
    let value: Vec<TruncatedNormal> = users.iter().map(law).collect::<Result<_, _>>()?;
    if value.is_empty() {
        return Err(wrong(1, "has no user".to_owned()));
    }
    let defects = Defects { records: value.len(), ..Defects::default() };
    Ok(Imported { value, notes: Vec::new(), defects })
}
