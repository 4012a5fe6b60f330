//! Files that a scenario may read, and access from a result folder of unknown origin.

use crate::support::{Answer, Workplace};
use serde_json::json;

/// Jobs take the samples of a file.
fn scenario(file: &str) -> String {
    format!(
        "name = \"reach\"\nseeds = 1\nstop.rounds = 3\nprotocol.synchronous = {{ cohort = 1 }}\n[population]\nclients = 2\n\
         [population.latency]\ndownload = {{ constant = \"1 s\" }}\ncompute = {{ empirical = {{ file = \"{file}\" }} }}\n\
         upload = {{ constant = \"1 s\" }}\n[policy.random]\n"
    )
}

/// Linear regression on a table.
fn learning(train: &str) -> String {
    format!(
        "name = \"reach\"\nseeds = 1\nstop.rounds = 3\nprotocol.synchronous = {{ cohort = 1 }}\npopulation.clients = 2\n\
         population.latency.download = {{ constant = \"1 s\" }}\npopulation.latency.compute = {{ constant = \"1 s\" }}\n\
         population.latency.upload = {{ constant = \"1 s\" }}\n[policy.random]\n[task.linear-regression]\n\
         data = {{ csv = {{ train = \"{train}\", test_fraction = 0.5, target = \"y\" }} }}\n\
         [training]\nbatch = 2\noptimizer = {{ sgd = {{ lr = 0.01 }} }}\n"
    )
}

const TABLE: &str = "x,y\n1,2\n2,3\n3,4\n4,5\n";

fn refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in parts {
        assert!(answer.stderr.contains(part), "{}\nshould say {part}", answer.stderr);
    }
    assert!(!answer.stderr.contains("inside"), "{}", answer.stderr);
}

