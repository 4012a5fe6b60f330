//! Every relative link of a page leads to a file and, in a page, to a heading; every page is a chapter of the book.

use super::pages::{Page, all, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A link's path from the root of the repository; `None` if it leads out.
fn place(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// A link of a page: the page, the link, the file that it leads to, the heading.
fn relative(page: &Page) -> impl Iterator<Item = (String, Option<String>, Option<String>)> {
    let links = page.links().into_iter().filter(|link| !link.contains(':'));
    let path = page.path.clone();
    links.map(move |link| {
        let (file, anchor) = link.split_once('#').map_or((&*link, None), |(file, anchor)| (file, Some(anchor)));
        let file = if file.is_empty() { Some(path.clone()) } else { place(&path, file) };
        (link.clone(), file, anchor.map(str::to_owned))
    })
}

/// What is wrong with the links of the pages.
fn dead(pages: &[Page], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut dead = Vec::new();
    for page in pages {
        for (link, file, anchor) in relative(page) {
            let Some(file) = file.filter(|file| exists(file)) else {
                dead.push(format!("{}: {link} leads to no file", page.path));
                continue;
            };
            let target = pages.iter().find(|other| other.path == file);
            if let (Some(target), Some(anchor)) = (target, anchor)
                && !target.anchors().contains(&anchor)
            {
                dead.push(format!("{}: {link} leads to no heading", page.path));
            }
        }
    }
    dead
}

#[test]
fn links_lead_somewhere() {
    let pages = all();
    assert!(pages.len() > 30 && pages.iter().map(|page| relative(page).count()).sum::<usize>() > 100);
    let dead = dead(&pages, |file| root().join(file).exists());
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn a_dead_link_is_named() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page("a.md", "# One\n\n[](#one) [](#two) [](b/c.md#three) [](b/c.md#one) [](b/d.md) [](https://e.org/f.md)\n"),
        page("b/c.md", "# Three\n\n[](../a.md) [](../../a.md) [](a.md)\n"),
    ];
    let dead = dead(&pages, |file| ["a.md", "b/c.md"].contains(&file));
    let expected = [
        "a.md: #two leads to no heading",
        "a.md: b/c.md#one leads to no heading",
        "a.md: b/d.md leads to no file",
        "b/c.md: ../../a.md leads to no file",
        "b/c.md: a.md leads to no file",
    ];
    assert_eq!(dead, expected);
}

/// Links between chapters become links between pages of the site, so that a chapter links to chapters alone.
#[test]
fn pages_are_chapters() {
    let pages = all();
    let summary = pages.iter().find(|page| page.path == "docs/SUMMARY.md").unwrap();
    let chapters: BTreeSet<String> = relative(summary).filter_map(|(_, file, _)| file).collect();
    let of_docs = pages.iter().filter(|page| page.path.starts_with("docs/") && page.path != summary.path);
    let missing: Vec<&str> = of_docs.map(|page| &*page.path).filter(|path| !chapters.contains(*path)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
    let of_chapters = pages.iter().filter(|page| chapters.contains(&page.path));
    let linked: Vec<String> = of_chapters.flat_map(relative).filter_map(|(_, file, _)| file).collect();
    let (to_pages, to_files): (Vec<&String>, Vec<&String>) = linked.iter().partition(|file| file.ends_with(".md"));
    let outside: Vec<&String> = to_pages.into_iter().filter(|file| !chapters.contains(*file)).collect();
    assert!(outside.is_empty(), "chapters link to pages that docs/SUMMARY.md lacks: {outside:?}");
    let copied = copied();
    let of_site = |file: &str| copied.iter().any(|start| file.starts_with(start.as_str()));
    let outside: Vec<&String> = to_files.into_iter().filter(|file| !of_site(file)).collect();
    assert!(outside.is_empty(), "chapters link to what .ci/book does not copy, {copied:?}: {outside:?}");
}

/// How the paths begin that `.ci/book` copies beside the pages.
fn copied() -> Vec<String> {
    let script = fs::read_to_string(root().join(".ci/book")).unwrap();
    let (_, paths) = script.split_once("-- '*.md' ").unwrap();
    let paths = paths.lines().next().unwrap().trim_end_matches(" |").split(' ');
    let copied: Vec<String> = paths.map(|path| path.trim_matches(['\'', '*']).to_owned()).collect();
    assert!(copied.len() >= 5 && !copied.contains(&String::new()), "{copied:?}");
    copied
}

fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Pages that sources, messages and scenarios name by path.
#[test]
fn pages_named_in_sources_exist() {
    let mut found = Vec::new();
    for folder in ["src", "crates", "scenarios", "tests", "examples"] {
        files(&root().join(folder), &mut found);
    }
    let mut named = 0;
    for (file, text) in found {
        for (at, _) in text.match_indices("docs/") {
            let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-');
            let name: String = text[at..].chars().take_while(|&letter| is_word(letter)).collect();
            if let (Some(path), false) = (name.strip_suffix(".md"), text[..at].ends_with(is_word)) {
                named += 1;
                assert!(root().join(format!("{path}.md")).exists(), "{file} names {name}");
            }
        }
    }
    assert!(named > 5, "{named}");
}
