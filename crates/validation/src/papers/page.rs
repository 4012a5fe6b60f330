//! The page of all papers as Markdown: counts, then for each paper its claims, ten lines, and every table and figure in
//! the paper's order.

use super::found::{Checked, Found, capital, counted, note};
use super::summary::{differences, of_paper, sentence, why_none};
use super::{Item, Paper};
use crate::claim::Claim;
use crate::kept::KeptClaim;
use crate::levels::{Level, Reached};
use crate::results::{Provenance, Row, row_cells};
use crate::statistic::{Details, shown_interval};
use crate::together::{Together, together};
use fedgenie_core::text::markdown::prose;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|").replace('\n', " ")
}

/// The first line of the page.
pub const HEADING: &str = "# What reproduces of five papers";

/// The page of all papers, from transcripts, claims and kept results. `claims` are all that could be carried out.
pub fn page(papers: &[Paper], claims: &[Claim], kept: &[KeptClaim]) -> String {
    let mut text = format!(
        "{HEADING}\n\n\
         Written by `fedgenie validate` from the [results](results) of [claims](claims) and the [transcripts](papers) of the papers' tables and\n\
         figures, and from nothing else. Counts are of numbers that a paper makes a statement about. How claims are judged is in\n\
         [How the numbers are checked](README.md). Each claim has the commit and the date of its verdicts, *with changes* where files differed from\n\
         the commit; runs that an earlier build had made count if they replay to the same digests. *Judged again*: words, tables or bounds of the\n\
         claim have changed since, and the numbers of its runs were kept. Of a claim without a date no results are kept.\n\n\
         A table or figure is *open* if fewer than half of its numbers were decided. Otherwise it *reproduces* if all that were decided are\n\
         supported, *in part* if some are, and *does not* if none is. In brackets: supported numbers, each judged alone, of how many; and, where they are fewer, those supported\n\
         if all of the table are to be right at once (*together*, below).\n\n\
         | paper | supported | not supported | no difference | undecided | not judged | without a number of ours | tables, figures and statements | runs of |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for paper in papers {
        let found = Found::of(paper, kept);
        let counts = counted(found.rows()).map(|count| count.to_string());
        let results: Vec<&Item> = paper.items.iter().filter(|item| item.kind.is_of_results()).collect();
        let without = results.iter().filter(|item| !found.of_items.contains_key(item.id.as_str())).count();
        let anchor = paper.system.to_lowercase();
        let _ = writeln!(
            text,
            "| [{}](#{anchor}) | {} | {without} of {} | {} | {} |",
            prose(&paper.system),
            counts.join(" | "),
            results.len(),
            cell(&sentence(paper, &found)),
            dates(&found.claims)
        );
    }
    text.push_str(
        "\nBelow, for each table and figure: the *levels* that all policies have reached, beside controls, whose names are in parentheses; then what\n\
         is claimed of them: a − b are differences, a ÷ b quotients. Older results have no levels.\n\
         Each number has an interval of its own; *together* is the interval by which all numbers of a table with Student's intervals\n\
         are right at once with 95 % (Holm), and what remains undecided by it. The *setting* is the *same*, or *other*\n\
         where something that the paper states differs, or ours fills what it does not state: the list below the claims says what.\n",
    );
    for paper in papers {
        about(paper, claims, kept, &mut text);
    }
    text.push_str("\n## Our own questions\n\nNo paper makes these claims; they are in no count above.\n");
    of_claims(claims.iter().filter(|claim| claim.paper.is_none()), kept, &mut text);
    for claim in kept.iter().filter(|claim| claim.paper.is_none()) {
        let _ = write!(text, "\n### {}\n\n{}.\n", prose(&claim.title), prose(&claim.source));
        let checks: Vec<Checked<'_>> = claim.checks.iter().map(|check| (claim, check)).collect();
        of_checks(&checks, None, false, &mut text);
        of_details(claim, &mut text);
    }
    text
}

