//! How many examples each client has.

use super::super::model::{Axis, Chart, Figure};
use super::super::study::{Study, linear, rounded};
use super::{MOST_BARS, MOST_COURSES};
use fedgenie_experiment::experiment::{RunSummary, number};

/// Examples of each client as a mean over the seeds of a point; `None` where clients are too many for bars, or their
/// number differs between runs.
fn sizes(study: &Study<'_>, point: usize) -> Option<Vec<f64>> {
    // The policies of an experiment meet the same clients.
    let runs = study.arms.iter().map(|arm| &arm.runs[point]).find(|runs| !runs.is_empty())?;
    let of_run = |run: &&RunSummary| run.partition.as_ref().map(|partition| partition.sizes.clone());
    let all: Vec<Vec<usize>> = runs.values().map(of_run).collect::<Option<_>>()?;
    let clients = all[0].len();
    if !(2..=MOST_BARS).contains(&clients) || all.iter().any(|sizes| sizes.len() != clients) {
        return None;
    }
    let mean = |client: usize| all.iter().map(|sizes| sizes[client] as f64).sum::<f64>() / all.len() as f64;
    Some((0..clients).map(mean).collect())
}

/// Examples per client: one picture if all points of a sweep deal them out alike, else one for each of a few points.
pub(super) fn examples(study: &Study<'_>) -> Vec<Figure> {
    let found: Vec<Option<Vec<f64>>> = (0..study.points.len()).map(|point| sizes(study, point)).collect();
    if found.windows(2).all(|pair| pair[0] == pair[1]) {
        return found[0].iter().map(|sizes| figure(sizes, "examples".to_owned(), "")).collect();
    }
    if found.len() > MOST_COURSES {
        return Vec::new();
    }
    let of_point = |(point, sizes): (usize, &Option<Vec<f64>>)| {
        let words = format!(", {}", study.point_words(point));
        sizes.as_ref().map(|sizes| figure(sizes, format!("examples-p{point}"), &words))
    };
    found.iter().enumerate().filter_map(of_point).collect()
}

fn figure(sizes: &[f64], id: String, of_point: &str) -> Figure {
    let client = |client: usize| format!("client {client}");
    let words = |(index, &size): (usize, &f64)| format!("{}: {}", client(index), number(size));
    Figure {
        id,
        title: format!("Training examples per client{of_point}"),
        caption: "How many training examples each client holds, averaged over seeds.".to_owned(),
        method: String::new(),
        choice: None,
        summary: sizes.iter().enumerate().map(words).collect(),
        chart: Chart::Bars {
            value: Axis { range: [Some(0.0), None], ..linear("training examples", None) },
            categories: (0..sizes.len()).map(client).collect(),
            parts: vec![("training examples".to_owned(), sizes.iter().map(|&size| rounded(size)).collect())],
        },
    }
}
