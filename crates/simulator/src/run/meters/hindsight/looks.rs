//! Utilities that look at a round when it begins: at clients' answers, or at the slope of the validation loss. Clients'
//! private parts change when the round closes.

use super::{HindsightMeter, OpenRound};
use crate::run::error::RunError;
use crate::run::learning::{Learning, Trained};
use fedgenie_core::oracle::hindsight::Judgement;
use fedgenie_core::oracle::{TIE, ratio};
use fedgenie_learning::task::JobKey;

/// How many clients are trained at once whose updates are looked at and forgotten.
const AT_ONCE: usize = 64;

impl HindsightMeter<'_> {
    /// Notes the utility's inputs from a selection that has not been made.
    pub(super) fn look(&self, open: &mut OpenRound<'_>, learning: &Learning<'_>, parallel: bool) {
        let utility = &self.hindsight.utility;
        if let Some(kind) = utility.of_answers() {
            let (places, jobs): (Vec<usize>, Vec<JobKey>) = open.counting(learning).unzip();
            let answers = learning.answers_of(kind, &open.start, &jobs, parallel);
            open.answers = vec![0.0; open.clients.len()];
            for (place, answer) in places.into_iter().zip(answers).filter(|(_, answer)| answer.is_finite()) {
                open.answers[place] = answer;
            }
        }
        if utility.is_of_slope() {
            open.slope = learning.slope(&open.start);
        }
    }

    /// Judges a selection by the notes from when it was made. `None` if the utility is of another kind.
    pub(super) fn judge_looks(
        &mut self,
        open: &OpenRound<'_>,
        (learning, trained): (&Learning<'_>, &[Trained]),
        chosen: &[u32],
        parallel: bool,
    ) -> Result<Option<f64>, RunError> {
        let sizes = self.hindsight.sizes(open.cohort);
        if self.hindsight.utility.of_answers().is_some() {
            self.utilities.clone_from(&open.answers);
            return Ok(Some(self.regret.add(&open.speeds, &self.utilities, sizes, chosen)));
        }
        if !self.hindsight.utility.is_of_slope() {
            return Ok(None);
        }
        let (weights, values) = self.influences(open, (learning, trained), parallel)?;
        let (best_value, best) = ratio::maximise(&weights, &values, sizes.clone());
        let own_value = ratio::value(&weights, &values, chosen);
        let own_value = if (own_value - best_value).abs() <= TIE { best_value } else { own_value };
        self.utilities = values;
        let judgement = Judgement { best, best_value, own_value };
        Ok(Some(self.regret.add_judged(judgement, sizes.contains(&chosen.len()))))
    }

    /// `n_u` and `a_u` of each candidate, 0 of one that does not count. Clients that were not asked train a few at a
    /// time, and their updates are forgotten.
    fn influences(
        &mut self,
        open: &OpenRound<'_>,
        (learning, trained): (&Learning<'_>, &[Trained]),
        parallel: bool,
    ) -> Result<(Vec<f64>, Vec<f64>), RunError> {
        let (mut weights, mut values) = (vec![0.0; open.clients.len()], vec![0.0; open.clients.len()]);
        let mut note = |place: usize, descent: Option<f64>| {
            if let Some(descent) = descent {
                (weights[place], values[place]) = (learning.examples(open.clients[place]) as f64, descent);
            }
        };
        let of_trained = |job: &JobKey| trained.binary_search_by_key(&job.client, |trained| trained.client).ok();
        let (asked, others): (Vec<_>, Vec<_>) = open.counting(learning).partition(|(_, job)| of_trained(job).is_some());
        for (place, job) in asked {
            let update = of_trained(&job).map(|index| learning.update(index));
            note(place, update.and_then(|update| learning.descent(&open.start, &open.slope, update)));
        }
        for few in others.chunks(AT_ONCE) {
            let jobs: Vec<JobKey> = few.iter().map(|(_, job)| *job).collect();
            learning.train_in_hindsight(&open.start, open.round, &jobs, parallel, &mut self.updates)?;
            for ((place, _), update) in few.iter().zip(&self.updates) {
                note(*place, learning.descent(&open.start, &open.slope, update));
            }
        }
        Ok((weights, values))
    }
}
