//! Inputs that broke something once, as small as they can be.

use super::shared::{TARGETS, run};
use serde_json::{Value, json};

/// A `run.json` with a changed value is refused by every command that adds it up.
fn spoilt_run(spoil: impl FnOnce(&mut Value)) {
    let target = TARGETS.iter().find(|target| target.name == "run_json").unwrap();
    let mut document: Value = serde_json::from_slice(&(target.corpus)()[0]).unwrap();
    let good = document.clone();
    spoil(&mut document);
    assert_ne!(document, good);
    run("run_json", document.to_string().as_bytes());
}

/// The report subtracted them.
#[test]
fn more_rounds_that_take_the_longest_time_than_there_are() {
    spoilt_run(|run| run["metrics"]["durations"]["at_max"] = json!(7));
}

#[test]
fn counts_whose_sum_leaves_its_range() {
    let most = json!(u64::MAX);
    spoilt_run(|run| run["metrics"]["durations"]["bins"] = json!([[1, most], [2, most]]));
    spoilt_run(|run| {
        for window in run["metrics"]["selections"]["windows"].as_array_mut().unwrap() {
            window[0] = most.clone();
        }
    });
    spoilt_run(|run| run["metrics"]["explanations"]["numbers"][0]["windows"][0][0][0] = most.clone());
}

#[test]
fn windows_that_cannot_be() {
    spoilt_run(|run| drop(run["metrics"]["selections"]["windows"][0].as_array_mut().unwrap().pop()));
    for rounds in [0, 3, 1_u32 << 31] {
        spoilt_run(|run| run["metrics"]["selections"]["rounds_per_window"] = json!(rounds));
        spoilt_run(|run| run["metrics"]["explanations"]["rounds_per_window"] = json!(rounds));
    }
}

#[test]
fn decisions_with_fewer_numbers_than_candidates() {
    for key in ["is_chosen", "clients"] {
        spoilt_run(|run| {
            let kept = &mut run["metrics"]["explanations"]["kept"][0]["decisions"][0];
            drop(kept[key].as_array_mut().unwrap().pop());
        });
    }
}

/// A rate that is finite as it is written, and infinite in bits per second, could not be written out.
#[test]
fn a_quantity_that_is_infinite_in_its_base_unit() {
    let target = TARGETS.iter().find(|target| target.name == "scenario_toml").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let linked = (target.corpus)().into_iter().map(text).find(|text| text.contains("Mbit/s\"")).unwrap();
    let end = linked.find(" Mbit/s\"").unwrap();
    let start = linked[..end].rfind('"').unwrap() + 1;
    run("scenario_toml", format!("{}-1e308{}", &linked[..start], &linked[end..]).as_bytes());
}
