//! The clients: groups, latencies, dropouts, availability, amounts of data.
//!
//! Stored as a structure of arrays. Laws that clients share are stored once; an idle client costs 28 bytes plus its own
//! laws, if its parameters were drawn, and the index of the trace that it follows; in a run, 16 bytes for its battery.
//!
//! | module | content |
//! |---|---|
//! | [`count`] | whole numbers per client: epochs and steps |
//! | [`law`] | laws and numbers per client, as a scenario writes them |
//! | [`availability`] | when devices are available |
//! | [`battery`] | energy that phones have, draw and get |
//! | [`link`] | links whose rate changes over time |
//! | [`forecast`] | forecasts of availability for policies |
//! | [`log`] | logs of jobs |
//! | [`recorded`] | a population that replays a log |
//! | [`phase`] | phases of a job: their needs and their ends |
//! | [`trace`] | importers of measurements on real devices |

pub mod availability;
pub mod battery;
mod config;
pub mod count;
pub mod forecast;
pub mod law;
pub mod link;
pub mod log;
pub mod phase;
pub mod recorded;
mod tails;
pub mod trace;

pub use availability::{Availability, AvailabilityConfig, Cursors, Stretch};
pub use battery::{Batteries, BatteryConfig, Draw, Energies, Energy, EnergyUse, Levels, Mode, Seen};
pub(crate) use config::check_durations;
pub use config::{
    DeviceConfig, DropoutConfig, GroupConfig, JitterConfig, LatencyConfig, PhaseDropout, PopulationConfig, Work,
};
pub use forecast::{Forecast, ForecastConfig, ForecastError, Forecaster};
pub use phase::{Interruption, Need};
pub use recorded::{RecordedConfig, Recording};

use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::law::{AnyLaw, JobLatency, Law, LossyLatency};
use fedgenie_core::limits::DURATION_SECONDS;
use fedgenie_core::math::float::ln;
use fedgenie_core::record::{Phase, PhaseSpans};
use fedgenie_core::rng::{KeyedDraw, Purpose, Streams};
use fedgenie_core::time::{Span, SpanError};
use phase::ClientLink;
use std::sync::Arc;

/// Sources of the files that document clients and the clusters of their servers, by their names in the JSON schema.
pub const DOCUMENTED: [(&str, &str); 9] = [
    ("ClustersConfig", include_str!("clusters.rs")),
    ("PlainParameter", include_str!("population/law/parameter.rs")),
    ("TableConfig", include_str!("population/law/table.rs")),
    ("LinkParameter", include_str!("population/law/link.rs")),
    ("TraceLinkConfig", include_str!("population/trace/link.rs")),
    ("DropoutConfig", include_str!("population/config/dropout.rs")),
    ("ForecastConfig", include_str!("population/forecast.rs")),
    ("RecordedConfig", include_str!("population/recorded.rs")),
    ("BatteryConfig", battery::DOCUMENTED),
];

/// A group of the scenario: clients with consecutive ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name given, if any.
    pub name: Option<String>,
    /// The first client.
    pub first: ClientId,
    /// How many clients.
    pub count: usize,
    /// Dropout hazard per phase, in events per second.
    pub hazards: [f64; 3],
    /// Probability that a client is lost with its job, in all of it and in each phase.
    pub probabilities: [f64; 4],
    /// Fate of a job when its device goes away.
    pub interruption: Interruption,
    /// Whether transfers take as long as their bytes need over a link.
    pub has_links: bool,
}

/// All clients of a world.
#[derive(Clone, Debug)]
pub struct Population {
    groups: Vec<Group>,
    group_of: Vec<u32>,
    laws: Vec<AnyLaw>,
    /// Index into `laws` per client and phase.
    law_of: Vec<[u32; 3]>,
    data_sizes: Vec<u32>,
    data_qualities: Vec<f64>,
    availability: Availability,
    batteries: Batteries,
    links: Vec<ClientLink>,
    /// Index into `links` per client and way, down and up, `u32::MAX` for none; empty if no client has a link.
    link_of: Vec<[u32; 2]>,
    notes: Vec<String>,
    /// Forecasts of availability, if policies may ask for them.
    forecast: Option<Forecast>,
    /// The log that clients replay, if they do.
    recording: Option<Arc<Recording>>,
}

