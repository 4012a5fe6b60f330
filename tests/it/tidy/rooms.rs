//! Files import one way: no circle among the modules of a folder, and in the simulator by a table of rooms.

use super::source::{Source, Violation, assert_named, assert_none, past_space, places_of, program, word};
use std::collections::{BTreeMap, BTreeSet};

/// Circles among the modules of a folder, with all their members. The list may only shrink.
const CIRCLES: [(&str, &[&str]); 13] = [
    ("crates/experiment/src/experiment", &["estimates", "sample", "summary", "until", "watch"]),
    ("crates/experiment/src/experiment", &["incomplete", "stored"]),
    ("crates/experiment/src/scenario", &["read", "sweep"]),
    // A catalogue and its entries.
    (
        "crates/learning/src/data",
        &["cifar", "csv", "idx", "npy", "source", "svhn", "synthetic_clients", "synthetic_images"],
    ),
    ("crates/learning/src/dmrl", &["block", "network"]),
    ("crates/learning/src/graph_network", &["gat", "gcn", "pass"]),
    ("crates/learning/src/matrix_factorisation", &["footprint", "job"]),
    ("crates/learning/src/model/network", &["build", "layer", "ops"]),
    // A catalogue and its entries.
    ("crates/learning/src/ratings", &["amazon", "csv", "source", "synthetic"]),
    ("crates/report/src", &["model", "style"]),
    ("crates/simulator/src/population", &["availability", "law", "link", "trace"]),
    ("crates/simulator/src/population/trace", &["flash", "flash_json"]),
    // A catalogue and its entries.
    ("crates/validation/src", &["claim", "laboratory", "learns", "statistic"]),
];

/// Rooms of `crates/simulator/src`, each with those that its files import from. A file belongs to the room with the
/// longest name that its path begins with. A room imports from rooms above it.
const ROOMS: [(&str, &[&str]); 15] = [
    ("population", &[]),
    ("policy", &["population"]),
    ("clusters", &["policy"]),
    ("task", &["population", "clusters"]),
    ("protocol", &["population", "policy"]),
    ("recorder", &["policy", "clusters"]),
    ("metrics", &["population", "recorder"]),
    ("world", &["population", "policy", "clusters", "task", "protocol"]),
    ("run/error", &["population"]),
    ("run/timeline", &["population", "policy", "protocol", "recorder", "world", "run/error"]),
    ("run/learning", &["policy", "clusters", "protocol", "world", "run/error", "run/timeline"]),
    (
        "run/meters",
        &["population", "policy", "protocol", "recorder", "world", "run/error", "run/timeline", "run/learning"],
    ),
    (
        "run/round",
        &[
            "population",
            "policy",
            "clusters",
            "recorder",
            "metrics",
            "world",
            "run/error",
            "run/timeline",
            "run/learning",
            "run/meters",
        ],
    ),
    (
        "run/protocols",
        &[
            "population",
            "policy",
            "clusters",
            "protocol",
            "recorder",
            "world",
            "run/error",
            "run/timeline",
            "run/learning",
            "run/meters",
            "run/round",
        ],
    ),
    (
        "run",
        &[
            "population",
            "policy",
            "protocol",
            "recorder",
            "metrics",
            "world",
            "run/error",
            "run/timeline",
            "run/learning",
            "run/meters",
            "run/round",
            "run/protocols",
        ],
    ),
];

/// One module's file that imports from another one.
struct Arrow<'a> {
    source: &'a Source,
    line: usize,
    from: &'a str,
    to: &'a str,
}

/// The folder of a crate's source, and a module as its path below it without an ending; nothing for the crate's root.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = match path.split_once("/src/") {
        Some((own, file)) => (&path[..own.len() + 4], file),
        None => ("src", path.strip_prefix("src/")?),
    };
    let module = file.strip_suffix(".rs")?;
    Some((folder, if ["lib", "main"].contains(&module) { "" } else { module }))
}

fn is_below(module: &str, room: &str) -> bool {
    room.is_empty() || module.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn joined(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}/{name}") }
}

