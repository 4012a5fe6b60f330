//! The states that annealing walks through, and which of them are neighbours, by definition.
//!
//! States are the sets of `m` of `K` clients. Two that differ in one client are neighbours under SA, (18) of the BSFL
//! paper; under ALSA, (19), only if the client that leaves, or the one that comes in its place, is the slowest or the
//! least gaining member of its set. ALSA as it is run goes forward alone: the slowest or the least gaining member
//! leaves. This is written from the paper and shares nothing with the solver.

use fedgenie_core::oracle::{Instance, brute};
use fedgenie_core::rng::StreamRng;

/// Which states are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// (18): they differ in one client.
    Plain,
    /// (19) as it stands.
    Symmetric,
    /// The half of (19) in which the weakest member leaves.
    Forward,
}

/// An instance of the selection problem with all its states.
#[derive(Clone, Debug)]
pub struct States {
    /// Sets of clients, ascending in energy.
    pub sets: Vec<Vec<u32>>,
    /// The slowest and the least gaining member of each.
    weakest: Vec<[u32; 2]>,
}

impl States {
    /// Speeds and gains drawn uniformly from 0 to 1; 1 ≤ `cohort` < `clients`.
    pub fn draw(clients: usize, cohort: usize, rng: &mut StreamRng) -> Self {
        let mut values = || (0..clients).map(|_| rng.uniform()).collect::<Vec<f64>>();
        let (speed, gain) = (values(), values());
        let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
        let mut sets = brute::subsets(clients, cohort);
        sets.sort_by(|a, b| instance.value(a).total_cmp(&instance.value(b)));
        let least = |set: &[u32], values: &[f64]| {
            let order = |a: &&u32, b: &&u32| values[**a as usize].total_cmp(&values[**b as usize]);
            *set.iter().min_by(order).expect("a set has a member")
        };
        let weakest = sets.iter().map(|set| [least(set, &speed), least(set, &gain)]).collect();
        Self { sets, weakest }
    }

    /// Whether one step leads from a state to another.
    pub fn leads(&self, from: usize, to: usize, rule: Rule) -> bool {
        let only_in = |a: usize, b: usize| {
            let mut others = self.sets[a].iter().filter(|client| !self.sets[b].contains(client));
            others.next().copied().filter(|_| others.next().is_none())
        };
        let (Some(leaving), Some(entering)) = (only_in(from, to), only_in(to, from)) else { return false };
        match rule {
            Rule::Plain => true,
            Rule::Forward => self.weakest[from].contains(&leaving),
            Rule::Symmetric => self.weakest[from].contains(&leaving) || self.weakest[to].contains(&entering),
        }
    }

    /// The states to which one step leads, for each state.
    pub fn neighbours(&self, rule: Rule) -> Vec<Vec<usize>> {
        let all = 0..self.sets.len();
        all.clone().map(|from| all.clone().filter(|&to| self.leads(from, to, rule)).collect()).collect()
    }
}

/// The states from which one step leads to each.
pub fn reversed(neighbours: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); neighbours.len()];
    for (from, to) in neighbours.iter().enumerate() {
        to.iter().for_each(|&to| all[to].push(from));
    }
    all
}

/// From how many states, itself among them, steps lead to this one.
pub fn leading_to(state: usize, neighbours: &[Vec<usize>]) -> usize {
    let mut leads = vec![false; neighbours.len()];
    leads[state] = true;
    loop {
        let found: Vec<usize> =
            (0..leads.len()).filter(|&from| !leads[from] && neighbours[from].iter().any(|&to| leads[to])).collect();
        if found.is_empty() {
            return leads.into_iter().filter(|&leads| leads).count();
        }
        found.into_iter().for_each(|from| leads[from] = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_clients_by_hand() {
        // Client 0 is slowest, client 2 gains least.
        let sets = vec![vec![0, 2], vec![1, 2], vec![0, 1]];
        let states = States { sets, weakest: vec![[0, 2], [1, 2], [0, 1]] };
        for rule in [Rule::Plain, Rule::Symmetric, Rule::Forward] {
            // Both members of a pair are weakest in something: every swap is a forward one.
            assert_eq!(states.neighbours(rule), [vec![1, 2], vec![0, 2], vec![0, 1]], "{rule:?}");
        }
        let only = States { weakest: vec![[0, 0], [1, 1], [0, 0]], ..states };
        // {0, 2} may lose 0 alone, {1, 2} may lose 1, {0, 1} may lose 0.
        assert_eq!(only.neighbours(Rule::Forward), [vec![1], vec![0], vec![1]]);
        assert_eq!(only.neighbours(Rule::Symmetric), [vec![1], vec![0, 2], vec![1]]);
        assert_eq!(reversed(&only.neighbours(Rule::Forward)), [vec![1], vec![0, 2], vec![]]);
        assert_eq!(
            (leading_to(2, &only.neighbours(Rule::Forward)), leading_to(0, &only.neighbours(Rule::Forward))),
            (1, 3)
        );
    }
}
