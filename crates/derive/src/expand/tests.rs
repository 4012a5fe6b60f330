//! Tests of what a derive writes and of what it refuses.

use super::expand;
use proc_macro2::TokenStream;

/// What is written for a type, without the spaces of the printer.
fn written(text: &str) -> String {
    let input: TokenStream = text.parse().unwrap();
    expand(input, "::fedgenie::state").to_string().split_whitespace().collect()
}

fn refused(text: &str, message: &str) {
    let message: String = message.split_whitespace().collect();
    let found = written(text);
    assert!(found.contains("compile_error!") && found.contains(&message), "{text}: {found}");
}

/// Everything about one small type.
#[test]
fn a_pattern_names_every_field() {
    let expected = r#"
        #[automatically_derived]
        impl<T> ::fedgenie::state::Stateful for Means<T> where T: ::fedgenie::state::Stateful {
            fn exchange(&mut self, state: &mut ::fedgenie::state::State<'_>) {
                let _ = &state;
                let Self { rate: _, last: field_1, } = self;
                state.field(field_1);
                if state.is_loading() && !state.is_refused() {
                    let holds: bool = Self::is_sound(&*self);
                    state.require(holds);
                }
            }
        }"#;
    let text = r#"
        #[state(check = Self::is_sound)]
        struct Means<T> { #[state(skip = "from the scenario")] rate: f64, last: T }"#;
    assert_eq!(written(text), expected.split_whitespace().collect::<String>());
}

#[test]
fn a_field_that_is_not_saved_has_a_reason() {
    let missing = "a field that is not saved needs a reason";
    for attribute in
        ["skip", "skip()", "skip = \"\"", "skip = \" \"", "skip = 3", "skip = reason", "empty", "empty = \"\""]
    {
        refused(&format!("struct A {{ #[state({attribute})] b: u8 }}"), missing);
        refused(&format!("struct A(#[state({attribute})] u8);"), missing);
        refused(&format!("enum A {{ B {{ #[state({attribute})] c: u8 }} }}"), missing);
    }
    assert!(!written("struct A { #[state(skip = \"why\")] b: u8 }").contains("compile_error"));
}

#[test]
fn unknown_attributes_are_refused() {
    refused("struct A { #[state(ignore = \"why\")] b: u8 }", "unknown attribute of a field");
    refused("struct A { #[state(fixed)] b: u8 }", "unknown attribute of a field");
    refused("struct A { #[state(each(skip))] b: u8 }", "`each` holds nothing but one `each`");
    refused("struct A { #[state(each(each, each))] b: u8 }", "`each` holds nothing but one `each`");
    refused("struct A { #[state(each, skip = \"why\")] b: u8 }", "one attribute `state` at most");
    refused("struct A { #[state(each)] #[state(each)] b: u8 }", "one attribute `state` at most");
    refused("#[state(skip = \"why\")] struct A { b: u8 }", "unknown attribute of a type");
    refused("#[state(fixed)] struct A { b: u8 }", "unknown attribute of a type");
    refused("#[state(check = a, check = b)] struct A { b: u8 }", "unknown attribute of a type");
    refused("enum A { #[state(skip = \"why\")] B }", "a variant has no attribute `state`");
}

#[test]
fn types_without_a_state_are_refused() {
    refused("union A { b: u8, c: i8 }", "a union has no state to save");
    refused("enum A {}", "an enum with a state has 1 to 256 variants");
    let variants = |count: usize| (0..count).map(|number| format!("V{number},")).collect::<String>();
    refused(&format!("enum A {{ {} }}", variants(257)), "an enum with a state has 1 to 256 variants");
    let all = written(&format!("enum A {{ {} }}", variants(256)));
    assert!(all.contains("255u8=>Self::V255{}") && !all.contains("compile_error"), "{all}");
}
