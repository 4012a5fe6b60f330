//! Published availability: as intervals of devices and their windows.
//!
//! # Definition
//! The tables are those of [`flhetbench`](super::super::flhetbench): a device has a window, its first to its last
//! observation, and intervals within. Intervals that end before they start are dropped, those that leave the window
//! are cut, and those that overlap become one; each is counted. Others stay as they are, in the order of their starts.
//!
//! FLASH's `state_traces.json` has a log for each phone: lines of a local time and a state. A phone is ready while it
//! is locked, charging and on WiFi: from the line after which all three hold to the line after which one does not.
//! Intervals that touch are one, an interval that the log does not end is left out, and times count from 2020-01-02
//! 00:00:00. A phone with an unknown state, without an interval, or whose log has one time only, is invalid. That is
//! the rule of the publisher's `timer.py`, and so `flash` makes of the log what `cached_timers.json` has.
//!
//! FedScale's behaviour has lists `active` and `inactive` and a `finish_time`: the i-th interval is from `active[i]` to
//! `inactive[i]`, time is taken modulo `finish_time`.

use super::{Converted, Entries, field, json, notes};
use fedgenie_learning::data::DataError;
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Start and end in seconds.
type Interval = (f64, f64);

/// A device: its window, if it is valid, and its intervals; in seconds.
struct Device {
    name: String,
    window: Option<Interval>,
    intervals: Vec<Interval>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with messages")]
struct Log {
    messages: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with isSuccess, trace_start, trace_end and ready_time")]
struct Timer {
    #[serde(rename = "isSuccess")]
    is_valid: bool,
    trace_start: Option<f64>,
    trace_end: Option<f64>,
    ready_time: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with active, inactive and finish_time")]
struct Behaviour {
    active: Vec<f64>,
    inactive: Vec<f64>,
    finish_time: f64,
}

/// FLASH's logs of states.
pub fn flash(files: &[PathBuf]) -> Result<Converted, DataError> {
    let mut devices = Vec::new();
    for path in files {
        let logs: Entries<Log> = json(path, "FLASH's state_traces.json")?;
        for (name, log) in logs.0 {
            let (window, intervals) =
                ready(&log.messages).map_or((None, Vec::new()), |(window, ready)| (Some(window), ready));
            devices.push(Device { name, window, intervals });
        }
    }
    Ok(tables(devices))
}

/// FLHetBench's intervals.
pub fn flhetbench(files: &[PathBuf]) -> Result<Converted, DataError> {
    let mut devices = Vec::new();
    for path in files {
        let timers: Entries<Timer> = json(path, "FLHetBench's cached_timers.json")?;
        devices.extend(timers.0.into_iter().map(|(name, timer)| {
            let window = timer.trace_start.zip(timer.trace_end).filter(|_| timer.is_valid);
            Device { name, window, intervals: timer.ready_time }
        }));
    }
    Ok(tables(devices))
}

/// FedScale's behaviour.
pub fn fedscale(files: &[PathBuf]) -> Result<Converted, DataError> {
    let mut devices = Vec::new();
    for path in files {
        let all: Entries<Behaviour> = json(path, "FedScale's client_behave_trace as JSON")?;
        devices.extend(all.0.into_iter().map(|(name, one)| Device {
            name,
            window: Some((0.0, one.finish_time)),
            intervals: one.active.into_iter().zip(one.inactive).collect(),
        }));
    }
    Ok(tables(devices))
}

/// Seconds from 2020-01-02 00:00:00 to a time such as `2020-01-29 22:42:25`.
fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(' ')?;
    let numbers = |text: &str, separator: char| -> Option<[i64; 3]> {
        let numbers: Vec<i64> = text.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
        numbers.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month: i64| match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    if !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=days_of(month)).contains(&day) || !is_time {
        return None;
    }
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let before = 365 * (year - 2020) + leap_days(year - 1) - leap_days(2019);
    let days = before + (1..month).map(days_of).sum::<i64>() + day - 2;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) as f64)
}

/// The window of a log, and when its phone was ready; `None` of an invalid one.
fn ready(log: &str) -> Option<(Interval, Vec<Interval>)> {
    let (mut is_locked, mut is_on_wifi, mut is_charging) = (false, false, false);
    let (mut since, mut intervals, mut window) = (None, Vec::new(), None::<(f64, f64)>);
    for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (time, state) = line.split_once('\t')?;
        let now = seconds(time.trim())?;
        match state.trim().to_lowercase().as_str() {
            "battery_charged_on" => is_charging = true,
            "battery_charged_off" => is_charging = false,
            "wifi" => is_on_wifi = true,
            "unknown" | "2g" | "3g" | "4g" | "5g" => is_on_wifi = false,
            "screen_lock" => is_locked = true,
            "screen_unlock" => is_locked = false,
            "screen_on" | "screen_off" => {}
            level if level.strip_suffix('%').is_some_and(|number| number.parse::<f64>().is_ok()) => {}
            _ => return None,
        }
        window = Some((window.map_or(now, |(first, _)| first), now));
        if is_locked && is_on_wifi && is_charging {
            since = since.or(Some(now));
        } else if let Some(since) = since.take() {
            intervals.push((since, now));
        }
    }
    intervals.sort_by(|left: &(f64, f64), right| left.0.total_cmp(&right.0));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (start, end) in intervals {
        match merged.last_mut().filter(|last| last.1 >= start) {
            Some(last) => last.1 = last.1.max(end),
            None => merged.push((start, end)),
        }
    }
    window.filter(|(first, last)| last > first && !merged.is_empty()).map(|window| (window, merged))
}

