//! Amounts as a person reads them.

/// A span of wall time, of at most two units.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    let two = |larger: f64, of: f64, units: [&str; 2]| {
        let rest = ((whole - larger * of) / (of / 60.0)).floor();
        match rest > 0.0 {
            true => format!("{larger} {} {rest} {}", units[0], units[1]),
            false => format!("{larger} {}", units[0]),
        }
    };
    match seconds {
        s if s >= 86_400.0 => format!("{:.1} days", s / 86_400.0),
        _ if whole >= 3_600.0 => two((whole / 3_600.0).floor(), 3_600.0, ["h", "min"]),
        _ if whole >= 60.0 => two((whole / 60.0).floor(), 60.0, ["min", "s"]),
        s if s >= 9.95 => format!("{s:.0} s"),
        s if s >= 0.095 => format!("{s:.1} s"),
        s if s >= 0.000_95 => format!("{:.0} ms", s * 1e3),
        s if s > 0.0 => format!("{:.0} µs", (s * 1e6).max(1.0)),
        _ => "0 s".to_owned(),
    }
}

/// Bytes in decimal units, as disks are sold.
pub fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let (mut size, mut unit) = (count, 0);
    while size >= 999.5 && unit + 1 < units.len() {
        size /= 1e3;
        unit += 1;
    }
    if unit == 0 || size >= 9.95 { format!("{size:.0} {}", units[unit]) } else { format!("{size:.1} {}", units[unit]) }
}

/// A whole number with a comma before each three digits.
pub fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let cases = [
            (0.0, "0 s"),
            (2e-7, "1 µs"),
            (4.2e-5, "42 µs"),
            (0.0123, "12 ms"),
            (0.25, "0.2 s"),
            (9.949, "9.9 s"),
            (12.3, "12 s"),
            (59.6, "1 min"),
            (200.0, "3 min 20 s"),
            (3_599.8, "1 h"),
            (7_500.0, "2 h 5 min"),
            (200_000.0, "2.3 days"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn sizes_and_numbers_are_short() {
        assert_eq!([0.0, 999.4, 1_500.0, 999_900.0, 12.3e9].map(bytes), ["0 B", "999 B", "1.5 kB", "1.0 MB", "12 GB"]);
        assert_eq!([0.0, 12.0, 1_234.0, 1e6].map(whole), ["0", "12", "1,234", "1,000,000"]);
    }
}
