//! Builds the clients of a scenario, group by group.

use super::{DeviceConfig, DropoutConfig, GroupConfig, JitterConfig, LatencyConfig, Losses, Work};
use crate::population::availability::{Availability, GroupClients, Offsets};
use crate::population::battery::Batteries;
use crate::population::law::{AnyParameter, GroupClient, LinkParameter, PlainParameter};
use crate::population::link::LinkTrace;
use crate::population::phase::ClientLink;
use crate::population::trace::Assignment;
use crate::population::trace::join::{self, Source};
use crate::population::{Forecast, Group, Population, Recording};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::law::{AnyLaw, Constant, Empirical, Law};
use fedgenie_core::limits::DURATION_SECONDS;
use fedgenie_core::record::Phase;
use fedgenie_core::rng::Streams;
use fedgenie_core::time::Span;
use std::sync::Arc;

pub(super) struct Builder<'a> {
    population: Population,
    work: Work<'a>,
    streams: &'a Streams,
}

/// Numbers of a client's parameters outside its laws.
const DATA_SIZE: u32 = 48;
const DATA_QUALITY: u32 = 49;
const SPEED: [u32; 3] = [50, 51, 52];
const LINK_OFFSET: [u32; 3] = [54, 55, 56];

/// The speed of a phase of a device.
enum Rate<'a> {
    Parameter(&'a dyn AnyParameter),
    /// Traces, the trace of each client, and its offset at time 0.
    Traced(Vec<Arc<LinkTrace>>, Assignment, Offsets),
}

impl<'a> Rate<'a> {
    fn of_link(link: &'a LinkParameter, group: &GroupClients<'_>, phase: Phase) -> Result<Self, String> {
        match link {
            LinkParameter::Rate(rate) => Ok(Self::Parameter(&rate.0)),
            LinkParameter::Trace { trace: config } => {
                let traces = config.links().map_err(|message| format!("trace: {message}"))?;
                let assignment = Assignment::new(config.assign, traces.len(), group.streams);
                let offsets = Offsets::new(&config.offset.0, group, LINK_OFFSET[phase.index()]);
                Ok(Self::Traced(traces, assignment, offsets.map_err(|message| format!("trace.offset: {message}"))?))
            }
        }
    }
}

impl<'a> Builder<'a> {
    pub fn new(clients: usize, work: &Work<'a>, streams: &'a Streams, recording: Option<Arc<Recording>>) -> Self {
        let population = Population {
            groups: Vec::new(),
            group_of: Vec::with_capacity(clients),
            laws: Vec::new(),
            law_of: Vec::with_capacity(clients),
            data_sizes: Vec::with_capacity(clients),
            data_qualities: Vec::with_capacity(clients),
            availability: Availability::default(),
            batteries: Batteries::default(),
            links: Vec::new(),
            link_of: Vec::new(),
            notes: recording.as_ref().map_or_else(Vec::new, |recording| recording.notes().to_vec()),
            forecast: None,
            recording,
        };
        Self { population, work: *work, streams }
    }

    pub fn finish(mut self, forecast: Option<Forecast>) -> Population {
        self.population.forecast = forecast;
        let mut seen = std::collections::BTreeSet::new();
        self.population.notes.retain(|note| seen.insert(note.clone()));
        self.population
    }

    pub fn group(&mut self, path: &str, group: &GroupConfig, count: usize) -> Result<(), Complaint> {
        let first = self.population.len();
        let number = u32::try_from(self.population.groups.len()).expect("fewer groups than clients");
        let Losses { hazards, probabilities } = group.losses(path)?;
        self.population.groups.push(Group {
            name: group.name.clone(),
            first: ClientId::from_index(first),
            count,
            hazards,
            probabilities,
            interruption: group.interrupted.unwrap_or_default(),
            has_links: group.device.is_some(),
        });
        let clients = GroupClients { first, count, streams: self.streams };
        let availability = group.availability.clone().unwrap_or_default();
        let Population { availability: all, batteries, notes, .. } = &mut self.population;
        all.push(&availability, &clients, notes)
            .map_err(|complaint| complaint.below(&format!("{path}.availability")))?;
        batteries
            .push(group.battery.as_ref(), &clients, notes)
            .map_err(|complaint| complaint.below(&format!("{path}.battery")))?;
        for in_group in 0..count {
            self.data(path, group, &clients.client(in_group), count)?;
            self.population.group_of.push(number);
        }
        match (&group.latency, &group.device) {
            _ if self.population.recording.is_some() => self.recorded(path, count)?,
            (Some(latency), None) => self.latency(path, latency, first, count)?,
            (None, Some(device)) => self.device(path, device, first, count)?,
            (Some(_), Some(_)) => return Err(Complaint::new(path, "give either latency or device, not both")),
            (None, None) => {
                let message = "how long jobs take is missing; give latency = { download, compute, upload } or device";
                return Err(Complaint::new(path, message));
            }
        }
        group.notes(&mut self.population.notes);
        join::check(&group.sources(), count, &mut self.population.notes).map_err(|complaint| complaint.below(path))
    }

