//! The kept results on a paper.

use super::Paper;
use crate::kept::{KeptCheck, KeptClaim};
use crate::results::Row;
use crate::verdict::Verdict;
use std::collections::BTreeMap;

/// A check with its claim.
pub(super) type Checked<'a> = (&'a KeptClaim, &'a KeptCheck);

/// The kept checks of a paper.
pub(super) struct Found<'a> {
    pub claims: Vec<&'a KeptClaim>,
    /// By item.
    pub of_items: BTreeMap<&'a str, Vec<Checked<'a>>>,
    pub others: Vec<Checked<'a>>,
}

impl<'a> Found<'a> {
    pub fn of(paper: &Paper, kept: &'a [KeptClaim]) -> Self {
        let claims: Vec<&KeptClaim> = kept.iter().filter(|claim| claim.paper.as_ref() == Some(&paper.name)).collect();
        let (mut of_items, mut others) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
        for claim in &claims {
            for check in &claim.checks {
                match &check.item {
                    Some(item) => of_items.entry(item.as_str()).or_default().push((*claim, check)),
                    None => others.push((*claim, check)),
                }
            }
        }
        Self { claims, of_items, others }
    }

    pub fn rows(&self) -> impl Iterator<Item = &'a Row> {
        self.with_claims().map(|(_, row)| row)
    }

    pub fn with_claims(&self) -> impl Iterator<Item = (&'a KeptClaim, &'a Row)> {
        let of = |claim: &&'a KeptClaim| {
            let claim = *claim;
            claim.checks.iter().flat_map(|check| &check.rows).map(move |row| (claim, row))
        };
        self.claims.iter().flat_map(of)
    }
}

/// The note of a row. That of a number that is not judged begins with a scenario, which has its name within its claim.
pub(super) fn note(claim: &KeptClaim, row: &Row) -> Option<String> {
    let note = row.note.as_deref()?;
    Some(match row.verdict {
        Verdict::NotJudged => format!("{}, {note}", claim.name),
        _ => capital(note),
    })
}

/// How a check says that the paper does not make its claim.
const NOT_ASKED: [&str; 2] = ["not asked", "not in the paper"];

/// Whether the paper claims something of a number.
pub(super) fn is_asked(row: &Row) -> bool {
    row.paper.as_deref().is_some_and(|paper| !NOT_ASKED.contains(&paper))
}

/// Verdicts of some rows, counted, without those on questions that the paper does not ask.
pub(super) fn counted<'a>(rows: impl IntoIterator<Item = &'a Row>) -> [usize; 5] {
    let rows: Vec<&Row> = rows.into_iter().filter(|row| is_asked(row)).collect();
    Verdict::ALL.map(|verdict| rows.iter().filter(|row| row.verdict == verdict).count())
}

/// A text that begins a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
