//! How a level changes while charger and draw stay the same: exact, in whole numbers.
//!
//! Powers are whole numbers of a unit, times whole nanoseconds, so that an energy is a whole number of unit × ns. Where
//! a phone runs empty between two nanoseconds, what its charger gave until then is rounded down.

/// What a stretch of constant powers does to a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// The level at its end.
    pub level: u64,
    /// What the phone drew.
    pub drawn: u128,
    /// What entered the phone.
    pub charged: u128,
}

/// The flow of `span` nanoseconds from `level` on.
pub(super) fn flow(capacity: u64, level: u64, charger: u64, draw: u64, span: u64) -> Flow {
    let times = |power: u64| u128::from(power) * u128::from(span);
    if charger >= draw {
        // A full phone takes what it draws.
        let gain = times(charger - draw).min(u128::from(capacity - level));
        return Flow { level: level + gain as u64, drawn: times(draw), charged: times(draw) + gain };
    }
    let net = draw - charger;
    match u128::from(level).checked_sub(times(net)) {
        Some(left) => Flow { level: left as u64, drawn: times(draw), charged: times(charger) },
        // From then on it is off.
        None => {
            let charged = u128::from(charger) * u128::from(level) / u128::from(net);
            Flow { level: 0, drawn: charged + u128::from(level), charged }
        }
    }
}

/// After how many nanoseconds a level has become 0; `None` if never. At once if it is 0.
pub(super) const fn until_empty(level: u64, charger: u64, draw: u64) -> Option<u64> {
    match draw.saturating_sub(charger) {
        _ if level == 0 => Some(0),
        0 => None,
        net => Some(level.div_ceil(net)),
    }
}

/// After how many nanoseconds a level has reached another; `None` if never.
pub(super) const fn until_reached(level: u64, need: u64, charger: u64, draw: u64) -> Option<u64> {
    match charger.saturating_sub(draw) {
        _ if level >= need => Some(0),
        0 => None,
        net => Some((need - level).div_ceil(net)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level, what was drawn, what entered.
    fn after(level: u64, charger: u64, draw: u64, span: u64) -> (u64, u128, u128) {
        let Flow { level, drawn, charged } = flow(100, level, charger, draw, span);
        (level, drawn, charged)
    }

    #[test]
    fn levels_stay_between_nothing_and_the_capacity() {
        assert_eq!(after(50, 0, 7, 3), (29, 21, 0));
        assert_eq!(after(50, 9, 2, 3), (71, 6, 27));
        assert_eq!(after(50, 9, 2, 100), (100, 200, 250), "a full phone takes what it draws");
        assert_eq!(after(100, 9, 9, 5), (100, 45, 45));
        assert_eq!(after(21, 0, 7, 3), (0, 21, 0), "empty exactly at the end");
        assert_eq!(after(20, 0, 7, 3), (0, 20, 0), "empty before the end");
        // 20/5 = 4 ns: 8 entered, 28 were drawn; then it is off.
        assert_eq!(after(20, 2, 7, 90), (0, 28, 8));
        assert_eq!(after(0, 2, 7, 90), (0, 0, 0), "neither drawing nor charging");
        assert_eq!(after(0, 7, 7, 3), (0, 21, 21), "a charger that gives the draw keeps it on");
        assert_eq!(after(0, 8, 7, 3), (3, 21, 24));
        assert_eq!(after(30, 0, 0, u64::MAX), (30, 0, 0));
    }

    #[test]
    fn the_first_nanosecond_is_found() {
        assert_eq!(until_empty(21, 0, 7), Some(3));
        assert_eq!(until_empty(22, 0, 7), Some(4));
        assert_eq!(until_empty(22, 7, 7), None);
        assert_eq!(until_empty(0, 9, 7), Some(0), "empty, whatever comes");
        assert_eq!(until_reached(22, 50, 9, 2), Some(4));
        assert_eq!(until_reached(22, 51, 9, 2), Some(5));
        assert_eq!(until_reached(22, 22, 0, 2), Some(0));
        assert_eq!(until_reached(22, 23, 2, 2), None);
    }

    /// A stretch that is cut anywhere gives the same as in one piece, also where it runs empty or full between two
    /// nanoseconds.
    #[test]
    fn cutting_a_stretch_changes_nothing() {
        for (level, charger, draw) in [(37, 3, 11), (37, 11, 3), (0, 3, 11), (99, 5, 4), (64, 0, 8), (63, 7, 17)] {
            let whole = flow(100, level, charger, draw, 20);
            for cut in 0..=20 {
                let first = flow(100, level, charger, draw, cut);
                let second = flow(100, first.level, charger, draw, 20 - cut);
                assert_eq!(second.level, whole.level);
                assert_eq!(first.drawn + second.drawn, whole.drawn, "{level} {charger} {draw}, cut at {cut}");
                assert_eq!(first.charged + second.charged, whole.charged);
            }
            let sum = u128::from(level) + whole.charged - whole.drawn;
            assert_eq!(sum, whole.level.into(), "what came in less what went out");
        }
    }
}