/// The days of the runs of some claims.
fn dates(claims: &[&KeptClaim]) -> String {
    let days = || claims.iter().map(|claim| claim.provenance.date.as_str());
    match (days().min(), days().max()) {
        (Some(first), Some(last)) if first == last => last.to_owned(),
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "–".to_owned(),
    }
}

/// Which of these claims were carried out, when and where.
fn of_claims<'a>(claims: impl Iterator<Item = &'a Claim>, kept: &[KeptClaim], text: &mut String) {
    text.push_str("\n| claim | command | commit | date | machine | cost |\n|---|---|---|---|---|---|\n");
    for claim in claims {
        let known = kept.iter().find(|known| known.name == claim.name);
        let looked = known.and_then(|known| known.looked.as_ref());
        let looked = looked.map_or_else(String::new, |looked| format!("; {looked}"));
        let link = format!("[{}](claims/{}.toml): {}{looked}", claim.name, claim.name, cell(&claim.title));
        let command = format!("`fedgenie validate {}`", claim.name);
        let takes = claim.takes.as_ref().map_or_else(|| "–".to_owned(), |takes| cell(takes));
        let _ = match known {
            Some(KeptClaim { provenance, seconds, rejudged, .. }) => {
                let took = seconds.map_or(takes, |seconds| format!("{seconds:.0} s"));
                let machine = cell(&provenance.machine);
                let of = |judged: fn(&Provenance) -> &str| {
                    let again = rejudged.as_ref().map(|again| format!("; judged again {}", judged(again)));
                    format!("{}{}", judged(provenance), again.unwrap_or_default())
                };
                let (commit, date) = (of(|found| &found.commit), of(|found| &found.date));
                writeln!(text, "| {link} | {command} | {commit} | {date} | {machine} | {took} |")
            }
            None => writeln!(text, "| {link} | {command} | not carried out | – | – | {takes} |"),
        };
    }
}

fn about(paper: &Paper, claims: &[Claim], kept: &[KeptClaim], text: &mut String) {
    let found = Found::of(paper, kept);
    let mine: Vec<&Claim> = claims.iter().filter(|claim| claim.paper.as_ref() == Some(&paper.name)).collect();
    let source = prose(paper.source.trim_end_matches('.'));
    let _ = write!(text, "\n## {}\n\n*{}*, {source}.\n\n", prose(&paper.system), prose(&paper.title));
    for line in of_paper(paper, &mine, &found) {
        let _ = writeln!(text, "- {}", prose(&line).replace('\n', " "));
    }
    of_claims(mine.iter().copied(), kept, text);
    let differences = differences(&mine, &found);
    if !differences.is_empty() {
        text.push_str("\nWhere runs differ from the paper:\n\n");
        for line in differences {
            let _ = writeln!(text, "- {}", prose(&line).replace('\n', " "));
        }
    }
    let others: BTreeSet<&str> =
        mine.iter().filter(|claim| claim.differs.is_some()).map(|claim| claim.name.as_str()).collect();
    for item in &paper.items {
        let _ = write!(text, "\n### {} {}\n\n{}.", prose(&paper.system), prose(&item.id), prose(&capital(&item.about)));
        if let Some(note) = &item.note {
            let _ = write!(text, " {}", prose(note));
        }
        text.push('\n');
        if let Some(picture) = item.picture {
            let about = prose(&picture.about());
            let _ = write!(text, "\n![{} {}](papers/{})\n\n{about}.\n", paper.system, item.id, picture.file());
        }
        let checks = found.of_items.get(item.id.as_str());
        match (checks, item.kind.is_of_results()) {
            (Some(checks), _) => of_checks(checks, Some(&others), true, text),
            (None, true) => {
                let why = why_none(item, &mine).map(|why| format!(": {}", prose(&why))).unwrap_or_default();
                let _ = write!(text, "\nNo number of ours stands beside it{why}.\n");
            }
            (None, false) => {}
        }
        of_rows(item, text);
    }
    if !found.others.is_empty() {
        let _ = write!(text, "\n### {} beside its tables\n", prose(&paper.system));
        of_checks(&found.others, Some(&others), false, text);
    }
    if found.claims.iter().any(|claim| !claim.details.is_empty()) {
        let _ = write!(text, "\n### {}: tables behind the numbers\n", prose(&paper.system));
        found.claims.iter().for_each(|claim| of_details(claim, text));
    }
}