/// The random part of one job, drawn from the streams alone, whether or not the job is ever dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobDraw {
    /// Durations of the three phases; over a traced link, that at the link's mean rate (see [`Population::need`]).
    pub phases: PhaseSpans,
    /// The phase in which the client is lost and how far into that phase, if it is.
    pub loss: Option<(Phase, Span)>,
}

impl JobDraw {
    /// Download, compute and upload together, as if the client were not lost.
    pub fn total(&self) -> Span {
        self.phases.into_iter().sum()
    }

    /// How long a round waits for this job if it waits at most `cut`: the latency, or all of `cut` if the job is lost
    /// or slower.
    ///
    /// # Panics
    /// If the client is lost and there is no cut; scenarios with dropouts have one.
    pub fn effective(&self, cut: Option<Span>) -> Span {
        match (self.loss, cut) {
            (None, None) => self.total(),
            (None, Some(cut)) => self.total().min(cut),
            (Some(_), Some(cut)) => cut,
            (Some(_), None) => panic!("a scenario with dropouts has a timeout or a deadline"),
        }
    }
}

/// A law gave an impossible duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{client}, {job}, {phase}: {source}")]
pub struct LatencyError {
    /// The client.
    pub client: ClientId,
    /// Which of its jobs.
    pub job: JobNumber,
    /// The phase.
    pub phase: Phase,
    /// The fault of the duration.
    pub source: SpanError,
}

impl Population {
    /// Number of clients, `K`.
    pub const fn len(&self) -> usize {
        self.law_of.len()
    }

    /// Whether there are no clients; never true of a population built from a scenario.
    pub const fn is_empty(&self) -> bool {
        self.law_of.is_empty()
    }

    /// The 80th percentile, by nearest rank, over clients of the sum of their phases' mean durations, in seconds.
    pub fn usual_latency(&self) -> f64 {
        let mean = |client| Phase::ALL.into_iter().map(|phase| self.law(client, phase).mean()).sum();
        let mut means: Vec<f64> = (0..self.len()).map(ClientId::from_index).map(mean).collect();
        means.sort_unstable_by(f64::total_cmp);
        means[(4 * means.len()).div_ceil(5) - 1]
    }

    /// The groups, in the order of client ids.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The index of a client's group in [`Population::groups`].
    pub fn group_of(&self, client: ClientId) -> usize {
        self.group_of[client.index()] as usize
    }

    /// Examples per client.
    pub fn data_sizes(&self) -> &[u32] {
        &self.data_sizes
    }

    /// `d_k/Σd` per client, with `d_k` = quality × size; exactly `1/K` when all are alike.
    pub fn shares(&self) -> Vec<f64> {
        let significance: Vec<f64> = self
            .data_sizes
            .iter()
            .zip(&self.data_qualities)
            .map(|(&size, quality)| f64::from(size) * quality)
            .collect();
        if significance.iter().all(|&d| d == significance[0]) {
            return vec![1.0 / self.len() as f64; self.len()];
        }
        let total: f64 = significance.iter().sum();
        significance.into_iter().map(|d| d / total).collect()
    }

    /// When devices are available.
    pub const fn availability(&self) -> &Availability {
        &self.availability
    }

    /// The clients' batteries.
    pub const fn batteries(&self) -> &Batteries {
        &self.batteries
    }

    /// The forecasts of availability, if policies may ask for them.
    pub const fn forecast(&self) -> Option<Forecast> {
        self.forecast
    }

    /// The log that clients replay, if they do.
    pub const fn recording(&self) -> Option<&Arc<Recording>> {
        self.recording.as_ref()
    }

    /// Warnings about the files that the population was built from.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether any client may be lost.
    pub fn has_dropouts(&self) -> bool {
        self.groups.iter().any(Group::has_dropouts) || self.recording.as_ref().is_some_and(|log| log.has_losses())
    }

