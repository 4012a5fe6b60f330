//! Reports: what an experiment found, as pictures with their data, for a browser, a paper or a spreadsheet.
//!
//! ```text
//! result folders ─▶ Report { facts, verdicts, figures } ─┬▶ report.html   (self-contained, interactive)
//!                                                        ├▶ *.svg
//!                                                        └▶ *.csv
//! ```
//!
//! Everything that is drawn is in the [`Report`]: the three forms show the same numbers.

mod html;
mod model;

pub use html::html;
pub use model::{
    Axis, Chart, Experiment, Figure, Interval, Line, LineKind, Mark, Panel, Report, Scale, Series, Table, Verdict,
};
