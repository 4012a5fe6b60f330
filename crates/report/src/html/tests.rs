//! Properties of a page, for any report.

use super::*;
use crate::{
    Axis, Chart, Choice, Decided, Experiment, Figure, Interval, Layout, Line, LineKind, Mark, Overview, Panel, Scale,
    Series, Style, Table, Verdict, Why, numbers, picture,
};
use serde_json::Value;

const POISON: &str = "<script>window.pwned=1</script>\"'&--></script><!--\u{2028}";

fn axis(label: &str) -> Axis {
    let scales = vec![Scale::Linear, Scale::Log];
    Axis { label: label.to_owned(), unit: Some(POISON.to_owned()), scales, range: [None, Some(1.0)], begins: false }
}

fn line(series: &str, role: LineKind, steps: usize, slope: f64) -> Line {
    let points: Vec<(f64, f64)> =
        (0..steps).map(|step| (step as f64 * 1.7, (step as f64 + 0.123_456_789) * slope)).collect();
    let band = points.iter().map(|&(x, y)| (x, [y * 0.91, y * 1.07])).collect();
    Line { series: series.to_owned(), role, label: None, points, band, is_staircase: false, has_dots: false }
}

fn figure(chart: Chart) -> Figure {
    let summary = vec![format!("summary {POISON}")];
    Figure {
        id: "one".to_owned(),
        title: format!("figure {POISON}"),
        caption: format!("caption {POISON}"),
        method: format!("method {POISON}"),
        summary,
        choice: None,
        chart,
    }
}

/// A report with every kind of figure, and the same text at the end of each of its texts.
fn report() -> Report {
    let text = |text: &str| format!("{text} {POISON}");
    let mut fit = line(&text("first"), LineKind::Fit, 40, 2.0);
    fit.label = Some(text("fitted"));
    let lines = vec![line(&text("first"), LineKind::Mean, 40, 1.0), fit, line(&text("first"), LineKind::Seed, 40, 1.1)];
    let known = Interval { value: -1.25, ci95: Some([-2.0, -0.5]) };
    let panel = Panel { label: text("panel"), cells: vec![vec![Some(1.0 / 3.0), None]], contour: Vec::new() };
    let verdict = Verdict {
        point: text("point"),
        quantity: text("quantity"),
        subject: text("subject"),
        against: text("against"),
        difference: known,
        pairs: 20,
        seeds_needed: None,
        verdict: text("lower"),
        is_better: Some(true),
    };
    Report {
        title: text("title"),
        experiments: vec![Experiment {
            prefix: text("prefix"),
            scenario: text("scenario"),
            title: Some(text("experiment")),
            facts: vec![[text("fact"), text("value")]],
            points: vec![[text("name"), text("setting")]],
            source: text("source"),
        }],
        answers: vec![text("answer")],
        more: vec!["To tell one from the other: about 60 seeds.".to_owned()],
        warnings: vec![text("warning")],
        verdicts: vec![verdict.clone()],
        overviews: vec![Overview {
            columns: vec![text("quantity"), text("other quantity")],
            rows: vec![(text("subject"), text("against"), vec![Some(verdict), None])],
        }],
        results: Table { columns: vec![text("column")], rows: vec![vec![text("cell")]] },
        brief: crate::model::Brief::default(),
        lead: String::new(),
        lacking: Vec::new(),
        changed: Vec::new(),
        series: vec![Series { label: text("first"), style: Style::of_index(0) }],
        figures: vec![
            figure(Chart::Lines {
                x: axis("x"),
                y: axis("y"),
                lines,
                marks: vec![Mark { label: text("mark"), value: 3.0 }],
            }),
            figure(Chart::Heat {
                x: axis("x"),
                columns: vec![text("left"), text("right")],
                y: axis("y"),
                rows: vec![text("row")],
                value: axis("value"),
                panels: vec![panel],
            }),
            figure(Chart::Bars {
                value: axis("length"),
                categories: vec![text("first")],
                parts: vec![(text("part"), vec![1.5]), (text("other"), vec![2.0])],
            }),
            figure(Chart::Intervals { value: axis("difference"), rows: vec![(text("label"), text("first"), known)] }),
        ],
        why: vec![Why {
            id: "why".to_owned(),
            policy: text("chooser"),
            words: vec![text("sentence")],
            figures: vec![0],
            decisions: vec![Decided {
                heading: text("decision"),
                note: text("note"),
                table: Table {
                    columns: vec![text("client"), text("index")],
                    rows: vec![vec![text("7"), text("–")]; 2],
                },
                is_chosen: vec![true, false],
            }],
            data: Table::default(),
        }],
    }
}

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn no_text_becomes_an_element() {
    let page = html(&report());
    assert!(!page.contains("<script>"), "every script of the page has a nonce or a type");
    assert!(!page.contains("<!--"), "a text opened a comment");
    let ends = page.matches("</script").count();
    assert_eq!(ends, 2, "the data and the page's script, and nothing else");
    for word in
        ["title", "prefix", "scenario", "experiment", "fact", "value", "source", "warning", "quantity", "subject"]
            .into_iter()
            .chain([
                "against", "lower", "column", "cell", "figure", "caption", "summary", "method", "panel", "row", "part",
                "label", "chooser", "sentence", "decision", "note", "index", "7",
            ])
    {
        assert!(page.contains(&format!("{word} &#60;script&#62;")), "{word} is not shown as it is");
    }
}

