//! A report as one HTML page that needs no network.
//!
//! The content of the page is rendered here: text, tables, and every figure's data as a table, all escaped by the
//! template `templates/report.html`, and every figure as the SVG elements that `svg` draws. The scripts (`script/`)
//! hide and show, tell values, and move the points of lines to other scales; they need the numbers, which lie in the
//! page as JSON.
//!
//! # Safety
//! Texts of a report are untrusted. Control and direction characters are left out. The template escapes the rest; the
//! JSON has no `<`; the scripts write them as text, never as HTML. Should all that fail, the page's policy still runs
//! only scripts that carry its nonce, and lets nothing through to a network. The nonce is a hash of everything that the
//! page shows: an attacker would have to write a text that contains the hash of itself.
//!
//! # Determinism
//! The same report gives the same bytes.

mod data_tables;
mod json;
mod picture;
mod shown;
#[cfg(test)]
mod tests;
mod view;

use super::Report;
use askama::Template;
use fedgenie_core::text::stripped_lines;
use shown::Shown;

const STYLE: &str = include_str!("html/report.css");

/// In this order: a later one uses the earlier.
const SCRIPTS: [&str; 6] = [
    include_str!("html/script/basics.js"),
    include_str!("html/script/fit.js"),
    include_str!("html/script/lines.js"),
    include_str!("html/script/tips.js"),
    include_str!("html/script/files.js"),
    include_str!("html/script/page.js"),
];

/// The report as an HTML page: one file, which may be opened from a disk, sent by mail and printed.
///
/// Values in the page have six significant digits, horizontal coordinates nine.
pub fn html(report: &Report) -> String {
    let shown = Shown::of(report);
    let data = json::json(report, &shown);
    let page = view::page(report, &shown, &data);
    let text = page.render().expect("writing to memory does not fail");
    // The page itself has none of these characters.
    stripped_lines(&text).into_owned()
}
