//! Many runs in packs: the same files as in folders of their own, kept, resumed and verified one by one.

use super::replay::BANDIT;
use super::support::{SCENARIO, Workplace, assert_same_folders, changed};
use fedgenie::experiment::shelf::Shelf;
use fedgenie::experiment::{Experiment, Overrides, build};
use fedgenie::limits;
use std::collections::BTreeMap;
use std::fs;

const PACKED: &[&str] = &["--set", "record.packed=true"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [PACKED, more].concat()
}

/// The files of the runs that a manifest lists, by name.
fn files(work: &Workplace, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let (manifest, shelf) = (work.json(&format!("{folder}/manifest.json")), Shelf::of(&work.path(folder)));
    let names = manifest["files"].as_object().unwrap().keys().filter(|name| name.starts_with("runs/"));
    names.map(|name| (name.clone(), shelf.read(name).unwrap())).collect()
}

fn packs(work: &Workplace, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(work.path(&format!("{folder}/runs"))).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn with_seeds(seeds: usize) -> String {
    changed(&changed(BANDIT, "rounds = 30", "rounds = 3"), "seeds = 3", &format!("seeds = {seeds}"))
}

#[test]
fn a_pack_has_the_files_that_folders_have() {
    let work = Workplace::with(BANDIT);
    work.run_into("loose", &["--events"]);
    work.run_into("packed", &words(&["--events"]));
    assert_eq!(packs(&work, "packed"), ["00000.tar"]);
    let (loose, packed) = (files(&work, "loose"), files(&work, "packed"));
    assert_eq!(packed.len(), 24, "four files of six runs");
    assert!(loose == packed);
    let answer = work.fedgenie(&["verify", "packed"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "packed: 6 runs replayed, no difference\n"));
    // What reads folders reads packs.
    for folder in ["loose", "packed"] {
        assert_eq!(work.fedgenie(&["report", folder, "--format", "csv"]).code, 0);
        let answer = work.fedgenie(&["export", folder, "--to", "csv", "-o", &format!("{folder}-tables")]);
        assert_eq!(answer.code, 0, "{answer:?}");
    }
    for name in ["rounds", "events", "runs"] {
        let [loose, packed] = ["loose", "packed"].map(|folder| work.text(&format!("{folder}-tables/{name}.csv")));
        assert!(loose == packed.replace("packed,", "loose,"), "{name}");
    }
    // Standard tools open it.
    let tar =
        std::process::Command::new("tar").args(["-xf", "00000.tar"]).current_dir(work.path("packed/runs")).status();
    if !tar.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no tar");
        return;
    }
    fs::remove_file(work.path("packed/runs/00000.tar")).unwrap();
    assert!(files(&work, "packed") == loose);
    assert!(work.path("packed/runs/bsfl-s1/run.json").is_file());
    assert_eq!(work.fedgenie(&["verify", "packed"]).code, 0);
}

#[test]
fn many_runs_are_packed_by_themselves() {
    let work = Workplace::new();
    let load = |seeds: usize, more: &str| {
        work.write(SCENARIO, format!("{}\n{more}", with_seeds(seeds)));
        Experiment::load(&work.path(SCENARIO), &Overrides::default()).unwrap().is_packed()
    };
    let most = limits::LOOSE_RUNS / 2;
    assert_eq!([load(most, ""), load(most + 1, "")], [false, true], "two policies");
    assert_eq!([load(1, "[record]\npacked = true"), load(most + 1, "[record]\npacked = false")], [true, false]);
}

