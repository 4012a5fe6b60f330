//! Transcripts of the papers' tables, and the page that stands them beside our numbers.

use super::support::{Answer, Workplace, changed};
use super::validation::{CLAIM, workplace};
use fedgenie::validation::papers::{self, HEADING, Paper, read_papers, strangers};
use fedgenie::validation::{KeptClaim, read_claims};
use serde_json::json;
use std::path::Path;
use std::process::Command;

fn validation(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("validation").join(folder)
}

/// A number that a check quotes is one of the paper's, and it is about a table that there is.
#[test]
fn claims_quote_what_the_papers_print() {
    let papers = read_papers(&validation("papers")).unwrap();
    let names: Vec<&str> = papers.iter().map(|paper| paper.name.as_str()).collect();
    assert_eq!(names, ["bsfl", "fed_bac", "fedacs", "mab_frs", "proxyrl"]);
    let claims = read_claims(&validation("claims"), &[]).unwrap();
    let strangers = strangers(&papers, &claims);
    assert!(strangers.is_empty(), "{}", strangers.join("\n"));
    // Every paper has claims, and each item its place once.
    for paper in &papers {
        assert!(claims.iter().any(|claim| claim.paper.as_ref() == Some(&paper.name)), "{}", paper.name);
        assert!(paper.items.len() > 5, "{}: {}", paper.name, paper.items.len());
    }
}

/// Explanations take their numbers from runs. Those of these claims state some by themselves, so many.
#[test]
fn explanations_state_few_numbers() {
    let papers = read_papers(&validation("papers")).unwrap();
    let claims = read_claims(&validation("claims"), &[]).unwrap();
    let stated = papers::stated(&papers, &claims).unwrap();
    let found: Vec<(&str, usize)> = stated.iter().map(|(claim, numbers)| (claim.as_str(), numbers.len())).collect();
    assert_eq!(found, STATED, "a number of runs is {{POLICY: VALUE}}; {stated:?}");
}

/// Claims and their numbers that nothing checks; entries may shrink and go.
const STATED: &[(&str, usize)] = &[
    ("fedacs_filmtrust", 1),
    ("growth", 1),
    ("mab_frs_learning", 11),
    ("mab_frs_table4", 3),
    ("proxyrl_ml100k", 1),
    ("proxyrl_sweeps", 1),
    ("proxyrl_video_games", 1),
];

/// The page is what the command writes from what is kept.
#[test]
fn the_page_of_the_papers_is_up_to_date() {
    let written = std::fs::read_to_string(validation("PAPERS.md")).unwrap();
    let papers = read_papers(&validation("papers")).unwrap();
    let claims = read_claims(&validation("claims"), &[]).unwrap();
    let kept = KeptClaim::read_all(&validation("results")).unwrap();
    assert!(written.starts_with(HEADING));
    let expected = papers::page(&papers, &claims, &kept);
    assert!(written == expected, "`fedgenie validate --pages` writes another page");
    let written = std::fs::read_to_string(validation("PAPERS.html")).unwrap();
    assert!(written == papers::html(&expected, &papers, &kept), "`fedgenie validate --pages` writes another page");
    for picture in papers.iter().flat_map(Paper::pictures) {
        let written = std::fs::read_to_string(validation("papers").join(picture.file())).unwrap();
        assert!(written == picture.svg(), "`fedgenie validate --pages` draws {} otherwise", picture.file());
    }
    for result in &kept {
        assert!(claims.iter().any(|claim| claim.name == result.name), "results of {}, which is no claim", result.name);
    }
}

/// A claim about a paper says in what its runs differ from it, unless it needs no runs.
#[test]
fn claims_about_papers_say_what_differs() {
    let claims = read_claims(&validation("claims"), &[]).unwrap();
    for claim in claims.iter().filter(|claim| claim.paper.is_some()) {
        assert!(claim.differs.is_some() || claim.scenarios.is_empty(), "{}", claim.name);
    }
}