    /// Whether any client may be lost with its job, by dropping out, by going away, or by an empty battery.
    pub fn can_lose(&self) -> bool {
        let goes_away = |group: &Group| {
            group.count > 0
                && group.interruption == Interruption::Lose
                && !self.availability.is_always_there(group.first)
        };
        self.has_dropouts() || !self.batteries.is_empty() || self.groups.iter().any(goes_away)
    }

    /// The law of a client's phase, in seconds; over a traced link, that of the phase at the link's mean rate.
    pub fn law(&self, client: ClientId, phase: Phase) -> &AnyLaw {
        &self.laws[self.law_of[client.index()][phase.index()] as usize]
    }

    /// The laws of a client's job when the round waits at most `cut`.
    pub fn job_latency(&self, client: ClientId, cut: Option<Span>) -> LossyLatency<'_> {
        let Group { hazards, probabilities, .. } = self.groups[self.group_of(client)];
        let phases = Phase::ALL.map(|phase| self.law(client, phase));
        let job = JobLatency { phases, hazards, cut: cut.map(Span::seconds) };
        LossyLatency { job, survival: probabilities.into_iter().map(|lost| 1.0 - lost).product() }
    }

    /// Latency laws and dropouts: two clients with equal keys have the same.
    pub fn latency_key(&self, client: ClientId) -> ([u32; 3], [u64; 3], [u64; 4]) {
        let Group { hazards, probabilities, .. } = &self.groups[self.group_of(client)];
        (self.law_of[client.index()], hazards.map(f64::to_bits), probabilities.map(f64::to_bits))
    }

    /// Draws a client's job. `purpose` is [`Purpose::Latency`] for jobs and [`Purpose::Probe`] for probes. `shares` are
    /// the job's transfers down and up, as shares of the whole model: transfers of devices with links take that share
    /// of the time, while laws given directly are the durations themselves.
    ///
    /// # Errors
    /// If a law gives a duration beyond virtual time.
    pub fn draw(
        &self,
        streams: &Streams,
        purpose: Purpose,
        client: ClientId,
        job: JobNumber,
        shares: [f64; 2],
    ) -> Result<JobDraw, LatencyError> {
        self.draw_work(streams, purpose, (client, job), shares, Load::USUAL)
    }

    /// As [`Population::draw`], of a job with another load than the usual one. A recorded job takes the time that was
    /// recorded, in proportion to its epochs.
    ///
    /// # Errors
    /// If a law gives a duration beyond virtual time.
    pub fn draw_work(
        &self,
        streams: &Streams,
        purpose: Purpose,
        (client, job): (ClientId, JobNumber),
        shares: [f64; 2],
        load: Load,
    ) -> Result<JobDraw, LatencyError> {
        if let Some(recording) = &self.recording {
            return recording.draw(streams, purpose, (client, job), load.work);
        }
        let mut rng = streams.draw(purpose, client.0, job.0);
        let mut phases = [Span::ZERO; 3];
        let group = &self.groups[self.group_of(client)];
        let shares = if group.has_links { [shares[0], 1.0, shares[1]] } else { [1.0; 3] };
        for phase in Phase::ALL {
            let seconds = self.law(client, phase).quantile(rng.uniform()) * shares[phase.index()];
            phases[phase.index()] =
                Span::from_seconds(seconds).map_err(|source| LatencyError { client, job, phase, source })?;
        }
        let compute = &mut phases[Phase::Compute.index()];
        *compute = load.of(*compute).map_err(|source| LatencyError { client, job, phase: Phase::Compute, source })?;
        let loss = if purpose == Purpose::Latency && group.has_dropouts() {
            group.loss(&mut streams.draw(Purpose::Dropout, client.0, job.0), &phases)
        } else {
            None
        };
        Ok(JobDraw { phases, loss })
    }
}

/// What a job's client computes, compared with a usual job.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The share of a usual job's work, as a fraction: the compute phase takes that share of the time drawn, rounded to
    /// the nearest nanosecond, halves up.
    pub work: [u32; 2],
    /// Work beside it, as a share of a usual job's, rounded down to a nanosecond.
    pub beside: f64,
    /// Seconds after it.
    pub after: f64,
    /// The multiple of all that time that the client takes.
    pub slowness: f64,
}

