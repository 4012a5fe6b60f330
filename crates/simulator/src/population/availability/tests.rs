//! Answers against naive scans, equilibria against statistics, and every order of queries against every other.

use super::*;
use crate::population::trace::AvailabilityTraces;
use fedgenie_core::law::{AnyLaw, Exponential, Law, Lognormal, Uniform};
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::rng::{Purpose, StreamRng};
use std::io::Write;

const SECOND: u64 = 1_000_000_000;

fn build(toml: &str, clients: usize, streams: &Streams) -> Result<Availability, Complaint> {
    let config: AvailabilityConfig = toml::from_str(toml).unwrap();
    let mut all = Availability::default();
    all.push(&config, &GroupClients { first: 0, count: clients, streams }, &mut Vec::new())?;
    Ok(all)
}

fn rng(index: u32) -> StreamRng {
    Streams::new(7).stream(Purpose::Policy, 0, index)
}

/// States as a list: beginning and state of each stretch; the last never ends.
struct Naive(Vec<(u64, bool)>);

impl Naive {
    fn stretch(&self, time: u64) -> Stretch {
        let index = (0..self.0.len()).rev().find(|&index| self.0[index].0 <= time).unwrap();
        let available = self.0[index].1;
        let end = self.0[index..].iter().find(|(_, state)| *state != available);
        Stretch { available, until: end.map_or(VirtualTime::MAX, |(end, _)| VirtualTime(*end)) }
    }

    fn finish(&self, start: u64, work: u64) -> Option<u64> {
        let (mut now, mut left) = (start, work);
        while left > 0 {
            let Stretch { available, until } = self.stretch(now);
            if available && left <= until.0 - now {
                return Some(now + left);
            }
            if until == VirtualTime::MAX {
                return None;
            }
            left -= if available { until.0 - now } else { 0 };
            now = until.0;
        }
        Some(now)
    }

    fn time_away(&self, start: u64, end: u64) -> u64 {
        let mut away = 0;
        for (index, &(from, available)) in self.0.iter().enumerate() {
            let until = self.0.get(index + 1).map_or(u64::MAX, |(until, _)| *until);
            away += if available { 0 } else { until.min(end).saturating_sub(from.max(start)) };
        }
        away
    }
}

/// Asks about random times in random order through one cursor, and compares with the list and with a fresh cursor.
fn compare(availability: &Availability, streams: &Streams, client: ClientId, naive: &Naive, horizon: u64, seed: u32) {
    let cursors = availability.cursors(streams);
    let mut rng = rng(seed);
    let edges: Vec<u64> = naive.0.iter().map(|(from, _)| *from).filter(|from| *from < horizon).collect();
    // Work that outlasts a list, and could go on beyond it, is not compared.
    let is_whole = naive.0.last().is_none_or(|(from, _)| *from < horizon / 2);
    for _ in 0..400 {
        // Edges of stretches and the ns around them, or any time.
        let edge = edges[rng.below(edges.len() as u64) as usize];
        let time = match rng.below(4) {
            0 => edge,
            1 => edge.saturating_sub(1),
            _ => rng.below(horizon),
        };
        let at = VirtualTime(time);
        let expected = naive.stretch(time);
        assert_eq!(cursors.stretch(client, at), expected, "{client} at {time}");
        assert_eq!(availability.cursors(streams).stretch(client, at), expected);
        assert_eq!(cursors.is_available(client, at), expected.available);
        let next = if expected.available { Some(at) } else { Some(expected.until).filter(|t| *t < VirtualTime::MAX) };
        assert_eq!(cursors.next_available(client, at), next);
        let work = match rng.below(3) {
            0 => 0,
            1 => (expected.until.0 - time).min(horizon),
            _ => rng.below(horizon / 4),
        };
        let end = naive.finish(time, work);
        if end.map_or(is_whole, |end| end < horizon) {
            assert_eq!(cursors.finish(client, at, Span(work)), end.map(VirtualTime), "{client}: {work} from {time}");
        }
        let later = time + rng.below(horizon - time);
        assert_eq!(cursors.time_away(client, at, VirtualTime(later)), Span(naive.time_away(time, later)));
        if let Some(end) = end.filter(|end| *end < horizon) {
            let away = cursors.time_away(client, at, VirtualTime(end));
            assert_eq!(end, time + work + away.0, "work and pauses fill the time");
        }
    }
}

