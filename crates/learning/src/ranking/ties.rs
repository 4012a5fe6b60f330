//! Expected metrics from ties: what is known of a ranking when only relevant items are counted.

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

/// Expected share of the pairs of a relevant and an irrelevant candidate in which the relevant one is higher.
pub fn auc(ties: &[Tie], candidates: usize, relevant: usize) -> f64 {
    let irrelevant = candidates - relevant;
    // Twice the number of such pairs: whole, so that no order of summation matters. At most 2·2^32·2^32 in u128.
    let mut doubled = 0_u128;
    let mut relevant_above = 0;
    for tie in ties {
        let irrelevant_above = tie.above - relevant_above;
        let beside = tie.equal - tie.relevant;
        let below = irrelevant - irrelevant_above - beside;
        doubled += tie.relevant as u128 * (2 * below + beside) as u128;
        relevant_above += tie.relevant;
    }
    doubled as f64 / (2.0 * relevant as f64 * irrelevant as f64)
}

/// Expected hit rate, NDCG, recall, precision and F1 at a cutoff. `ties` are by falling score; `discounts[n]` is the
/// sum of the discounts of the first `n` places, as far as cutoff or candidates reach.
pub fn at_cutoff(ties: &[Tie], cutoff: usize, relevant: usize, discounts: &[f64]) -> [f64; 5] {
    let (mut hits, mut gain, mut none) = (0.0, 0.0, 1.0);
    for tie in ties.iter().take_while(|tie| tie.above < cutoff) {
        let places = tie.equal.min(cutoff - tie.above);
        let share = tie.relevant as f64 / tie.equal as f64;
        hits += if places == tie.equal { tie.relevant as f64 } else { places as f64 * share };
        gain += share * (discounts[tie.above + places] - discounts[tie.above]);
        none = if places == tie.equal { 0.0 } else { none * without(tie.equal, tie.relevant, places) };
    }
    let ideal = discounts[cutoff.min(relevant)];
    let (k, wanted) = (cutoff as f64, relevant as f64);
    [1.0 - none, gain / ideal, hits / wanted, hits / k, 2.0 * hits / (k + wanted)]
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