/// A figure stands in one of the two sections, and the chosen candidates are marked.
#[test]
fn decisions_have_a_section_of_their_own() {
    let page = html(&report());
    let (before, section) = page.split_once("<section id=\"why\"").unwrap();
    assert!(!before.contains("id=\"figure-1\"") && before.contains("id=\"figure-2\""));
    assert!(section.contains("id=\"figure-1\"") && !section.contains("id=\"figure-2\""));
    assert_eq!((section.matches("<tr class=\"chosen\">").count(), section.matches("decision\" open>").count()), (1, 1));
    let mut none = report();
    none.why.clear();
    assert!(!html(&none).contains("id=\"why\""));
}

/// Alternatives have one number and stand together, at the place of the first; a figure that shows nothing is a
/// sentence.
#[test]
fn alternatives_stand_together() {
    let lines = |values: [f64; 2]| Chart::Lines {
        x: axis("x"),
        y: axis("y"),
        lines: vec![Line {
            points: vec![(0.0, values[0]), (1.0, values[1])],
            band: Vec::new(),
            ..line("a", LineKind::Mean, 2, 1.0)
        }],
        marks: Vec::new(),
    };
    let named = |id: &str, of: &str, values| Figure {
        id: id.to_owned(),
        title: id.to_owned(),
        choice: Some(Choice { of: of.to_owned(), values: vec![["over".to_owned(), id.to_owned()]] }),
        ..figure(lines(values))
    };
    let figures = vec![
        named("loss", "loss", [2.0, 1.0]),
        named("regret", "regret", [0.0, 3.0]),
        named("nothing", "loss", [0.0, 0.0]),
        named("loss-time", "loss", [2.0, 1.5]),
    ];
    let report = Report { figures, ..Report::default() };
    let shown = Shown::of(&report);
    let drawn: Vec<_> = shown.drawn.iter().map(|drawn| (drawn.index, drawn.number, drawn.id.as_str())).collect();
    assert_eq!(drawn, [(0, 1, "figure-1"), (3, 1, "figure-1-2"), (1, 2, "figure-2")]);
    assert_eq!((shown.plain.len(), shown.plain[0].sentence.as_str()), (1, "0 throughout"));
    // Two folders that share no figures have the same choices: nothing is out of reach.
    let twice = Report { figures: [&report.figures[..], &report.figures[..]].concat(), ..Report::default() };
    let numbers: Vec<usize> = Shown::of(&twice).drawn.iter().map(|drawn| drawn.number).collect();
    assert_eq!(numbers, [1, 1, 2, 3, 3, 4]);
    let page = html(&report);
    assert_eq!(page.matches("<div class=\"family\">").count(), 1);
    assert!(page.contains("<b>nothing</b>: 0 throughout."));
    let elements: Vec<Value> =
        data(&page)["figures"].as_array().unwrap().iter().map(|found| found["element"].clone()).collect();
    assert_eq!(elements, ["figure-1", "figure-1-2", "figure-2"]);
}

