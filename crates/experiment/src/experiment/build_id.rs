//! The build of FedGenie, so that results of different builds are told apart.
//!
//! # Definition
//! 16 hexadecimal digits of BLAKE3 over the version, the features, the lock file, and the sources of the crates that
//! decide results: core, learning, simulator and experiment. Two programs with the same digits give the same results;
//! with others they may. Crates that only read results (report, claims, the command line) are no part of it, neither
//! are the compiler and its profile: results do not depend on them.

/// The digits.
pub const fn build() -> &'static str {
    env!("FEDGENIE_BUILD")
}

/// The notice about a file of another build; `found` is the build that the file names.
pub(super) fn of_another(found: &str) -> String {
    let found = if found.is_empty() { "an unknown build" } else { found };
    format!("is of another build of FedGenie ({found}; this is {})", build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_sixteen_digits() {
        assert!(build().len() == 16 && build().bytes().all(|digit| digit.is_ascii_hexdigit()), "{}", build());
        assert_eq!(of_another("abc"), format!("is of another build of FedGenie (abc; this is {})", build()));
    }
}
