//! The page of all papers for a browser: the same text, with a list of its tables and a bar of the verdicts on each
//! paper.

use super::found::{Found, counted};
use super::{HEADING, Paper, Picture};
use crate::kept::KeptClaim;
use crate::verdict::Verdict;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How it looks.
const STYLE: &str = include_str!("page.css");

/// The page, from that in Markdown.
pub fn html(markdown: &str, papers: &[Paper], kept: &[KeptClaim]) -> String {
    let options = Options::ENABLE_TABLES;
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, options).collect();
    let headings = name_headings(&mut events);
    let events = with_pictures(events, papers);
    // A wide table scrolls by itself.
    let events = events.into_iter().flat_map(|event| match event {
        Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"wide\">".into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>".into())],
        event => vec![event],
    });
    let mut text = String::new();
    pulldown_cmark::html::push_html(&mut text, events);
    let contents = contents(&headings);
    // Below the heading and what the page is made of stand bars, before the first table.
    let at = text.find("<div class=\"wide\">").unwrap_or(text.len());
    text.insert_str(at, &bars(papers, kept));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n<nav aria-label=\"tables and figures\">\n{contents}</nav>\n<main>\n{text}</main>\n</html>\n",
        HEADING.trim_start_matches("# ")
    )
}

/// The events with pictures in the place of links to their files: the page needs no other file.
fn with_pictures<'a>(events: Vec<Event<'a>>, papers: &[Paper]) -> Vec<Event<'a>> {
    let pictures: Vec<Picture> = papers.iter().flat_map(|paper| paper.pictures()).collect();
    let mut shown = Vec::new();
    let mut is_within = false;
    for event in events {
        match event {
            Event::Start(Tag::Image { ref dest_url, .. }) => {
                match pictures.iter().find(|picture| dest_url.ends_with(picture.file())) {
                    Some(picture) => {
                        is_within = true;
                        shown.push(Event::InlineHtml(picture.svg().into()));
                    }
                    None => shown.push(event),
                }
            }
            Event::End(TagEnd::Image) if is_within => is_within = false,
            // The words for those who do not see a picture are its title.
            _ if is_within => {}
            event => shown.push(event),
        }
    }
    shown
}

/// A heading: its level, its name in addresses, and its text.
type Heading = (HeadingLevel, String, String);

/// Gives headings the names that addresses have on the web: lower case, with hyphens for spaces, and a number where
/// they are not unique.
fn name_headings(events: &mut [Event<'_>]) -> Vec<Heading> {
    let mut all: Vec<Heading> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for index in 0..events.len() {
        let Event::Start(Tag::Heading { level, .. }) = events[index] else { continue };
        let inner = events[index + 1..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let words = inner.filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_string()),
            _ => None,
        });
        let text: String = words.collect();
        let lower = text.to_lowercase();
        let letters = lower.chars().filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter));
        let mut name: String = letters.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let times = seen.entry(name.clone()).or_default();
        if *times > 0 {
            name.push_str(&format!("-{times}"));
        }
        *times += 1;
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[index] {
            *id = Some(name.clone().into());
        }
        all.push((level, name, text));
    }
    all
}

/// The list of papers, each with its tables.
fn contents(headings: &[Heading]) -> String {
    let mut text = String::new();
    let mut is_open = false;
    for (level, name, words) in headings {
        let mut link = String::new();
        pulldown_cmark::html::push_html(&mut link, std::iter::once(Event::Text(words.as_str().into())));
        let link = format!("<a href=\"#{name}\">{link}</a>");
        match level {
            HeadingLevel::H2 => {
                if is_open {
                    text.push_str("</ul></details>\n");
                }
                let _ = write!(text, "<details><summary>{link}</summary><ul>");
                is_open = true;
            }
            HeadingLevel::H3 if is_open => {
                let _ = write!(text, "<li>{link}</li>");
            }
            _ => {}
        }
    }
    if is_open {
        text.push_str("</ul></details>\n");
    }
    text
}

/// A bar of the verdicts on each paper, with a legend.
fn bars(papers: &[Paper], kept: &[KeptClaim]) -> String {
    let mut text = "<figure class=\"bars\">\n".to_owned();
    for paper in papers {
        let counts = counted(Found::of(paper, kept).rows());
        let all: usize = counts.iter().sum();
        let told: Vec<String> =
            Verdict::ALL.iter().zip(counts).map(|(verdict, count)| format!("{count} {verdict}")).collect();
        let _ = write!(
            text,
            "<div class=\"bar\"><span class=\"name\">{}</span><span class=\"parts\" role=\"img\" aria-label=\"{}\">",
            escaped(&paper.system),
            told.join(", ")
        );
        for (index, (count, told)) in counts.into_iter().zip(&told).enumerate().filter(|(_, (count, _))| *count > 0) {
            let _ = write!(text, "<i class=\"v{index}\" style=\"flex-grow:{count}\" title=\"{told}\">{count}</i>");
        }
        let none = if all == 0 { "<em>no number yet</em>" } else { "" };
        let _ = writeln!(text, "{none}</span></div>");
    }
    text.push_str("<figcaption>Numbers by verdict:");
    for (index, verdict) in Verdict::ALL.into_iter().enumerate() {
        let _ = write!(text, " <i class=\"v{index} key\"></i> {verdict}");
    }
    text.push_str("</figcaption>\n</figure>\n");
    text
}

/// A text without markup.
fn escaped(text: &str) -> String {
    let mut shown = String::new();
    pulldown_cmark::html::push_html(&mut shown, std::iter::once(Event::Text(text.into())));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_names_that_links_use() {
        let page = html(
            "# What\n\n| a |\n|---|\n| [x](#small) |\n\n## Small\n\n### Small Table I\n\n### Small Table I\n\n1 < 2\n",
            &[],
            &[],
        );
        for words in [
            "<h2 id=\"small\">Small</h2>",
            "<h3 id=\"small-table-i\">Small Table I</h3>",
            "<h3 id=\"small-table-i-1\">Small Table I</h3>",
            "<summary><a href=\"#small\">Small</a></summary><ul><li><a href=\"#small-table-i\">Small Table I</a></li>",
            "<a href=\"#small\">x</a>",
            "<p>1 &lt; 2</p>",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert_eq!(page.matches("<div class=\"wide\">").count(), page.matches("</table>").count());
    }
}