/// What an earlier validation has written beside the claims marks no later one as made of changed files.
#[test]
fn results_of_claims_are_no_changes_of_the_sources() {
    let place = workplace(CLAIM);
    // A folder of its own, so that results lie within the repository.
    let claims = "tests/claims";
    place.write("tests/scenario.toml", place.read("scenario.toml"));
    place.write(&format!("{claims}/order.toml"), CLAIM);
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let done = Command::new("git").arg("-C").arg(place.path("")).args(who).args(words).output();
        assert!(done.is_ok_and(|done| done.status.success()), "git {words:?}");
    };
    let validate = || {
        let answer = place.fedgenie(&["validate", "--claims", claims, "--json", "--quiet"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        place.json("tests/results/order.json")["provenance"]["commit"].as_str().unwrap().to_owned()
    };
    git(&["init", "--quiet"]);
    validate();
    git(&["add", "tests"]);
    git(&["commit", "--quiet", "--message", "all"]);
    for written in ["tests/results/order.json", "tests/RESULTS.md"] {
        place.write(written, [place.read(written), b"\n".to_vec()].concat());
    }
    assert!(!validate().contains(' '), "{}", validate());
    place.write("tests/scenario.toml", place.text("scenario.toml") + "# changed\n");
    assert!(validate().ends_with(" with changes"));
}

const PAPER: &str = r#"name = "small"
system = "Small"
title = "A small paper"
source = "A. Author, 2025"
[[item]]
id = "Table I"
about = "Regret of three policies"
kind = "results"
unit = "1"
columns = ["regret"]
rows = [["genie", 0], ["bsfl", 12.50], ["random", 250]]
[[item]]
id = "Fig. 1"
about = "How the parts work together"
kind = "drawing"
picture = "generalisation"
[[item]]
id = "Fig. 2"
about = "Regret over time"
kind = "curves"
not_run = "costs a day"
"#;

#[test]
fn results_are_kept_and_stand_beside_the_papers() {
    let claim = changed(
        CLAIM,
        "source = \"a test\"\n",
        "source = \"a test\"\npaper = \"small\"\nitem = \"Table I\"\ndiffers = \"laws of ours\"\n",
    );
    let claim = changed(&claim, "paper = \"less\"", "paper = \"12.5 against 250\"");
    let place = workplace(&claim);
    place.write("papers/small.toml", PAPER);
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "order"]);
    assert_eq!(code, 0, "{stderr}");
    let kept = place.json("results/order.json");
    assert_eq!(kept["checks"][0]["item"], "Table I");
    assert_eq!(kept["checks"][1]["rows"].as_array().unwrap().len(), 2);
    let page = place.text("PAPERS.md");
    for words in [
        HEADING,
        "| [Small](#small) | 1 | 1 | 0 | 0 | 0 | 1 of 2 | in part: Table I (1 of 2); no number of ours: Fig. 2 | ",
        "- **Reproduces**, 1 number: Table I (1 of 2).\n- **Does not**, 1 number: Table I (1 of 2).\n",
        "- **No number of ours**: Fig. 2 (costs a day).\n",
        "\nWhere runs differ from the paper:\n\n- *order*: laws of ours.\n",
        "\nLevels, small of order:\n\n| policy | n | regret.mean |\n|---|---|---|\n| bsfl | 6 | ",
        "| `fedgenie validate order` |",
        "### Small Table I\n\nRegret of three policies.",
        "| BSFL has less regret than the genie: genie | regret.mean, bsfl − genie | 12.5 against 250 | ≤ 0 |",
        "| The genie has no regret | regret.mean of genie | – | 0 |",
        "| check | number | paper | claimed | ours [95 %] | n | verdict | together | setting | claim |\n|---|---|---|---|---|---|---|---|---|---|\n",
        "| bsfl | 12.50 |",
        "### Small Fig. 2\n\nRegret over time.\n\nNo number of ours stands beside it: costs a day.",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let html = place.text("PAPERS.html");
    for words in
        ["<h3 id=\"small-table-i\">", "aria-label=\"1 supported, 1 not supported, 0 no difference", "costs a day"]
    {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert!(page.contains("![Small Fig. 1](papers/generalisation.svg)"), "{page}");
    let drawn = place.text("papers/generalisation.svg");
    assert!(html.contains(drawn.trim_end()) && !html.contains("<img"), "{html}");
    let wrong = PAPER.replace("kind = \"drawing\"", "kind = \"curves\"");
    place.write("papers/small.toml", wrong);
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--pages"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("Fig. 1: a picture is in the place of a drawing"), "{stderr}");
    place.write("papers/small.toml", PAPER);
    // From what is kept alone.
    std::fs::remove_file(place.path("PAPERS.md")).unwrap();
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--pages"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(place.text("PAPERS.md"), page);
    // A small budget keeps nothing.
    std::fs::remove_dir_all(place.path("results")).unwrap();
    place.fedgenie(&["validate", "--claims", "claims", "--smoke"]);
    assert!(!place.path("results").exists());
}

/// Words, tables and bounds of a claim may change without its runs; what asks for other numbers may not.
#[test]
fn kept_numbers_are_judged_by_the_claim_as_it_is_now() {
    let claim = changed(CLAIM, "source = \"a test\"\n", "source = \"a test\"\npaper = \"small\"\ndiffers = \"ours\"\n");
    let place = workplace(&claim);
    place.write("papers/small.toml", PAPER);
    let rejudge = || place.fedgenie(&["validate", "--claims", "claims", "--rejudge", "order"]);
    let Answer { code, stderr, .. } = rejudge();
    assert_eq!(code, 2);
    assert!(stderr.contains("claim order: no results of it are kept; carry it out"), "{stderr}");
    assert_eq!(place.fedgenie(&["validate", "--claims", "claims", "order"]).code, 0);
    let before = place.json("results/order.json");
    // Nothing has changed.
    let Answer { code, stdout, stderr } = rejudge();
    assert_eq!(code, 0, "{stderr}");
    assert!(!stdout.contains("before"), "{stdout}");
    assert_eq!(place.json("results/order.json"), before);
    // The other way round, of one policy alone, and under a table.
    let other = changed(&claim, "against = [\"genie\", \"random\"]", "against = [\"random\"]");
    let other = changed(&other, "holds = { at-most = 0 }", "holds = { at-least = 0 }\nitem = \"Table I\"");
    let other = changed(&other, "BSFL has less regret than", "BSFL has more regret than");
    place.write("claims/order.toml", &other);
    let Answer { code, stdout, stderr } = rejudge();
    assert_eq!(code, 1, "{stderr}");
    assert!(stdout.contains("not as expected: 1\n"), "{stdout}");
    let after = place.json("results/order.json");
    let row = |of: &serde_json::Value, row: usize| of["checks"][1]["rows"][row].clone();
    let of_random = (0..2).map(|index| row(&before, index)).find(|row| row["label"] == "random").unwrap();
    let found = row(&after, 0);
    assert_eq!((&found["value"], &found["ci95"]), (&of_random["value"], &of_random["ci95"]));
    assert_eq!((&of_random["verdict"], &found["verdict"]), (&json!("supported"), &json!("not-supported")));
    assert_eq!(after["checks"][1]["item"], "Table I");
    let page = place.text("PAPERS.md");
    assert!(page.contains("; judged again ") && page.contains("BSFL has more regret than"), "{page}");
    // Other numbers have to be made.
    for (from, to, why) in [
        ("against = [\"random\"]", "against = [\"round-robin\"]", "of round-robin there is no such number"),
        // The same sentence, of another moment.
        ("value = \"regret.mean\" }", "value = \"regret.mean\", at_s = 1 }", "of genie there is no such number"),
        (
            "seeds = 6",
            "seeds = 7",
            "its scenarios, their files, seeds, looks or what [learns] asks are not those of the runs",
        ),
    ] {
        place.write("claims/order.toml", changed(&other, from, to));
        let Answer { code, stderr, .. } = rejudge();
        assert_eq!(code, 2);
        assert!(stderr.contains(why) && stderr.contains("carry it out"), "{stderr}");
        assert_eq!(place.json("results/order.json"), after);
    }
}

/// Six seeds of three policies; with a folder of kept runs, those that it lacks.
#[test]
fn a_plan_says_what_is_to_be_made_and_what_is_open() {
    let place = workplace(CLAIM);
    let plan = |more: &[&str]| -> serde_json::Value {
        let words = [&["validate", "--claims", "claims", "--plan", "--json", "--quiet"], more].concat();
        let Answer { code, stdout, stderr } = place.fedgenie(&words);
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str::<serde_json::Value>(&stdout).unwrap()[0].take()
    };
    let before = plan(&[]);
    assert_eq!((&before["runs"], &before["there"], &before["verdicts"]), (&18.into(), &0.into(), &().into()));
    assert!(before["seconds"].as_f64().unwrap() > 0.0 && before["refused"].as_array().unwrap().is_empty());
    assert!(!place.path("results").exists() && !place.path("kept").exists());
    assert_eq!(plan(&["--smoke"])["runs"], 9);
    assert_eq!(place.fedgenie(&["validate", "--claims", "claims", "--out", "kept", "--quiet"]).code, 0);
    assert_eq!(plan(&[])["runs"], 18);
    let after = plan(&["--out", "kept"]);
    assert_eq!((&after["runs"], &after["there"]), (&0.into(), &18.into()));
    assert_eq!(after["verdicts"], serde_json::json!([2, 1, 0, 0, 0]));
    let told = place.fedgenie(&["validate", "--claims", "claims", "--plan", "--out", "kept"]).stdout;
    assert!(told.starts_with("claim  runs  there  time ") && told.contains("\norder  0     18 "), "{told}");
    assert!(told.contains("0 runs to be made") && told.ends_with("nothing was written\n"), "{told}");
    // A scenario that cannot be carried out is part of the plan.
    place.write("scenario.toml", changed(&place.text("scenario.toml"), "rounds = ", "round = "));
    let told = place.fedgenie(&["validate", "--claims", "claims", "--plan"]);
    assert!(told.code == 0 && told.stdout.contains("note: order: small: "), "{told:?}");
}

#[test]
fn a_transcript_that_cannot_be_is_refused() {
    let refused = |from: &str, to: &str, words: &str| {
        let place: Workplace = workplace(CLAIM);
        place.write("papers/small.toml", changed(PAPER, from, to));
        let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--pages"]);
        assert!(code == 2 && stderr.contains(words), "{words}: {stderr}");
    };
    refused("[\"bsfl\", 12.50]", "[\"bsfl\"]", "Table I: a row has 1 cells; expected a label and 1 columns");
    refused("kind = \"curves\"", "kind = \"results\"", "Fig. 2: results have rows");
    refused("id = \"Fig. 2\"", "id = \"Fig. 1\"", "Fig. 1 is listed twice");
    refused("kind = \"curves\"", "kind = \"graph\"", "small.toml");
    refused("kind = \"drawing\"", "kind = \"drawing\"\nnot_run = \"a day\"", "Fig. 1: not_run is for results");
    let quoting = changed(CLAIM, "paper = \"less\"", "paper = \"13.5 against 250\"\nitem = \"Table II\"");
    let quoting = changed(&quoting, "source = \"a test\"\n", "source = \"a test\"\npaper = \"small\"\n");
    let place = workplace(&quoting);
    place.write("papers/small.toml", PAPER);
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--pages"]);
    assert!(code == 2 && stderr.contains("quotes 13.5;") && stderr.contains("is about Table II"), "{stderr}");
    let place = workplace(&changed(&quoting, "paper = \"small\"", "paper = \"large\""));
    place.write("papers/small.toml", PAPER);
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--pages"]);
    assert!(code == 2 && stderr.contains("there is no paper large"), "{stderr}");
}
