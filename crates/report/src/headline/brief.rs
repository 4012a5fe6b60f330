//! The headline table on a page.

use super::shown::Shown;
use super::{HeadlineWishes, in_signs, of_studies};
use crate::lacking::{NO_RUN, add_rows, lacking};
use crate::model::{Brief, Table};
use crate::study::Study;

/// The most policies and points of a table before all others.
const MOST_ROWS: usize = 12;
/// The same of a table whose columns the scenario asks for.
const MOST_ASKED: usize = 48;

/// The table before all others; `None` if it would be long.
pub(crate) fn brief(study: &Study<'_>) -> Option<Brief> {
    let lacking = lacking(study);
    let first = &study.results[study.arms.first()?.folder].summary.report;
    let most = if first.columns.is_empty() { MOST_ROWS } else { MOST_ASKED };
    if study.combinations().len() + lacking.len() > most {
        return None;
    }
    let found = of_studies(std::slice::from_ref(study), HeadlineWishes::default()).ok()?;
    if found.headings.is_empty() {
        return None;
    }
    let mut is_best: Vec<Vec<bool>> = Vec::new();
    let mut table = Table {
        columns: std::iter::once(found.subject).chain(found.headings.iter().map(|text| in_signs(text))).collect(),
        rows: Vec::new(),
    };
    for (label, cells) in &found.rows {
        table.rows.push(std::iter::once(label.clone()).chain(cells.iter().map(Shown::plain)).collect());
        is_best.push(std::iter::once(false).chain(cells.iter().map(|cell| cell.is_best)).collect());
    }
    add_rows(&lacking, &mut table, |_| NO_RUN.to_owned());
    is_best.resize(table.rows.len(), vec![false; table.columns.len()]);
    Some(Brief { table, is_best, notes: found.notes })
}