/// A random file of three traces in whole seconds, and whether each second of the window is there.
fn random_traces(seed: u32, window: usize) -> (tempfile::NamedTempFile, Vec<Vec<bool>>) {
    let mut rng = rng(1000 + seed);
    let mut seconds: Vec<Vec<bool>> = vec![Vec::new(); 3];
    for (trace, seconds) in seconds.iter_mut().enumerate() {
        // One of every three seeds has a trace that touches both ends of its window.
        let mut available = seed.is_multiple_of(3) || rng.below(2) == 0;
        while seconds.len() < window {
            seconds.extend(std::iter::repeat_n(available, 1 + rng.below(if trace == 0 { 3 } else { 25 }) as usize));
            available = !available;
        }
        seconds.truncate(window);
        seconds[window - 1] |= seed.is_multiple_of(3);
        seconds[0] |= seconds.iter().all(|there| !there);
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "client,start_s,end_s").unwrap();
    for (trace, seconds) in seconds.iter().enumerate() {
        let mut start = None;
        for (second, there) in seconds.iter().copied().chain([false]).enumerate() {
            match (start, there) {
                (None, true) => start = Some(second),
                (Some(from), false) => {
                    writeln!(file, "c{trace},{from},{second}").unwrap();
                    start = None;
                }
                _ => {}
            }
        }
    }
    (file, seconds)
}

#[test]
fn traces_are_as_a_scan_second_by_second() {
    const WINDOW: usize = 90;
    let streams = Streams::new(1);
    for seed in 0..12 {
        let (file, seconds) = random_traces(seed, WINDOW);
        for (wrap, offset) in [(true, 0), (true, 37), (true, 200), (false, 0), (false, 37), (false, 200)] {
            let toml = format!(
                "[trace]\nfile = {:?}\nwindow = \"{WINDOW} s\"\nwrap = {wrap}\noffset = \"{offset} s\"\n",
                file.path()
            );
            let availability = build(&toml, 5, &streams).unwrap();
            for client in (0..5).map(ClientId) {
                let trace = &seconds[client.index() % 3];
                let horizon = 4 * WINDOW;
                let there = |second: usize| {
                    let at = second + offset;
                    if wrap { trace[at % WINDOW] } else { at < WINDOW && trace[at] }
                };
                let mut list: Vec<(u64, bool)> = (0..10 * WINDOW).map(|s| (s as u64 * SECOND, there(s))).collect();
                list.dedup_by_key(|(_, available)| *available);
                // A stretch still under way at the end of the list is cut off by the horizon, unless it never ends.
                compare(&availability, &streams, client, &Naive(list), horizon as u64 * SECOND, seed);
            }
        }
    }
}

/// The stretches of a renewal process, drawn as its documentation says.
fn materialised(streams: &Streams, client: u32, laws: [&AnyLaw; 2], start: bool, stretches: usize) -> Naive {
    let uniform = |number: u32| {
        let mut stream = streams.stream(Purpose::Availability, client, number / 32);
        (0..number % 32).for_each(|_| {
            stream.bits();
        });
        stream.uniform()
    };
    let (mut from, mut list) = (0, Vec::new());
    for number in 0..stretches as u32 {
        let available = start ^ (number % 2 == 1);
        list.push((from, available));
        let seconds = laws[usize::from(!available)].quantile(uniform(number + 1));
        from += ((seconds * 1e9).round() as u64).max(1);
    }
    Naive(list)
}

#[test]
fn renewal_is_as_a_list_of_its_stretches() {
    let streams = Streams::new(2);
    let on: AnyLaw = Uniform::new(1.0, 20.0).unwrap().into();
    let off: AnyLaw = Lognormal::new(5.0, 1.0).unwrap().into();
    for (start, available) in [("on", true), ("off", false)] {
        let toml = format!(
            "[on-off]\non = {{ uniform = [\"1 s\", \"20 s\"] }}\noff = {{ lognormal = {{ median = \"5 s\", sigma = 1 }} }}\n\
             start = {start:?}\n"
        );
        let availability = build(&toml, 4, &streams).unwrap();
        for client in 0..4 {
            let naive = materialised(&streams, client, [&on, &off], available, 300);
            let horizon = naive.0[200].0;
            compare(&availability, &streams, ClientId(client), &naive, horizon, client);
        }
    }
}

