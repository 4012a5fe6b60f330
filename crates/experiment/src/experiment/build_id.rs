//! Which build of FedGenie this is, so that results of one are not taken for those of another.
//!
//! # Definition
//! 16 hexadecimal digits of BLAKE3 over the version, the features, the lock file, and the sources of the crates that
//! decide results: core, learning, simulator and experiment. Two programs with the same digits give the same results;
//! with others they may. What only reads results (report, claims, the command line) is no part of it, neither are the
//! compiler and its profile: on them results do not depend.

/// The digits.
pub const fn build() -> &'static str {
    env!("FEDGENIE_BUILD")
}

/// What is said of a file that another build has written; `found` is what the file says of it.
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
