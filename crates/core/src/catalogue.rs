//! Catalogues: names of the components of each folder, and their documentation.
//!
//! A kind of component (policy, partition, model, …) is an enum whose variants a scenario chooses from.
//! [`components!`](crate::components) declares such an enum from one line for each component: its name, its parameters,
//! and its file, whose opening comment is its documentation. The line in the enum is all that a component needs outside
//! its file:
//!
//! ```ignore
//! components! {
//!     /// How training examples go to clients.
//!     pub enum PartitionConfig: PartitionSettings = "partition" {
//!         "zipf-sized" => ZipfSized(zipf::Config) in "partition/zipf.rs";
//!     }
//! }
//! ```
//!
//! The parameters implement a trait of the folder (here `PartitionSettings`), through which the enum passes every
//! question on.

mod named;

pub use named::Named;

use schemars::Schema;
use serde_json::Value;

/// The components of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    /// The kind's name: the part before the slash in `policy/bsfl`.
    pub kind: &'static str,
    /// Name of the enum of the components in the JSON schema of scenarios.
    pub definition: &'static str,
    /// Components with a documentation of their own.
    pub entries: &'static [Entry],
    /// Source of the file that documents the other variants of the enum together; empty if there are none.
    pub shared: &'static str,
}

/// One component.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in scenarios.
    pub name: &'static str,
    /// One line that defines it; if empty, the first paragraph of its file is used.
    pub summary: &'static str,
    /// Source of its file, which opens with its documentation.
    pub source: &'static str,
}

impl Entry {
    /// One line that defines the component.
    pub fn summary(&self) -> String {
        match self.summary.trim() {
            "" => first_paragraph(&documentation(self.source)),
            summary => plain(summary),
        }
    }

    /// The first part of a scenario under the heading *Example* of its file.
    pub fn example(&self) -> Option<String> {
        let text = documentation(self.source);
        let (_, after) = text.split_once("# Example\n")?;
        let (_, opened) = after.split_once("```toml\n")?;
        opened.split_once("```").map(|(example, _)| example.to_owned())
    }
}

impl Catalogue {
    /// The entry of a name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Writes the summaries into the schema of the enum.
    pub fn describe(&self, schema: &mut Schema) {
        for variant in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some((name, settings)) =
                variant["properties"].as_object_mut().and_then(|choice| choice.iter_mut().next())
            else {
                continue;
            };
            let Some(entry) = self.entry(name) else { continue };
            // For settings inlined here, the component's description counts.
            if let Some(settings) = settings.as_object_mut() {
                settings.shift_remove("description");
            }
            variant["description"] = entry.summary().into();
        }
    }
}

/// Declares the enum of a kind's components and its [`Catalogue`], one line for each component: see the
/// [module](crate::catalogue). A comment before a line is the component's summary, where several share a file.
#[macro_export]
macro_rules! components {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident: $settings:ident = $kind:literal {
            $($(#[doc = $summary:literal])* $name:literal => $variant:ident($config:ty) in $file:literal;)+
        }
    ) => {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[schemars(transform = describe_components)]
        $(#[$attribute])*
        pub enum $enum {
            $(#[doc = concat!("See `", $file, "`.")] #[serde(rename = $name)] $variant($config),)+
        }

        #[doc = concat!("What scenarios can name as ", $kind, ".")]
        pub static CATALOGUE: $crate::catalogue::Catalogue = $crate::catalogue::Catalogue {
            kind: $kind,
            definition: stringify!($enum),
            entries: &[$($crate::catalogue::Entry {
                name: $name,
                summary: concat!($($summary),*),
                source: include_str!($file),
            },)+],
            shared: "",
        };

        fn describe_components(schema: &mut ::schemars::Schema) {
            CATALOGUE.describe(schema);
        }

        impl $enum {
            /// The component's name in scenarios.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            fn settings(&self) -> &dyn $settings {
                match self { $(Self::$variant(config) => config,)+ }
            }

            #[allow(dead_code, reason = "only some kinds are shared behind their trait")]
            fn into_shared(self) -> ::std::sync::Arc<dyn $settings> {
                match self { $(Self::$variant(config) => ::std::sync::Arc::new(config),)+ }
            }

            #[allow(dead_code, reason = "only some kinds have settings that change after they were read")]
            fn settings_mut(&mut self) -> &mut dyn $settings {
                match self { $(Self::$variant(config) => config,)+ }
            }
        }
    };
}

/// The `//!` lines at the top of a source file, without parts for readers of Rust only.
pub fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut text = String::new();
    let (mut is_rust, mut was_rust) = (false, false);
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        if line == "```" && (is_rust || !text_is_open(&text)) {
            is_rust = !is_rust;
            was_rust = true;
        } else if !is_rust {
            text.push_str(&plain(line));
            text.push('\n');
        }
    }
    let text = text.trim_end();
    let text = if was_rust { text.strip_suffix("# Example").unwrap_or(text).trim_end() } else { text };
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

/// The first paragraph of a text, as one line.
pub fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Whether a block of TOML or text has begun and not ended.
fn text_is_open(text: &str) -> bool {
    text.lines().filter(|line| line.starts_with("```")).count() % 2 == 1
}

/// A line of documentation, in which links into the source become plain names.
pub fn plain(line: &str) -> String {
    let mut parts = line.split("[`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("`]") {
            Some((name, rest)) => {
                let plain = name.rsplit("::").next().unwrap_or(name);
                // `[name](target)`: the target is for readers of the source.
                let rest = rest.strip_prefix('(').and_then(|link| link.split_once(')')).map_or(rest, |(_, rest)| rest);
                text.push_str(&format!("`{plain}`{rest}"));
            }
            None => text.push_str(&format!("[`{part}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_is_the_opening_comment_without_rust() {
        let source = "//! A law of [`crate::law::Law`] and [`Span`](x).\n//!\n//! # Example\n//! ```\n//! let x = 1;\n//! ```\n\nfn main() {}\n//! no\n";
        assert_eq!(documentation(source), "A law of `Law` and `Span`.\n");
        let source = "//! One.\n//! # Example\n//! ```\n//! x\n//! ```\n//! ```toml\n//! a = 1\n//! ```\n";
        assert_eq!(documentation(source), "One.\n# Example\n```toml\na = 1\n```\n");
    }

    #[test]
    fn a_summary_is_the_entrys_own_or_the_first_paragraph_of_its_file() {
        let entry = Entry { name: "a", summary: "", source: "//! The file,\n//! in two lines.\n//!\n//! More.\n" };
        assert_eq!(entry.summary(), "The file, in two lines.");
        assert_eq!(Entry { summary: " Its own.", ..entry }.summary(), "Its own.");
    }

    #[test]
    fn an_example_is_the_first_under_its_heading() {
        let of = |source| Entry { name: "a", summary: "", source }.example();
        let two = "//! ```toml\n//! a = 0\n//! ```\n//! # Example\n//! Say:\n//! ```toml\n//! a = 1\n//! ```\n\
                   //! ```toml\n//! a = 2\n//! ```\n";
        assert_eq!(of(two).as_deref(), Some("a = 1\n"));
        assert_eq!(of("//! A file.\n//! ```toml\n//! a = 0\n//! ```\n"), None);
    }
}