#[test]
fn equilibrium_and_diurnal_do_not_depend_on_the_order_of_questions() {
    let streams = Streams::new(3);
    let hourly = (0..24).map(|hour| (0.05 + 0.03 * f64::from(hour)).to_string()).collect::<Vec<_>>().join(", ");
    let diurnal =
        format!("[diurnal]\nhourly = [{hourly}]\nmean_on = \"20 min\"\nphase = {{ uniform = [\"0 h\", \"24 h\"] }}\n");
    let on_off = "[on-off]\non = { gamma = { shape = 0.6, scale = \"10 min\" } }\n\
                  off = { exponential = { mean = { uniform = [\"10 min\", \"1 h\"] } } }\n";
    for toml in [diurnal.as_str(), on_off] {
        let availability = build(toml, 3, &streams).unwrap();
        for client in (0..3).map(ClientId) {
            let ahead = availability.cursors(&streams);
            let (mut time, mut list) = (VirtualTime::START, Vec::new());
            for _ in 0..400 {
                let stretch = ahead.stretch(client, time);
                list.push((time.0, stretch.available));
                time = stretch.until;
            }
            assert!(list.windows(2).all(|pair| pair[0].1 != pair[1].1), "stretches take turns");
            let horizon = list[300].0;
            compare(&availability, &streams, client, &Naive(list), horizon, client.0);
        }
    }
}

/// The Kolmogorov–Smirnov statistic times √n of a sample against a distribution function; above 1.95 once in a thousand
/// samples.
fn kolmogorov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let gap = |(index, x): (usize, &f64)| {
        let at = cdf(*x);
        (at - index as f64 / count).max((index as f64 + 1.0) / count - at)
    };
    sample.iter().enumerate().map(gap).fold(0.0, f64::max) * sqrt(count)
}

#[test]
fn the_equilibrium_is_that_of_the_theory() {
    const CLIENTS: usize = 40_000;
    let streams = Streams::new(4);
    // Means 10.5 s and 5·exp(1/2) s.
    let toml =
        "[on-off]\non = { uniform = [\"1 s\", \"20 s\"] }\noff = { lognormal = { median = \"5 s\", sigma = 1 } }\n";
    let availability = build(toml, CLIENTS, &streams).unwrap();
    let cursors = availability.cursors(&streams);
    let off = AnyLaw::from(Lognormal::new(5.0, 1.0).unwrap());
    let share = 10.5 / (10.5 + off.mean());
    // The same must hold at any time, not only at the beginning.
    for time in [0, 3 * SECOND, 1000 * SECOND] {
        let at = VirtualTime(time);
        let (mut left_on, mut left_off) = (Vec::new(), Vec::new());
        for client in (0..CLIENTS).map(ClientId::from_index) {
            let Stretch { available, until } = cursors.stretch(client, at);
            let left = (until - at).seconds();
            if available { left_on.push(left) } else { left_off.push(left) }
        }
        let found = left_on.len() as f64 / CLIENTS as f64;
        let deviation = sqrt(share * (1.0 - share) / CLIENTS as f64);
        assert!((found - share).abs() < 3.5 * deviation, "{found} there at {time}, expected {share}");
        let on = |x: f64| if x < 1.0 { x / 10.5 } else { (1.0 + (361.0 - (20.0 - x) * (20.0 - x)) / 38.0) / 10.5 };
        // E[(X − x)⁺] of a lognormal law, in closed form.
        let phi = |z: f64| fedgenie_core::math::special::normal_cdf(z);
        let away = |x: f64| {
            let d = ln(5.0 / x);
            1.0 - (off.mean() * phi(d + 1.0) - x * phi(d)) / off.mean()
        };
        let (there, gone) = (kolmogorov(left_on, on), kolmogorov(left_off, away));
        assert!(there < 1.95 && gone < 1.95, "at {time}: {there} {gone}");
    }
}

#[test]
fn the_share_of_a_diurnal_population_follows_its_hours() {
    const CLIENTS: usize = 20_000;
    let streams = Streams::new(5);
    let hourly: Vec<f64> = (0..24).map(|hour| if hour < 6 { 0.6 } else { 0.1 }).collect();
    let availability =
        build(&format!("[diurnal]\nhourly = {hourly:?}\nmean_on = \"2 h\"\n"), CLIENTS, &streams).unwrap();
    let cursors = availability.cursors(&streams);
    // dp/dt = (1 − p)·p_h/((1 − p_h)·2 h) − p/2 h by small steps over ten days, the first nine of which are forgotten.
    let (mut p, mut shares) = (0.5, Vec::new());
    for step in 0..10 * 24 * 3600 {
        let target = hourly[step / 3600 % 24];
        if step >= 9 * 24 * 3600 && step % 1800 == 0 {
            shares.push(p);
        }
        p += ((1.0 - p) * target / (1.0 - target) - p) / 7200.0;
    }
    let mut there = Vec::new();
    for (half_hours, share) in shares.iter().enumerate() {
        let time = VirtualTime(half_hours as u64 * 1800 * SECOND);
        cursors.available_clients(time, &mut there);
        let found = there.len() as f64 / CLIENTS as f64;
        let deviation = sqrt(share * (1.0 - share) / CLIENTS as f64);
        assert!(
            (found - share).abs() < 4.0 * deviation + 1e-4,
            "after {half_hours} half hours: {found}, expected {share}"
        );
    }
    // Stretches there are memoryless.
    let ends = (0..2_000).map(|client| {
        let first = cursors.next_available(ClientId(client), VirtualTime(36_000 * SECOND)).unwrap();
        (cursors.stretch(ClientId(client), first).until - first).seconds()
    });
    let law = Exponential::new(7200.0, 0.0).unwrap();
    assert!(kolmogorov(ends.collect(), |x| law.cdf(x)) < 1.95);
}

