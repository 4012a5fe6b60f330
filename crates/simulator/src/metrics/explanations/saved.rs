//! Explanations as bytes, and back.

use super::{Asker, Decision, Explained, ExplanationFold, Explanations, KeptRound, Spread};
use fedgenie_core::state::{State, Stateful};
use std::collections::VecDeque;

impl Stateful for Spread {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { known, unknown, mean, min, max } = self;
        state.field(known);
        state.field(unknown);
        state.field(mean);
        state.field(min);
        state.field(max);
    }
}

impl Stateful for Explained {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { name, is_of_cloud, windows } = self;
        state.field(name);
        state.field(is_of_cloud);
        state.field(windows);
    }
}

impl Stateful for Decision {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { turn, server, candidates, chosen, clients, is_chosen, numbers, after, scalars } = self;
        state.field(turn);
        state.field(server);
        state.field(candidates);
        state.field(chosen);
        state.field(clients);
        state.field(is_chosen);
        state.field(numbers);
        state.field(after);
        state.field(scalars);
    }
}

impl Stateful for KeptRound {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { round, selections, decisions } = self;
        state.field(round);
        state.field(selections);
        state.field(decisions);
    }
}

impl Stateful for Explanations {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { rounds_per_window, rounds, numbers, is_cut, kept } = self;
        state.field(rounds_per_window);
        state.field(rounds);
        state.field(numbers);
        state.field(is_cut);
        state.field(kept);
        state.require(*rounds_per_window > 0);
    }
}

/// By kind and number; until it is loaded, the one server.
impl Stateful for Asker {
    fn exchange(&mut self, state: &mut State<'_>) {
        let (mut kind, mut edge) = match *self {
            Self::Server => (0, 0),
            Self::Edge(edge) => (1, edge),
            Self::Cloud => (2, 0),
        };
        state.choice(&mut kind, &[0_u8, 1, 2]);
        state.field(&mut edge);
        *self = match kind {
            0 => Self::Server,
            1 => Self::Edge(edge),
            _ => Self::Cloud,
        };
    }
}

impl Stateful for ExplanationFold {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { found, chosen, stride, last } = self;
        state.field(found);
        let waiting = std::mem::take(chosen).into_iter();
        let mut waiting: Vec<(Asker, Vec<Vec<u32>>)> = waiting.map(|(asker, of)| (asker, of.into())).collect();
        state.field(&mut waiting);
        *chosen = waiting.into_iter().map(|(asker, of)| (asker, VecDeque::from(of))).collect();
        state.field(stride);
        state.field(last);
        state.require(*stride > 0);
    }
}
