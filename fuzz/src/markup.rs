//! Strict readers of what is written for people's tools: they take tables as they ought to be, and nothing else.

use fedgenie::text::is_control;

/// The cells of a CSV file, headings first: as many in each row, none of them a formula, nothing for a terminal.
///
/// # Panics
/// If it is none such.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let rows: Vec<Vec<String>> = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes())
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect();
    for cell in rows.iter().flatten() {
        assert!(!cell.contains(is_control), "{cell:?}");
        let begins = |part: &str| part.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
        let is_formula = cell.parse::<f64>().is_err() && cell.split(';').any(begins);
        assert!(!is_formula, "a spreadsheet takes {cell:?} for a formula");
    }
    rows
}

/// The cells of a table of Markdown, in which nothing is markup but the table.
///
/// # Panics
/// If it is none such.
pub fn markdown(text: &str) -> Vec<Vec<String>> {
    assert!(!text.contains(|letter| is_control(letter) && letter != '\n'), "{text:?}");
    let mut lines = text.lines();
    let head = cells_of_markdown(lines.next().unwrap());
    assert_eq!(lines.next(), Some(&*format!("|{}", "---|".repeat(head.len()))));
    let rows: Vec<_> = std::iter::once(head).chain(lines.map(cells_of_markdown)).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    rows
}

fn cells_of_markdown(line: &str) -> Vec<String> {
    let inside = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")).unwrap_or_else(|| panic!("{line:?}"));
    let mut cells = vec![String::new()];
    let (mut before, mut rest) = (' ', inside);
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let cell = cells.last_mut().unwrap();
        let mut taken = letter.len_utf8();
        match letter {
            '\\' => {
                let escaped = after.chars().next().filter(char::is_ascii_punctuation);
                cell.push(escaped.unwrap_or_else(|| panic!("nothing is escaped: {line:?}")));
                taken += 1;
            }
            '&' => {
                const KNOWN: [(&str, char); 6] =
                    [("lt;", '<'), ("gt;", '>'), ("amp;", '&'), ("#36;", '$'), ("#123;", '{'), ("#125;", '}')];
                let known = KNOWN.into_iter().find(|(name, _)| after.starts_with(name));
                let (name, meant) = known.unwrap_or_else(|| panic!("{line:?}"));
                cell.push(meant);
                taken += name.len();
            }
            '|' => cells.push(String::new()),
            '_' => {
                let is_inside = before.is_alphanumeric() && after.starts_with(char::is_alphanumeric);
                assert!(is_inside, "an emphasis: {line:?}");
                cell.push('_');
            }
            '`' | '*' | '[' | ']' | '<' | '>' | '~' | '$' | '{' | '}' | '@' => panic!("{letter} is live: {line:?}"),
            ':' => {
                assert!(!after.starts_with("//"), "an address: {line:?}");
                cell.push(':');
            }
            letter => cell.push(letter),
        }
        before = letter;
        rest = &rest[taken..];
    }
    assert!(!inside.to_ascii_lowercase().contains("www."), "an address: {line:?}");
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// How many cells each row of a table of LaTeX has, in which nothing is a command but what a table needs.
///
/// # Panics
/// If it is none such.
pub fn latex(text: &str) -> Vec<usize> {
    assert!(!text.contains(|letter| is_control(letter) && letter != '\n'), "{text:?}");
    let (head, rest) = text.split_once("\\toprule\n").unwrap();
    let (names, rest) = rest.split_once("\\midrule\n").unwrap();
    let (rows, end) = rest.rsplit_once("\\bottomrule\n").unwrap();
    let columns = head.strip_prefix("% needs \\usepackage{booktabs}\n\\begin{tabular}{").unwrap();
    let columns = columns.strip_suffix("}\n").unwrap();
    assert!(columns.chars().all(|column| "lr".contains(column)) && end == "\\end{tabular}\n", "{head}{end}");
    let counts: Vec<usize> = names.lines().chain(rows.lines()).map(row_of_latex).collect();
    assert!(counts.iter().all(|&count| count == columns.len()), "{counts:?} cells in {columns}:\n{text}");
    counts
}

/// Commands with a pair of braces after them, and those of formulas.
const COMMANDS: [&str; 6] = ["textbackslash", "textasciitilde", "textasciicircum", "textbar", "ldots", "symbol"];

fn row_of_latex(line: &str) -> usize {
    let inside = line.strip_suffix("\\\\").unwrap_or_else(|| panic!("no end of a row: {line:?}"));
    let first = inside.trim_start();
    assert!(!first.starts_with(['[', '*']), "an argument of the line above: {line:?}");
    let (mut cells, mut in_formula, mut depth) = (1, false, 0);
    let mut before = ' ';
    let mut letters = inside.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                let name: String = inside[at + 1..].chars().take_while(char::is_ascii_alphabetic).collect();
                if name.is_empty() {
                    let escaped = letters.next().map(|(_, letter)| letter);
                    assert!(escaped.is_some_and(|letter| "&%$#_{}".contains(letter)), "{escaped:?}: {line:?}");
                } else {
                    assert!(in_formula || COMMANDS.contains(&&*name), "the command {name}: {line:?}");
                    for _ in 0..name.len() {
                        letters.next();
                    }
                    let next = letters.peek().map(|(_, letter)| *letter);
                    assert!(in_formula || next == Some('{'), "{line:?}");
                }
            }
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                assert!(depth >= 0, "{line:?}");
            }
            '$' => in_formula = !in_formula,
            '&' => {
                assert!(!in_formula && depth == 0, "{line:?}");
                cells += 1;
            }
            '%' | '#' | '~' | '"' => panic!("{letter} is live: {line:?}"),
            '^' | '_' => assert!(in_formula, "{letter} is live: {line:?}"),
            '<' | '>' | '|' => assert!(in_formula, "{letter} is another sign in old fonts: {line:?}"),
            '`' | '\'' | ',' if !in_formula => assert_ne!(before, letter, "a ligature: {line:?}"),
            letter => assert!(letter == ' ' || !letter.is_whitespace(), "{line:?}"),
        }
        before = letter;
    }
    assert!(!in_formula && depth == 0, "{line:?}");
    cells
}
