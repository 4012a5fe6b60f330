//! What reproduces of a paper, in a sentence and in ten lines: made of verdicts alone.
//!
//! # Definition
//! A table or figure is *open* if fewer than half of its numbers were decided: supported, not supported, or no
//! difference. Otherwise it *reproduces* if none is not supported, *does not* if none is supported, and else does *in
//! part*. It is open as well where none is either.

use super::found::{Checked, Found, counted, is_asked, note};
use super::{Item, Paper};
use crate::claim::{Check, Claim};
use crate::kept::KeptClaim;
use crate::results::Row;
use crate::together::together;
use crate::verdict::Verdict;

/// The items of results, each with the counts of its verdicts; `None` without a number of ours.
fn items<'a>(paper: &'a Paper, found: &Found<'_>) -> Vec<(&'a Item, Option<[usize; 5]>)> {
    let of = |item: &'a Item| {
        let checks = found.of_items.get(item.id.as_str());
        let counts = checks.map(|checks| counted(checks.iter().flat_map(|(_, check)| &check.rows)));
        (item, counts)
    };
    // What is no table of results may have numbers of ours as well; where all are answers to questions that the paper
    // does not ask, none counts.
    let is_shown = |(item, counts): &(&Item, Option<[usize; 5]>)| match counts {
        Some(counts) => *counts != [0; 5],
        None => item.kind.is_of_results(),
    };
    paper.items.iter().map(of).filter(is_shown).collect()
}

/// How a table or figure stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Whole,
    Part,
    Not,
    Open,
    WithoutNumber,
}

