//! What reproduces of each paper: its tables and figures in their order, with the paper's numbers and ours.
//!
//! ```toml
//! name = "proxyrl"
//! system = "ProxyRL-FRS"
//! title = "…"
//! source = "L. Qu et al., 2025"
//!
//! [[item]]
//! id = "Table III"                                             # as claims call it
//! about = "HR@20 and NDCG@20 of nine methods"                  # one line
//! kind = "results"                                             # or settings, definition, drawing, curves, text
//! columns = ["ML-100K HR@20", "ML-100K NDCG@20"]
//! rows = [["FedMF", 0.4321, 0.0611]]
//! ```
//!
//! A transcript has the numbers of a paper and none of its sentences. A claim says which paper it is about (`paper`),
//! and of itself or of a check which table or figure (`item`). The numbers that a check quotes, decimal fractions and
//! whole numbers of three digits, have to be in the transcript, or quotients or differences of two numbers of a column.

mod found;
mod html;
mod page;
mod pictures;
mod summary;

pub use html::html;
pub use page::{HEADING, page};
pub use pictures::Picture;

use super::claim::Claim;
use fedgenie_core::math::float::power;
use fedgenie_experiment::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The transcript of a paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Its name, which is the file's.
    pub name: String,
    /// The system that it proposes.
    pub system: String,
    /// Its title.
    pub title: String,
    /// Authors, venue and year.
    pub source: String,
    /// Its tables and figures, in their order.
    #[serde(rename = "item")]
    pub items: Vec<Item>,
}

/// A cell, and where its file has it.
pub type Cell = toml::Spanned<toml::Value>;

/// A table, a figure, or a section with numbers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// As claims call it: `Table III`.
    pub id: String,
    /// What it shows.
    pub about: String,
    /// What can be said of it.
    pub kind: ItemKind,
    /// The unit of all numbers.
    #[serde(default)]
    pub unit: String,
    /// Headings of the columns after the first.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Rows: a label, then a cell for each column.
    #[serde(default)]
    pub rows: Vec<Vec<Cell>>,
    /// The cells as they are written: `0.10` is not `0.1`.
    #[serde(skip)]
    pub printed: Vec<Vec<String>>,
    /// What we draw in its place.
    #[serde(default)]
    pub picture: Option<Picture>,
    /// An error or a contradiction of the paper.
    #[serde(default)]
    pub note: Option<String>,
    /// Why no number of ours stands beside it, and what one would cost.
    #[serde(default)]
    pub not_run: Option<String>,
}

/// What can be said of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Numbers that can be compared.
    Results,
    /// Parameters, or statistics of data.
    Settings,
    /// A formula that results are made of.
    Definition,
    /// A drawing without numbers.
    Drawing,
    /// A figure of results whose numbers cannot be read.
    Curves,
    /// Results that stand in a section.
    Text,
}

impl ItemKind {
    /// Whether it holds results, so that it can reproduce or not.
    const fn is_of_results(self) -> bool {
        matches!(self, Self::Results | Self::Curves | Self::Text)
    }
}

/// Reads the transcripts of a folder, in the order of their names; none if there is no folder.
///
/// # Errors
/// If a file cannot be read, or a row has more or fewer cells than there are columns.
pub fn read_papers(folder: &Path) -> Result<Vec<Paper>, Error> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let wrong = |message: String| Error::Usage(format!("{}: {}", path.display(), message.trim_end()));
        let text = fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let mut paper: Paper = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        paper.items.iter_mut().for_each(|item| item.print(&text));
        paper.check().map_err(wrong)?;
        Ok(paper)
    };
    paths.into_iter().map(read).collect()
}

/// A number as it is written, without signs that do not belong to it.
fn written(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// A number in a text: how large it is, and with how many decimals it is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quoted {
    size: f64,
    decimals: i32,
}

impl Quoted {
    /// Whether another number is printed like this, apart from its sign.
    fn is(self, number: f64) -> bool {
        (number.abs() - self.size).abs() <= 0.5 * power(10.0, f64::from(-self.decimals)) * (1.0 + 1e-9)
    }
}

/// The numbers of a text that a reader would look for in a table: decimal fractions, and whole numbers of three digits.
fn quoted(text: &str) -> Vec<Quoted> {
    let is_inner = |letter: char| letter.is_alphanumeric() || ".,@_".contains(letter);
    let words = text.split(|letter: char| !is_inner(letter)).map(|word| word.trim_matches(['.', ',']).replace(',', ""));
    let number = |word: String| {
        let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let counts = word.starts_with(|first: char| first.is_ascii_digit()) && (decimals > 0 || word.len() >= 3);
        word.parse().ok().filter(|_| counts).map(|size| Quoted { size, decimals: decimals as i32 })
    };
    words.filter_map(number).collect()
}

impl Item {
    /// Takes over what the transcript has in its cells.
    fn print(&mut self, text: &str) {
        let of = |cell: &Cell| match cell.get_ref().as_str() {
            Some(words) => words.to_owned(),
            None => text.get(cell.span()).map_or_else(|| cell.get_ref().to_string(), str::to_owned),
        };
        self.printed = self.rows.iter().map(|row| row.iter().map(of).collect()).collect();
    }

    /// The numbers of a column, those in texts of cells included; column 0 has the labels.
    fn column(&self, column: usize) -> Vec<f64> {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let in_text = |cell: &toml::Value| cell.as_str().map_or_else(Vec::new, quoted);
        cells
            .map(Cell::get_ref)
            .flat_map(|cell| written(cell).into_iter().chain(in_text(cell).into_iter().map(|number| number.size)))
            .collect()
    }

