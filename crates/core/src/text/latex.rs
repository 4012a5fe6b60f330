//! Texts in LaTeX.

use super::escaped;

/// Pairs that fonts draw as one sign.
const LIGATURES: [&str; 8] = ["--", "``", "''", ",,", "?`", "!`", "<<", ">>"];

/// Letters that the common engines have no glyph for in their text fonts, as formulas.
const SIGNS: [(char, &str); 40] = [
    ('±', "$\\pm$"),
    ('−', "$-$"),
    ('×', "$\\times$"),
    ('·', "$\\cdot$"),
    ('≤', "$\\leq$"),
    ('≥', "$\\geq$"),
    ('≠', "$\\neq$"),
    ('≈', "$\\approx$"),
    ('∞', "$\\infty$"),
    ('∈', "$\\in$"),
    ('→', "$\\rightarrow$"),
    ('√', "$\\surd$"),
    ('²', "$^2$"),
    ('Δ', "$\\Delta$"),
    ('Σ', "$\\Sigma$"),
    ('Ω', "$\\Omega$"),
    ('α', "$\\alpha$"),
    ('β', "$\\beta$"),
    ('γ', "$\\gamma$"),
    ('δ', "$\\delta$"),
    ('ε', "$\\epsilon$"),
    ('ζ', "$\\zeta$"),
    ('η', "$\\eta$"),
    ('θ', "$\\theta$"),
    ('ι', "$\\iota$"),
    ('κ', "$\\kappa$"),
    ('λ', "$\\lambda$"),
    ('μ', "$\\mu$"),
    ('µ', "$\\mu$"),
    ('ν', "$\\nu$"),
    ('ξ', "$\\xi$"),
    ('π', "$\\pi$"),
    ('ρ', "$\\rho$"),
    ('σ', "$\\sigma$"),
    ('τ', "$\\tau$"),
    ('φ', "$\\phi$"),
    ('χ', "$\\chi$"),
    ('ψ', "$\\psi$"),
    ('ω', "$\\omega$"),
    ('…', "\\ldots{}"),
];

/// The text as LaTeX that prints it: nothing in it is a command, an argument, a comment, an active character or a
/// ligature. White space of any kind is one space; control and direction characters are escapes.
pub fn literal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = String::new();
    let mut was_space = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            if !was_space {
                shown.push(' ');
            }
            (was_space, before) = (true, String::new());
            continue;
        }
        was_space = false;
        for letter in escaped(letter.encode_utf8(&mut [0; 4])).chars() {
            if LIGATURES.contains(&format!("{before}{letter}").as_str()) {
                shown.push_str("{}");
            }
            add(letter, &mut shown);
            before = letter.to_string();
        }
    }
    shown
}

fn add(letter: char, shown: &mut String) {
    match letter {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => shown.extend(['\\', letter]),
        '\\' => shown.push_str("\\textbackslash{}"),
        '~' => shown.push_str("\\textasciitilde{}"),
        '^' => shown.push_str("\\textasciicircum{}"),
        '|' => shown.push_str("\\textbar{}"),
        // Active in many languages.
        '"' => shown.push_str("\\symbol{34}"),
        '<' | '>' => shown.extend(['$', letter, '$']),
        '–' => shown.push_str("--"),
        '—' => shown.push_str("---"),
        letter => match SIGNS.iter().find(|(sign, _)| *sign == letter) {
            Some((_, formula)) => shown.push_str(formula),
            None => shown.push(letter),
        },
    }
}

/// A row of a table, of cells that are LaTeX. Its beginning is never taken for an argument of the line above, which
/// `\\`, `\midrule` and others look for across the end of their line.
pub fn row(cells: &[String]) -> String {
    let row = cells.join(" & ");
    let is_plain = row.trim_start().starts_with(|first: char| first.is_alphanumeric() || "\\$&".contains(first));
    format!("{}{row} \\\\\n", if is_plain { "" } else { "{}" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_command() {
        let cases = [
            ("a|b\\c", "a\\textbar{}b\\textbackslash{}c"),
            ("50 % & $x_1$ #{~^}", "50 \\% \\& \\$x\\_1\\$ \\#\\{\\textasciitilde{}\\textasciicircum{}\\}"),
            ("\"a\" <b>", "\\symbol{34}a\\symbol{34} $<$b$>$"),
            ("a--b ''c'' ?`", "a-{}-b '{}'c'{}' ?{}`"),
            ("1 – 2 — 3 −4 ± 5 …", "1 -- 2 --- 3 $-$4 $\\pm$ 5 \\ldots{}"),
            ("τ ≤ 2 µs", "$\\tau$ $\\leq$ 2 $\\mu$s"),
            ("a \n\t b\u{1b}\u{202e}", "a b\\textbackslash{}u\\{1b\\}\\textbackslash{}u\\{202e\\}"),
        ];
        for (text, expected) in cases {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn no_row_is_an_argument_of_the_one_above() {
        let text = |cells: &[&str]| row(&cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
        assert_eq!(text(&["[2cm] a", "b"]), "{}[2cm] a & b \\\\\n");
        assert_eq!(text(&["*", ""]), "{}* &  \\\\\n");
        assert_eq!(text(&["", "[b]"]), " & [b] \\\\\n");
        assert_eq!(text(&["a", "[b]"]), "a & [b] \\\\\n");
        assert_eq!(text(&["$-$1", "*"]), "$-$1 & * \\\\\n");
    }
}