#[test]
fn a_pass_over_all_clients_says_what_each_query_says() {
    let streams = Streams::new(6);
    let on_off: AvailabilityConfig = toml::from_str(
        "[on-off]\non = { exponential = { mean = \"10 s\" } }\noff = { exponential = { mean = \"20 s\" } }\n",
    )
    .unwrap();
    let mut all = Availability::default();
    let mut first = 0;
    for (count, config) in [(3, AvailabilityConfig::Always), (500, on_off), (2, AvailabilityConfig::Always)] {
        all.push(&config, &GroupClients { first, count, streams: &streams }, &mut Vec::new()).unwrap();
        first += count;
    }
    assert!(!all.is_always() && all.is_always_there(ClientId(504)) && !all.is_always_there(ClientId(3)));
    let cursors = all.cursors(&streams);
    let mut found = vec![ClientId(9); 9];
    for time in [0, 5, 1, 100, 3, 3, 1_000].map(|seconds| VirtualTime(seconds * SECOND)) {
        cursors.available_clients(time, &mut found);
        let fresh = all.cursors(&streams);
        let expected: Vec<ClientId> =
            (0..505).map(ClientId).filter(|&client| fresh.is_available(client, time)).collect();
        assert_eq!(found, expected);
        assert!(
            found.starts_with(&[ClientId(0), ClientId(1), ClientId(2)])
                && found.ends_with(&[ClientId(503), ClientId(504)])
        );
    }
}

#[test]
fn who_is_always_there_costs_nothing_and_never_waits() {
    let streams = Streams::new(8);
    let all = build("always = {}", 3, &streams).unwrap();
    assert!(all.is_always());
    let cursors = all.cursors(&streams);
    let time = VirtualTime(5);
    assert_eq!(cursors.stretch(ClientId(1), time), Stretch { available: true, until: VirtualTime::MAX });
    assert_eq!(cursors.finish(ClientId(1), time, Span(7)), Some(VirtualTime(12)));
    assert_eq!(cursors.finish(ClientId(1), VirtualTime::MAX, Span(7)), None);
    assert_eq!(cursors.time_away(ClientId(1), time, VirtualTime(9)), Span::ZERO);
    let mut there = Vec::new();
    cursors.available_clients(time, &mut there);
    assert_eq!(there, [0, 1, 2].map(ClientId));
}

#[test]
fn a_cursor_is_small() {
    assert!(size_of::<u64>() * 2 + size_of::<u32>() + size_of::<bool>() <= 24);
}

#[test]
fn pieces_join_at_both_ends_of_the_window() {
    let mut traces = AvailabilityTraces::default();
    traces.push([(Span(0), Span(10)), (Span(10), Span(20)), (Span(90), Span(100))], Span(100), Span::ZERO);
    traces.push([(Span(0), Span(100))], Span(100), Span::ZERO);
    traces.push([], Span(100), Span::ZERO);
    assert_eq!(traces.intervals(0).collect::<Vec<_>>(), [(Span(0), Span(20)), (Span(90), Span(100))]);
    let piece = |trace, at, wrap| {
        let piece = traces.piece(trace, at, wrap);
        (piece.from, piece.until, piece.available)
    };
    assert_eq!(piece(0, 95, true), (Some(90), Some(120), true));
    assert_eq!(piece(0, 5, true), (Some(-10), Some(20), true));
    assert_eq!(piece(0, 20, true), (Some(20), Some(90), false));
    assert_eq!(piece(0, 95, false), (Some(90), Some(100), true));
    assert_eq!(piece(0, 100, false), (Some(100), None, false));
    assert_eq!(piece(1, 50, true), (None, None, true));
    assert_eq!(piece(1, 50, false), (Some(0), Some(100), true));
    assert_eq!(piece(2, 50, true), (None, None, false));
}