/// Runs move from pack to pack when seeds are added, and the folder is that of all seeds at once.
#[test]
fn more_seeds_move_runs_from_pack_to_pack() {
    let work = Workplace::with(&changed(
        &with_seeds(200),
        "[policy.random]",
        "[policy.random]\n[policy.round-robin]\n[sweep]\n\"regret.alpha\" = [1.0, 2.0]",
    ));
    work.run_into("whole", PACKED);
    assert_eq!(packs(&work, "whole"), ["00000.tar", "00001.tar", "00002.tar", "00003.tar", "00004.tar"]);
    let scenario = work.text(SCENARIO);
    work.write(SCENARIO, changed(&scenario, "seeds = 200", "seeds = 90"));
    work.run_into("out", PACKED);
    assert_eq!(packs(&work, "out").len(), 3);
    let written = work.text("out/scenario.toml");
    work.write("out/scenario.toml", changed(&written, "seeds = 90", "seeds = 200"));
    let answer = work.fedgenie(&["run", "out/scenario.toml", "--out", "out", "--resume", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(fs::read(work.path("out/runs/00004.tar")).unwrap(), work.read("whole/runs/00004.tar"));
    assert_eq!(packs(&work, "out"), packs(&work, "whole"));
    assert!(files(&work, "out") == files(&work, "whole"));
}

/// Runs that lie in folders go into packs when there are many.
#[test]
fn runs_in_folders_go_into_packs() {
    let work = Workplace::with(&with_seeds(5));
    work.run_into("whole", PACKED);
    work.run_into("out", PACKED);
    // As they lay before there were many: beside one another.
    let shelf = Shelf::of(&work.path("out"));
    let files = files(&work, "out");
    for (name, bytes) in files.iter().filter(|(name, _)| !name.contains("bsfl-s2") && !name.contains("random-s5")) {
        work.write(&format!("out/{name}"), bytes);
    }
    assert!(shelf.is_there("runs/bsfl-s2/run.json"));
    fs::remove_file(work.path("out/runs/00000.tar")).unwrap();
    // A foreign file stays where it is.
    work.write("out/runs/random-s1/notes.txt", "mine");
    work.run_into("out", &words(&["--resume"]));
    assert_eq!(packs(&work, "out"), ["00000.tar", "random-s1"]);
    assert_eq!(work.text("out/runs/random-s1/notes.txt"), "mine");
    fs::remove_dir_all(work.path("out/runs/random-s1")).unwrap();
    assert_same_folders(&work, "whole", "out");
}

/// Flips a byte of a file in a pack.
fn spoil(work: &Workplace, folder: &str, text: &str) {
    let name = format!("{folder}/runs/00000.tar");
    let mut bytes = work.read(&name);
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    bytes[at] ^= 1;
    work.write(&name, bytes);
}

#[test]
fn a_changed_pack_is_found_and_its_run_made_anew() {
    let work = Workplace::with(&with_seeds(4));
    work.run_into("whole", PACKED);
    for (place, file) in [("\"arm\": \"random\"", "run.json"), ("{\"round\":1,", "rounds.jsonl")] {
        work.run_into("out", &words(&["--overwrite"]));
        spoil(&work, "out", place);
        let answer = work.fedgenie(&["verify", "out"]);
        assert!(answer.code == 1 && answer.stdout.contains(file), "{answer:?}");
        let answer = work.fedgenie(&["export", "out", "--to", "csv"]);
        assert!(answer.code == 1 && answer.stderr.contains(file), "{answer:?}");
        let answer = work.fedgenie(&[&["run", SCENARIO, "--out", "out", "--resume", "--quiet"], PACKED].concat());
        assert!(answer.code == 0 && answer.stderr.contains("it is repeated"), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
    }
}

#[test]
fn a_pack_that_was_cut_is_named_and_completed() {
    let work = Workplace::with(&with_seeds(4));
    work.run_into("whole", PACKED);
    work.run_into("out", PACKED);
    let pack = work.read("out/runs/00000.tar");
    work.write("out/runs/00000.tar", &pack[..pack.len() / 2]);
    let answer = work.fedgenie(&["report", "out"]);
    assert!(answer.code == 1 && answer.stderr.contains("runs/00000.tar cannot be read"), "{answer:?}");
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 1);
    let resumed = |work: &Workplace| {
        let answer =
            work.fedgenie(&[&["run", SCENARIO, "--out", "out", "--quiet"][..], &words(&["--resume"])].concat());
        assert!(answer.code == 0 && answer.stderr.contains("runs/00000.tar cannot be read to its end"), "{answer:?}");
        assert_same_folders(work, "whole", "out");
    };
    resumed(&work);
    // What is no archive at all is said without its bytes.
    work.write("out/runs/00000.tar", [0xE9; 3000]);
    let answer = work.fedgenie(&["report", "out"]);
    assert!(answer.stderr.contains("runs/00000.tar cannot be read: from byte 0 on it is no tar archive"), "{answer:?}");
    resumed(&work);
    // Deleting the experiment deletes its packs.
    work.write("out/runs/mine.tar", "mine");
    work.run_into("out", &words(&["--overwrite"]));
    assert_eq!(packs(&work, "out"), ["00000.tar", "mine.tar"]);
}

/// A run of another build that is kept stays one of that build, in its pack as well.
#[test]
fn runs_of_another_build_are_kept_in_packs() {
    let work = Workplace::with(&with_seeds(3));
    work.run_into("out", PACKED);
    let own = build();
    let shelf = Shelf::of(&work.path("out"));
    let text = shelf.read_to_string("runs/random-s2/run.json").unwrap();
    let digest = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let blank = changed(&text, &format!("\"build\": \"{own}\""), "\"build\": \"0123456789abcdef\"");
    let start = &blank[..blank.rfind("\"blake3\"").unwrap()];
    let other = format!("{start}\"blake3\": \"{}\"\n}}\n", digest(&format!("{start}\"blake3\": \"\"\n}}\n")));
    let (name, files) = ("runs/random-s2/run.json", files(&work, "out"));
    for (file, bytes) in files.iter().filter(|(file, _)| file.contains("random-s2")) {
        work.write(&format!("out/{file}"), if file == name { other.as_bytes() } else { bytes });
    }
    let mut manifest = work.json("out/manifest.json");
    manifest["files"][name] = serde_json::json!(digest(&other));
    work.write("out/manifest.json", manifest.to_string());
    let resume = [&["run", SCENARIO, "--out", "out", "--resume", "--quiet"], PACKED].concat();
    let answer = work.fedgenie(&resume);
    assert!(answer.code == 2 && answer.stderr.contains("runs of another build"), "{answer:?}");
    let answer = work.fedgenie(&[&resume[..], &["--accept-checked"]].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(packs(&work, "out"), ["00000.tar"]);
    assert_eq!(work.json("out/manifest.json")["other_builds"]["random-s2"], "0123456789abcdef");
    let kept = Shelf::of(&work.path("out")).read_to_string(name).unwrap();
    assert!(kept.contains(&format!("\"build\": \"{own}\"")) && kept.contains("\"accepted\""), "{kept}");
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

#[cfg(unix)]
mod killed {
    use super::super::interruption::{signal, wait_for};
    use super::super::support::Answer;
    use super::*;

    fn complete(work: &Workplace) -> usize {
        let shelf = Shelf::of(&work.path("out"));
        let names = (1..=40).flat_map(|seed| [format!("bsfl-s{seed}"), format!("random-s{seed}")]);
        names.filter(|run| shelf.is_there(&Shelf::name(run, "run.json"))).count()
    }

    fn long() -> String {
        changed(&changed(BANDIT, "rounds = 30", "rounds = 400"), "seeds = 3", "seeds = 40")
    }

    #[test]
    fn resuming_after_kills_gives_the_whole() {
        let work = Workplace::with(&long());
        work.run_into("whole", PACKED);
        let words = [&["run", SCENARIO, "--out", "out", "--threads", "1", "--quiet", "--resume"], PACKED].concat();
        for count in [1, 3, 10, 30] {
            let mut process = work.start(&words);
            wait_for(|| complete(&work) >= count && work.path("out/.fedgenie/process-0").exists());
            signal(&process, "-KILL");
            process.wait().unwrap();
        }
        let answer = work.fedgenie(&["report", "out"]);
        assert!(answer.code == 2 && answer.stderr.contains("runs are complete"), "{answer:?}");
        assert_eq!(work.fedgenie(&words).code, 0);
        assert_same_folders(&work, "whole", "out");
    }

    #[test]
    fn an_interrupted_study_keeps_what_is_complete() {
        let work = Workplace::with(&long());
        work.run_into("whole", PACKED);
        let words = [&["run", SCENARIO, "--out", "out", "--threads", "2", "--quiet"], PACKED].concat();
        let process = work.start(&words);
        wait_for(|| complete(&work) >= 5);
        signal(&process, "-INT");
        let answer = Answer::of(process);
        assert_eq!(answer.code, 130, "{answer:?}");
        let kept = complete(&work);
        assert!(answer.stderr.contains(&format!("{kept} of 80 runs are complete")), "{answer:?}");
        work.run_into("out", &super::words(&["--resume"]));
        assert_same_folders(&work, "whole", "out");
    }

    /// Parts side by side in one folder, one of which is killed.
    #[test]
    fn parts_share_a_folder() {
        let work = Workplace::with(&long());
        work.run_into("whole", PACKED);
        let start = |shard: &str| {
            let words = ["run", SCENARIO, "--out", "out", "--threads", "1", "--quiet", "--resume", "--shard", shard];
            work.start(&[&words[..], PACKED].concat())
        };
        let (first, mut second, third) = (start("0/3"), start("1/3"), start("2/3"));
        wait_for(|| complete(&work) >= 8);
        signal(&second, "-KILL");
        second.wait().unwrap();
        assert_eq!((Answer::of(first).code, Answer::of(third).code), (0, 0));
        assert_eq!(Answer::of(start("1/3")).code, 0);
        assert_same_folders(&work, "whole", "out");
    }
}
