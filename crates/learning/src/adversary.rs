//! Hostile clients: what they send in the place of their updates.
//!
//! # Definition
//! `[adversary]` names clients and an `attack`. With `δ` the change that an honest job of the client makes, it sends
//!
//! | attack | in the place of δ |
//! |---|---|
//! | `sign-flip = { scale }` (1) | `−scale·δ` |
//! | `scaled = { factor }` | `factor·δ` |
//! | `noise = { sd }` | `δ` and an independent normal number of this standard deviation, for each number |
//! | `free-rider = { sd }` | such normal numbers alone |
//! | `little-is-enough = { z }` | per number `mean − z·sd` of the honest changes of all hostile updates of the round, their population standard deviation: all of them send the same |
//! | `label-flip`, `{ pairs }` | the change of a job on its own examples with other labels: class `y` of `C` is `C − 1 − y`, or of each pair `[a, b]` the class `a` is `b` |
//! | `slow = { factor }` | `δ`, after this multiple of the compute time |
//!
//! A change is that of all numbers that travel, running means too, and of the rows of tables that the honest job moved.
//! Private state stays honest. Losses and measures that clients report are those of their own examples, with the labels
//! that they train on; a norm that they report before they are selected is that of the update that they would send.
//! What an algorithm lets a client remember follows from what it sends.
//!
//! # Inputs
//! `clients` (their numbers), `groups` (names of groups of the population) or `share`: `round(share·N)` clients, drawn
//! by the seed, the same for all policies. Policies do not know them.
//!
//! `label-flip` is for tasks of labelled classes whose examples are dealt to one client each and stay there.
//! `little-is-enough` depends on who else is selected: it is refused with tables of rows, with algorithms that let
//! clients remember, and with the regret in hindsight. `slow` is refused with meters of mean speeds and with a
//! recorded log.
//!
//! # Records
//! Every round has `adversaries`: the hostile clients that were selected. `adversary_share` is a metric, their share of
//! all selections so far. With `pairs`, `attack_success` is a measure of data: of the examples of the classes `a`, the
//! share that the model takes for the class `b` of the same pair.
//!
//! # Source
//! `sign-flip`, `label-flip`: M. Fang, X. Cao, J. Jia, N. Gong, "Local model poisoning attacks to Byzantine-robust
//! federated learning", USENIX Security 2020, and V. Tolpegin et al., "Data poisoning attacks against federated learning
//! systems", ESORICS 2020. `little-is-enough`: G. Baruch, M. Baruch, Y. Goldberg, "A little is enough: Circumventing
//! defenses for distributed learning", NeurIPS 2019, Algorithm 3. `free-rider`: Y. Fraboni, R. Vidal, M. Lorenzi,
//! "Free-rider attacks on model aggregation in federated learning", AISTATS 2021.
//!
//! # Determinism
//! Normal numbers: stream (Attack, client, number of its job). Which clients: stream (Attack, 2³² − 1, 0).
//!
//! # Example
//! ```toml
//! [adversary]
//! share = 0.3
//! attack = "sign-flip"
//! # attack = { label-flip = { pairs = [[0, 2]] } }
//! ```

use crate::data::exchange;
use crate::layout::{Layout, Update};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The source of this file, which opens with the definition of `[adversary]`.
pub const DOCUMENTED: &str = include_str!("adversary.rs");

/// What hostile clients do, for example `"sign-flip"` or `{ scaled = { factor = 10 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum Attack {
    /// They send the opposite of their change.
    SignFlip {
        /// The multiple of it.
        #[serde(default = "one")]
        scale: f64,
    },
    /// They send a multiple of their change.
    Scaled {
        /// The multiple.
        factor: f64,
    },
    /// They train on other labels.
    LabelFlip {
        /// Pairs of a class and the class that it is said to be; all classes in reverse if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pairs: Option<Vec<[u32; 2]>>,
    },
    /// They add normal noise to their change.
    Noise {
        /// Its standard deviation.
        sd: f64,
    },
    /// They send normal noise.
    FreeRider {
        /// Its standard deviation.
        sd: f64,
    },
    /// They send together what is hard to tell from honest updates.
    LittleIsEnough {
        /// How many standard deviations they go below the mean of their changes.
        z: f64,
    },
    /// They take their time.
    Slow {
        /// The multiple of their compute time.
        factor: f64,
    },
}

const fn one() -> f64 {
    1.0
}