    fn data(
        &mut self,
        path: &str,
        group: &GroupConfig,
        client: &GroupClient<'_>,
        count: usize,
    ) -> Result<(), Complaint> {
        let at = |key: &str, message| Complaint::new(format!("{path}.{key}"), message);
        let number = |parameter: &Option<PlainParameter>, key: &str, default: f64, index| match parameter {
            None => Ok(default),
            Some(parameter) => parameter
                .0
                .check_length(count)
                .and_then(|()| parameter.0.value(client, index))
                .map_err(|message| at(key, message)),
        };
        let size = match self.work.data_sizes {
            Some(sizes) => sizes[client.client as usize],
            None => {
                let size = libm::round(number(&group.data_size, "data_size", 1.0, DATA_SIZE)?);
                if !(1.0..=f64::from(u32::MAX)).contains(&size) {
                    return Err(at("data_size", format!("found {size}; expected a whole number of at least 1")));
                }
                size as u32
            }
        };
        let quality = number(&group.data_quality, "data_quality", 1.0, DATA_QUALITY)?;
        if !(quality > 0.0 && quality <= 1.0) {
            return Err(at("data_quality", format!("found {quality}; expected a number above 0 and at most 1")));
        }
        self.population.data_sizes.push(size);
        self.population.data_qualities.push(quality);
        Ok(())
    }

    fn latency(&mut self, path: &str, latency: &LatencyConfig, first: usize, count: usize) -> Result<(), Complaint> {
        let laws = [&latency.download, &latency.compute, &latency.upload];
        let mut shared = [None; 3];
        for in_group in 0..count {
            let client =
                GroupClient { client: ClientId::from_index(first + in_group).0, in_group, streams: self.streams };
            let mut indices = [0; 3];
            for phase in Phase::ALL {
                let law = laws[phase.index()];
                let at = |message| Complaint::new(format!("{path}.latency.{phase}"), message);
                indices[phase.index()] = match shared[phase.index()] {
                    Some(index) => index,
                    None => {
                        law.check_lengths(count).map_err(at)?;
                        let built = law.build(&client, phase.index() as u32).map_err(at)?;
                        let index = self.intern(built).map_err(at)?;
                        if law.is_fixed() {
                            shared[phase.index()] = Some(index);
                        }
                        index
                    }
                };
            }
            self.population.law_of.push(indices);
        }
        Ok(())
    }

    /// Each phase has the law of the client's own durations, for declarations: jobs are those of the log.
    fn recorded(&mut self, path: &str, count: usize) -> Result<(), Complaint> {
        let at = |message: String| Complaint::new(format!("{path}.recorded"), message);
        let recording = self.population.recording.clone().expect("the population is recorded");
        for client in (0..count).map(ClientId::from_index) {
            let mut indices = [0; 3];
            for phase in Phase::ALL {
                let law = Empirical::new(&recording.seconds(client, phase)).map_err(|error| at(error.to_string()))?;
                indices[phase.index()] = self.intern(AnyLaw::from(law)).map_err(at)?;
            }
            self.population.law_of.push(indices);
        }
        Ok(())
    }

    fn device(&mut self, path: &str, device: &DeviceConfig, first: usize, count: usize) -> Result<(), Complaint> {
        let path = format!("{path}.device");
        let payload_bits = self.work.payload_bytes as f64 * 8.0;
        let group = GroupClients { first, count, streams: self.streams };
        let rates = [
            ("downlink", Rate::of_link(&device.downlink, &group, Phase::Download)),
            ("samples_per_second", Ok(Rate::Parameter(&device.samples_per_second.0))),
            ("uplink", Rate::of_link(&device.uplink, &group, Phase::Upload)),
        ];
        let mut opened = Vec::with_capacity(rates.len());
        for (key, rate) in rates {
            opened.push((key, rate.map_err(|message| Complaint::new(format!("{path}.{key}"), message))?));
        }
        let has_traces = opened.iter().any(|(_, rate)| matches!(rate, Rate::Traced(..)));
        if has_traces {
            self.population.link_of.resize(first, [u32::MAX; 2]);
        }
        let jitter = device.jitter.clone().unwrap_or_default();
        let jitter = [jitter.download, jitter.compute, jitter.upload];
        for in_group in 0..count {
            let client = group.client(in_group);
            let id = ClientId(client.client);
            let examples = self.work.training.examples_of(id, self.population.data_sizes[id.index()] as usize);
            let mut indices = [0; 3];
            let mut links = [u32::MAX; 2];
            for phase in Phase::ALL {
                let (key, rate) = &opened[phase.index()];
                let at = |message| Complaint::new(format!("{path}.{key}"), message);
                let seconds = match rate {
                    Rate::Parameter(rate) => {
                        rate.check_length(count).map_err(at)?;
                        let rate = rate.value(&client, SPEED[phase.index()]).map_err(at)?;
                        if rate.is_nan() || rate <= 0.0 {
                            return Err(at(format!("found {rate}; expected a rate above 0")));
                        }
                        let work = if phase == Phase::Compute { examples } else { payload_bits };
                        work / rate
                    }
                    Rate::Traced(traces, assignment, offsets) => {
                        let trace = traces[assignment.of(in_group)].clone();
                        let seconds = payload_bits / trace.mean();
                        let nominal = Span::from_seconds(seconds).map_err(|error| {
                            at(format!("at the mean rate of a trace, {} bit/s: {error}", trace.mean()))
                        })?;
                        links[usize::from(phase == Phase::Upload)] =
                            u32::try_from(self.population.links.len()).expect("fewer than 2^32 links");
                        let offset = Span(offsets.of(in_group));
                        self.population.links.push(ClientLink { trace, offset, bits: payload_bits, nominal });
                        seconds
                    }
                };
                let law = match &jitter[phase.index()] {
                    Some(factor) if seconds > 0.0 => {
                        let at = |message| Complaint::new(format!("{path}.jitter.{phase}"), message);
                        factor.check_lengths(count).map_err(at)?;
                        factor.build(&client, phase.index() as u32).map_err(at)?.scaled(seconds)
                    }
                    _ => AnyLaw::from(Constant::new(seconds).map_err(|error| at(error.to_string()))?),
                };
                indices[phase.index()] = self.intern(law).map_err(at)?;
            }
            self.population.law_of.push(indices);
            if has_traces {
                self.population.link_of.push(links);
            }
        }
        Ok(())
    }

