//! Fuzzes the target of this name; see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fedgenie_fuzz::run("svhn", input));
