//! Explanations of verdicts, whose numbers are those of the runs.
//!
//! # Definition
//! In a text a number in braces, `{POLICY: VALUE}`, is the level of a policy, or of a control whose name is in
//! parentheses: its mean over seeds of a value of `summary.json`, with four digits. `least` and `most` before the
//! policy are the least and the largest of its runs, ` %` at the end is a hundred times the number. The scenario and
//! the point are those that the check compares, or the claim's only scenario; `SCENARIO/` or `SCENARIO@POINT/` before
//! the policy is another. Where no run reaches the target of a value, and where not all do that have a largest, the
//! text has a dash.

/// An explanation: words, and numbers that are looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Because(pub(super) Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Words(String),
    Number(Number),
}

/// A number of an explanation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// The scenario and the point; `None` stands for those of the check.
    pub place: Option<(String, usize)>,
    /// Which number of its runs.
    pub among: Among,
    /// The policy, or the control in parentheses.
    pub by: String,
    /// Of `summary.json`: `final.test_accuracy`, ….
    pub value: String,
    /// Whether a hundred times the number is told.
    pub in_percent: bool,
}

/// Which number of several runs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    Mean,
    Least,
    Most,
}

impl Because {
    /// From the text of a claim.
    ///
    /// # Errors
    /// What is in braces and no number.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((words, after)) = rest.split_once('{') {
            let Some((inner, after)) = after.split_once('}') else {
                return Err(format!("because: {{{after:?} has no closing brace"));
            };
            parts.push(Part::Words(words.to_owned()));
            parts.push(Part::Number(Number::read(inner)?));
            rest = after;
        }
        parts.push(Part::Words(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Whose number does not say of which scenario it is, if one does not.
    pub(super) fn without_place(&self) -> Option<&str> {
        self.0.iter().find_map(|part| match part {
            Part::Number(Number { place: None, by, .. }) => Some(by.as_str()),
            _ => None,
        })
    }

    /// Its words, without the numbers that are looked up.
    pub fn words(&self) -> String {
        let words = |part: &Part| match part {
            Part::Words(words) => words.clone(),
            Part::Number(_) => "…".to_owned(),
        };
        self.0.iter().map(words).collect()
    }
}

impl Number {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("because: {{{text}}} is no number of runs; expected {{POLICY: VALUE}}");
        let (who, value) = text.split_once(": ").ok_or_else(wrong)?;
        let (value, in_percent) = value.strip_suffix(" %").map_or((value, false), |value| (value, true));
        let (among, who) = match who.split_once(' ') {
            Some(("least", who)) => (Among::Least, who),
            Some(("most", who)) => (Among::Most, who),
            _ => (Among::Mean, who),
        };
        let (place, by) = match who.split_once('/') {
            Some((place, by)) => {
                let (scenario, point) = place.split_once('@').unwrap_or((place, "0"));
                (Some((scenario.to_owned(), point.parse().map_err(|_| wrong())?)), by)
            }
            None => (None, who),
        };
        if by.trim().is_empty() || value.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Self { place, among, by: by.to_owned(), value: value.to_owned(), in_percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_braces() {
        let read = |text: &str| Because::read(text).unwrap().0;
        let number = |place: Option<(&str, usize)>, among, by: &str, value: &str, in_percent| {
            let place = place.map(|(scenario, point)| (scenario.to_owned(), point));
            Part::Number(Number { place, among, by: by.to_owned(), value: value.to_owned(), in_percent })
        };
        let words = |words: &str| Part::Words(words.to_owned());
        assert_eq!(read("No number."), [words("No number.")]);
        assert_eq!(
            read("Ends at {a: final.x %} %, not {far@2/(bias): time_to.x >= 0.5} s."),
            [
                words("Ends at "),
                number(None, Among::Mean, "a", "final.x", true),
                words(" %, not "),
                number(Some(("far", 2)), Among::Mean, "(bias)", "time_to.x >= 0.5", false),
                words(" s."),
            ]
        );
        assert_eq!(read("{least far/a: n}")[1], number(Some(("far", 0)), Among::Least, "a", "n", false));
        assert_eq!(read("{most a: n}")[1], number(None, Among::Most, "a", "n", false));
        assert_eq!(Because::read("1 {a: n} 2").unwrap().words(), "1 … 2");
        for wrong in ["{a}", "{a: n", "{: n}", "{a: }", "{far@x/a: n}"] {
            assert!(Because::read(wrong).unwrap_err().starts_with("because: {"), "{wrong}");
        }
    }
}
