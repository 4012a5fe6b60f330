//! Statistics over seeds: numbers of policies, and their differences.

use super::column::{Cell, Column, Kind};
use super::quantities::{Metrics, unit_of};
use super::rows::{changed, folder, point};
use super::swept::Swept;
use super::table::{Failed, Table};
use crate::source::Results;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::ArmSummary;

/// A number of a policy at a point, or its difference to another.
#[derive(Clone)]
pub(super) struct ComparisonRow<'a> {
    id: i64,
    results: &'a Results,
    point: usize,
    policy: &'a str,
    quantity: &'a str,
    against: &'a str,
    against_point: Option<usize>,
    statistic: &'static str,
    found: Option<Estimate>,
}

impl ComparisonRow<'_> {
    /// The policies and points behind the row.
    fn of(&self) -> Vec<(&str, usize)> {
        let other = match (self.against, self.against_point) {
            ("", _) => None,
            (against, point) => Some((against, point.unwrap_or(self.point))),
        };
        std::iter::once((self.policy, self.point)).chain(other).collect()
    }

    /// The status of their runs.
    fn status(&self) -> Cell {
        let mut found: Vec<&str> =
            self.of().iter().map(|&(policy, point)| self.results.status_of(policy, point)).collect();
        found.dedup();
        Cell::text(if let [only] = found[..] { only } else { "incomplete" })
    }

    /// Their changed files.
    fn changed(&self) -> Cell {
        let of = self.of();
        let mut changed = self.results.changed_of(&of);
        changed.dedup();
        Cell::text(&changed.join(" "))
    }
}

/// Hands out all rows.
pub(super) fn rows<'a>(
    results: &'a [Results],
    add: &mut dyn FnMut(&ComparisonRow<'a>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut id = 0;
    let mut add = |row: ComparisonRow<'a>| {
        id += 1;
        add(&ComparisonRow { id, ..row })
    };
    for results in results {
        let none = ComparisonRow {
            id: 0,
            results,
            point: 0,
            policy: "",
            quantity: "",
            against: "",
            against_point: None,
            statistic: "",
            found: None,
        };
        let all = (0..results.summary.points.len())
            .flat_map(|point| results.labels.iter().map(move |label| (point, label.as_str())));
        for (point, policy) in all {
            let row = ComparisonRow { point, policy, ..none.clone() };
            match results.summary.arms.iter().find(|arm| arm.point == point && arm.arm == policy) {
                None => add(row)?,
                Some(arm) => of_arm(arm, &row, &mut add)?,
            }
        }
        for pair in &results.summary.compared {
            let (policy, against_point) = (pair.arm.as_str(), Some(pair.against));
            let row = ComparisonRow { point: pair.point, policy, against: policy, against_point, ..none.clone() };
            let means = pair.differences.iter().map(|(quantity, &found)| ("mean", quantity, found));
            let medians = pair.medians.iter().map(|(quantity, &found)| ("median", quantity, Estimate::from(found)));
            for (statistic, quantity, found) in means.chain(medians) {
                add(ComparisonRow { quantity, statistic, found: Some(found), ..row.clone() })?;
            }
        }
    }
    Ok(())
}

/// The rows of a policy at a point: its numbers, and their differences to those of another policy.
fn of_arm<'a>(
    arm: &'a ArmSummary,
    row: &ComparisonRow<'a>,
    add: &mut impl FnMut(ComparisonRow<'a>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut add = |against, statistic, quantity, found| {
        add(ComparisonRow { against, statistic, quantity, found: Some(found), ..row.clone() })
    };
    arm.values.iter().try_for_each(|(name, &found)| add("", "mean", name, found))?;
    arm.medians.iter().try_for_each(|(name, &found)| add("", "median", name, found.into()))?;
    let Some(paired) = &arm.paired else { return Ok(()) };
    paired.differences.iter().try_for_each(|(name, &found)| add(&paired.against, "mean", name, found))?;
    paired.medians.iter().try_for_each(|(name, &found)| add(&paired.against, "median", name, found.into()))
}

/// The table of comparisons. `numbers` are the columns of `runs`.
pub(super) fn table<'a>(
    swept: &'a [Swept],
    numbers: &'a [Column],
    metrics: &'a Metrics,
) -> Table<'a, ComparisonRow<'a>> {
    let meaning = "Statistics over seeds. A row is a number of a policy at a point, or its difference to another policy, \
                   paired by seed, or to itself at another point. A policy without a complete run has a row without a \
                   quantity.";
    let number = |name, meaning: &str| Column::new(name, Kind::Number, "", meaning);
    let run_column = |quantity: &str| {
        let is_its = |column: &&Column| column.quantity.as_deref() == Some(quantity);
        numbers.iter().find(is_its).map_or("", |column| column.name.as_str())
    };
    let id = Column::new("id", Kind::Integer, "", "number of the row, from 1").required();
    let mut table = Table::new("comparisons", meaning, ["id"])
        .with(id, |row: &ComparisonRow<'a>| Cell::Integer(row.id))
        .with(folder(), |row| Cell::text(&row.results.name))
        .with(point(), |row| Cell::count(row.point as u64));
    for one in swept {
        table = table.with(one.column.clone(), |row| one.cell(&row.results.summary.points[row.point]));
    }
    let against_point = Column::new("against_point", Kind::Integer, "", "the other point; empty for the same");
    table
        .with(Column::text("quantity", "key of the number in values of summary.json"), |row| Cell::text(row.quantity))
        .with(Column::text("run_column", "the same number in runs"), move |row| Cell::text(run_column(row.quantity)))
        .with(Column::text("unit", "unit of value, low and high; empty for a pure number"), |row| {
            Cell::text(unit_of(row.quantity, metrics))
        })
        .with(Column::text("policy", "label of the policy").required(), |row| Cell::text(row.policy))
        .with(Column::text("against", "the other policy; empty for the number itself"), |row| Cell::text(row.against))
        .with(against_point, |row| Cell::count(row.against_point.map(|point| point as u64)))
        .with(Column::text("statistic", "mean or median"), |row| Cell::text(row.statistic))
        .with(number("value", "the statistic, or that of the difference to the other"), |row| {
            Cell::number(row.found.map(|found| found.mean))
        })
        .with(number("low", "lower end of its 95 % interval"), |row| Cell::number(end(row.found, 0)))
        .with(number("high", "upper end of its 95 % interval"), |row| Cell::number(end(row.found, 1)))
        .with(Column::new("n", Kind::Integer, "seeds", "number of seeds, or of pairs").required(), |row| {
            Cell::count(row.found.map_or(0, |found| found.n as u64))
        })
        .with(
            Column::text("status", "complete, or incomplete, failed or missing runs behind the row").required(),
            |row| row.status(),
        )
        .with(changed(), ComparisonRow::changed)
}

fn end(found: Option<Estimate>, end: usize) -> Option<f64> {
    found?.ci95.map(|ends| ends[end])
}
