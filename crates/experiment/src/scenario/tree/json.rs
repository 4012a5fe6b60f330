//! Lines of the values of a JSON document.

/// The line of every value, from 1, in the order in which values begin: a table or list before its items. The text is
/// valid JSON.
pub(super) fn lines(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let (mut lines, mut line, mut at) = (Vec::new(), 1, 0);
    while let Some(&byte) = bytes.get(at) {
        let begins = at;
        at += 1;
        match byte {
            b'\n' => line += 1,
            b'{' | b'[' => lines.push(line),
            b'"' => {
                // A quote behind a backslash is a letter of the text.
                while bytes.get(at).is_some_and(|&letter| letter != b'"') {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
                let rest = bytes.get(at..).unwrap_or_default();
                let next = rest.iter().find(|letter| !letter.is_ascii_whitespace());
                if next != Some(&b':') {
                    lines.push(line);
                }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let is_part = |letter: &u8| letter.is_ascii_alphanumeric() || b"+-.".contains(letter);
                at += bytes[begins + 1..].iter().take_while(|letter| is_part(letter)).count();
                lines.push(line);
            }
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let text = "{\n \"a\\\"{\" : [1,\n -2.5e+3, \"x:\\\\\"],\n\"b\":{\"c\"\n:\n\"d\", \"e\": true}\n}";
        // The document, a, 1, -2.5e+3, x, b, d, true.
        assert_eq!(lines(text), [1, 2, 2, 3, 3, 4, 6, 6]);
    }
}
