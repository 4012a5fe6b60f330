//! Classes that are said to be others: pairs `[a, b]`, by which examples of class `a` are said to be of class `b`.

use fedgenie_core::config::Complaint;

/// Checks that these are pairs of two classes, each class first in one of them at most.
///
/// # Errors
/// A complaint about the list as a whole.
pub fn check_pairs(pairs: &[[u32; 2]]) -> Result<(), Complaint> {
    let mut from: Vec<u32> = pairs.iter().map(|[from, _]| *from).collect();
    from.sort_unstable();
    if pairs.is_empty() || from.windows(2).any(|two| two[0] == two[1]) {
        let message = "expected pairs of two classes, such as [[0, 2]], each class first in one of them";
        return Err(Complaint::new("", message));
    }
    match pairs.iter().find(|[from, to]| from == to) {
        Some([class, _]) => Err(Complaint::new("", format!("found class {class} said to be itself; expected another"))),
        None => Ok(()),
    }
}

/// The class that examples of a class are said to be.
pub fn said(pairs: &[[u32; 2]], class: u8) -> u8 {
    pairs.iter().find(|[from, _]| *from == u32::from(class)).map_or(class, |[_, to]| *to as u8)
}
