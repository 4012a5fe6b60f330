//! Writes a report with every kind of figure as a page: `cargo run --example report_page -- page.html`.
//!
//! Its numbers are made up. With `--hostile`, texts contain what would run in a careless page.

use fedgenie::math::float::ln;
use fedgenie::report::{
    Axis, Brief, Chart, Choice, Decided, Experiment, Figure, Interval, Line, LineKind, Mark, Panel, Report, Scale,
    Series, Style, Table, Verdict, Why, html,
};

/// Policies of most figures; the rest are in the figure of all.
const POLICIES: [&str; 6] = ["bsfl", "cs-ucb", "genie", "random", "rbcs-f with a longer name", "power-of-choice"];

/// As many as can be told apart in full colours, and one of a second folder.
const ALL: usize = 17;

fn name(number: usize) -> String {
    POLICIES.get(number).map_or_else(|| format!("policy {}", number + 1), |&name| name.to_owned())
}

/// Numbers from 0 to 1 that look like noise (P. L'Ecuyer, 1988).
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = (u64::from(self.0) * 40_692 % 2_147_483_399) as u32;
        f64::from(self.0) / 2_147_483_399.0
    }
}

fn axis(label: &str, unit: Option<&str>, scales: &[Scale], range: [Option<f64>; 2]) -> Axis {
    Axis { label: label.to_owned(), unit: unit.map(str::to_owned), scales: scales.to_vec(), range, begins: false }
}

const BOTH: [Scale; 2] = [Scale::Linear, Scale::Log];

fn line(series: &str, role: LineKind, points: Vec<(f64, f64)>) -> Line {
    Line {
        series: series.to_owned(),
        role,
        label: None,
        points,
        band: Vec::new(),
        is_staircase: false,
        has_dots: false,
    }
}

fn band(points: &[(f64, f64)], share: f64) -> Vec<(f64, [f64; 2])> {
    points.iter().map(|&(x, y)| (x, [y - y.abs() * share, y + y.abs() * share])).collect()
}

fn figure(id: &str, title: &str, caption: &str, summary: &[&str], chart: Chart) -> Figure {
    let summary = summary.iter().map(|&sentence| sentence.to_owned()).collect();
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        method: "Numbers are made up.".to_owned(),
        summary,
        choice: None,
        chart,
    }
}

fn regret() -> Figure {
    let mut noise = Noise(7);
    let mut lines = Vec::new();
    for (number, label) in POLICIES.iter().enumerate() {
        let slope = [0.25, 0.5, 0.0, 1.6, 0.9, 1.2][number];
        let mut sum = 0.0;
        let place = |step: i32| 4.0 * f64::from(step);
        let course = |step| {
            sum += slope * 4.0 * (0.5 + noise.next()) * if number < 2 { 30.0 / (30.0 + place(step)) } else { 1.0 };
            (place(step), sum)
        };
        let points: Vec<_> = (0..250).map(course).collect();
        let mut mean = line(label, LineKind::Mean, points);
        mean.band = band(&mean.points, 0.07);
        lines.push(mean);
        if number < 2 {
            let power = |x: f64| if number == 0 { 4.1 * x.sqrt() / 1.2 } else { 7.3 * x.sqrt() / 1.2 };
            let mut fit = line(
                label,
                LineKind::Fit,
                (1..100).map(|step| (f64::from(step) * 10.0, power(f64::from(step) * 10.0))).collect(),
            );
            fit.label = Some("fit 3.4 n^0.50".to_owned());
            lines.push(fit);
        }
    }
    let mut bound = line(
        "bsfl",
        LineKind::Bound,
        (1..100).map(|step| (f64::from(step) * 10.0, 4e4 + 900.0 * f64::from(step))).collect(),
    );
    bound.label = Some("bound of Theorem 1".to_owned());
    lines.push(bound);
    figure(
        "regret",
        "Cumulative mean regret over rounds",
        "Means over 20 seeds with 95 % intervals (bands). Dashed: power laws fitted to the last three quarters. Dotted: the theorem's bound.",
        &["bsfl has the lowest regret of all policies but the genie at the end of the run.", "random grows linearly."],
        Chart::Lines {
            x: axis("round", None, &BOTH, [None, None]),
            y: axis("cumulative mean regret", None, &BOTH, [Some(0.0), None]),
            lines,
            marks: Vec::new(),
        },
    )
}

