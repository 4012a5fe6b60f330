//! Whole groups for clients, near to given sizes.

use std::collections::BTreeSet;

/// Size and number.
type Group = (usize, usize);

/// Groups of a client; and how many examples it has above its size.
#[derive(Default)]
struct Client {
    groups: BTreeSet<Group>,
    excess: i64,
}

/// The client of each group; `order` has the groups that have examples, at least as many as there are clients.
pub(super) fn assign(order: &[usize], counts: &[usize], wanted: &[usize]) -> Vec<usize> {
    let mut clients: Vec<Client> =
        wanted.iter().map(|&size| Client { excess: -(size as i64), ..Client::default() }).collect();
    let mut empty = clients.len();
    for (place, &group) in order.iter().enumerate() {
        // Every entry gets a group: the last groups are for entries without one.
        let is_last_call = order.len() - place == empty;
        let open = (0..clients.len()).filter(|&client| !is_last_call || clients[client].groups.is_empty());
        let client = open.min_by_key(|&client| clients[client].excess).expect("there are clients");
        empty -= usize::from(clients[client].groups.is_empty());
        clients[client].groups.insert((counts[group], group));
        clients[client].excess += counts[group] as i64;
    }
    while exchange(&mut clients) {}
    let mut client_of = vec![0; counts.len()];
    for (client, Client { groups, .. }) in clients.iter().enumerate() {
        groups.iter().for_each(|&(_, group)| client_of[group] = client);
    }
    client_of
}

/// The most groups, from the largest, that are tried for several others.
const TRIED: usize = 16;

/// Brings two clients nearer to their sizes: the one furthest above with the one furthest below, or another; or the
/// latter with another that is above it. False if nothing does.
fn exchange(clients: &mut [Client]) -> bool {
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_by_key(|&client| clients[client].excess);
    let (below, above) = (order[0], order[order.len() - 1]);
    let with_above = order.iter().map(|&other| (above, other));
    let with_below = order.iter().rev().map(|&other| (other, below));
    with_above.chain(with_below).any(|(above, below)| exchange_of(clients, above, below))
}

/// The exchange of these two that brings them nearest to their sizes.
fn exchange_of(clients: &mut [Client], above: usize, below: usize) -> bool {
    let (over, under) = (clients[above].excess, clients[below].excess);
    if over <= under {
        return false;
    }
    // The errors of both, squared, if so many examples change hands; best is half the difference.
    let left = |moved: i64| (over - moved).pow(2) + (under + moved).pow(2);
    let back_for = |size: usize| (size as i64 - (over - under) / 2).max(0) as usize;
    let others = &clients[below].groups;
    let mut best: (i64, Option<(Group, Vec<Group>)>) = (left(0), None);
    let mut consider = |given: Group, back: &[Group]| {
        let moved = given.0 as i64 - back.iter().map(|&(size, _)| size as i64).sum::<i64>();
        if left(moved) < best.0 {
            best = (left(moved), Some((given, back.to_vec())));
        }
    };
    for &given in &clients[above].groups {
        if clients[above].groups.len() > 1 {
            consider(given, &[]);
        }
        let ideal = back_for(given.0);
        let near = [others.range((ideal, 0)..).next(), others.range(..(ideal, 0)).next_back()];
        near.into_iter().flatten().for_each(|&back| consider(given, &[back]));
    }
    for &given in clients[above].groups.iter().rev().take(TRIED) {
        let mut room = back_for(given.0);
        let fits = others.iter().rev().filter(|&&(size, _)| {
            let fits = size <= room;
            room -= if fits { size } else { 0 };
            fits
        });
        let back: Vec<Group> = fits.copied().collect();
        if back.len() > 1 {
            consider(given, &back);
        }
    }
    let Some((given, back)) = best.1 else { return false };
    let mut pass = |group: Group, from: usize, to: usize| {
        clients[from].groups.remove(&group);
        clients[to].groups.insert(group);
        clients[from].excess -= group.0 as i64;
        clients[to].excess += group.0 as i64;
    };
    pass(given, above, below);
    back.into_iter().for_each(|back| pass(back, below, above));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_exchanged_until_sizes_are_met() {
        // In this order 5 goes to client 0 (lacks 6), 4 to client 1 (lacks 5), 1 to 0 (both lack 1), 1 to 1.
        assert_eq!(assign(&[0, 1, 2, 3], &[5, 4, 1, 1], &[6, 5]), [0, 1, 0, 1]);
        // 3 and 4 to client 0 (both lack 3 then), 2 to client 1, which has none: 7 and 2, wanted 6 and 3; 3 for 2 meets
        // both.
        assert_eq!(assign(&[0, 1, 2], &[3, 4, 2], &[6, 3]), [1, 0, 0]);
        // The last two are kept for entries without a group.
        assert_eq!(assign(&[0, 1, 2, 3], &[9, 9, 9, 9], &[34, 1, 1]), [0, 0, 1, 2]);
    }
}
