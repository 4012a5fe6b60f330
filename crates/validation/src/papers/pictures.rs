//! Pictures of what a paper draws of its method: not of results, but of a formula or of a structure.
//!
//! They are drawn from the functions that runs use, or from the paper's definition, and not from the paper's picture.

use crate::states::{Rule, States};
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::math::float::{cos, sin};
use fedgenie_core::oracle::reward::{History, Reward};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::time::Span;
use serde::Deserialize;
use std::f64::consts::TAU;
use std::fmt::Write;

/// A picture that a transcript asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Picture {
    /// BSFL's generalisation function (3) over the share of rounds in which a client was selected.
    Generalisation,
    /// The states of 4 of 8 clients with their neighbours under SA and ALSA.
    StateGraphs,
}

const INK: &str = "#1b1f24";
const FAINT: &str = "#5a6470";
/// Colours that readers who see few colours tell apart.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#5a6470", "#e69f00"];

/// The share `m/K` of Fig. 2.
const SHARE: f64 = 0.25;
/// The instance of Fig. 3: one whose states have about as many neighbours as those of most.
const DRAWN: u32 = 2;
const EXPONENTS: [f64; 6] = [0.1, 0.8, 1.0, 1.2, 2.0, 3.0];

impl Picture {
    /// Its file beside the transcripts.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Generalisation => "generalisation.svg",
            Self::StateGraphs => "state_graphs.svg",
        }
    }

    /// What it shows, in a sentence without its end.
    pub fn about(self) -> String {
        match self {
            Self::Generalisation => format!(
                "Equation (3) for m/K = {SHARE}: above 0 a client was selected too seldom; the smaller β, the more its sign alone \
                 counts"
            ),
            Self::StateGraphs => "The 70 states of 4 of 8 clients, speeds and gains uniform, in order of their value \
                clockwise from the best, on top, to the worst; a line joins neighbours, those of the best are orange. \
                It has as many under ALSA: the lines that are gone are among worse states"
                .to_owned(),
        }
    }

    /// As a file: white, of so many pixels as it says.
    pub fn svg(self) -> String {
        match self {
            Self::Generalisation => generalisation(),
            Self::StateGraphs => state_graphs(),
        }
    }
}

/// The file around a drawing.
fn sheet(size: [u32; 2], about: &str, drawing: &str) -> String {
    let [width, height] = size;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"{INK}\">\
         <title>{about}</title><rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>{drawing}</svg>\n"
    )
}