fn accuracy() -> Figure {
    let mut noise = Noise(99);
    let mut lines = Vec::new();
    for (number, label) in POLICIES.iter().enumerate().take(4) {
        let pace = [9.0, 14.0, 7.0, 22.0][number];
        let mut time = 0.0;
        let points: Vec<(f64, f64)> = (0..60)
            .map(|_| {
                time += pace * (0.5 + noise.next());
                (time, 0.1 + 0.82 * time / (time + 90.0) + 0.01 * noise.next())
            })
            .collect();
        for _ in 0..3 {
            let mut seed = line(
                label,
                LineKind::Seed,
                points.iter().map(|&(x, y)| (x, y + 0.05 * (noise.next() - 0.5))).collect(),
            );
            seed.is_staircase = true;
            lines.push(seed);
        }
        let mut mean = line(label, LineKind::Mean, points);
        mean.is_staircase = true;
        lines.push(mean);
    }
    figure(
        "test_accuracy",
        "Test accuracy over virtual time",
        "A model's accuracy holds until the next evaluation. Thick: means over 3 seeds. Thin: the seeds.",
        &["genie reaches 0.8 first, at 452 s."],
        Chart::Lines {
            x: axis("virtual time", Some("s"), &[Scale::Linear], [Some(0.0), None]),
            y: axis("test accuracy", None, &[Scale::Linear], [Some(0.0), Some(1.0)]),
            lines,
            marks: vec![Mark { label: "target 0.8".to_owned(), value: 0.8 }],
        },
    )
}

fn sweep() -> Figure {
    let places = [0.1, 0.3, 1.0, 3.0, 10.0];
    let lines = POLICIES.iter().take(3).enumerate().map(|(number, label)| {
        let points: Vec<(f64, f64)> = places
            .iter()
            .map(|&x: &f64| (x, 12.0 + 30.0 * f64::from(number as u8) + 8.0 * (x - 1.0) * (x - 1.0) / (1.0 + x)))
            .collect();
        Line { band: band(&points, 0.12), has_dots: true, ..line(label, LineKind::Mean, points) }
    });
    figure(
        "sweep_alpha",
        "Final regret over α",
        "Each point is 20 runs.",
        &["The lowest regret of bsfl is at α = 1."],
        Chart::Lines {
            x: axis("policy.bsfl.alpha", None, &[Scale::Log, Scale::Linear], [None, None]),
            y: axis("final mean regret", None, &BOTH, [None, None]),
            lines: lines.collect(),
            marks: Vec::new(),
        },
    )
}

fn heat() -> Figure {
    let mut noise = Noise(5);
    let mut panel = |label: &str| Panel {
        label: label.to_owned(),
        contour: Vec::new(),
        cells: (0..4)
            .map(|row| {
                (0..5)
                    .map(|column| {
                        if row == 3 && column == 4 {
                            None
                        } else {
                            Some((1.0 + f64::from(row * column)) * (0.5 + noise.next()) * 3.0)
                        }
                    })
                    .collect()
            })
            .collect(),
    };
    let panels = POLICIES.iter().map(|label| panel(label)).collect();
    let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    figure(
        "final_regret_grid",
        "Final regret over two swept parameters",
        "One grid per policy; all share the colour scale. Cells without a number were not run.",
        &["Regret grows with both parameters for every policy."],
        Chart::Heat {
            x: axis("population.clients", None, &[Scale::Linear], [None, None]),
            columns: texts(&["50", "100", "200", "500", "1000"]),
            y: axis("protocol.select", None, &[Scale::Linear], [None, None]),
            rows: texts(&["5", "10", "20", "40"]),
            value: axis("final mean regret", None, &[Scale::Log, Scale::Linear], [None, None]),
            panels,
        },
    )
}