#[test]
fn time_of_day_is_midnight_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let day = 86_400;
    // Device a is recorded from 06:00 on day 1 for two days, there from 07:00 to 08:00; b from midnight for a day,
    // there at 07:00.
    std::fs::write(
        folder.path().join("windows.csv"),
        format!(
            "device,valid,trace_start_s,trace_end_s,n_intervals\na,1,{},{},1\nb,1,0,{day},1\n",
            day + 6 * 3600,
            3 * day + 6 * 3600
        ),
    )
    .unwrap();
    std::fs::write(
        folder.path().join("intervals.csv"),
        format!("device,start_s,end_s\na,{},{}\nb,{},{}\n", day + 7 * 3600, day + 8 * 3600, 7 * 3600, 7 * 3600 + 60),
    )
    .unwrap();
    let streams = Streams::new(1);
    let toml = |more: &str| {
        format!(
            "[trace]\nformat = \"flhetbench\"\nfile = {:?}\nwindows = {:?}\n{more}",
            folder.path().join("intervals.csv"),
            folder.path().join("windows.csv")
        )
    };
    let next = |toml: &str, from: u64| {
        let availability = build(toml, 2, &streams).unwrap();
        let cursors = availability.cursors(&streams);
        [0, 1].map(|client| cursors.next_available(ClientId(client), VirtualTime(from * SECOND)).unwrap().0 / SECOND)
    };
    assert_eq!(next(&toml("align = \"time-of-day\"\n"), 0), [7 * 3600, 7 * 3600]);
    assert_eq!(next(&toml("align = \"time-of-day\"\n"), 9 * 3600), [2 * day + 7 * 3600, day + 7 * 3600]);
    assert_eq!(next(&toml(""), 0), [3600, 7 * 3600]);
    let error = build(&toml("align = \"time-of-day\"\nwrap = false\n"), 2, &streams).unwrap_err();
    assert_eq!(error.path, "trace.align");
}

#[test]
fn what_cannot_be_is_refused_and_names_its_key() {
    let streams = Streams::new(1);
    let refused = |toml: &str, key: &str, says: &str| {
        let Complaint { path, message } = build(toml, 2, &streams).unwrap_err();
        assert!(path == key && message.contains(says), "{toml}: {path}: {message}");
    };
    let exponential = "off = { exponential = { mean = \"1 s\" } }\n";
    refused(&format!("[on-off]\non = {{ constant = \"0 s\" }}\n{exponential}"), "on-off.on", "the mean is 0");
    refused(
        &format!("[on-off]\non = {{ pareto = {{ shape = 1, minimum = \"1 s\" }} }}\n{exponential}"),
        "on-off.on",
        "infinite",
    );
    refused("[on-off]\non = { constant = \"1 ns\" }\noff = { constant = \"1 us\" }\n", "on-off.on", "at least 0.001 s");
    let day = |p: &str| format!("[diurnal]\nhourly = [{}]\nmean_on = \"1 h\"\n", vec![p; 24].join(","));
    refused(&day("0.0"), "diurnal.hourly", "above 0 and below 1");
    refused(&day("1.0"), "diurnal.hourly", "above 0 and below 1");
    refused("[diurnal]\nhourly = [0.5]\nmean_on = \"1 h\"\n", "diurnal.hourly", "expected 24");
    refused(&day("0.5").replace("1 h", "1 us"), "diurnal.mean_on", "at least 1 ms");
    refused("[trace]\nfile = \"x.csv\"\nformat = \"flhetbench\"\n", "trace.windows", "is missing");
    refused("[trace]\nfile = \"/nowhere/x.csv\"\n", "trace.file", "/nowhere/x.csv");
    // A law of infinite mean is fine where no equilibrium is asked for; a stretch beyond virtual time never ends.
    let heavy = "[on-off]\non = { pareto = { shape = 0.01, minimum = \"1 s\" } }\noff = { constant = \"1 s\" }\nstart = \"on\"\n";
    let availability = build(heavy, 50, &streams).unwrap();
    let cursors = availability.cursors(&streams);
    let for_ever = |client: &u32| cursors.stretch(ClientId(*client), VirtualTime(0)).until == VirtualTime::MAX;
    assert!((0..50).filter(for_ever).count() > 10);
    assert!(toml::from_str::<AvailabilityConfig>("[on-off]\non = 1\n").is_err());
    assert!(toml::from_str::<AvailabilityConfig>("[on_off]\n").is_err());
}