impl Standing {
    /// With the words that introduce those that stand so.
    const ALL: [(Self, &'static str); 5] = [
        (Self::Whole, "reproduces"),
        (Self::Part, "in part"),
        (Self::Not, "does not"),
        (Self::Open, "open"),
        (Self::WithoutNumber, "no number of ours"),
    ];

    const fn of(counts: Option<[usize; 5]>) -> Self {
        match counts {
            None => Self::WithoutNumber,
            Some([0, 0, ..]) => Self::Open,
            Some([yes, no, same, open, unjudged]) if yes + no + same < open + unjudged => Self::Open,
            Some([_, 0, ..]) => Self::Whole,
            Some([0, ..]) => Self::Not,
            Some(_) => Self::Part,
        }
    }
}

/// Which tables and figures reproduce, each with the share of its numbers that are supported.
pub(super) fn sentence(paper: &Paper, found: &Found<'_>) -> String {
    let items = items(paper, found);
    let of = |(standing, words): (Standing, &str)| {
        let mine = items.iter().filter(|(_, counts)| Standing::of(*counts) == standing);
        let name = |(item, counts): &(&Item, Option<[usize; 5]>)| match counts {
            Some(counts) => {
                let (alone, all) = (counts[0], counts.iter().sum::<usize>());
                let together = found.of_items.get(item.id.as_str()).map_or(alone, |checks| supported_together(checks));
                let together = if together < alone { format!(", {together} together") } else { String::new() };
                format!("{} ({alone} of {all}{together})", item.id)
            }
            None => item.id.clone(),
        };
        let names: Vec<String> = mine.map(name).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    };
    Standing::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// How many numbers of a table are supported where all of them are to be right at once.
fn supported_together(checks: &[Checked<'_>]) -> usize {
    let rows: Vec<&Row> = checks.iter().flat_map(|(_, check)| &check.rows).collect();
    let verdicts = together(&rows).into_iter().zip(&rows).filter(|(_, row)| is_asked(row));
    let verdicts = verdicts.map(|(found, row)| found.map_or(row.verdict, |found| found.verdict));
    verdicts.filter(|&verdict| verdict == Verdict::Supported).count()
}

/// So many reasons are told.
const MOST_REASONS: usize = 3;

/// Lines on verdicts, each with the tables and figures that it is about, and on what has no number of ours. `claims`
/// are those about the paper.
pub(super) fn of_paper(paper: &Paper, claims: &[&Claim], found: &Found<'_>) -> Vec<String> {
    let items = items(paper, found);
    let all = counted(found.rows());
    let mut lines = Vec::new();
    let words = ["Reproduces", "Does not", "No difference", "Undecided", "Not judged"];
    for (index, words) in words.into_iter().enumerate().filter(|&(index, _)| all[index] > 0) {
        let of = |(item, counts): &(&Item, Option<[usize; 5]>)| {
            let counts = (*counts)?;
            let count = counts[index];
            (count > 0).then(|| format!("{} ({count} of {})", item.id, counts.iter().sum::<usize>()))
        };
        let mut of: Vec<String> = items.iter().filter_map(of).collect();
        let elsewhere = counted(found.others.iter().flat_map(|(_, check)| &check.rows))[index];
        of.extend((elsewhere > 0).then(|| format!("beside its tables ({elsewhere})")));
        let reasons = if index == 4 { reasons(found) } else { String::new() };
        lines.push(format!("**{words}**, {}: {}.{reasons}", of_numbers(all[index]), of.join(", ")));
    }
    let without: Vec<String> = items
        .iter()
        .filter(|(_, counts)| counts.is_none())
        .map(|(item, _)| why_none(item, claims).map_or_else(|| item.id.clone(), |why| format!("{} ({why})", item.id)))
        .collect();
    if !without.is_empty() {
        lines.push(format!("**No number of ours**: {}.", without.join(", ")));
    }
    lines
}

/// In what the runs of claims differ from the paper, told once where it is the same of several. `claims` are those
/// about the paper.
pub(super) fn differences(claims: &[&Claim], found: &Found<'_>) -> Vec<String> {
    let mut differs: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in claims.iter().filter(|claim| found.claims.iter().any(|kept| kept.name == claim.name)) {
        let Some(how) = claim.differs.as_deref() else { continue };
        match differs.iter_mut().find(|(known, _)| *known == how) {
            Some((_, claims)) => claims.push(&claim.name),
            None => differs.push((how, vec![&claim.name])),
        }
    }
    differs.iter().map(|(how, claims)| format!("*{}*: {how}.", claims.join(", "))).collect()
}

fn of_numbers(count: usize) -> String {
    if count == 1 { "1 number".to_owned() } else { format!("{count} numbers") }
}

/// Why no number of ours stands beside a table: claims about it that were not carried out, or what the transcript says.
pub(super) fn why_none(item: &Item, claims: &[&Claim]) -> Option<String> {
    let is_about = |claim: &&&Claim| {
        let of = |check: &Check| check.item.as_ref().or(claim.item.as_ref()) == Some(&item.id);
        claim.checks.iter().any(of)
    };
    let names: Vec<&str> = claims.iter().filter(is_about).map(|claim| claim.name.as_str()).collect();
    let claimed = (!names.is_empty()).then(|| format!("claimed in {}, which was not carried out", names.join(", ")));
    item.not_run.clone().or(claimed)
}

/// Why numbers are not judged, the most frequent reasons first.
fn reasons(found: &Found<'_>) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let is_not_judged = |(_, row): &(&KeptClaim, &Row)| row.verdict == Verdict::NotJudged && is_asked(row);
    for (claim, row) in found.with_claims().filter(is_not_judged) {
        let note = note(claim, row).unwrap_or_default();
        let reason = note.split("; ").next().unwrap_or_default().to_owned();
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let more: usize = counts.iter().skip(MOST_REASONS).map(|(_, count)| count).sum();
    let told = counts.into_iter().take(MOST_REASONS).map(|(reason, count)| format!("{reason} ({count})"));
    let more = (more > 0).then(|| format!("others, below the tables ({more})"));
    format!(" Why: {}.", told.chain(more).collect::<Vec<_>>().join("; "))
}
