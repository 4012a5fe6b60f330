//! Transfers by hand, and against integration in small steps.

use super::*;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};

const S: u64 = 1_000_000_000;

fn link(points: &[(u64, f64)], window: u64, wrap: bool) -> LinkTrace {
    let times: Vec<Span> = points.iter().map(|(time, _)| Span(*time)).collect();
    let rates: Vec<f64> = points.iter().map(|(_, rate)| *rate).collect();
    LinkTrace::new(&times, &rates, Span(window), wrap).unwrap()
}

#[test]
fn transfers_by_hand() {
    // 8 bit/s for 2 s, nothing for 1 s, 2 bit/s for 4 s: 24 bits in 7 s.
    let link = link(&[(0, 8.0), (2 * S, 0.0), (3 * S, 2.0)], 7 * S, true);
    assert!((link.mean() - 24.0 / 7.0).abs() < 1e-15);
    let at = |from: f64, bits: f64| link.transfer(VirtualTime((from * 1e9) as u64), bits).map(|end| end.0 as f64 / 1e9);
    assert_eq!(at(0.0, 0.0), Some(0.0));
    assert_eq!(at(2.5, 0.0), Some(2.5));
    assert_eq!(at(0.0, 8.0), Some(1.0));
    assert_eq!(at(0.0, 16.0), Some(2.0), "what needs exactly the piece ends with it, not after the silence");
    assert_eq!(at(0.0, 17.0), Some(3.5));
    assert_eq!(at(2.2, 1.0), Some(3.5));
    assert_eq!(at(1.0, 24.0), Some(8.0));
    assert_eq!(at(0.0, 24.0), Some(7.0));
    assert_eq!(at(0.0, 48.0), Some(14.0));
    assert_eq!(at(0.0, 49.0), Some(14.125));
    assert_eq!(at(7.0, 8.0), Some(8.0));
    assert_eq!(at(6.5, 2401.0), Some(707.0));
    assert_eq!(at(6.5, 1.0 + 2400.0 + 16.0), Some(709.0));
    assert_eq!(at(70.0 + 2.5, 4.0), Some(75.0));
    assert_eq!(link.moved(VirtualTime(S), VirtualTime(4 * S)), 10.0);
    assert_eq!(link.moved(VirtualTime(S), VirtualTime(15 * S)), 16.0 + 24.0 + 8.0);
    assert_eq!(link.moved(VirtualTime(4 * S), VirtualTime(4 * S)), 0.0);
    let fast = link.scaled(4.0).unwrap();
    assert_eq!(fast.transfer(VirtualTime(0), 64.0), Some(VirtualTime(2 * S)));
}

#[test]
fn what_never_ends_is_an_outcome() {
    let silent = link(&[(0, 0.0), (S, 0.0)], 2 * S, true);
    assert_eq!(silent.transfer(VirtualTime(5), 1.0), None);
    assert_eq!(silent.transfer(VirtualTime(5), 0.0), Some(VirtualTime(5)));
    let once = link(&[(0, 8.0), (S, 0.0), (2 * S, 4.0)], 3 * S, false);
    assert_eq!(once.transfer(VirtualTime(0), 12.0), Some(VirtualTime(3 * S)));
    assert_eq!(once.transfer(VirtualTime(0), 12.1), None);
    assert_eq!(once.transfer(VirtualTime(3 * S), 0.1), None);
    assert_eq!(once.transfer(VirtualTime(9 * S), 0.0), Some(VirtualTime(9 * S)));
    assert_eq!(once.moved(VirtualTime(0), VirtualTime(100 * S)), 12.0);
    assert_eq!(once.moved(VirtualTime(3 * S), VirtualTime(100 * S)), 0.0);
    // More than virtual time holds.
    let slow = link(&[(0, 1e-9)], S, true);
    assert_eq!(slow.transfer(VirtualTime(0), 1e9), None);
    // Never online while the link carries anything: the search ends.
    let even = link(&[(0, 8.0), (S, 0.0)], 2 * S, true);
    let odd = |time: VirtualTime| Stretch { available: time.0 / S % 2 == 1, until: VirtualTime((time.0 / S + 1) * S) };
    assert_eq!(even.transfer_while(Span::ZERO, VirtualTime(0), 1.0, odd), None);
    let gone = |_| Stretch { available: false, until: VirtualTime::MAX };
    assert_eq!(even.transfer_while(Span::ZERO, VirtualTime(3), 1.0, gone), None);
    assert_eq!(even.transfer_while(Span::ZERO, VirtualTime(3), 0.0, gone), Some(VirtualTime(3)));
    // Over while the device waits.
    let back = |time: VirtualTime| match time.0 < 5 * S {
        true => Stretch { available: false, until: VirtualTime(5 * S) },
        false => Stretch { available: true, until: VirtualTime::MAX },
    };
    assert_eq!(once.transfer_while(Span::ZERO, VirtualTime(0), 1.0, back), None);
}