#[test]
fn pictures_that_show_nothing_are_sentences() {
    let bars = |lengths: [f64; 2]| {
        let parts = vec![("arrived".to_owned(), lengths.to_vec())];
        figure(Chart::Bars {
            value: Axis { unit: None, ..axis("jobs") },
            categories: vec!["a".to_owned(), "b".to_owned()],
            parts,
        })
    };
    let dots = |has_dots| {
        let of = |series: &str, value: f64| Line {
            points: vec![(1.0, value)],
            band: Vec::new(),
            has_dots,
            ..line(series, LineKind::Mean, 1, 1.0)
        };
        figure(Chart::Lines { x: axis("x"), y: axis("y"), lines: vec![of("a", 2.5), of("b", 3.0)], marks: Vec::new() })
    };
    let figures = vec![bars([5.0, 5.0]), bars([5.0, 6.0]), dots(false), dots(true), bars([500.0, 501.0])];
    let report = Report { figures, ..Report::default() };
    let shown = Shown::of(&report);
    let sentences: Vec<&str> = shown.plain.iter().map(|plain| plain.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        ["the same for all 2: arrived 5", "measured once: a 2.5, b 3", "nearly the same for all 2: arrived 500 to 501",]
    );
    assert_eq!(shown.drawn.iter().map(|drawn| drawn.index).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn what_is_included_cannot_end_a_script_and_is_short() {
    for script in SCRIPTS {
        assert!(!script.contains("</script") && !script.contains("<!--"), "a script ends early");
    }
    assert!(!STYLE.contains("</style"), "the style ends early");
    let lines: usize = SCRIPTS.iter().map(|script| script.lines().count()).sum();
    assert!(lines <= 600, "the scripts of the page have {lines} lines");
}

/// A page shows the shapes of a file: all of them, in the same letters.
#[test]
fn pictures_are_those_of_files() {
    let report = report();
    let page = html(&report);
    for (number, figure) in (1..).zip(&report.figures) {
        // The first picture stands beside the table of results.
        let height = if number == 1 { 330 } else { 420 };
        let layout = Layout { height, has_legend_below: true, ..Layout::default() };
        let file = String::from_utf8(picture(figure, &report.series, "", layout).unwrap()).unwrap();
        let (_, body) = file.split_once("</title>").unwrap();
        assert!(page.contains(body.trim_end()), "figure {number} is drawn otherwise");
        assert!(body.matches("<path").count() > 3 && body.contains("&lt;script&gt;"));
    }
    assert_eq!(page.matches("<svg class=\"broad\"").count(), 4);
    // Heat maps have a picture for each scale of their colours.
    assert_eq!(page.matches("class=\"narrow off\" data-scale=\"log\"").count(), 1);
    assert_eq!(page.matches("class=\"narrow").count(), 5);
}

/// Everything that a script does not have to do is there without one: pictures, keys, choices.
#[test]
fn keys_and_choices_are_there_without_a_script() {
    let page = html(&report());
    let keys = page.matches("class=\"toggle\" aria-pressed=\"true\" data-n=").count();
    // Bars of a policy are named by it; the panel of the heat map is hidden as well as a policy.
    assert_eq!(keys, 4);
    assert!(page.contains("data-axis=\"y\" value=\"log\" aria-pressed=\"false\""));
    assert!(page.contains("class=\"key n0\" data-l=\"1\""), "a fit has an entry of its own");
}

#[test]
fn scripts_run_with_the_nonce_only_and_nothing_goes_out() {
    let page = html(&report());
    let (_, rest) = page.split_once("script-src 'nonce-").unwrap();
    let nonce = rest.split_once('\'').unwrap().0;
    assert_eq!(page.matches(&format!("<script nonce=\"{nonce}\">")).count(), 1);
    assert!(page.contains("default-src 'none'"));
    let mut other = report();
    other.warnings[0].push('.');
    assert!(!html(&other).contains(nonce), "a nonce that does not depend on the texts can be written into one");
}

#[test]
fn the_data_are_those_of_the_report() {
    let report = report();
    let page = html(&report);
    let data = data(&page);
    assert_eq!(data["figures"][0]["title"], report.figures[0].title.as_str());
    assert_eq!(data["figures"][0]["names"], serde_json::json!([report.series[0].label]));
    let chart = &data["figures"][0]["chart"];
    assert_eq!(chart["kind"], "lines");
    assert_eq!(chart["xs"].as_array().unwrap().len(), 1, "lines share their coordinates");
    let Chart::Lines { lines, .. } = &report.figures[0].chart else { panic!("the first figure has lines") };
    for (line, written) in lines.iter().zip(chart["lines"].as_array().unwrap()) {
        assert_eq!(written["series"], line.series.as_str());
        for (step, &(x, value)) in line.points.iter().enumerate() {
            let read = |list: &Value| list[step].as_f64().unwrap();
            assert!((read(&chart["xs"][0]) - x).abs() <= 1e-8 * x);
            assert!((read(&written["values"]) - value).abs() <= 1e-5 * value);
            assert!((read(&written["high"]) - line.band[step].1[1]).abs() <= 1e-5 * value);
        }
    }
    assert_eq!(data["figures"][1]["chart"]["panels"][0]["cells"], serde_json::json!([[0.333333, null]]));
    assert_eq!(data["figures"][2]["chart"], serde_json::to_value(&report.figures[2].chart).unwrap());
    assert_eq!(data["figures"][3]["chart"], serde_json::to_value(&report.figures[3].chart).unwrap());
}

#[test]
fn numbers_are_there_without_a_script() {
    let page = html(&report());
    assert!(page.contains("25 of 40 points, evenly spread; the CSV has all."));
    assert!(page.contains("2 of 3 lines; the CSV has all."), "seeds are listed only where there is no mean");
    assert!(page.contains("<th scope=\"row\">66.3</th><td>39.123 [35.602, 41.862]</td>"), "the last row is there");
    assert!(page.contains("<td>0.33333</td><td>–</td>"), "a cell without a value");
    assert!(page.contains("<td>1.5</td><td>2</td><td>3.5</td>"), "a bar and its sum");
    assert!(page.contains("<td>-1.25 [-2, -0.5]</td>"), "an interval");
    assert!(page.contains("<td class=\"number\" data-label=\"difference\">−1.25</td>"), "a verdict");
    assert!(page.contains("<noscript>"));
}

#[test]
fn a_line_is_read_where_it_has_no_point() {
    let mut staircase = line("b", LineKind::Mean, 3, 1.0);
    staircase.points = vec![(0.0, 1.0), (2.0, 5.0)];
    staircase.band.clear();
    let mut straight = staircase.clone();
    staircase.is_staircase = true;
    straight.points.push((3.0, 6.0));
    straight.points.insert(1, (1.0, 2.0));
    let chart = Chart::Lines { x: axis("x"), y: axis("y"), lines: vec![staircase, straight], marks: Vec::new() };
    let tables = data_tables::data_tables(&chart);
    let rows: Vec<_> = tables[0].rows.iter().map(|(x, cells)| format!("{x}: {}", cells.join(" "))).collect();
    assert_eq!(rows, ["0: 1 1", "1: 1 2", "2: 5 5", "3: – 6"]);
}

#[test]
fn a_big_report_is_below_two_megabytes() {
    let lines = || (0..6).map(|series| line(&format!("policy {series}"), LineKind::Mean, 250, f64::from(series) + 0.1));
    let chart = || Chart::Lines { x: axis("x"), y: axis("y"), lines: lines().collect(), marks: Vec::new() };
    let source = "[population]\nclients = 1000\n".repeat(400);
    let experiments = vec![Experiment { source, ..Experiment::default() }];
    let report = Report { experiments, figures: (0..15).map(|_| figure(chart())).collect(), ..Report::default() };
    let size = html(&report).len();
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
fn the_same_report_gives_the_same_page_and_an_empty_one_gives_one() {
    assert_eq!(html(&report()), html(&report()));
    let empty = html(&Report::default());
    assert!(empty.contains("What was run") && !empty.contains("id=\"figures\""));
}

#[test]
fn numbers_have_few_digits() {
    let texts = [0.0, -0.0, 1.0, 1234.5678, 1_234_567.8, 12_345_678.0, 0.000_123_456, 1.0e-5, -2.5].map(numbers::text);
    assert_eq!(texts, ["0", "0", "1", "1234.6", "1234600", "1.2346e7", "0.00012346", "1e-5", "-2.5"]);
}

/// Few comparisons are a list; many are a table of the main ones, and a folded list for each point.
#[test]
fn many_comparisons_are_folded_below_the_main_ones() {
    let mut report = report();
    let of = |page: &str, what: &str| page.matches(what).count();
    let page = html(&report);
    assert_eq!((of(&page, "class=\"results overview\""), of(&page, "<details class=\"all\"")), (0, 0));
    let one = report.verdicts[0].clone();
    let at = |point: &str, count| vec![Verdict { point: point.to_owned(), ..one.clone() }; count];
    report.verdicts = [at("north", 20), at("", 3), at("south", 10)].concat();
    let page = html(&report);
    assert_eq!((of(&page, "class=\"results overview\""), of(&page, "<details class=\"all\"")), (1, 3));
    for heading in ["All comparisons at north (20)", "All comparisons at south (10)", "the same at several points (3)"]
    {
        assert_eq!(of(&page, heading), 2, "a heading and what is read aloud: {heading}");
    }
    report.verdicts = at("", 31);
    assert!(html(&report).contains("<summary>All 31 comparisons</summary>"));
}
