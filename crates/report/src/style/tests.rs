//! Styles differ, to all eyes.

use super::*;

const DALTONISM: [(&str, [[f64; 3]; 3]); 4] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    // G. M. Machado, M. M. Oliveira, L. A. F. Fernandes (2009), severity 1.
    (
        "protanopia",
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
    ),
    (
        "deuteranopia",
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
    ),
    (
        "tritanopia",
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ),
];

/// CIE L*a*b* of a colour as seen through a matrix.
fn seen(colour: [u8; 3], eyes: &[[f64; 3]; 3]) -> [f64; 3] {
    let linear = colour.map(|channel| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    });
    let dot = |row: &[f64; 3], of: &[f64; 3]| row.iter().zip(of).map(|(one, other)| one * other).sum::<f64>();
    let [r, g, b] = [0, 1, 2].map(|row| dot(&eyes[row], &linear).clamp(0.0, 1.0));
    let [x, y, z] = [
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.950_47,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.088_83,
    ]
    .map(|t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The least distance of two colours, over all kinds of colour vision; eyes notice a distance of two side by side.
fn distance(one: [u8; 3], other: [u8; 3]) -> f64 {
    let of = |(_, eyes): &(&str, [[f64; 3]; 3])| {
        let (one, other) = (seen(one, eyes), seen(other, eyes));
        one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
    };
    DALTONISM.iter().map(of).fold(f64::INFINITY, f64::min)
}

fn pairs<T>(all: &[T]) -> impl Iterator<Item = (&T, &T)> {
    all.iter().enumerate().flat_map(|(index, one)| all[..index].iter().map(move |other| (one, other)))
}

fn policies<'a>(names: &'a [String], labels: &'a [Vec<String>]) -> Vec<Labelled<'a>> {
    let of_folder = |(folder, labels): (usize, &'a Vec<String>)| {
        names.iter().zip(labels).map(move |(name, label)| Labelled { folder, name, label })
    };
    labels.iter().enumerate().flat_map(of_folder).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("p{index:02}")).collect()
}

fn labels(folders: &[&str], names: &[String]) -> Vec<Vec<String>> {
    folders.iter().map(|folder| names.iter().map(|name| format!("{folder}{name}")).collect()).collect()
}

/// The catalogue of the tests holds `p00` to `p15`.
fn known(name: &str) -> Option<usize> {
    names(16).iter().position(|known| known == name)
}

#[test]
fn sixteen_policies_differ_in_colour_and_marker_and_half_of_them_in_dash() {
    let names = names(16);
    let series = series(&policies(&names, &labels(&[""], &names)), known);
    for (one, other) in pairs(&series) {
        let (one, other) = (one.style, other.style);
        assert_ne!(one.marker.outline(), other.marker.outline());
        let least = if one.is_dashed == other.is_dashed { 7.0 } else { 5.0 };
        assert!(distance(one.colour, other.colour) > least, "{one:?} {other:?}");
    }
    assert_eq!(series.iter().filter(|series| series.style.is_dashed).count(), 8);
    assert!(series.iter().all(|series| !series.style.is_hollow));
}

#[test]
fn sixteen_policies_of_two_folders_differ_and_keep_their_hue() {
    let names = names(16);
    let series = series(&policies(&names, &labels(&["a: ", "b: "], &names)), known);
    assert_eq!(series.len(), 32);
    for (one, other) in pairs(&series) {
        let (one, other) = (one.style, other.style);
        assert!((one.marker, one.is_hollow) != (other.marker, other.is_hollow), "{one:?} {other:?}");
        assert!(one.colour != other.colour, "{one:?} {other:?}");
    }
    for (first, second) in series[..16].iter().zip(&series[16..]) {
        assert_eq!(second.style.colour, first.style.colour.map(lighter));
        assert_eq!((first.style.marker, first.style.is_dashed), (second.style.marker, second.style.is_dashed));
        assert!(second.style.is_hollow && !first.style.is_hollow);
    }
}

#[test]
fn a_policy_has_the_style_of_its_index_whoever_else_is_there() {
    let all = ["p09", "mine", "p02", "yours", "p00"].map(String::from);
    let series = series(&policies(&all, &labels(&[""], &all)), known);
    let expected = [9, 1, 2, 3, 0].map(Style::of_index);
    assert_eq!(series.iter().map(|series| series.style).collect::<Vec<_>>(), expected);
    // The seventeenth of a catalogue would like the style of the first, and takes a free one where that is taken.
    let known = |name: &str| [("new", 16), ("old", 0)].iter().find(|entry| entry.0 == name).map(|entry| entry.1);
    let indices = |names: &[&str]| indices(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), known);
    assert_eq!(indices(&["new"])["new"], 0);
    let both = indices(&["new", "old"]);
    assert_eq!((both["new"], both["old"]), (1, 0));
}

#[test]
fn todays_policies_have_the_eight_colours_of_old() {
    let old = [
        [213, 94, 0],
        [86, 180, 233],
        [0, 0, 0],
        [0, 114, 178],
        [0, 158, 115],
        [230, 159, 0],
        [204, 121, 167],
        [148, 148, 148],
    ];
    for (index, colour) in old.into_iter().enumerate() {
        let style = Style::of_index(index);
        assert_eq!((style.colour, style.is_dashed, style.is_hollow), (colour, false, false));
    }
}

#[test]
fn seventeen_policies_of_two_folders_and_more_folders_differ_while_there_are_styles() {
    for (folders, count) in [(&["a: ", "b: "][..], 17), (&["a: ", "b: ", "c: "], 10), (&["", ""][..1], 32)] {
        let names = names(count);
        let series = series(&policies(&names, &labels(folders, &names)), known);
        let styles: BTreeSet<Style> = series.iter().map(|series| series.style).collect();
        assert_eq!(styles.len(), series.len().min(STYLES), "{folders:?}");
    }
}

#[test]
fn markers_are_closed_paths_of_ten_pixels_and_all_differ() {
    let paths: BTreeSet<String> = MARKERS.iter().map(|marker| marker.path()).collect();
    assert_eq!(paths.len(), MARKERS.len());
    for marker in MARKERS {
        if let Outline::Polygon(corners) = marker.outline() {
            assert!(corners.iter().all(|&(x, y)| x.abs() <= 6 && y.abs() <= 6), "{corners:?}");
            assert!(corners.iter().any(|&(_, y)| y.abs() >= 4), "{corners:?}");
        }
        assert!(marker.path().starts_with('m') && marker.path().ends_with('z'));
    }
}

/// Every style can be seen on a dark page, and what can be seen is not changed.
#[test]
fn colours_can_be_seen_on_dark_pages() {
    assert!((contrast([0.0; 3], [255.0; 3]) - 21.0).abs() < 1e-9);
    for index in 0..STYLES {
        let colour = Style::of_index(index).colour;
        let dark = on_dark(colour);
        assert!(contrast(dark.map(f64::from), DARK.map(f64::from)) >= 4.0, "{colour:?} {dark:?}");
    }
    assert_eq!((on_dark([86, 180, 233]), on_dark([0; 3])), ([86, 180, 233], [235; 3]));
    let all: BTreeSet<[u8; 3]> = (0..STYLES).map(|index| on_dark(Style::of_index(index).colour)).collect();
    assert_eq!(all.len(), STYLES, "two styles have one colour on dark pages");
}