/// The two tables of devices.
fn tables(devices: Vec<Device>) -> Converted {
    let mut windows = "device,valid,trace_start_s,trace_end_s,n_intervals\n".to_owned();
    let mut rows = "device,start_s,end_s\n".to_owned();
    let (mut invalid, mut reversed, mut cut, mut merged) = (0, 0, 0, 0);
    for Device { name, window, mut intervals } in devices {
        let name = field(&name);
        let Some((first, last)) = window.filter(|(first, last)| last > first) else {
            invalid += 1;
            let _ = writeln!(windows, "{name},0,,,0");
            continue;
        };
        let found = intervals.len();
        intervals.retain(|(start, end)| start <= end && *end >= first && *start <= last);
        reversed += found - intervals.len();
        for interval in &mut intervals {
            let within = (interval.0.max(first), interval.1.min(last));
            cut += usize::from(*interval != within);
            *interval = within;
        }
        intervals.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for (start, end) in intervals {
            match kept.last_mut().filter(|last| last.1 > start) {
                Some(before) => {
                    before.1 = before.1.max(end);
                    merged += 1;
                }
                None => kept.push((start, end)),
            }
        }
        let _ = writeln!(windows, "{name},1,{first},{last},{}", kept.len());
        for (start, end) in kept {
            let _ = writeln!(rows, "{name},{start},{end}");
        }
    }
    let notes = notes([
        (invalid, "invalid devices, without a trace"),
        (reversed, "dropped intervals, which end before they start or lie outside their device's window"),
        (cut, "intervals cut at the ends of their device's window"),
        (merged, "intervals merged with one that they overlap"),
    ]);
    let settings = "[population.availability.trace]\nformat = \"flhetbench\"\nfile = \"intervals.csv\"\nwindows = \"windows.csv\"\n";
    Converted { tables: vec![("intervals.csv", rows), ("windows.csv", windows)], notes, settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_second_of_january() {
        for (text, expected) in [
            ("2020-01-02 00:00:00", Some(0.0)),
            ("2020-01-01 23:59:59", Some(-1.0)),
            ("2020-01-29 22:42:25", Some(27.0 * 86_400.0 + 22.0 * 3_600.0 + 42.0 * 60.0 + 25.0)),
            // 366 − 1 days, over the 29th of February.
            ("2021-01-01 00:00:00", Some(365.0 * 86_400.0)),
            ("2019-12-31 00:00:00", Some(-2.0 * 86_400.0)),
            ("2020-02-29 00:00:00", Some(58.0 * 86_400.0)),
            ("2021-02-29 00:00:00", None),
            ("2020-13-01 00:00:00", None),
            ("2020-01-02 24:00:00", None),
            ("2020-01-02", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_phone_is_ready_while_locked_charging_and_on_wifi() {
        let at = |minute: u32, state: &str| format!("2020-01-02 00:{minute:02}:00\t{state}\n");
        let log = [
            at(1, "wifi"),
            at(2, "battery_charged_on"),
            at(3, "screen_lock"),
            at(4, "80%"),
            at(5, "4G"),
            at(6, "WIFI"),
            at(6, "screen_off"),
            at(8, "screen_unlock"),
            // Touches the interval before it.
            at(8, "screen_lock"),
            at(9, "battery_charged_off"),
            at(10, "battery_charged_on"),
            at(20, "90%"),
        ]
        .concat();
        // From 3 to 5, from 6 to 8 and on to 9; what begins at 10 has no end in the log.
        assert_eq!(ready(&log), Some(((60.0, 1200.0), vec![(180.0, 300.0), (360.0, 540.0)])));
        for invalid in
            [at(1, "wifi"), at(1, "wifi") + &at(2, "flight"), log.replace("00:05", "00:99"), at(1, "wifi") + "no tab"]
        {
            assert_eq!(ready(&invalid), None, "{invalid}");
        }
    }

    #[test]
    fn defects_are_mended_and_counted() {
        let device = |name: &str, window, intervals: &[(f64, f64)]| Device {
            name: name.to_owned(),
            window,
            intervals: intervals.to_vec(),
        };
        let converted = tables(vec![
            device(
                "a,b",
                Some((0.0, 10.0)),
                &[(8.0, 12.5), (1.0, 3.0), (2.0, 2.5), (5.0, 4.0), (11.0, 12.0), (3.0, 3.0)],
            ),
            device("c", None, &[]),
        ]);
        let [(_, intervals), (_, windows)] = &converted.tables[..] else { panic!("{converted:?}") };
        assert_eq!(intervals, "device,start_s,end_s\n\"a,b\",1,3\n\"a,b\",3,3\n\"a,b\",8,10\n");
        assert_eq!(windows, "device,valid,trace_start_s,trace_end_s,n_intervals\n\"a,b\",1,0,10,3\nc,0,,,0\n");
        let counts: Vec<&str> = converted.notes.iter().map(|note| note.rsplit(' ').next().unwrap()).collect();
        assert_eq!(counts, ["1", "2", "1", "1"]);
    }
}