fn text(drawing: &mut String, [x, y]: [f64; 2], attributes: &str, words: &str) {
    let _ = write!(drawing, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{words}</text>");
}

/// Steps of a curve.
const STEPS: u32 = 1_000;

/// `g` of (3) at `c/t = i/1000` for `i = 0, …, 1000`: with a weight `α/m` of 1 the gains of a run are these.
fn curve(beta: f64) -> Vec<f64> {
    let counts: Vec<u32> = (0..=STEPS).collect();
    let clients: Vec<ClientId> = counts.iter().map(|&count| ClientId(count)).collect();
    let history = History { turn: Turn(STEPS), cohort: 1, shares: &[SHARE; STEPS as usize + 1], counts: &counts };
    let mut gains = Vec::new();
    Reward { tau_min: Span(1), alpha: 1.0, beta, quantum: None }.gains(&history, &clients, &mut gains);
    gains
}

fn generalisation() -> String {
    let x = |share: f64| 60.0 + 400.0 * share;
    let y = |gain: f64| 210.0 - 190.0 * gain;
    let mut drawing = String::new();
    for gain in [-1.0, -0.5, 0.0, 0.5, 1.0] {
        let width = if gain == 0.0 { "1" } else { "0.4" };
        let (from, to, at) = (x(0.0), x(1.0), y(gain));
        let _ = write!(drawing, "<path d=\"M{from:.1} {at:.1}H{to:.1}\" stroke=\"{FAINT}\" stroke-width=\"{width}\"/>");
        text(&mut drawing, [from - 8.0, at + 4.0], "text-anchor=\"end\"", &format!("{gain}").replace('-', "−"));
    }
    let marks = [(0.0, "0"), (SHARE, "m/K = 0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")];
    for (share, words) in marks {
        let (at, top, bottom) = (x(share), y(1.0), y(-1.0));
        let _ = write!(drawing, "<path d=\"M{at:.1} {top:.1}V{bottom:.1}\" stroke=\"{FAINT}\" stroke-width=\"0.4\"/>");
        text(&mut drawing, [at, bottom + 18.0], "text-anchor=\"middle\"", words);
    }
    text(
        &mut drawing,
        [x(0.5), y(-1.0) + 38.0],
        "text-anchor=\"middle\"",
        "share of rounds in which the client was selected, c/t",
    );
    text(&mut drawing, [18.0, y(0.0)], "text-anchor=\"middle\" transform=\"rotate(-90 18 210)\"", "g(c/t)");
    let mut lowest = f64::INFINITY;
    // From the lowest end upwards, so that names keep apart.
    for (beta, colour) in EXPONENTS.into_iter().zip(COLOURS) {
        let gains = curve(beta);
        let mut line = String::new();
        for (index, gain) in gains.iter().enumerate() {
            let share = index as f64 / f64::from(STEPS);
            // Few points but where the steepest curve turns.
            if index % 10 == 0 || (share - SHARE).abs() < 0.011 {
                let _ = write!(line, "{}{:.1} {:.1}", if line.is_empty() { 'M' } else { 'L' }, x(share), y(*gain));
            }
        }
        let _ = write!(drawing, "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>");
        let end = y(gains[STEPS as usize]);
        lowest = (lowest - 14.0).min(end);
        let (from, to) = (x(1.0), x(1.0) + 14.0);
        let _ = write!(drawing, "<path d=\"M{from:.1} {end:.1}L{to:.1} {lowest:.1}\" stroke=\"{colour}\"/>");
        text(&mut drawing, [to + 4.0, lowest + 4.0], &format!("fill=\"{colour}\""), &format!("β = {beta}"));
    }
    sheet([550, 450], "BSFL’s generalisation function for several β", &drawing)
}

fn state_graphs() -> String {
    let states = States::draw(8, 4, &mut Streams::new(1).stream(Purpose::Solver, 0, DRAWN));
    let (count, best) = (states.sets.len(), states.sets.len() - 1);
    let mut drawing = String::new();
    for (panel, (rule, name)) in [(Rule::Plain, "SA (18)"), (Rule::Symmetric, "ALSA (19)")].into_iter().enumerate() {
        let middle = [165.0 + 330.0 * panel as f64, 165.0];
        // A gap of a twelfth keeps the worst from the best.
        let place = |state: usize| {
            let angle = TAU * 11.0 / 12.0 * (best - state) as f64 / best as f64;
            [middle[0] + 145.0 * sin(angle), middle[1] - 145.0 * cos(angle)].map(|at| format!("{at:.1}"))
        };
        let places: Vec<[String; 2]> = (0..count).map(place).collect();
        let neighbours = states.neighbours(rule);
        let mut lines = [String::new(), String::new()];
        for (from, all) in neighbours.iter().enumerate() {
            for &to in all.iter().filter(|&&to| to < from) {
                let ([x, y], [z, w]) = (&places[from], &places[to]);
                let _ = write!(lines[usize::from(from == best)], "M{x} {y}L{z} {w}");
            }
        }
        let [others, of_best] = lines;
        let _ = write!(drawing, "<path d=\"{others}\" stroke=\"{INK}\" stroke-opacity=\"0.35\" stroke-width=\"0.6\"/>");
        let _ = write!(drawing, "<path d=\"{of_best}\" stroke=\"{}\" stroke-width=\"1.4\"/>", COLOURS[1]);
        for (state, [x, y]) in places.iter().enumerate() {
            let (radius, colour) = if state == best { ("5", COLOURS[1]) } else { ("2.2", INK) };
            let _ = write!(drawing, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\"/>");
        }
        let ends: usize = neighbours.iter().map(Vec::len).sum();
        let mean = ends as f64 / count as f64;
        text(&mut drawing, [middle[0], 335.0], "text-anchor=\"middle\" font-weight=\"600\"", name);
        let words = format!("{mean:.1} neighbours of a state, on average");
        text(&mut drawing, [middle[0], 355.0], &format!("text-anchor=\"middle\" fill=\"{FAINT}\""), &words);
    }
    sheet([660, 370], "States of 4 of 8 clients and their neighbours", &drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_those_of_the_formula() {
        for beta in EXPONENTS {
            for (index, gain) in curve(beta).into_iter().enumerate() {
                let distance = SHARE - index as f64 / f64::from(STEPS);
                let expected = if distance == 0.0 { 0.0 } else { distance.abs().powf(beta) * distance.signum() };
                assert!((gain - expected).abs() < 1e-13, "{beta} {index} {gain} {expected}");
            }
        }
    }

    #[test]
    fn a_line_is_drawn_for_each_pair_of_neighbours() {
        let drawn = state_graphs();
        // 70 states with 4 · 4 swaps each, every pair once.
        let lines = drawn.split("<path").nth(1).unwrap().matches('M').count();
        let best = drawn.split("<path").nth(2).unwrap().matches('M').count();
        assert_eq!((lines, best), (70 * 16 / 2 - 16, 16));
        assert_eq!(drawn.matches("<circle").count(), 2 * 70);
    }
}