/// Paths that begin with the words so far and go on at a place, groups taken apart; returns where they end.
fn paths<'a>(text: &'a str, mut at: usize, mut words: Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) -> usize {
    loop {
        at = past_space(text, at);
        if text[at..].starts_with('{') {
            at += 1;
            while !text[at..].starts_with('}') && at < text.len() {
                at = past_space(text, paths(text, at, words.clone(), found));
                at = past_space(text, at + usize::from(text[at..].starts_with(',')));
            }
            return (at + 1).min(text.len());
        }
        let next = word(text, at);
        if next.is_empty() {
            // Everything of a module, or a type's parameters.
            let is_all = text[at..].starts_with('*');
            found.push(words);
            return at + usize::from(is_all);
        }
        words.push(next);
        at += next.len();
        let after = past_space(text, at);
        if !text[after..].starts_with("::") {
            found.push(words);
            // Another name for it.
            let renamed = word(text, after) == "as";
            return if renamed {
                past_space(text, after + 2) + word(text, past_space(text, after + 2)).len()
            } else {
                at
            };
        }
        at = after + 2;
    }
}

/// The module that a path names something of, seen from another one.
fn resolved<'m>(path: &[&str], own: &str, modules: &BTreeSet<&'m str>) -> Option<&'m str> {
    let up = |module: &str| module.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
    let mut rest = path;
    let mut module = match path.first()? {
        &"crate" => String::new(),
        &"super" => up(own),
        &"self" => own.to_owned(),
        child => joined(own, child),
    };
    while let [_, next @ ..] = rest {
        rest = next;
        match next.first() {
            Some(&"super") => module = up(&module),
            Some(name) if modules.contains(joined(&module, name).as_str()) => module = joined(&module, name),
            _ => break,
        }
    }
    modules.get(module.as_str()).copied()
}

/// The imports of one crate's files from each other.
fn arrows<'a>(sources: &'a [Source], folder: &str) -> Vec<Arrow<'a>> {
    let files: BTreeMap<&str, &Source> = sources
        .iter()
        .filter(|source| !source.is_test())
        .filter_map(|source| module_of(&source.path).filter(|(own, _)| *own == folder).map(|(_, name)| (name, source)))
        .collect();
    let modules: BTreeSet<&str> = files.keys().copied().collect();
    let mut arrows = Vec::new();
    for (&from, &source) in &files {
        let text = source.program();
        let children = modules.iter().filter(|module| module.len() > from.len() && is_below(module, from));
        let children = children.filter_map(|module| module[from.len()..].trim_start_matches('/').split('/').next());
        let beginnings: BTreeSet<&str> = children.chain(["crate", "super", "self"]).collect();
        for beginning in beginnings {
            // Not in the middle of a longer path, nor of a visibility; a child's name alone is a variable.
            let begins = places_of(text, beginning).filter(|&at| {
                !["::", "(in "].iter().any(|before| text[..at].ends_with(before))
                    && text[past_space(text, at + beginning.len())..].starts_with("::")
            });
            for at in begins {
                let mut found = Vec::new();
                paths(text, at, Vec::new(), &mut found);
                let targets: BTreeSet<&str> =
                    found.iter().filter_map(|path| resolved(path, from, &modules)).filter(|&to| to != from).collect();
                let line = source.line_of(at);
                arrows.extend(targets.into_iter().map(|to| Arrow { source, line, from, to }));
            }
        }
    }
    arrows
}

/// The modules that are reached from one over at least one step.
fn reached<'a>(from: &'a str, steps: &BTreeMap<&'a str, BTreeMap<&'a str, &Arrow<'_>>>) -> BTreeSet<&'a str> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        for &next in steps.get(module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    seen
}

