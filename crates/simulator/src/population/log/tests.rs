//! Logs that are good, and logs that are not.

use super::*;
use std::io::Write;

const HEADER: &str = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome";

fn read_text(text: &str, run: &RunOfLog) -> Result<JobLog, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let name = file.path().display().to_string();
    read(file.path(), run).map_err(|error| error.to_string().replace(&name, "t.csv"))
}

fn log(rows: &str) -> Result<JobLog, String> {
    read_text(&format!("{HEADER}\n{rows}"), &RunOfLog::default())
}

fn course(row: &str) -> Option<([u64; 3], Option<Phase>, bool)> {
    let jobs = log(&format!("0,1,{row}")).unwrap().jobs;
    let ms = |span: Span| span.0 / 1_000_000;
    jobs[0].course().map(|course| (course.phases.map(ms), course.cut, course.has_phases))
}

#[test]
fn clients_and_rounds_are_numbered_ascending_and_jobs_sorted() {
    let found = log("7,3,10,,,,1,arrived\n18446744073709551615,1,2,,,,1,arrived\n7,1,1,,,,2.5,late\n").unwrap();
    assert_eq!((&found.clients[..], &found.rounds[..]), (&[7, u64::MAX][..], &[1, 3][..]));
    let order: Vec<_> = found.jobs.iter().map(|job| (job.client.0, job.round.0, job.line)).collect();
    assert_eq!(order, [(0, 1, 4), (1, 1, 3), (0, 2, 2)]);
    let notes: Vec<_> = found.notes.iter().map(|note| note.split_once(": ").unwrap().1).collect();
    assert_eq!(
        notes,
        [
            "2 clients, 7 to 18446744073709551615, were numbered anew from 0, ascending",
            "2 rounds, 1 to 3, were numbered anew from 1, ascending",
            "2 jobs have a total and no phases: all of it counts as computing"
        ]
    );
    let plain = log("0,1,,1,2,3,6,arrived\n1,1,,1,2,3,6,arrived\n").unwrap();
    assert_eq!(plain.notes, [""; 0]);
}

/// Milliseconds per phase, worked out by hand from the definition.
#[test]
fn phases_take_all_of_a_jobs_time() {
    let arrived = |phases| Some((phases, None, true));
    assert_eq!(course(",1,2,3,6,arrived"), arrived([1000, 2000, 3000]));
    assert_eq!(course(",1,2,3,,arrived"), arrived([1000, 2000, 3000]));
    assert_eq!(course(",1,2,3,7,arrived"), arrived([1000, 2000, 4000]));
    assert_eq!(course(",,2,,7,arrived"), arrived([0, 2000, 5000]));
    assert_eq!(course(",1,,3,7,arrived"), arrived([1000, 3000, 3000]));
    assert_eq!(course(",,2,3,7,arrived"), arrived([2000, 2000, 3000]));
    assert_eq!(course(",,,,7,arrived"), Some(([0, 7000, 0], None, false)));
    // Rounded parts: the total counts.
    assert_eq!(course(",1,2,3.002,6.001,arrived"), arrived([1000, 2000, 3001]));
    assert_eq!(course(",1,,3,,arrived"), None);
    assert_eq!(course(",,,,,arrived"), None);
}

#[test]
fn a_cut_job_is_in_its_last_known_phase_or_in_the_next() {
    let cut = |phases, phase| Some((phases, Some(phase), true));
    assert_eq!(course(",1,2,,3,late"), cut([1000, 2000, 0], Phase::Compute));
    assert_eq!(course(",1,2,,4,late"), cut([1000, 2000, 1000], Phase::Upload));
    assert_eq!(course(",1,,,1,dropped"), cut([1000, 0, 0], Phase::Download));
    assert_eq!(course(",1,,,4,dropped"), cut([1000, 3000, 0], Phase::Compute));
    assert_eq!(course(",1,2,3,8,late"), cut([1000, 2000, 5000], Phase::Upload));
    assert_eq!(course(",1,2,,,late"), cut([1000, 2000, 0], Phase::Compute));
    assert_eq!(course(",,,,4,late"), Some(([0, 4000, 0], Some(Phase::Compute), false)));
    assert_eq!(course(",,3,,4,late"), Some(([0, 4000, 0], Some(Phase::Compute), false)));
    assert_eq!(course(",,,,,dropped"), None);
}

