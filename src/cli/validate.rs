//! `fedgenie validate`

use super::progress::Show;
use super::{Host, ValidateArguments, kinds_of, print, print_json, say, threads_of};
use fedgenie::error::Error;
use fedgenie::experiment::cpu::Cpu;
use fedgenie::experiment::{Earlier, ROUNDS_PER_LOOK, RunOptions};
use fedgenie::text::{self, escaped};
use fedgenie::validation::{
    self, Budget, Claim, ClaimResult, HEADING, Kept, KeptClaim, Laboratory, NotRun, Provenance, Row, Verdict, markdown,
    papers, read_claims, seconds_of_all, table, today, tuning, validate as check,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the claims of FedGenie's sources are, seen from their root.
const CLAIMS: &str = "validation/claims";
/// The folder of kept results, beside that of claims.
const KEPT: &str = "results";
/// The name of the file with tables and explanations.
const RESULTS: &str = "RESULTS.md";

pub fn validate(arguments: &ValidateArguments, host: &dyn Host) -> Result<u8, Error> {
    let folder = arguments.claims.clone().unwrap_or_else(|| PathBuf::from(CLAIMS));
    if let Some(name) = &arguments.tune {
        return tune(&folder, name, arguments, host);
    }
    match (arguments.pages, arguments.rejudge) {
        (true, _) => return pages(&folder, arguments.quiet).map(|()| 0),
        (_, true) => return rejudge(&folder, arguments),
        _ => {}
    }
    let budget = if arguments.smoke { Budget::Smoke } else { Budget::Full };
    let claims = read_claims(&folder, &arguments.names)?;
    let (claims, others): (Vec<Claim>, Vec<Claim>) =
        claims.into_iter().partition(|claim| arguments.plan || claim.runs_among(&arguments.names));
    let not_run: Vec<NotRun> = others.iter().map(NotRun::of).collect();
    let threads = threads_of(arguments.threads.as_deref(), host)?;
    // Before the first run: provenance describes the state at the beginning.
    let provenance = provenance(&folder, threads.count());
    let progress = Show::new(true)?;
    let mut laboratory = Laboratory::new(budget, &threads, &progress, arguments.data.clone())
        .with_kinds(kinds_of(&arguments.with, host)?);
    if arguments.allow_paths {
        laboratory = laboratory.allowing_paths();
    }
    let (kept, files) = places(arguments.out.as_deref());
    if arguments.accept_checked {
        laboratory = laboratory.taking_over();
    }
    if arguments.plan {
        let laboratory = kept.into_iter().fold(laboratory, |laboratory, kept| laboratory.keeping(kept.to_owned()));
        return plan(&claims, &laboratory, &folder, arguments);
    }
    if let Some(kept) = kept {
        fs::create_dir_all(kept).map_err(|source| Error::Write { path: kept.to_owned(), source })?;
        laboratory = laboratory.keeping(kept.to_owned());
    }
    let mut results = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        if !arguments.quiet {
            say(&format!("{}/{} {}: {}", index + 1, claims.len(), escaped(&claim.name), escaped(&claim.title)));
        }
        let result = check(claim, &laboratory)?;
        if budget == Budget::Full {
            KeptClaim::of(claim, &result, &provenance).write(&folder.with_file_name(KEPT))?;
        }
        results.push(result);
    }
    if budget == Budget::Full {
        pages(&folder, arguments.quiet)?;
    }
    if arguments.json {
        let mut document = serde_json::json!({ "provenance": provenance, "claims": results, "not_run": not_run });
        if kept.is_some() {
            document["runs"] = serde_json::json!(laboratory.kept());
        }
        let text = serde_json::to_string_pretty(&document).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
    } else {
        let mut text = summary(&results, &not_run);
        if let Some(folder) = kept {
            text.push_str(&told_of_kept(&laboratory.kept(), folder));
        }
        print(&text)?;
    }
    let text = markdown(&results, &not_run, &provenance, budget);
    // The checked-in file covers only all claims with the full budget.
    let is_whole = arguments.names.is_empty() && budget == Budget::Full;
    let beside = Some(folder.with_file_name(RESULTS)).filter(|_| is_whole && (files.is_empty() || kept.is_some()));
    write_results(&text, files, beside, arguments.quiet)?;
    let unexpected = results.iter().flat_map(ClaimResult::rows).any(|row| !row.is_as_expected());
    Ok(u8::from(unexpected))
}