/// Circles among the modules of each folder: a module's own files count as it, and items shared with the file above its
/// folder do not count.
fn circles(folder: &str, arrows: &[Arrow<'_>], known: &[(&str, &[&str])]) -> Vec<Violation> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, &Arrow<'_>>>> = BTreeMap::new();
    for arrow in arrows {
        let same = arrow.from.split('/').zip(arrow.to.split('/')).take_while(|(from, to)| from == to).count();
        let at = |module: &'_ str, parts: usize| {
            let ends = module.match_indices('/').map(|(at, _)| at).chain([module.len()]);
            if parts == 0 { 0 } else { ends.take(parts).last().unwrap_or(0) }
        };
        let is_parent = |module: &str| module.is_empty() || module.split('/').count() == same;
        if !is_parent(arrow.from) && !is_parent(arrow.to) {
            let (from, to) = (&arrow.from[..at(arrow.from, same + 1)], &arrow.to[..at(arrow.to, same + 1)]);
            let steps = folders.entry(&arrow.from[..at(arrow.from, same)]).or_default();
            steps.entry(from).or_default().entry(to).or_insert(arrow);
        }
    }
    let mut violations = Vec::new();
    let mut left: Vec<_> = known.iter().filter(|(of, _)| is_below(of, folder)).collect();
    for (parent, steps) in &folders {
        let place = if parent.is_empty() { folder.to_owned() } else { format!("{folder}/{parent}") };
        let mut seen = BTreeSet::new();
        for &module in steps.keys() {
            let circle: BTreeSet<&str> =
                reached(module, steps).into_iter().filter(|other| reached(other, steps).contains(module)).collect();
            if !circle.contains(module) || !seen.insert(circle.clone()) {
                continue;
            }
            let names: BTreeSet<&str> =
                circle.iter().map(|member| member.rsplit('/').next().unwrap_or(member)).collect();
            let listed =
                |(of, members): &&(&str, &[&str])| *of == place && names.iter().all(|name| members.contains(name));
            match left.iter().position(listed) {
                Some(at) if left[at].1.len() == names.len() => drop(left.remove(at)),
                Some(at) => {
                    left.remove(at);
                    let what = format!("the circle is smaller now; list {names:?}");
                    violations.push(Violation { place: place.clone(), what });
                }
                None => {
                    let inside = circle.iter().flat_map(|from| steps.get(from).into_iter().flatten());
                    let lines: Vec<String> = inside
                        .filter(|(to, _)| circle.contains(*to))
                        .map(|(_, arrow)| format!("{}:{} uses {}", arrow.source.path, arrow.line, arrow.to))
                        .collect();
                    let what = format!("a circle of {names:?}: {}", lines.join("; "));
                    violations.push(Violation { place: place.clone(), what });
                }
            }
        }
    }
    let gone = left.into_iter().map(|(of, members)| Violation {
        place: (*of).to_owned(),
        what: format!("the circle of {members:?} is gone; shorten the list"),
    });
    violations.extend(gone);
    violations
}

