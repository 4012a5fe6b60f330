//! A user's ranking, as far as metrics need it: the places of relevant items, with ties.
//!
//! # Definition
//! Candidates are ordered by falling score. Where scores are equal, a metric is its expectation over uniformly random
//! orders of these: of `e` candidates with the same score, `r` of them relevant, of which `j` places are among the
//! first `k`, `j·r/e` are expected hits, and none is a hit with probability `C(e − r, j) / C(e, j)`.

/// Candidates of one score, some of which are relevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Candidates with a greater score.
    pub above: usize,
    /// Candidates with this score, relevant ones included.
    pub equal: usize,
    /// Relevant candidates with this score; at least 1.
    pub relevant: usize,
}

/// A user's candidates, by falling score, as far as relevant ones go.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// Candidates with the score of a relevant one, by falling score.
    pub ties: &'a [Tie],
    /// Number of candidates.
    pub candidates: usize,
    /// Number of relevant ones among them.
    pub relevant: usize,
    /// `discounts[n]` is the sum of `1/log₂(1 + place)` over the first `n` places, as far as a cutoff or candidates
    /// reach.
    pub discounts: &'a [f64],
}

/// The first `k` of a user's candidates, in expectation over ties.
#[derive(Clone, Copy, Debug)]
pub struct AtCutoff<'a> {
    /// All candidates.
    pub ranked: Ranked<'a>,
    /// `k`.
    pub cutoff: usize,
    /// Expected number of relevant ones among the first `k`.
    pub hits: f64,
    /// Probability that none of the first `k` is relevant.
    pub none: f64,
    /// Expected sum of the discounts of relevant ones among the first `k`.
    pub gain: f64,
}

impl<'a> Ranked<'a> {
    /// The first `k`.
    pub fn at(self, cutoff: usize) -> AtCutoff<'a> {
        let discounts = self.discounts;
        let (mut hits, mut gain, mut none) = (0.0, 0.0, 1.0);
        for tie in self.ties.iter().take_while(|tie| tie.above < cutoff) {
            let places = tie.equal.min(cutoff - tie.above);
            let share = tie.relevant as f64 / tie.equal as f64;
            hits += if places == tie.equal { tie.relevant as f64 } else { places as f64 * share };
            gain += share * (discounts[tie.above + places] - discounts[tie.above]);
            none = if places == tie.equal { 0.0 } else { none * without(tie.equal, tie.relevant, places) };
        }
        AtCutoff { ranked: self, cutoff, hits, none, gain }
    }
}

/// Probability that none of `marked` among `all` is among `drawn`: `C(all − marked, drawn) / C(all, drawn)`.
fn without(all: usize, marked: usize, drawn: usize) -> f64 {
    if marked + drawn > all {
        return 0.0;
    }
    // The same product from either side: of the drawn ones none is marked, of the marked ones none is drawn.
    let (factors, other) = if drawn <= marked { (drawn, marked) } else { (marked, drawn) };
    let mut probability = 1.0;
    for factor in 0..factors {
        probability *= (all - other - factor) as f64 / (all - factor) as f64;
    }
    probability
}