fn bars() -> Figure {
    let parts = ["download", "compute", "upload", "waiting", "computed in vain", "lost"];
    let lengths = |part: usize| {
        (0..6).map(|policy| [120.0, 900.0, 300.0, 210.0, 66.0, 12.0][part] * (1.0 + 0.2 * f64::from(policy))).collect()
    };
    figure(
        "time_shares",
        "Where clients' time goes",
        "Seconds per round and client, means over seeds.",
        &["Most of the time is spent on computing."],
        Chart::Bars {
            value: axis("time per round", Some("s"), &[Scale::Linear], [Some(0.0), None]),
            categories: POLICIES.map(str::to_owned).to_vec(),
            parts: parts.iter().enumerate().map(|(part, label)| ((*label).to_owned(), lengths(part))).collect(),
        },
    )
}

/// Two alternatives: of one number and of another.
fn intervals(what: &str, scale: f64) -> Figure {
    let rows = POLICIES.iter().enumerate().map(|(number, label)| {
        let value = scale * (14.0 * f64::from(number as u8) - 25.0);
        (
            format!("{label} − random"),
            (*label).to_owned(),
            Interval { value, ci95: Some([value - 9.0 - value.abs() * 0.1, value + 9.0]) },
        )
    });
    let drawn = figure(
        &format!("differences-{what}"),
        &format!("Paired differences of the {what}"),
        "Difference to random, paired by seed, with 95 % intervals.",
        &["bsfl and cs-ucb have less than random."],
        Chart::Intervals {
            value: axis(&format!("difference of the {what}"), None, &[Scale::Linear], [None, None]),
            rows: rows.collect(),
        },
    );
    let values = vec![["difference in".to_owned(), what.to_owned()]];
    Figure { choice: Some(Choice { of: "differences".to_owned(), values }), ..drawn }
}

/// Bars that are all alike, of which a page makes a sentence.
fn alike() -> Figure {
    figure(
        "alike",
        "Outcomes of jobs",
        "Jobs per run.",
        &["each: arrived 10000"],
        Chart::Bars {
            value: axis("jobs per run", None, &[Scale::Linear], [Some(0.0), None]),
            categories: POLICIES.map(str::to_owned).to_vec(),
            parts: vec![("arrived".to_owned(), vec![1e4; POLICIES.len()])],
        },
    )
}

/// The series of candidates that were not chosen.
const OTHERS: &str = "not chosen";

fn index() -> Figure {
    let mut noise = Noise(41);
    let mut lines = Vec::new();
    for (series, high) in [(POLICIES[1], 0.9), (OTHERS, 0.6)] {
        let middle: Vec<(f64, f64)> =
            (0..64).map(|step| (f64::from(step) + 1.0, high * (0.9 + 0.1 * noise.next()))).collect();
        for (label, factor) in [("lowest", 0.8), ("highest", 1.15)] {
            let points = middle.iter().map(|&(x, y)| (x, y * factor)).collect();
            lines.push(Line { label: Some(label.to_owned()), ..line(series, LineKind::Extreme, points) });
        }
        lines.push(line(series, LineKind::Mean, middle));
    }
    figure(
        "why-cs-ucb-index",
        "cs-ucb: index of the chosen and of the others",
        "Means (thick), lowest and highest values (thin) in each round.",
        &["chosen: 640 values, mean 0.86, from 0.65 to 1.04", "not chosen: 5760 values, mean 0.57, from 0.43 to 0.69"],
        Chart::Lines {
            x: axis("round", None, &BOTH, [None, None]),
            y: axis("index", None, &BOTH, [None, None]),
            lines,
            marks: Vec::new(),
        },
    )
}