    fn has(&self, number: Quoted) -> bool {
        (0..=self.columns.len()).any(|column| {
            let numbers = self.column(column);
            let with = |&one: &f64| numbers.iter().any(|other| number.is(one / other) || number.is(one - other));
            numbers.iter().any(|&known| number.is(known)) || numbers.iter().any(with)
        })
    }
}

impl Paper {
    fn check(&self) -> Result<(), String> {
        for item in &self.items {
            let wrong = |row: &&Vec<Cell>| row.len() != item.columns.len() + 1;
            if let Some(row) = item.rows.iter().find(wrong) {
                let (found, expected) = (row.len(), item.columns.len() + 1);
                return Err(format!(
                    "{}: a row has {found} cells; expected a label and {} columns",
                    item.id,
                    expected - 1
                ));
            }
            if item.not_run.is_some() && !item.kind.is_of_results() {
                return Err(format!("{}: not_run is for results", item.id));
            }
            if item.picture.is_some() && item.kind != ItemKind::Drawing {
                return Err(format!("{}: a picture is in the place of a drawing", item.id));
            }
            if item.kind == ItemKind::Results && item.rows.is_empty() {
                return Err(format!("{}: results have rows; curves need none", item.id));
            }
            if self.items.iter().filter(|other| other.id == item.id).count() > 1 {
                return Err(format!("{} is listed twice", item.id));
            }
        }
        Ok(())
    }

    /// What is drawn in the place of its drawings.
    pub fn pictures(&self) -> impl Iterator<Item = Picture> {
        self.items.iter().filter_map(|item| item.picture)
    }

    /// Whether a number is in it, or is the quotient or the difference of two numbers of a column.
    fn has(&self, number: Quoted) -> bool {
        self.items.iter().any(|item| item.has(number))
    }

    /// The checks of a claim about this paper that quote a number or name an item that it does not have, in sentences.
    fn strangers(&self, claim: &Claim) -> Vec<String> {
        let mut all = Vec::new();
        for check in &claim.checks {
            let numbers = check.paper.as_deref().map_or_else(Vec::new, quoted);
            for Quoted { size, .. } in numbers.into_iter().filter(|&number| !self.has(number)) {
                all.push(format!("{}: {:?} quotes {size}", claim.name, check.claim));
            }
            let item = check.item.as_ref().or(claim.item.as_ref());
            if let Some(item) = item.filter(|item| self.items.iter().all(|known| known.id != **item)) {
                all.push(format!("{}: {:?} is about {item}", claim.name, check.claim));
            }
        }
        all
    }
}

/// What claims quote, or are about, that the transcripts of their papers do not have, in sentences.
pub fn strangers(papers: &[Paper], claims: &[Claim]) -> Vec<String> {
    let of = |claim: &Claim| {
        let name = claim.paper.as_ref()?;
        Some(match papers.iter().find(|paper| paper.name == *name) {
            Some(paper) => paper.strangers(claim),
            None => vec![format!("{}: there is no paper {name}", claim.name)],
        })
    };
    claims.iter().filter_map(of).flatten().collect()
}

/// Numbers that explanations of claims state by themselves, by claim: those that are neither of the runs, nor of the
/// claim and its scenarios, nor of the paper. Nothing says whether these are true.
///
/// # Errors
/// If a scenario's file cannot be read.
pub fn stated(papers: &[Paper], claims: &[Claim]) -> Result<BTreeMap<String, Vec<f64>>, Error> {
    let mut all = BTreeMap::<String, Vec<f64>>::new();
    for claim in claims {
        let paper = papers.iter().find(|paper| Some(&paper.name) == claim.paper.as_ref());
        let mut known = quoted(&claim.title);
        for scenario in claim.scenarios.values() {
            let path = claim.folder.join(&scenario.file);
            known.extend(quoted(&fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?));
            known.extend(quoted(&scenario.set.to_string()));
        }
        for check in &claim.checks {
            known.extend(quoted(&check.claim));
            known.extend(check.paper.as_deref().map_or_else(Vec::new, quoted));
        }
        let is_known = |number: &Quoted| {
            paper.is_some_and(|paper| paper.has(*number)) || known.iter().any(|known| number.is(known.size))
        };
        let explained = claim.checks.iter().filter_map(|check| check.because.as_ref());
        for number in explained.flat_map(|because| quoted(&because.words())).filter(|number| !is_known(number)) {
            all.entry(claim.name.clone()).or_default().push(number.size);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_a_table_may_have() {
        let sizes = |text: &str| quoted(text).into_iter().map(|number| number.size).collect::<Vec<_>>();
        assert_eq!(sizes("0.4579 against 0.4394 and 0.4473"), [0.4579, 0.4394, 0.4473]);
        assert_eq!(sizes("976 against 426 s, 5,396 at HR@20, test_hr_20, 12 times"), [976.0, 426.0, 5396.0]);
        assert_eq!(sizes("within a point: 0.25."), [0.25]);
        assert!(sizes("above").is_empty());
    }

    #[test]
    fn quotients_and_differences_of_a_column_are_the_papers() {
        let cell = |value: toml::Value| Cell::new(0..0, value);
        let row = |name: &str, number: f64| vec![cell(name.into()), cell(number.into())];
        let rows = vec![row("a", 1000.568), row("b", 570.299)];
        let (id, about, columns) = ("Table I".to_owned(), String::new(), vec!["s".to_owned()]);
        let item = Item {
            id,
            about,
            kind: ItemKind::Results,
            unit: String::new(),
            columns,
            rows,
            printed: Vec::new(),
            picture: None,
            note: None,
            not_run: None,
        };
        let has = |text: &str| quoted(text).into_iter().all(|number| item.has(number));
        assert!(has("1000.568, 0.570, −430.27, 1.754 and 1000.57"));
        assert!(!has("0.571") && !has("430.2") && !has("571"));
    }
}