    /// The law's index in the table. A law equal to one of the last six is not stored again.
    fn intern(&mut self, law: AnyLaw) -> Result<u32, String> {
        let laws = &mut self.population.laws;
        let recent = laws.len().saturating_sub(6);
        let known = laws[recent..].iter().position(|known| *known == law).map(|index| recent + index);
        let index = match known {
            Some(index) => index,
            None => {
                check_durations(&law)?;
                laws.push(law);
                laws.len() - 1
            }
        };
        u32::try_from(index).map_err(|_| "more than 4294967295 laws".to_owned())
    }
}

/// Refuses laws of durations beyond 100 years: bounded ones that reach there, and unbounded ones whose median does.
pub fn check_durations(law: &AnyLaw) -> Result<(), String> {
    const MOST: f64 = DURATION_SECONDS as f64;
    let (least, most) = (law.minimum(), law.maximum());
    let found = match most < f64::INFINITY {
        _ if least > MOST => format!("durations of at least {least} s"),
        true if most > MOST => format!("durations of up to {most} s"),
        false if law.cdf(MOST) < 0.5 => format!("durations of which half are longer than {MOST} s"),
        _ => return Ok(()),
    };
    Err(format!("found {found}; expected durations of at most {MOST} s, 100 years"))
}

impl GroupConfig {
    /// Warnings about the files that parameters were read from.
    fn notes(&self, notes: &mut Vec<String>) {
        [&self.data_size, &self.data_quality].into_iter().flatten().for_each(|number| number.0.notes(notes));
        if let Some(LatencyConfig { download, compute, upload }) = &self.latency {
            [download, compute, upload].into_iter().for_each(|law| law.notes(notes));
        }
        if let Some(DeviceConfig { samples_per_second, downlink, uplink, jitter }) = &self.device {
            samples_per_second.0.notes(notes);
            [downlink, uplink].into_iter().for_each(|link| link.notes(notes));
            if let Some(JitterConfig { download, compute, upload }) = jitter {
                [download, compute, upload].into_iter().flatten().for_each(|law| law.notes(notes));
            }
        }
        self.battery.iter().for_each(|battery| battery.notes(notes));
    }

    /// The files whose records go to the clients.
    fn sources(&self) -> Vec<Source> {
        let mut found = Vec::new();
        for (key, number) in [("data_size", &self.data_size), ("data_quality", &self.data_quality)] {
            number.iter().for_each(|number| number.0.sources(key, &mut found));
        }
        if let Some(LatencyConfig { download, compute, upload }) = &self.latency {
            for (phase, law) in Phase::ALL.into_iter().zip([download, compute, upload]) {
                law.sources(&format!("latency.{phase}"), &mut found);
            }
        }
        if let Some(DeviceConfig { samples_per_second, downlink, uplink, jitter }) = &self.device {
            samples_per_second.0.sources("device.samples_per_second", &mut found);
            downlink.sources("device.downlink", &mut found);
            uplink.sources("device.uplink", &mut found);
            if let Some(JitterConfig { download, compute, upload }) = jitter {
                for (phase, law) in Phase::ALL.into_iter().zip([download, compute, upload]) {
                    law.iter().for_each(|law| law.sources(&format!("device.jitter.{phase}"), &mut found));
                }
            }
        }
        self.availability.iter().for_each(|availability| availability.sources(&mut found));
        self.battery.iter().for_each(|battery| battery.sources(&mut found));
        found
    }

    fn losses(&self, path: &str) -> Result<Losses, Complaint> {
        let losses = self.dropout.as_ref().map_or_else(|| Ok(Losses::default()), DropoutConfig::losses);
        losses.map_err(|complaint| complaint.below(&format!("{path}.dropout")))
    }
}