#[test]
fn nonsense_is_refused_with_line_and_column() {
    for (rows, expected) in [
        ("0,1,,1,-2,3,6,arrived\n", "t.csv:2: column \"compute_s\": found \"-2\""),
        ("0,1,,1,2,3,6,arrived\n0,2,,1,2,3,6,lost\n", "t.csv:3: column \"outcome\": found \"lost\""),
        ("0,1,,1,2,3,5.9,arrived\n", "t.csv:2: column \"total_s\": found \"5.9\""),
        ("0,1,,1,2,3,6,arrived\n0,2,,1,2", "t.csv:3: found 5 fields; the header has 8 columns"),
        ("0,1,,1,2,3,6,arrived\n0,2,,1,2,3,6,arr", "t.csv:3: column \"outcome\": found \"arr\""),
        ("0.5,1,,1,2,3,6,arrived\n", "t.csv:2: column \"client\": found \"0.5\""),
        ("0,-1,,1,2,3,6,arrived\n", "t.csv:2: column \"round\": found \"-1\""),
        (",1,,1,2,3,6,arrived\n", "t.csv:2: column \"client\": found \"\""),
        ("0,1,,1,nan,3,6,arrived\n", "t.csv:2: column \"compute_s\": found \"nan\""),
        ("0,1,,1,inf,3,6,arrived\n", "t.csv:2: column \"compute_s\": found \"inf\""),
        ("0,1,,1,4e9,3,,arrived\n", "t.csv:2: column \"compute_s\": found \"4e9\""),
        ("", "t.csv: found no job; expected at least one"),
        ("3,1,5,1,2,3,6,arrived\n3,2,5,1,2,3,6,arrived\n", "t.csv:3: client 3 is sent a job at 5 s, and line 2"),
    ] {
        let error = log(rows).unwrap_err();
        assert!(error.starts_with(expected), "{rows:?}: {error}");
    }
    let header = read_text("client,round,total_s\n", &RunOfLog::default()).unwrap_err();
    assert!(header.contains("there is no \"sent_s\""), "{header}");
    let twice = read_text(&format!("{HEADER},client\n"), &RunOfLog::default()).unwrap_err();
    assert!(twice.contains("two columns \"client\""), "{twice}");
    assert!(read_text("", &RunOfLog::default()).unwrap_err().contains("is empty"));
}

#[test]
fn one_of_several_runs_is_chosen() {
    let text = "outcome,policy,seed,point,client,round,sent_s,download_s,compute_s,upload_s,total_s,note\n\
                arrived,random,1,0,4,1,,1,1,1,3,x\narrived,random,2,0,5,1,,1,1,1,3,x\narrived,bsfl,1,0,6,1,,1,1,1,3,x\n";
    let of = |policy: Option<&str>, seed, point| {
        read_text(text, &RunOfLog { policy: policy.map(str::to_owned), seed, point })
    };
    let error = of(None, None, None).unwrap_err();
    assert!(error.contains("several runs (policy \"bsfl\", seed \"1\", point \"0\"; policy \"random\""), "{error}");
    assert!(of(Some("random"), None, None).unwrap_err().contains("several runs"));
    let one = of(Some("random"), Some(2), Some(0)).unwrap();
    assert_eq!(one.clients, [5]);
    let said = |part: &str| one.notes.iter().any(|note| note.contains(part));
    assert!(
        said("columns that do not count: \"note\"") && said("2 jobs of other runs were left out"),
        "{:?}",
        one.notes
    );
    assert_eq!(of(Some("bsfl"), None, None).unwrap().clients, [6]);
    let error = of(Some("random"), Some(3), None).unwrap_err();
    assert!(error.contains("found no job of the chosen run; there is policy \"bsfl\""), "{error}");
    let missing =
        read_text(&format!("{HEADER}\n0,1,,1,1,1,3,arrived\n"), &RunOfLog { seed: Some(1), ..RunOfLog::default() });
    assert!(missing.unwrap_err().contains("found no job of the chosen run"));
}
