//! Results of claims as they are kept: a file for each claim, written by the validation that carried it out.
//!
//! ```text
//! validate ─▶ results/CLAIM.json ─▶ PAPERS.md
//! ```
//!
//! A validation with the full budget writes the file of each of its claims, and of no other: claims may be carried out
//! in pieces, each with its own commit and date. Pages are made of these files alone.

use super::claim::Claim;
use super::levels::Level;
use super::results::{CheckResult, ClaimResult, Looked, Provenance, Row};
use super::statistic::{Details, Look, Meaning};
use fedgenie_experiment::error::Error;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The results of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptClaim {
    /// Where and when they were found.
    pub provenance: Provenance,
    /// Where and when they were judged again, by the claim as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejudged: Option<Provenance>,
    /// What they were made of: [`Claim::made_of`]; older ones do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<String>,
    /// The claim's name.
    pub name: String,
    /// The claim.
    pub title: String,
    /// Where it is made.
    pub source: String,
    /// The paper that makes it, by the name of its transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// Wall time; none where runs were reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How many seeds it took, where they were added until all numbers were decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<Looked>,
    /// Its checks.
    pub checks: Vec<KeptCheck>,
    /// What all policies and controls have reached of the quantities that the checks look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// Tables of the measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Details>,
}

/// The results of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCheck {
    /// The table or figure of the paper that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// [`Check::measured`](super::Check); older results do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// What its numbers are, where they are levels of policies, or compare them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// The quantities that it looks at, whose levels the claim has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
    /// The judged numbers.
    pub rows: Vec<Row>,
}

impl KeptClaim {
    /// Of a claim that was carried out.
    pub fn of(claim: &Claim, result: &ClaimResult, provenance: &Provenance) -> Self {
        let check = |(check, found): (&super::Check, &CheckResult)| KeptCheck {
            item: check.item.clone().or_else(|| claim.item.clone()),
            because: found.because.clone(),
            measured: Some(check.measured.clone()),
            meaning: check.statistic.meaning(),
            looks: check.statistic.looks(),
            rows: found.rows.clone(),
        };
        Self {
            provenance: provenance.clone(),
            rejudged: None,
            made_of: Some(claim.made_of.clone()),
            name: result.name.clone(),
            title: result.title.clone(),
            source: result.source.clone(),
            paper: claim.paper.clone(),
            seconds: result.seconds,
            looked: result.looked.clone(),
            checks: claim.checks.iter().zip(&result.checks).map(check).collect(),
            levels: result.levels.clone(),
            details: result.details().into_iter().cloned().collect(),
        }
    }

    /// Writes them into the folder of results. Returns the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(format!("{}.json", self.name));
        let failed = |source| Error::Write { path: path.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        fs::create_dir_all(folder).and_then(|()| fs::write(&path, text + "\n")).map_err(failed)?;
        Ok(path)
    }

    /// Reads the results of a folder, in the order of their names; none if there is no folder.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, Error> {
        let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = |path: PathBuf| {
            let text = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
            serde_json::from_slice(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
        };
        paths.into_iter().map(read).collect()
    }
}