/// Imports from rooms that the table does not name, and files without a room.
fn strays(folder: &str, arrows: &[Arrow<'_>], sources: &[Source], rooms: &[(&str, &[&str])]) -> Vec<Violation> {
    let room_of = |module: &str| {
        let rooms = rooms.iter().enumerate().filter(|(_, (room, _))| is_below(module, room));
        rooms.max_by_key(|(_, (room, _))| room.len()).map(|(place, _)| place)
    };
    let mut violations = Vec::new();
    for (place, (room, uses)) in rooms.iter().enumerate() {
        for used in uses.iter().filter(|used| !rooms[..place].iter().any(|(above, _)| above == *used)) {
            let what = format!("the room {room} imports from {used}, which is not above it in the table");
            violations.push(Violation { place: folder.to_owned(), what });
        }
    }
    for source in sources.iter().filter(|source| !source.is_test()) {
        let lost = module_of(&source.path).filter(|(own, module)| *own == folder && !module.is_empty());
        if lost.is_some_and(|(_, module)| room_of(module).is_none()) {
            violations.push(source.as_a_whole("is in no room of the table"));
        }
    }
    for Arrow { source, line, from, to } in arrows {
        let (Some(own), Some(other)) = (room_of(from), room_of(to)) else { continue };
        let ((room, uses), other) = (rooms[own], rooms[other].0);
        if room != other && !uses.contains(&other) {
            let what = format!("uses {to}: files of {room} do not import from {other}");
            violations.push(source.at_line(*line, what));
        }
    }
    violations
}

/// Folders of the crates' source.
fn folders(sources: &[Source]) -> BTreeSet<&str> {
    sources.iter().filter_map(|source| module_of(&source.path)).map(|(folder, _)| folder).collect()
}

#[test]
fn modules_of_a_folder_import_one_way() {
    let sources = program();
    let mut violations = Vec::new();
    let mut seen = 0;
    for folder in folders(&sources) {
        let arrows = arrows(&sources, folder);
        seen += arrows.len();
        violations.extend(circles(folder, &arrows, &CIRCLES));
    }
    assert_none(&violations);
    assert!(seen > 1000, "imports are found: {seen}");
}

#[test]
fn files_of_the_simulator_import_as_their_rooms_may() {
    let (folder, sources) = ("crates/simulator/src", program());
    let arrows = arrows(&sources, folder);
    assert_none(&strays(folder, &arrows, &sources, &ROOMS));
}

/// A crate with files of these modules and lines.
fn planted(files: &[(&str, &str)]) -> Vec<Source> {
    let source = |(module, code): &(&str, &str)| Source::new(&format!("crates/x/src/{module}.rs"), code);
    files.iter().map(source).collect()
}

const FOLDER: &str = "crates/x/src";

#[test]
fn every_way_to_write_an_import_is_seen() {
    for (code, expected) in [
        ("use crate::b::Thing;", vec!["b"]),
        ("use crate::{b::{Thing, deep as d}, c};", vec!["b", "b/deep", "c"]),
        ("use super::b::*;", vec!["b"]),
        ("fn f() -> crate::c::Thing<crate::b::Thing> {}", vec!["b", "c"]),
        ("use child::Thing;\nfn f() { child::g() }", vec!["a/child"]),
        ("use super::{Thing, b::deep::{self, Other}};", vec!["", "b/deep"]),
        ("pub use self::child::Thing;", vec!["a/child"]),
        ("pub(in crate::b::deep) struct Thing;", vec![]),
        ("// use crate::b::Thing;\nlet x = \"crate::b\";", vec![]),
        ("use other::b::Thing; let child = x::child::y;", vec![]),
        ("#[cfg(test)]\nmod tests { use crate::b::Thing; }", vec![]),
    ] {
        let files = [("a", code), ("a/child", ""), ("b", ""), ("b/deep", ""), ("c", ""), ("lib", "")];
        let sources = planted(&files);
        let found: BTreeSet<&str> = arrows(&sources, FOLDER).iter().map(|arrow| arrow.to).collect();
        assert_eq!(found, expected.into_iter().collect(), "{code}");
    }
}

#[test]
fn a_circle_is_named_and_the_list_only_shrinks() {
    let found = |files: &[(&str, &str)], known: &[(&str, &[&str])]| {
        let sources = planted(files);
        circles(FOLDER, &arrows(&sources, FOLDER), known)
    };
    // A file and those below it may use each other.
    let clean = [("lib", "use a::X;"), ("a", "use crate::b::X;\nuse one::X;"), ("a/one", "use super::X;"), ("b", "")];
    assert_named(&found(&clean, &[]), &[]);
    // Below a folder, through three modules; the arrow is of a file deeper still.
    let circle = [
        ("a", ""),
        ("a/one", "\nuse super::two::X;"),
        ("a/two", "use super::three::X;"),
        ("a/two/deep", "use crate::a::one::X;"),
        ("a/three", "use super::two::X;"),
    ];
    let place = "crates/x/src/a";
    assert_named(&found(&circle, &[]), &[(place, "crates/x/src/a/one.rs:2 uses a/two")]);
    assert_named(&found(&circle, &[(place, &["one", "three", "two"])]), &[]);
    assert_named(&found(&circle, &[(place, &["four", "one", "three", "two"])]), &[(place, "smaller now")]);
    assert_named(&found(&circle[..4], &[(place, &["one", "three", "two"])]), &[(place, "smaller now")]);
    assert_named(&found(&circle, &[(place, &["one", "two"])]), &[(place, "a circle of"), (place, "is gone")]);
    assert_named(&found(&clean, &[(place, &["one", "two"])]), &[(place, "is gone; shorten the list")]);
    assert_named(&found(&clean, &[("crates/y/src", &["one", "two"])]), &[]);
    // Between the modules of the crate itself.
    let top = [("a", "use crate::b::X;"), ("b/deep", "use crate::a::X;"), ("b", "")];
    assert_named(&found(&top, &[]), &[(FOLDER, "crates/x/src/b/deep.rs:1 uses a")]);
}

#[test]
fn an_import_that_its_room_may_not_make_is_named() {
    let rooms: [(&str, &[&str]); 3] = [("low", &[]), ("run/inner", &["low"]), ("run", &["low", "run/inner"])];
    let found = |files: &[(&str, &str)], rooms: &[(&str, &[&str])]| {
        let sources = planted(files);
        strays(FOLDER, &arrows(&sources, FOLDER), &sources, rooms)
    };
    let clean = [
        ("lib", "use crate::run::X;"),
        ("low", ""),
        ("run", "use crate::low::X;\nuse inner::X;"),
        ("run/inner", "use crate::low::X;\nuse self::deep::X;"),
        ("run/inner/deep", "use super::X;"),
        ("run/other", "use super::X;\nuse super::inner::deep::X;"),
    ];
    assert_named(&found(&clean, &rooms), &[]);
    let planted = [("low", "\nuse crate::run::X;"), ("run", ""), ("run/inner", "use super::X;"), ("lost", "")];
    let named = [
        ("crates/x/src/low.rs:2", "files of low do not import from run"),
        ("crates/x/src/run/inner.rs:1", "files of run/inner do not import from run"),
        ("crates/x/src/lost.rs", "no room"),
    ];
    assert_named(&found(&planted, &rooms), &named);
    // A table that is itself a circle.
    assert_named(
        &found(&[], &[("low", &["run"]), ("run", &["low"])]),
        &[(FOLDER, "low imports from run, which is not")],
    );
}