#[test]
fn bad_points_are_refused() {
    let refused = |times: &[u64], rates: &[f64], window| {
        let times: Vec<Span> = times.iter().copied().map(Span).collect();
        LinkTrace::new(&times, rates, Span(window), true).unwrap_err()
    };
    assert_eq!(refused(&[], &[], 1), LinkError::Points);
    assert_eq!(refused(&[0, 1], &[1.0], 9), LinkError::Points);
    assert_eq!(refused(&[1], &[1.0], 9), LinkError::Time(0));
    assert_eq!(refused(&[0, 5, 5], &[1.0; 3], 9), LinkError::Time(1));
    assert_eq!(refused(&[0, 9], &[1.0; 2], 9), LinkError::Time(1));
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(&[0, 5], &[1.0, bad], 9), LinkError::Rate(1));
    }
}

/// The end of a transfer by stepping from point to point, in whole bits and seconds so that every sum is exact.
fn stepped(
    rates: &[u64],
    wrap: bool,
    offset: u64,
    from: u64,
    bits: u64,
    there: impl Fn(u64) -> bool,
) -> Option<(u64, f64)> {
    let (mut second, mut left) = (from, bits);
    loop {
        let at = second + offset;
        let rate = match wrap {
            true => rates[at as usize % rates.len()],
            false => rates.get(at as usize).copied().unwrap_or(0),
        };
        if there(second) && rate > 0 {
            if left <= rate {
                return Some((second, left as f64 / rate as f64));
            }
            left -= rate;
        }
        second += 1;
        if second > from + 5_000 {
            return None;
        }
    }
}

fn random_rates(rng: &mut StreamRng) -> Vec<u64> {
    let count = 1 + rng.below(30);
    let mut rates: Vec<u64> = (0..count).map(|_| if rng.below(3) == 0 { 0 } else { 1 + rng.below(50) }).collect();
    // A run of equal rates is one piece sometimes, and a whole trace of zeros ends nothing.
    rates[0] = rates[0].max(1);
    rates
}

#[test]
fn transfers_are_as_a_walk_second_by_second() {
    let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 0);
    for case in 0..3_000 {
        let rates = random_rates(&mut rng);
        let wrap = rng.below(2) == 0;
        let points: Vec<(u64, f64)> = rates.iter().enumerate().map(|(s, rate)| (s as u64 * S, *rate as f64)).collect();
        let link = link(&points, rates.len() as u64 * S, wrap);
        let (offset, from, bits) = (rng.below(40), rng.below(100), 1 + rng.below(400));
        // Away for b of every a + b seconds, or always there.
        let (a, b) = (1 + rng.below(5), rng.below(4));
        let there = |second: u64| second % (a + b) < a;
        let always = stepped(&rates, wrap, offset, from, bits, |_| true);
        let paused = stepped(&rates, wrap, offset, from, bits, there);
        let expected = |end: Option<(u64, f64)>| end.map(|(second, part)| second as f64 + part);
        let close = |found: Option<VirtualTime>, expected: Option<f64>, what: &str| match (found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => {
                let error = (found.0 as f64 - expected * 1e9).abs();
                assert!(error <= 1.0, "case {case}, {what}: {} s, expected {expected} s", found.seconds());
            }
            other => panic!("case {case}, {what}: {other:?}"),
        };
        let plain = link.transfer(VirtualTime((from + offset) * S), bits as f64);
        close(plain.map(|end| VirtualTime(end.0 - offset * S)), expected(always), "always there");
        let stretch = |time: VirtualTime| {
            let (second, period) = (time.0 / S, a + b);
            let begins = second / period * period;
            match second - begins < a {
                true if b == 0 => Stretch { available: true, until: VirtualTime::MAX },
                true => Stretch { available: true, until: VirtualTime((begins + a) * S) },
                false => Stretch { available: false, until: VirtualTime((begins + period) * S) },
            }
        };
        // The trace and the pauses may be in step so that nothing ever moves.
        if paused.is_some() || !wrap {
            let found = link.transfer_while(Span(offset * S), VirtualTime(from * S), bits as f64, stretch);
            close(found, expected(paused), "with pauses");
        }
        // `moved` inverts transfers.
        if let Some(end) = plain {
            let moved = link.moved(VirtualTime((from + offset) * S), end);
            assert!((moved - bits as f64).abs() < 1e-6, "case {case}: {moved} of {bits}");
        }
    }
}

#[test]
fn ends_are_exact_far_into_a_long_trace() {
    // A million points of 30 Mbit/s: within a piece the integrals from the beginning play no part.
    let times: Vec<Span> = (0..1_000_000).map(|second| Span(second * S)).collect();
    let link = LinkTrace::new(&times, &vec![30e6; 1_000_000], Span(1_000_000 * S), true).unwrap();
    let from = VirtualTime(999_000 * S);
    assert_eq!(link.transfer(from, 3e6), Some(VirtualTime(from.0 + S / 10)));
    let end = link.transfer(from, 300e6).unwrap();
    assert!(end.0.abs_diff(from.0 + 10 * S) <= 1, "{end}");
}
