//! `fedgenie list` and `fedgenie describe`

use super::print;
use fedgenie::catalogue::first_paragraph;
use fedgenie::error::Error;
use fedgenie::scenario::catalogue::{Component, components};
use fedgenie::scenario::names::{nearest, unknown_name};
use fedgenie::text;

/// Fails if `kind` is neither a kind of component nor one of the `others`.
fn check_kind(kind: &str, components: &[Component], others: &[&'static str]) -> Result<(), Error> {
    let mut kinds: Vec<&str> = components.iter().map(|component| component.kind).collect();
    kinds.dedup();
    kinds.extend(others);
    if kinds.contains(&kind) { Ok(()) } else { Err(Error::Usage(unknown_name("kind", kind, &kinds))) }
}

pub fn list(kind: Option<&str>, needs: bool) -> Result<u8, Error> {
    let components = components();
    kind.map_or(Ok(()), |kind| check_kind(kind, &components, &["cpu"]))?;
    let listed = components.iter().filter(|found| kind.is_none_or(|kind| kind == found.kind));
    if needs {
        let text: Vec<String> = listed.map(needed).collect();
        print(&text.join("\n"))?;
        return Ok(0);
    }
    let lines: Vec<_> = listed.map(|found| (format!("{}/{}", found.kind, found.name), &found.summary)).collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let text: String = lines.iter().map(|(name, summary)| format!("{name:<width$}  {summary}\n")).collect();
    print(&text)?;
    Ok(0)
}

/// Name and summary of a component, with the parts of its documentation that say what it takes to use it.
fn needed(component: &Component) -> String {
    let mut text = format!("{}/{}  {}\n", component.kind, component.name, component.summary);
    for (heading, word) in [("Inputs", "needs"), ("Cost", "costs"), ("Source", "source")] {
        if let Some(part) = section(&component.documentation, heading) {
            text.push_str(&format!("  {word:<8}{}\n", part.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    text
}

/// The text under a heading.
fn section<'a>(documentation: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = documentation.split_once(&format!("# {heading}\n"))?;
    Some(rest.split_once("\n# ").map_or(rest, |(part, _)| part).trim())
}

pub fn describe(component: &str) -> Result<u8, Error> {
    let components = components();
    let Some((kind, name)) = component.split_once('/') else {
        return describe_bare(component, &components);
    };
    check_kind(kind, &components, &[])?;
    let Some(found) = components.iter().find(|known| known.kind == kind && known.name == name) else {
        let of_kind = components.iter().filter(|known| known.kind == kind);
        let names: Vec<&str> = of_kind.map(|known| known.name.as_str()).collect();
        return Err(Error::Usage(unknown_name(kind, name, &names)));
    };
    print(&description(component, found))?;
    Ok(0)
}

/// A name without its kind will do where only one component has it.
fn describe_bare(name: &str, components: &[Component]) -> Result<u8, Error> {
    let found: Vec<&Component> = components.iter().filter(|known| known.name == name).collect();
    let title = |component: &Component| format!("{}/{}", component.kind, component.name);
    match found[..] {
        [only] => {
            print(&description(&title(only), only))?;
            Ok(0)
        }
        [] => {
            let near = nearest(name, components.iter().map(|known| known.name.as_str()));
            let near = components.iter().find(|known| Some(known.name.as_str()) == near).map(title);
            let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
            let message = format!(
                "found {}; {near}expected KIND/NAME, such as policy/bsfl; `fedgenie list` has all",
                text::quoted(name)
            );
            Err(Error::Usage(message))
        }
        _ => {
            let names: Vec<String> = found.into_iter().map(title).collect();
            Err(Error::Usage(format!("{name:?} may be {}", names.join(" or "))))
        }
    }
}

/// Name, summary, documentation and parameters.
fn description(title: &str, Component { summary, documentation, parameters, .. }: &Component) -> String {
    let mut text = format!("{title}\n\n");
    if first_paragraph(documentation) != *summary {
        text.push_str(&format!("{summary}\n"));
        if !documentation.is_empty() {
            text.push('\n');
        }
    }
    text.push_str(documentation);
    if !parameters.is_empty() {
        text.push_str("\n# Parameters\n");
    }
    for parameter in parameters {
        let default = parameter.default.as_ref().map_or_else(String::new, |default| format!(" (default {default})"));
        text.push_str(&format!("  {:<16} {}{default}\n", parameter.key, parameter.description));
    }
    text
}