/// Writes verdicts into files, and into the one beside the folder of claims unless that holds something else.
fn write_results(text: &str, mut files: Vec<PathBuf>, beside: Option<PathBuf>, is_quiet: bool) -> Result<(), Error> {
    if let Some(beside) = beside {
        if is_free(&beside) {
            files.push(beside);
        } else {
            say(&format!("{} holds something else and stays as it is; --out names another file", text::path(&beside)));
        }
    }
    for file in files {
        fs::write(&file, text).map_err(|source| Error::Write { path: file.clone(), source })?;
        if !is_quiet {
            say(&format!("written to {}", text::path(&file)));
        }
    }
    Ok(())
}

/// Writes the page of the papers from transcripts and kept results, where there are transcripts beside the claims.
fn pages(claims: &Path, is_quiet: bool) -> Result<(), Error> {
    let papers = papers::read_papers(&claims.with_file_name("papers"))?;
    if papers.is_empty() {
        return Ok(());
    }
    let all = read_claims(claims, &[])?;
    let strangers = papers::strangers(&papers, &all);
    if !strangers.is_empty() {
        return Err(Error::Usage(format!("not in the transcripts of papers: {}", strangers.join("; "))));
    }
    let kept = KeptClaim::read_all(&claims.with_file_name(KEPT))?;
    let page = papers::page(&papers, &all, &kept);
    let html = papers::html(&page, &papers, &kept);
    let mut files = vec![("PAPERS.md".to_owned(), page), ("PAPERS.html".to_owned(), html)];
    let pictures = papers.iter().flat_map(papers::Paper::pictures);
    files.extend(pictures.map(|picture| (format!("papers/{}", picture.file()), picture.svg())));
    for (name, text) in files {
        let file = claims.with_file_name(name);
        fs::write(&file, text).map_err(|source| Error::Write { path: file.clone(), source })?;
        if !is_quiet {
            say(&format!("written to {}", text::path(&file)));
        }
    }
    Ok(())
}

/// Judges kept numbers by the claims as they are now.
fn rejudge(folder: &Path, arguments: &ValidateArguments) -> Result<u8, Error> {
    let claims = read_claims(folder, &arguments.names)?;
    let results = folder.with_file_name(KEPT);
    let kept = KeptClaim::read_all(&results)?;
    let mut all = Vec::new();
    for claim in &claims {
        let Some(known) = kept.iter().find(|known| known.name == claim.name) else {
            if !arguments.names.is_empty() {
                return Err(Error::Usage(format!("claim {}: no results of it are kept; carry it out", claim.name)));
            }
            continue;
        };
        let now = Provenance { machine: known.provenance.machine.clone(), ..provenance(folder, 1) };
        all.push((known, known.rejudged(claim, &now)?));
    }
    // Nothing is written unless all can be judged.
    let (mut text, mut numbers, mut unexpected) = (String::new(), 0, 0);
    for (known, judged) in &all {
        judged.write(&results)?;
        let rows = |of: &KeptClaim| of.checks.iter().flat_map(|check| check.rows.clone()).collect::<Vec<Row>>();
        let before: Vec<Verdict> = rows(known).iter().map(|row| row.verdict).collect();
        let after = rows(judged);
        numbers += after.len();
        unexpected += after.iter().filter(|row| !row.is_as_expected()).count();
        let count = |of: &mut dyn Iterator<Item = Verdict>| {
            let of: Vec<Verdict> = of.collect();
            let counts = Verdict::ALL.map(|verdict| (verdict, of.iter().filter(|found| **found == verdict).count()));
            let told =
                counts.iter().filter(|(_, count)| *count > 0).map(|(verdict, count)| format!("{count} {verdict}"));
            told.collect::<Vec<_>>().join(", ")
        };
        let [before, after] = [count(&mut before.into_iter()), count(&mut after.iter().map(|row| row.verdict))];
        let change = if before == after { after } else { format!("{after}; before: {before}") };
        text.push_str(&format!("{}: {change}\n", judged.name));
        if known.made_of.is_none() {
            let why = "the kept results do not say of which scenarios they are, so that this was not compared";
            say(&format!("{}: {why}", judged.name));
        }
    }
    pages(folder, arguments.quiet)?;
    print(&format!(
        "{text}\nnumbers: {numbers}, claims: {}, verdicts that are not as expected: {unexpected}\n",
        all.len()
    ))?;
    Ok(u8::from(unexpected > 0))
}