impl Load {
    /// That of a usual job.
    pub const USUAL: Self = Self { work: [1, 1], beside: 0.0, after: 0.0, slowness: 1.0 };

    /// How long the compute phase takes, from that of a usual job.
    fn of(self, usual: Span) -> Result<Span, SpanError> {
        let Self { work, beside, after, slowness } = self;
        let span = scaled(usual, work)?;
        let more = Span::from_seconds(after)?.0.saturating_add((usual.0 as f64 * beside) as u64);
        let span = Span(span.0.saturating_add(more));
        if slowness == 1.0 { Ok(span) } else { Span::from_seconds(span.seconds() * slowness) }
    }
}

impl Group {
    fn has_dropouts(&self) -> bool {
        self.hazards.iter().chain(&self.probabilities).any(|&lost| lost > 0.0)
    }

    /// The phase in which a job with these durations is lost, and how far into it; the first of all losses.
    fn loss(&self, rng: &mut KeyedDraw, phases: &PhaseSpans) -> Option<(Phase, Span)> {
        let times = self.hazards.map(|hazard| -ln(rng.uniform()) / hazard);
        let struck = Phase::ALL.into_iter().find_map(|phase| {
            // A loss later than the phase lasts, at infinity for a hazard of zero, does not happen.
            let span = Span::from_seconds(times[phase.index()]).ok()?;
            (span < phases[phase.index()]).then_some((phase, span))
        });
        if self.probabilities == [0.0; 4] {
            return struck;
        }
        let total: Span = phases.iter().copied().sum();
        let spans = [total, phases[0], phases[1], phases[2]];
        let mut first = struck;
        for (number, (&probability, &span)) in self.probabilities.iter().zip(&spans).enumerate() {
            let (is_lost, place) = (rng.uniform() < probability, rng.uniform());
            if !is_lost {
                continue;
            }
            let within = Span(((place * span.0 as f64) as u64).min(span.0.saturating_sub(1)));
            let at = if number == 0 { place_of(within, phases) } else { (Phase::ALL[number - 1], within) };
            let key = |(phase, span): (Phase, Span)| (phase.index(), span);
            first = Some(first.map_or(at, |known| if key(at) < key(known) { at } else { known }));
        }
        first
    }
}

/// A share of a span, to the nearest nanosecond.
fn scaled(span: Span, [work, whole]: [u32; 2]) -> Result<Span, SpanError> {
    if work == whole {
        return Ok(span);
    }
    let (work, whole) = (u128::from(work), u128::from(whole));
    let nanoseconds = (2 * u128::from(span.0) * work + whole) / (2 * whole);
    let most = u128::from(DURATION_SECONDS) * 1_000_000_000;
    if nanoseconds <= most { Ok(Span(nanoseconds as u64)) } else { Err(SpanError::TooLong) }
}

/// The phase that a part of a job ends in, and how far into it.
fn place_of(mut within: Span, phases: &PhaseSpans) -> (Phase, Span) {
    for phase in Phase::ALL {
        let span = phases[phase.index()];
        if within < span {
            return (phase, within);
        }
        within.0 -= span.0;
    }
    // A job that takes no time is lost as it begins.
    (Phase::Download, Span::ZERO)
}

#[cfg(test)]
mod loss_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_spans_round_halves_up() {
        assert_eq!(scaled(Span(5), [1, 2]), Ok(Span(3)));
        assert_eq!(scaled(Span(4), [1, 3]), Ok(Span(1)));
        assert_eq!(scaled(Span(5), [1, 3]), Ok(Span(2)));
        assert_eq!(scaled(Span(7), [3, 1]), Ok(Span(21)));
        let most = Span(DURATION_SECONDS * 1_000_000_000);
        assert_eq!(scaled(most, [2, 2]), Ok(most));
        assert_eq!(scaled(most, [u32::MAX, 1]), Err(SpanError::TooLong));
    }
}
