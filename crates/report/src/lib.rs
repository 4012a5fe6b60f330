//! Reports: the findings of an experiment, as pictures with their data, for a browser, a paper or a spreadsheet.
//!
//! ```text
//! result folders ─▶ Report { facts, verdicts, figures, why } ─┬▶ report.html   (self-contained, interactive)
//!                                                             ├▶ *.svg, *.pdf
//!                                                             └▶ *.csv
//! ```
//!
//! Everything drawn is in the [`Report`]: the three forms show the same numbers. It is made from the runs' summaries
//! and thinned courses (`run.json`) alone, so that its cost does not grow with the number of rounds.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

mod arrivals;
mod build;
mod controls;
mod courses;
mod csv;
mod diff;
mod export;
mod figures;
mod folders;
mod groups;
mod headline;
mod html;
mod lacking;
mod model;
mod numbers;
mod settings;
mod source;
mod study;
mod style;
mod svg;
mod tables;
mod tensorboard;
mod theory;
mod verdicts;
mod why;
mod write;

pub use self::csv::{csv, table_csv};
pub use diff::{CompleteRuns, Diff, InFolder, ResultDiff, SettingDiff};
pub use export::{Cells, ExportFormat, Exported, ExportedColumn, ExportedTable, Texts, export, exported};
pub use headline::{Headline, HeadlineWishes, headline};
pub use html::html;
pub use model::{
    Axis, Brief, Chart, Choice, Decided, Experiment, Figure, Interval, Line, LineKind, Mark, Overview, Panel, Report,
    Scale, Series, Table, Verdict, Why,
};
pub use source::Results;
pub use style::{Marker, Outline, Style};
pub use svg::{Family, Form, Layout, LayoutWishes, draw as svg, draw_as as picture};
pub use tables::{TableFormat, tables};
pub use tensorboard::export_tensorboard;
pub use write::{
    FigureFormat, write_figures, write_figures_as, write_headline, write_page, write_tables, write_with_records,
};
