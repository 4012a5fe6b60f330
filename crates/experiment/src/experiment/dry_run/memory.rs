//! Memory of the process, measured and estimated.

use super::trial::Tried;
use fedgenie_core::limits;
use serde::Serialize;

/// Bytes of memory. Measured ones are `None` where the system does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryForecast {
    /// At the peak: what was measured, with what the trial left out; or else the estimates together.
    pub peak_bytes: u64,
    /// Measured at the end of the trial.
    pub trial_bytes: Option<u64>,
    /// Updates of clients that the trial left out, of all runs that are under way at once.
    pub left_out_bytes: u64,
    /// Worlds with their data sets: measured when they were checked.
    pub data_bytes: Option<u64>,
    /// Estimate of the clients of worlds that are there at once.
    pub population_bytes: u64,
    /// Estimate of models and updates of the runs that are under way at once.
    pub models_bytes: u64,
    /// Estimate of the threads.
    pub threads_bytes: u64,
    /// Estimate of the results of all runs, which stay until the summary is made.
    pub results_bytes: u64,
}

/// Memory of this process now.
pub(super) fn resident() -> Option<u64> {
    limits::resident().map(|[now, _]| now)
}

/// The largest of the worlds.
pub(super) struct Worlds {
    data: Option<u64>,
    at_once: u64,
    left_out: u64,
    population: u64,
    models: u64,
}

impl Worlds {
    /// Of an experiment whose memory was measured before and after its worlds were checked; so many runs are under way
    /// at once.
    pub fn new([before, checked]: [Option<u64>; 2], at_once: usize) -> Self {
        let data = before.zip(checked).map(|(before, checked)| checked.saturating_sub(before));
        Self { data, at_once: at_once as u64, left_out: 0, population: 0, models: 0 }
    }

    /// Looks at runs that were tried in a world.
    pub fn see(&mut self, tried: &[Tried]) {
        let most = |of: &dyn Fn(&Tried) -> u64| tried.iter().map(of).max().unwrap_or(0);
        let model = most(&|tried| tried.facts.model_bytes);
        let copies = most(&|tried| tried.facts.models * limits::MODEL_COPIES + tried.seen.most_jobs as u64);
        // An update of rows is smaller than the model, and one with private numbers larger than what travels.
        let update = most(&|tried| tried.seen.update_bytes).max(model);
        self.left_out = self.left_out.max(update * most(&|tried| tried.seen.left_out as u64));
        self.population = self.population.max(limits::CLIENT_BYTES * most(&|tried| tried.facts.clients));
        self.models = self.models.max(model * copies);
    }

    /// The forecast on so many threads, with results of so many bytes.
    pub fn forecast(&self, threads: usize, results_bytes: u64) -> MemoryForecast {
        let Self { data, at_once, left_out, population, models } = *self;
        let trial = limits::resident().map(|[_, peak]| peak);
        let [left_out, population, models] = [left_out, population, models].map(|bytes| bytes * at_once);
        let threads_bytes = limits::THREAD_BYTES * threads as u64;
        let estimated = data.unwrap_or(0) + population + models + threads_bytes + results_bytes;
        MemoryForecast {
            peak_bytes: trial.map_or(estimated, |trial| trial + left_out + results_bytes),
            trial_bytes: trial,
            left_out_bytes: left_out,
            data_bytes: data,
            population_bytes: population,
            models_bytes: models,
            threads_bytes,
            results_bytes,
        }
    }
}