fn good(answer: &Answer) {
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

/// A study in its folder, and a file beside it.
fn study(text: &str) -> Workplace {
    let place = Workplace::new();
    place.write("study/scenario.toml", text);
    place.write("secret.txt", "inside\n");
    place.write("study/own/samples.txt", "1\n2\n");
    place
}

const NEITHER: &str = "which lies neither below the scenario's folder nor below that of --data; --allow-paths reads it";

#[test]
fn a_scenario_reads_below_its_folder() {
    good(&study(&scenario("own/samples.txt")).fedgenie(&["run", "study/scenario.toml"]));
    let place = study(&scenario("../secret.txt"));
    let answer = place.fedgenie(&["run", "study/scenario.toml"]);
    let key = "study/scenario.toml:9: population.latency.compute.empirical.file: found \"../secret.txt\"";
    refused(&answer, &[key, NEITHER]);
    // If allowed, it is opened, and its contents are told.
    let answer = place.fedgenie(&["run", "study/scenario.toml", "--allow-paths"]);
    assert!(answer.code == 2 && answer.stderr.contains("found `inside`"), "{answer:?}");
    let absolute = place.path("secret.txt");
    let place = study(&scenario(absolute.to_str().unwrap()));
    refused(&place.fedgenie(&["run", "study/scenario.toml"]), &["population.latency.compute.empirical.file", NEITHER]);
    // Where the folder lies makes no difference, nor a value from the command line.
    let place = study(&scenario("own/samples.txt"));
    let set = "population.latency.compute.empirical.file=\"../secret.txt\"";
    refused(&place.fedgenie(&["run", "study/scenario.toml", "--set", set]), &[NEITHER]);
}

#[test]
#[cfg(unix)]
fn links_are_followed_before_they_are_judged() {
    use std::os::unix::fs::symlink;
    let place = study(&scenario("own/link.txt"));
    symlink(place.path("secret.txt"), place.path("study/own/link.txt")).unwrap();
    refused(&place.fedgenie(&["run", "study/scenario.toml"]), &["\"own/link.txt\"", NEITHER]);
    // A folder of data whose file is a link.
    let place = study(
        &learning("unused")
            .replace("{ csv = { train = \"unused\", test_fraction = 0.5, target = \"y\" } }", "\"images\""),
    );
    for name in
        ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
    {
        place.write("study/images/other", "");
        symlink(place.path("secret.txt"), place.path("study/images").join(name)).unwrap();
    }
    refused(&place.fedgenie(&["run", "study/scenario.toml"]), &["\"images\"", NEITHER]);
    // A path that leaves by a link and comes back lies below.
    let place = study(&scenario("back/own/samples.txt"));
    symlink(place.path("study"), place.path("study/back")).unwrap();
    good(&place.fedgenie(&["run", "study/scenario.toml"]));
    // Only files are opened: nobody writes into this pipe.
    let place = study(&scenario("own/pipe"));
    let made = std::process::Command::new("mkfifo").arg(place.path("study/own/pipe")).status().unwrap();
    assert!(made.success());
    refused(&place.fedgenie(&["run", "study/scenario.toml"]), &["which is neither a file nor a folder"]);
}

#[test]
fn data_are_read_below_their_folder() {
    let place = study(&learning("table.csv"));
    place.write("data/table.csv", TABLE);
    place.write("table.csv", TABLE);
    good(&place.fedgenie(&["run", "study/scenario.toml", "--data", "data"]));
    let place = study(&learning("../table.csv"));
    place.write("data/table.csv", TABLE);
    place.write("table.csv", TABLE);
    let answer = place.fedgenie(&["run", "study/scenario.toml", "--data", "data"]);
    refused(&answer, &["task.linear-regression.data.csv.train: found \"../table.csv\"", NEITHER]);
    good(&place.fedgenie(&["run", "study/scenario.toml", "--data", ".", "--allow-paths"]));
}

#[test]
fn a_result_folder_reads_the_files_that_it_was_made_from_and_no_others() {
    let place = study(&scenario("own/samples.txt"));
    good(&place.fedgenie(&["run", "study/scenario.toml", "--out", "out"]));
    let data = place.json("out/manifest.json")["data"].clone();
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["own/samples.txt"]);
    good(&place.fedgenie(&["verify", "out"]));
    good(&place.fedgenie(&["run", "out/scenario.toml", "--out", "out", "--resume"]));
    // Another file under the name is not opened: its fault would be told.
    place.write("study/own/samples.txt", "inside\n");
    let answer = place.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("the data differ: own/samples.txt"), "{answer:?}");
    let parts = ["out/scenario.toml", "is not the file whose BLAKE3 digest it has", "--allow-paths reads it"];
    refused(&place.fedgenie(&["run", "out/scenario.toml"]), &parts);
    place.write("study/own/samples.txt", "1\n2\n");
    good(&place.fedgenie(&["verify", "out"]));
    // A folder that somebody sent names a folder of this machine.
    let (manifest, resolved) = (place.json("out/manifest.json"), place.text("out/scenario.toml"));
    let mut planted = manifest.clone();
    planted["origin"] = json!({ "base": place.path("").to_str().unwrap(), "data": place.path("").to_str().unwrap() });
    place.write("out/manifest.json", planted.to_string());
    let mut marker = place.json("out/.fedgenie/experiment.json");
    marker["origin"] = planted["origin"].clone();
    place.write("out/.fedgenie/experiment.json", marker.to_string());
    place.write("out/scenario.toml", resolved.replace("own/samples.txt", "secret.txt"));
    let planted = || {
        for words in [
            &["verify", "out"][..],
            &["run", "out/scenario.toml"],
            &["run", "out/scenario.toml", "--out", "out", "--resume"],
        ] {
            refused(&place.fedgenie(words), &["\"secret.txt\"", "is not the file whose BLAKE3 digest it has"]);
        }
    };
    planted();
    std::fs::remove_dir_all(place.path("out/.fedgenie")).unwrap();
    planted();
}

#[test]
fn data_of_a_result_folder_are_known_by_their_digests() {
    let place = study(&learning("table.csv"));
    place.write("data/table.csv", TABLE);
    good(&place.fedgenie(&["run", "study/scenario.toml", "--data", "data", "--out", "out"]));
    good(&place.fedgenie(&["verify", "out"]));
    good(&place.fedgenie(&["verify", "out", "--data", "data"]));
    place.write("data/table.csv", "x,y\n1,inside\n");
    let answer = place.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("the data differ: table.csv"), "{answer:?}");
    refused(&place.fedgenie(&["run", "out/scenario.toml"]), &["is not the file whose BLAKE3 digest it has"]);
}
