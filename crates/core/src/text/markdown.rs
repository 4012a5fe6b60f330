//! Texts in Markdown.

use super::{escaped, is_control};

/// The text as words of Markdown without markup: no link, picture, HTML, emphasis, formula or end of a table's cell.
/// White space of any kind is one space, so that it has no lines; control and direction characters are escapes.
pub fn literal(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().map(escaped).collect();
    let text = words.join(" ");
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let after = &text[at + letter.len_utf8()..];
        match letter {
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '@' => shown.extend(['\\', letter]),
            // Within a word it is no emphasis.
            '_' if before.is_alphanumeric() && after.starts_with(char::is_alphanumeric) => shown.push('_'),
            '_' => shown.push_str("\\_"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            // Formulas, and placeholders of page generators.
            '$' => shown.push_str("&#36;"),
            '{' => shown.push_str("&#123;"),
            '}' => shown.push_str("&#125;"),
            // Addresses are links without any brackets.
            ':' if after.starts_with("//") => shown.push_str("\\:"),
            '.' if text[..at].to_ascii_lowercase().ends_with("www") => shown.push_str("\\."),
            letter => shown.push(letter),
        }
        before = letter;
    }
    shown
}

/// Paragraphs that are Markdown of their own, without anything to fetch, run or follow: links and pictures lose their
/// targets' brackets, HTML its own; control and direction characters are escapes. Emphasis, code and lists stay.
pub fn prose(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => shown.push('\n'),
            '\t' => shown.push(' '),
            letter if is_control(letter) => shown.extend(letter.escape_default()),
            // A link's text ends, and its target or its name follows.
            ']' if letters.peek().is_some_and(|next| "([:".contains(*next)) => shown.push_str("\\]"),
            '<' if letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next)) => {
                shown.push_str("&lt;");
            }
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_live() {
        let cases = [
            ("![i](http://a.b/c)", "!\\[i\\](http\\://a.b/c)"),
            ("[c](javascript:alert(1))", "\\[c\\](javascript:alert(1))"),
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("www.a.b", "www\\.a.b"),
            ("a@b.c", "a\\@b.c"),
            ("a|b\\c", "a\\|b\\\\c"),
            ("`x` *y* _z_ ~~q~~", "\\`x\\` \\*y\\* \\_z\\_ \\~\\~q\\~\\~"),
            ("$x$ {{ y }} &lt;", "&#36;x&#36; &#123;&#123; y &#125;&#125; &amp;lt;"),
            ("a\n| b \u{2028}c", "a \\| b c"),
            ("\u{1b}[2J\u{202e}", "\\\\u&#123;1b&#125;\\[2J\\\\u&#123;202e&#125;"),
            // What is common stays as it is.
            ("test_loss 1.5 ± 0.3 (50 %)", "test_loss 1.5 ± 0.3 (50 %)"),
            ("s to test_loss <= -1e-3", "s to test_loss &lt;= -1e-3"),
        ];
        for (text, expected) in cases {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn paragraphs_keep_their_emphasis_and_lose_their_links() {
        let text = "*Why.* `a < b`, 3 <4 [1, 2] and ![i](http://x) [c][d]\n[d]: javascript:1\n<b>\u{1b}</b>";
        let expected =
            "*Why.* `a < b`, 3 <4 [1, 2] and ![i\\](http://x) [c\\][d]\n[d\\]: javascript:1\n&lt;b>\\u{1b}&lt;/b>";
        assert_eq!(prose(text), expected);
    }
}
