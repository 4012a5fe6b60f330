//! Fuzzes scenarios made of keys and values of the catalogue; see `src/scenario.rs`.
#![no_main]

use arbitrary::Unstructured;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let scenario = fedgenie_fuzz::composed(&mut |below| input.choose_index(below).unwrap_or(0));
    fedgenie_fuzz::run("scenario_json", scenario.as_bytes());
});