/// Says what claims would cost, and what they may decide.
fn plan(
    claims: &[Claim],
    laboratory: &Laboratory<'_>,
    folder: &Path,
    arguments: &ValidateArguments,
) -> Result<u8, Error> {
    let results = KeptClaim::read_all(&folder.with_file_name(KEPT))?;
    let mut plans = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        if !arguments.quiet {
            say(&format!("{}/{} {}: {}", index + 1, claims.len(), escaped(&claim.name), escaped(&claim.title)));
        }
        plans.push(validation::plan(claim, laboratory, &results)?);
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&plans).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
    } else {
        print(&super::plan::table(&plans, laboratory.threads().count()))?;
    }
    Ok(0)
}

/// Chooses settings by a grid. With `--out` runs are kept in that folder, and an interrupted choice goes on.
fn tune(claims: &Path, name: &str, arguments: &ValidateArguments, host: &dyn Host) -> Result<u8, Error> {
    let threads = threads_of(arguments.threads.as_deref(), host)?;
    let progress = Show::new(arguments.quiet)?;
    let Provenance { version, commit, date, machine } = provenance(claims, threads.count());
    let made = format!("version {version}, commit {commit}, {date}, {machine}");
    let accepts_checked = arguments.accept_checked;
    let options =
        RunOptions { earlier: Earlier::Resume, accepts_checked, progress: &progress, ..RunOptions::default() };
    let places = (arguments.data.clone(), arguments.out.as_deref());
    let (file, chosen) = tuning::tune(&claims.with_file_name("tuning"), name, places, &options, &threads, made)?;
    print(&tuning::told(&chosen))?;
    if !arguments.quiet {
        say(&format!("written to {}", text::path(&file)));
    }
    Ok(0)
}

/// What the verdicts come from.
fn provenance(folder: &Path, threads: usize) -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(folder),
        date: today(),
        machine: machine(threads),
    }
}

/// Whether a file is not there, or holds verdicts of an earlier validation.
fn is_free(file: &Path) -> bool {
    match fs::read(file) {
        Ok(there) => there.starts_with(HEADING.as_bytes()),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Where runs came from, for people.
fn told_of_kept(kept: &Kept, folder: &Path) -> String {
    let Kept { reused, taken_over, made, made_anew: _ } = kept;
    let mut text = format!("runs: {reused} of {} were there already, in {}\n", reused + made, folder.display());
    if *taken_over > 0 {
        text.push_str(&format!(
            "{taken_over} of them are of another build; their first rounds, one in {ROUNDS_PER_LOOK}, replay to the same \
             digests\n"
        ));
    }
    text
}

/// The folder that keeps runs, and the files of the tables, as `--out` names them.
fn places(out: Option<&Path>) -> (Option<&Path>, Vec<PathBuf>) {
    match out {
        Some(out) if is_file(out) => (None, vec![out.to_owned()]),
        Some(out) => (Some(out), vec![out.join(RESULTS)]),
        None => (None, Vec::new()),
    }
}

/// Whether `--out` names a file for the tables alone, and not a folder that keeps runs as well.
fn is_file(out: &Path) -> bool {
    out.is_file() || out.extension().is_some_and(|extension| extension == "md") && !out.is_dir()
}

fn summary(results: &[ClaimResult], not_run: &[NotRun]) -> String {
    let rows: Vec<&Row> = results.iter().flat_map(ClaimResult::rows).collect();
    let unexpected = rows.iter().filter(|row| !row.is_as_expected()).count();
    let took = seconds_of_all(results).map_or_else(String::new, |seconds| format!(" in {seconds:.0} s"));
    let verdict = match unexpected {
        0 => "every verdict is the one that is known".to_owned(),
        1 => "1 verdict is not the one that is known".to_owned(),
        count => format!("{count} verdicts are not the ones that are known"),
    };
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let (numbers, claims) = (counted(rows.len(), "number"), counted(results.len(), "claim"));
    format!("{}\n{numbers} of {claims}{took}: {verdict}\n", table(results, not_run))
}

/// The commit that the claims belong to, marked where files differ from it.
fn commit(folder: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    // What an earlier claim has just written there is no change of what this one is made from. Claims at the top of a
    // repository have their results outside, which git refuses to name.
    let status = ["status", "--porcelain", "--untracked-files=no"];
    let written = ["results", "PAPERS.md", "PAPERS.html", "RESULTS.md"].map(|name| format!(":(exclude)../{name}"));
    let sources: Vec<&str> = status.into_iter().chain(["--", ":/"]).chain(written.iter().map(String::as_str)).collect();
    match git(&sources).or_else(|| git(&status)) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}

fn machine(threads: usize) -> String {
    let processor = Cpu::brand().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let noun = if threads == 1 { "thread" } else { "threads" };
    format!("{processor}, {threads} {noun}, {}", std::env::consts::OS)
}
