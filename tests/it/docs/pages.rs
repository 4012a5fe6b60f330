//! Markdown pages as the tests of the documentation read them: prose, headings, links, blocks.

pub use super::super::tidy::source::root;

use super::super::tidy::source::find;
use std::fs;
use std::path::{Path, PathBuf};

/// A page, by its path from the root of the repository.
pub struct Page {
    pub path: String,
    pub text: String,
}

/// A fenced block: the word behind the fence, its lines, and the last line of prose before it.
pub struct Block<'a> {
    pub kind: &'a str,
    pub body: String,
    pub before: &'a str,
}

/// All pages of the repository, but those that tests write.
pub fn all() -> Vec<Page> {
    let mut found: Vec<PathBuf> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    for folder in ["docs", "validation", "benches", "scenarios"] {
        find(&root().join(folder), "md", &mut found);
    }
    found.push(root().join("fuzz/README.md"));
    found.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
    found.iter().map(|path| Page { path: name(path), text: fs::read_to_string(path).unwrap() }).collect()
}

impl Page {
    pub fn read(path: &str) -> Self {
        Self { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
    }

    /// The text without fenced blocks.
    fn prose(&self) -> String {
        let mut is_fenced = false;
        let outside = |line: &&str| {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            !is_fenced && !is_fence
        };
        self.text.lines().filter(outside).map(|line| format!("{line}\n")).collect()
    }

    /// The anchors of its headings, as code hosts and mdBook make them.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for line in self.prose().lines().filter(|line| line.starts_with('#')) {
            let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            let plain: String =
                heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect();
            let same = anchors.iter().filter(|anchor| **anchor == plain).count();
            anchors.push(if same == 0 { plain } else { format!("{plain}-{same}") });
        }
        anchors
    }

    /// The addresses of its links and pictures; code is no link.
    pub fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let mut found = Vec::new();
        for paragraph in prose.split("\n\n") {
            let text: String = paragraph.split('`').step_by(2).collect();
            let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(ends.map(|(link, _)| link.to_owned()));
        }
        found
    }

    /// Its fenced blocks.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut open: Option<Block<'_>> = None;
        let mut before = "";
        for line in self.text.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(kind)) => open = Some(Block { kind, body: String::new(), before }),
                (Some(_), Some(_)) => {
                    blocks.extend(open.take());
                    before = "";
                }
                (Some(block), None) => block.body.push_str(&format!("{line}\n")),
                (None, None) if !line.is_empty() => before = line,
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block does not end", self.path);
        blocks
    }
}

#[test]
fn a_page_is_read_as_readers_see_it() {
    let text = "# A `b.c` (d)\n\n[x](y.md) and `[no](code.md)`, [`[z]`](w.md#a)\n\nSave as `f.toml`:\n\n```toml\n# no = \
                \"[](h.md)\"\n```\n\n## Again\n## Again\n";
    let page = Page { path: "a.md".to_owned(), text: text.to_owned() };
    assert_eq!(page.anchors(), ["a-bc-d", "again", "again-1"]);
    assert_eq!(page.links(), ["y.md", "w.md#a"]);
    let blocks = page.blocks();
    let [Block { kind, body, before }] = &blocks[..] else { panic!("{}", blocks.len()) };
    assert_eq!((*kind, &**body, *before), ("toml", "# no = \"[](h.md)\"\n", "Save as `f.toml`:"));
}