impl Attack {
    /// Its name in scenarios.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SignFlip { .. } => "sign-flip",
            Self::Scaled { .. } => "scaled",
            Self::LabelFlip { .. } => "label-flip",
            Self::Noise { .. } => "noise",
            Self::FreeRider { .. } => "free-rider",
            Self::LittleIsEnough { .. } => "little-is-enough",
            Self::Slow { .. } => "slow",
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below the attack's [kind](Attack::kind).
    pub fn check(&self) -> Result<(), Complaint> {
        let refuse =
            |key, found: f64, expected: &str| Err(Complaint::new(key, format!("found {found}; expected {expected}")));
        match *self {
            Self::SignFlip { scale } if !(scale.is_finite() && scale > 0.0) => {
                refuse("scale", scale, "a number above 0")
            }
            Self::Scaled { factor } if !factor.is_finite() => refuse("factor", factor, "a number"),
            Self::Noise { sd } | Self::FreeRider { sd } if !(sd.is_finite() && sd >= 0.0) => {
                refuse("sd", sd, "a number of at least 0")
            }
            Self::LittleIsEnough { z } if !z.is_finite() => refuse("z", z, "a number"),
            Self::Slow { factor } if !(1.0..=1e6).contains(&factor) => {
                refuse("factor", factor, "a number from 1 to 1e6")
            }
            Self::LabelFlip { pairs: Some(ref pairs) } => {
                exchange::check_pairs(pairs).map_err(|complaint| complaint.below("pairs"))
            }
            _ => Ok(()),
        }
    }

    /// Whether what a client sends is not the update that its job makes.
    pub const fn changes_updates(&self) -> bool {
        !matches!(self, Self::LabelFlip { .. } | Self::Slow { .. })
    }

    /// The class that examples of a class are said to be, among so many.
    pub fn label(&self, class: u8, classes: usize) -> u8 {
        match self {
            Self::LabelFlip { pairs: None } => (classes - 1 - usize::from(class)) as u8,
            Self::LabelFlip { pairs: Some(pairs) } => exchange::said(pairs, class),
            _ => class,
        }
    }

    /// The pairs of classes that it is about.
    pub fn pairs(&self) -> Option<&[[u32; 2]]> {
        match self {
            Self::LabelFlip { pairs } => pairs.as_deref(),
            _ => None,
        }
    }
}

/// Hostile clients of a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Adversaries {
    /// What they do.
    pub attack: Attack,
    /// Who they are, ascending.
    pub clients: Arc<[ClientId]>,
}

impl Adversaries {
    /// Whether a client is one of them.
    pub fn has(&self, client: ClientId) -> bool {
        self.clients.binary_search(&client).is_ok()
    }

    /// The multiple of a client's compute time.
    pub fn slowness(&self, client: ClientId) -> f64 {
        match self.attack {
            Attack::Slow { factor } if self.has(client) => factor,
            _ => 1.0,
        }
    }

    /// Puts what the client sends into the place of its update. `start` is the model that it was sent.
    pub fn forge(
        &self,
        (client, number): (ClientId, JobNumber),
        (layout, start): (&Layout, &[f32]),
        streams: &Streams,
        update: &mut Update,
    ) {
        if !self.has(client) {
            return;
        }
        let normal = || {
            let mut stream = streams.stream(Purpose::Attack, client.0, number.0);
            move || normal_quantile(stream.uniform())
        };
        match self.attack {
            Attack::SignFlip { scale } => each(layout, start, update, |change| -scale * change),
            Attack::Scaled { factor } => each(layout, start, update, |change| factor * change),
            Attack::Noise { sd } => {
                let mut normal = normal();
                each(layout, start, update, |change| change + sd * normal());
            }
            Attack::FreeRider { sd } => {
                let mut normal = normal();
                each(layout, start, update, |_| sd * normal());
            }
            Attack::LabelFlip { .. } | Attack::LittleIsEnough { .. } | Attack::Slow { .. } => {}
        }
    }

    /// Puts what the hostile clients of a round send together into the place of their updates, of models without
    /// tables. Each has the client that it is from, and the model that this was sent.
    pub fn forge_together(&self, sent: &[(ClientId, &[f32])], updates: &mut [Update]) {
        let Attack::LittleIsEnough { z } = self.attack else { return };
        let hostile: Vec<usize> = (0..sent.len()).filter(|&index| self.has(sent[index].0)).collect();
        let Some(&first) = hostile.first() else { return };
        let count = hostile.len() as f64;
        for place in 0..updates[first].parameters.len() {
            let change = |&index: &usize| f64::from(updates[index].parameters[place]) - f64::from(sent[index].1[place]);
            let mean = hostile.iter().map(change).sum::<f64>() / count;
            let squares = hostile.iter().map(change).map(|change| (change - mean) * (change - mean));
            let sent_change = mean - z * sqrt(squares.sum::<f64>() / count);
            for &index in &hostile {
                updates[index].parameters[place] = (f64::from(sent[index].1[place]) + sent_change) as f32;
            }
        }
        hostile.iter().for_each(|&index| updates[index].diverged |= !updates[index].is_finite());
    }
}

