//! `fedgenie validate --plan`: what claims would cost here, and what they may decide.

use super::amounts::{duration, whole};
use fedgenie::text::escaped;
use fedgenie::validation::Plan;

const HEADINGS: [&str; 10] =
    ["claim", "runs", "there", "time", "yes", "no", "same", "undecided", "not judged", "seeds for one more"];

/// The plans as a table, and what they take together.
pub fn table(plans: &[Plan], threads: usize) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for plan in plans {
        let nothing = || "–".to_owned();
        let time = plan.seconds.map_or_else(nothing, |seconds| format!("about {}", duration(seconds)));
        let verdicts = plan.verdicts.map(|counts| counts.map(|count| count.to_string()));
        let [yes, no, same, undecided, not_judged] =
            verdicts.unwrap_or_else(|| [const { String::new() }; 5].map(|_| nothing()));
        let seeds = plan.seeds.map_or_else(nothing, |seeds| whole(seeds as f64));
        let (runs, there) = (whole(plan.runs as f64), whole(plan.there as f64));
        rows.push([escaped(&plan.name).into_owned(), runs, there, time, yes, no, same, undecided, not_judged, seeds]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let refused = plans.iter().flat_map(|plan| plan.refused.iter().map(move |refused| (plan, refused)));
    let refused: Vec<String> =
        refused.map(|(plan, refused)| format!("note: {}: {}\n", escaped(&plan.name), escaped(refused))).collect();
    if !refused.is_empty() {
        text.push('\n');
        text.extend(refused);
    }
    let (runs, seconds) = plans
        .iter()
        .fold((0, 0.0), |(runs, seconds), plan| (runs + plan.runs, seconds + plan.seconds.unwrap_or_default()));
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    text.push_str(&format!(
        "\n{} runs to be made, about {} on {threads} of this machine, as far as it is known\n\
         the time of a claim without scenarios is that of its last validation; statistics that play worlds of their own take more\n\
         yes, no, same, undecided, not judged: verdicts of the results that are kept; seeds for one more: the fewest seeds by\n\
         which an undecided number would be decided, at the mean and the spread found\n\
         nothing was carried out, and nothing was written\n",
        whole(runs as f64),
        duration(seconds)
    ));
    text
}
