//! `fedgenie list cpu`: the detected processor, and the path that training takes.

use fedgenie::experiment::cpu::Cpu;
use fedgenie::lanes::{Path, features_of_paths};

/// A line per path, slowest first.
pub fn list() -> String {
    let taken = Path::detect();
    let mut text = format!("{:<13} {}\n", "processor", Cpu::detect().processor);
    for (name, features) in features_of_paths() {
        let missing: Vec<&str> = features.iter().filter(|(_, is_there)| !is_there).map(|&(name, _)| name).collect();
        let needs: Vec<&str> = features.iter().map(|&(name, _)| name).collect();
        let what = match (features.is_empty(), missing.is_empty()) {
            (true, _) if taken.has_fma() && features_of_paths().len() == 1 => {
                "features of every processor of its kind".to_owned()
            }
            (true, _) => "features of every processor of its kind, without a fused multiply-add: about 50 times slower"
                .to_owned(),
            (false, true) => format!("detected: {}", needs.join(", ")),
            (false, false) => format!("not there: lacks {}", missing.join(", ")),
        };
        let mark = if name == taken.name() { "; training takes this path" } else { "" };
        text.push_str(&format!("cpu/{name:<9} {what}{mark}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_taken() {
        let text = list();
        assert_eq!(text.matches("training takes this path").count(), 1, "{text}");
        assert!(text.contains(&format!("cpu/{} ", Path::detect())), "{text}");
    }
}