/// Replaces each change of an update by a function of it, in the order in which its numbers travel.
fn each(layout: &Layout, start: &[f32], update: &mut Update, mut forged: impl FnMut(f64) -> f64) {
    let Update { parameters, rows, .. } = update;
    let mut place = 0;
    let dense = layout.dense_parts().map(|(range, _)| range);
    for range in dense.chain(rows.iter().map(|&row| layout.row(row))) {
        for (before, after) in start[range].iter().zip(&mut parameters[place..]) {
            *after = (f64::from(*before) + forged(f64::from(*after) - f64::from(*before))) as f32;
            place += 1;
        }
    }
    update.diverged |= !update.is_finite();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Scope, Segment};

    const START: [f32; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

    fn forged(attack: Attack, client: u32) -> Vec<f32> {
        let layout = Layout::new(vec![
            Segment::dense("a", 2, Scope::Shared),
            Segment::table("b", 2, 2, Scope::Shared),
            Segment::statistics("c", 1, Scope::Shared),
        ]);
        // The dense parts changed by 1, −2 and 4, row 1 by 0 and ½.
        let mut update = Update { parameters: vec![2.0, 0.0, 11.0, 5.0, 6.5], rows: vec![1], ..Update::default() };
        let hostile = Adversaries { attack, clients: vec![ClientId(1), ClientId(3)].into() };
        hostile.forge((ClientId(client), JobNumber(4)), (&layout, &START), &Streams::new(9), &mut update);
        update.parameters
    }

    #[test]
    fn changes_by_hand() {
        assert_eq!(forged(Attack::SignFlip { scale: 2.0 }, 1), [-1.0, 6.0, -1.0, 5.0, 5.0]);
        assert_eq!(forged(Attack::Scaled { factor: 3.0 }, 3), [4.0, -4.0, 19.0, 5.0, 7.5]);
        assert_eq!(forged(Attack::Scaled { factor: 3.0 }, 2), [2.0, 0.0, 11.0, 5.0, 6.5], "others are honest");
        assert_eq!(forged(Attack::Noise { sd: 0.0 }, 1), [2.0, 0.0, 11.0, 5.0, 6.5]);
        assert_eq!(forged(Attack::FreeRider { sd: 0.0 }, 1), [1.0, 2.0, 7.0, 5.0, 6.0]);
        let (noisy, free) = (forged(Attack::Noise { sd: 0.5 }, 1), forged(Attack::FreeRider { sd: 0.5 }, 1));
        for ((noisy, free), change) in noisy.iter().zip(&free).zip([1.0, -2.0, 4.0, 0.0, 0.5]) {
            assert!((noisy - free - change).abs() < 1e-6, "the same noise: {noisy}, {free}");
        }
        assert!(free.iter().zip([1.0, 2.0, 7.0, 5.0, 6.0]).all(|(free, start)| (free - start).abs() > 1e-4));
    }

    #[test]
    fn a_little_is_enough_by_hand() {
        let hostile =
            Adversaries { attack: Attack::LittleIsEnough { z: 1.5 }, clients: vec![ClientId(0), ClientId(2)].into() };
        let (one, two) = ([1.0_f32, 1.0], [2.0_f32, 2.0]);
        let of = |parameters: [f32; 2]| Update { parameters: parameters.to_vec(), ..Update::default() };
        let mut updates = [of([2.0, 0.0]), of([9.0, 9.0]), of([5.0, 1.0])];
        let sent = [(ClientId(0), &one[..]), (ClientId(1), &one[..]), (ClientId(2), &two[..])];
        hostile.forge_together(&sent, &mut updates);
        // Changes 1 and 3: mean 2, deviation 1. Changes −1 and −1: no deviation.
        assert_eq!(updates[0].parameters, [1.5, 0.0]);
        assert_eq!(updates[1].parameters, [9.0, 9.0]);
        assert_eq!(updates[2].parameters, [2.5, 1.0]);
    }

    #[test]
    fn labels_are_reversed_or_exchanged() {
        let reversed = Attack::LabelFlip { pairs: None };
        assert_eq!([0, 3, 9].map(|class| reversed.label(class, 10)), [9, 6, 0]);
        let pairs = Attack::LabelFlip { pairs: Some(vec![[0, 2], [2, 1]]) };
        assert_eq!([0, 1, 2, 3].map(|class| pairs.label(class, 10)), [2, 1, 1, 3]);
    }

    #[test]
    fn ranges() {
        for (attack, path) in [
            (Attack::SignFlip { scale: 0.0 }, "scale"),
            (Attack::Scaled { factor: f64::NAN }, "factor"),
            (Attack::Noise { sd: -1.0 }, "sd"),
            (Attack::FreeRider { sd: f64::INFINITY }, "sd"),
            (Attack::LittleIsEnough { z: f64::NAN }, "z"),
            (Attack::Slow { factor: 0.5 }, "factor"),
            (Attack::LabelFlip { pairs: Some(Vec::new()) }, "pairs"),
            (Attack::LabelFlip { pairs: Some(vec![[0, 1], [0, 2]]) }, "pairs"),
            (Attack::LabelFlip { pairs: Some(vec![[4, 4]]) }, "pairs"),
        ] {
            assert_eq!(attack.check().unwrap_err().path, path, "{attack:?}");
        }
        assert_eq!(Attack::Slow { factor: 10.0 }.check(), Ok(()));
    }
}