/// The tables that a claim's statistics have made, folded.
fn of_details(claim: &KeptClaim, text: &mut String) {
    let mut tables: Vec<&Details> = Vec::new();
    for details in claim.details.iter().filter(|details| !details.rows.is_empty()) {
        if !tables.contains(&details) {
            tables.push(details);
        }
    }
    if tables.is_empty() {
        return;
    }
    let _ = write!(text, "\n<details><summary>{}: {}</summary>\n", prose(&claim.name), prose(&claim.title));
    for Details { title, columns, rows } in tables {
        let line = |cells: &[String]| cells.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | ");
        let _ = write!(text, "\n{}:\n\n| {} |\n|{}\n", prose(title), line(columns), "---|".repeat(columns.len()));
        for row in rows {
            let _ = writeln!(text, "| {} |", line(row));
        }
    }
    text.push_str("\n</details>\n");
}

/// The judged numbers of some checks below the levels of all; with those of a table together, where these are all of a
/// table. `others` are the claims with another setting than the paper's, where there is a paper.
fn of_checks(checks: &[Checked<'_>], others: Option<&BTreeSet<&str>>, is_table: bool, text: &mut String) {
    of_levels(checks, text);
    let rows: Vec<(Checked<'_>, &Row)> =
        checks.iter().flat_map(|&of| of.1.rows.iter().map(move |row| (of, row))).collect();
    let family = if is_table { together(&rows.iter().map(|&(_, row)| row).collect::<Vec<_>>()) } else { Vec::new() };
    let has_meaning = checks.iter().any(|(_, check)| check.meaning.is_some());
    let mut notes: Vec<String> = Vec::new();
    let has_family = family.iter().any(Option::is_some);
    let mut headings = vec!["check"];
    headings.extend(has_meaning.then_some("number"));
    headings.extend(["paper", "claimed", "ours [95 %]", "n", "verdict"]);
    headings.extend(has_family.then_some("together"));
    headings.extend(others.map(|_| "setting"));
    headings.push("claim");
    let _ = writeln!(text, "\n| {} |\n|{}", headings.join(" | "), "---|".repeat(headings.len()));
    for (index, ((claim, check), row)) in rows.iter().enumerate() {
        let [what, paper, rule, ours, n, _] = row_cells(row).map(|text| cell(&text));
        let mut cells = vec![what];
        let meaning = || check.meaning.as_ref().map_or_else(String::new, |meaning| cell(&meaning.told(&row.label)));
        cells.extend(has_meaning.then(meaning));
        cells.extend([paper, rule, ours, n, verdict((claim, row), &mut notes)]);
        cells.extend(has_family.then(|| family[index].map_or_else(String::new, |together| among_all(row, together))));
        cells.extend(
            others.map(|others| if others.contains(claim.name.as_str()) { "other" } else { "same" }.to_owned()),
        );
        cells.push(claim.name.clone());
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    for (index, note) in (1..).zip(notes) {
        let _ = write!(text, "\n({index}) {}.\n", prose(&note));
    }
    for (claim, check) in checks {
        if let (Some(because), Some(row)) = (&check.because, check.rows.first()) {
            let (about, of) = (prose(&row.claim), prose(&claim.name));
            let _ = write!(text, "\n*{about}* ({of}). {}\n", prose(because.trim()));
        }
    }
}

/// A verdict, with the number of its note below the table.
fn verdict((claim, row): (&KeptClaim, &Row), notes: &mut Vec<String>) -> String {
    let Some(note) = note(claim, row) else { return row.verdict.to_string() };
    let place = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("{} ({})", row.verdict, place + 1)
}

/// What everybody has reached: for each scenario of a claim a table, with a column for each quantity. Claims with the
/// same one share it.
fn of_levels(checks: &[Checked<'_>], text: &mut String) {
    let mut tables: BTreeMap<(&str, &str), Vec<&Level>> = BTreeMap::new();
    for (claim, check) in checks {
        for level in claim.levels.iter().filter(|level| check.looks.contains(&level.look)) {
            let table = tables.entry((&claim.name, &level.look.scenario)).or_default();
            if !table.contains(&level) {
                table.push(level);
            }
        }
    }
    let mut told: Vec<(Vec<String>, String)> = Vec::new();
    for ((claim, scenario), levels) in tables {
        let (of, table) = (format!("{} of {}", cell(scenario), cell(claim)), table_of_levels(&levels));
        match told.iter_mut().find(|(_, known)| *known == table) {
            Some((others, _)) => others.push(of),
            None => told.push((vec![of], table)),
        }
    }
    for (of, table) in told {
        let _ = write!(text, "\nLevels, {}:\n\n{table}", of.join(" and "));
    }
}

fn table_of_levels(levels: &[&Level]) -> String {
    let mut text = "|".to_owned();
    let mut values: Vec<&str> = Vec::new();
    for level in levels {
        if !values.contains(&&*level.look.value) {
            values.push(&level.look.value);
        }
    }
    let points: BTreeMap<usize, &str> = levels.iter().map(|level| (level.look.point, &*level.at)).collect();
    text.push_str(if points.len() > 1 { " at | policy | n |" } else { " policy | n |" });
    values.iter().for_each(|value| {
        let _ = write!(text, " {} |", cell(value));
    });
    let _ = writeln!(text, "\n|{}", "---|".repeat(values.len() + if points.len() > 1 { 3 } else { 2 }));
    for (&point, at) in &points {
        let here: Vec<&&Level> = levels.iter().filter(|level| level.look.point == point).collect();
        let of = |value: &str| here.iter().find(|level| level.look.value == value);
        let mut names: Vec<&str> = Vec::new();
        for reached in here.iter().flat_map(|level| &level.reached) {
            if !names.contains(&&*reached.by) {
                names.push(&reached.by);
            }
        }
        // Policies before controls.
        names.sort_by_key(|name| name.starts_with('('));
        for name in names {
            let reached = |value: &&str| of(value)?.reached.iter().find(|reached| reached.by == name);
            let found: Vec<Option<&Reached>> = values.iter().map(reached).collect();
            let n = found.iter().flatten().map(|reached| reached.n).max().unwrap_or(0);
            // A policy without a level where others have one has no run that gets there.
            let without = |value: &str| if name.starts_with('(') || of(value).is_none() { "–" } else { "never" };
            let shown = |(found, value): (&Option<&Reached>, &&str)| {
                found.map_or_else(|| without(value).to_owned(), |found| shown_interval(found.mean, found.ci95))
            };
            let shown: Vec<String> = found.iter().zip(&values).map(shown).collect();
            let at = if points.len() > 1 { format!(" {} |", cell(at)) } else { String::new() };
            let _ = writeln!(text, "|{at} {} | {n} | {} |", cell(name), shown.join(" | "));
        }
    }
    text
}

/// A number's interval among all of its table, and whether its verdict stands.
fn among_all(row: &Row, Together { interval, verdict }: Together) -> String {
    let shown = shown_interval(row.value, Some(interval));
    let interval = shown.split_once(' ').map_or("", |(_, interval)| interval);
    if verdict == row.verdict { interval.to_owned() } else { format!("{interval}; {verdict}") }
}

/// The paper's own numbers, folded.
fn of_rows(item: &Item, text: &mut String) {
    if item.rows.is_empty() {
        return;
    }
    let unit = if item.unit.is_empty() { String::new() } else { format!(", in {}", item.unit) };
    let _ = write!(text, "\n<details><summary>The paper's numbers{}</summary>\n\n|  |", prose(&unit));
    item.columns.iter().for_each(|column| {
        let _ = write!(text, " {} |", cell(column));
    });
    let _ = write!(text, "\n|{}\n", "---|".repeat(item.columns.len() + 1));
    for row in &item.printed {
        text.push('|');
        for value in row {
            let _ = write!(text, " {} |", cell(value));
        }
        text.push('\n');
    }
    text.push_str("\n</details>\n");
}