/// What a policy says of its decisions; its picture is the one of this index.
fn why(picture: usize) -> Why {
    let decided = |round: u32| {
        let row = |client: u32| {
            let is_chosen = client < 3;
            let texts = [client.to_string(), if is_chosen { "yes" } else { "" }.to_owned()];
            texts.into_iter().chain([format!("0.{}", 90 - client), "–".to_owned()]).collect::<Vec<_>>()
        };
        Decided {
            heading: format!("Round {round}: 3 of 12 candidates"),
            note: "12 of 100 candidates.".to_owned(),
            table: Table {
                columns: ["client", "chosen", "index", "reward afterwards"].map(str::to_owned).to_vec(),
                rows: (0..12).map(row).collect(),
            },
            is_chosen: (0..12).map(|client| client < 3).collect(),
        }
    };
    Why {
        id: "why-cs-ucb".to_owned(),
        policy: POLICIES[1].to_owned(),
        words: vec!["Decisions of 2 of 64 rounds are shown.".to_owned()],
        figures: vec![picture],
        decisions: vec![decided(1), decided(64)],
        data: Table::default(),
    }
}

/// One line for each of the policies that a report can tell apart.
fn everybody() -> Figure {
    let lines = (0..ALL).map(|number| {
        let course = |step: i32| (f64::from(step), 5.0 + (2.0 + number as f64) * ln(f64::from(step + 1)));
        line(&name(number), LineKind::Mean, (0..40).map(course).collect())
    });
    figure(
        "everybody",
        "Seventeen policies",
        "Colour, dash and marker tell them apart.",
        &["Lines are in the order of the legend."],
        Chart::Lines {
            x: axis("round", None, &BOTH, [None, None]),
            y: axis("value", None, &BOTH, [None, None]),
            lines: lines.collect(),
            marks: Vec::new(),
        },
    )
}

fn report() -> Report {
    let mut series: Vec<Series> =
        (0..ALL).map(|number| Series { label: name(number), style: Style::of_index(number) }).collect();
    let style = Style { colour: [90, 100, 112], is_dashed: true, is_hollow: true, ..Style::of_index(15) };
    series.push(Series { label: OTHERS.to_owned(), style });
    let pair = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
    let facts = vec![
        pair("clients", "100, of which 10 a round"),
        pair("protocol", "synchronous"),
        pair("task", "linear regression"),
        pair("rounds", "1000"),
        pair("seeds", "0 to 19"),
        pair("version", "fedgenie 0.1.0"),
        pair("timeline digest", "4f1c9a37e8f0d2b64f1c9a37e8f0d2b64f1c9a37e8f0d2b64f1c9a37e8f0d2b6"),
    ];
    let verdict = |subject: &str, value: f64, half: f64, verdict: &str, is_better: Option<bool>| Verdict {
        point: String::new(),
        quantity: "cumulative mean regret".to_owned(),
        subject: subject.to_owned(),
        against: "random".to_owned(),
        difference: Interval { value, ci95: Some([value - half, value + half]) },
        pairs: 20,
        seeds_needed: is_better.is_none().then_some(64),
        verdict: verdict.to_owned(),
        is_better,
    };
    let (differences, others) = (intervals("regret", 1.0), intervals("time", 3.0));
    let row = |cells: [&str; 5]| cells.iter().map(|&cell| cell.to_owned()).collect();
    Report {
        title: "Six policies under heterogeneous latencies".to_owned(),
        experiments: vec![Experiment {
            prefix: String::new(),
            scenario: "quickstart".to_owned(),
            title: Some("Linear regression with exponential latencies".to_owned()),
            facts,
            points: Vec::new(),
            source: "[population]\nclients = 100\n\n[protocol.synchronous]\nselect = 10\n".repeat(6),
        }],
        answers: vec![
            "best: bsfl (41.2 ± 3.1); power-of-choice is not told apart (+60.3 ± 75.9); by mean regret".to_owned(),
            "to tell bsfl from power-of-choice: about 64 seeds".to_owned(),
        ],
        more: vec!["To tell one from the other: about 60 seeds.".to_owned()],
        warnings: vec![
            "Three seeds are too few for an interval of the test accuracy; single seeds are drawn.".to_owned(),
        ],
        verdicts: vec![
            verdict("bsfl", -1203.0, 33.7, "lower", Some(true)),
            verdict("cs-ucb", -1010.5, 40.2, "lower", Some(true)),
            verdict("power-of-choice", 60.3, 75.9, "not told apart", None),
            verdict("rbcs-f with a longer name", 302.4, 51.0, "higher", Some(false)),
        ],
        overviews: Vec::new(),
        brief: Brief::default(),
        lead: "regret".to_owned(),
        lacking: Vec::new(),
        changed: Vec::new(),
        results: Table {
            columns: ["policy", "rounds", "virtual time [s]", "final test loss", "cumulative mean regret"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![
                row(["bsfl", "1000", "5210 ± 31", "0.131 ± 0.004", "131.2 ± 9.1"]),
                row(["cs-ucb", "1000", "6031 ± 40", "0.129 ± 0.005", "260.4 ± 12.0"]),
                row(["genie", "1000", "4800 ± 20", "0.133 ± 0.004", "0"]),
                row(["random", "1000", "9034 ± 88", "0.130 ± 0.003", "1602 ± 30"]),
            ],
        },
        series,
        figures: vec![
            regret(),
            accuracy(),
            sweep(),
            heat(),
            bars(),
            differences,
            index(),
            others,
            alike(),
            everybody(),
        ],
        why: vec![why(6)],
    }
}

/// A text that would run a script if it were taken for HTML, in each of the ways in which that happens.
fn poison(text: &mut String) {
    text.push_str(" <script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\"></script>{a|b}'\"&");
}

fn poisoned(mut report: Report) -> Report {
    poison(&mut report.title);
    report.warnings.iter_mut().for_each(poison);
    for experiment in &mut report.experiments {
        poison(&mut experiment.scenario);
        poison(&mut experiment.source);
        experiment.facts.iter_mut().flatten().for_each(poison);
    }
    report.verdicts.iter_mut().for_each(|verdict| poison(&mut verdict.subject));
    report.results.columns.iter_mut().chain(report.results.rows.iter_mut().flatten()).for_each(poison);
    report.series.iter_mut().for_each(|series| poison(&mut series.label));
    for why in &mut report.why {
        why.words.iter_mut().chain([&mut why.policy]).for_each(poison);
        for Decided { heading, note, table, .. } in &mut why.decisions {
            table.columns.iter_mut().chain(table.rows.iter_mut().flatten()).chain([heading, note]).for_each(poison);
        }
    }
    for figure in &mut report.figures {
        poison(&mut figure.title);
        poison(&mut figure.caption);
        poison(&mut figure.method);
        figure.choice.iter_mut().flat_map(|choice| choice.values.iter_mut().flatten()).for_each(poison);
        figure.summary.iter_mut().for_each(poison);
        match &mut figure.chart {
            Chart::Lines { x, y, lines, marks } => {
                [x, y].into_iter().for_each(|axis| poison(&mut axis.label));
                marks.iter_mut().for_each(|mark| poison(&mut mark.label));
                lines.iter_mut().for_each(|line| {
                    poison(&mut line.series);
                    line.label.iter_mut().for_each(poison);
                });
            }
            Chart::Heat { x, columns, y, rows, value, panels } => {
                [x, y, value].into_iter().for_each(|axis| poison(&mut axis.label));
                columns.iter_mut().chain(rows).for_each(poison);
                panels.iter_mut().for_each(|panel| poison(&mut panel.label));
            }
            Chart::Bars { value, categories, parts } => {
                poison(&mut value.label);
                categories.iter_mut().chain(parts.iter_mut().map(|(label, _)| label)).for_each(poison);
            }
            Chart::Intervals { value, rows } => {
                poison(&mut value.label);
                rows.iter_mut().for_each(|(label, series, _)| [label, series].into_iter().for_each(poison));
            }
        }
    }
    report
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_hostile = words.iter().any(|word| word == "--hostile");
    let Some(path) = words.iter().find(|word| !word.starts_with("--")) else {
        return Err(std::io::Error::other("name the file to write: report_page page.html [--hostile]"));
    };
    std::fs::write(path, html(&if is_hostile { poisoned(report()) } else { report() }))
}
