//! Phases of a job: their needs, and their ends on a device that is sometimes away.

use super::availability::{Cursors, Stretch};
use super::link::LinkTrace;
use super::{Group, JobDraw, Population};
use fedgenie_core::id::ClientId;
use fedgenie_core::record::Phase;
use fedgenie_core::time::{Span, VirtualTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The fate of a job when its device goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interruption {
    /// The job waits until the device is available again.
    #[default]
    Pause,
    /// The job is lost at the instant at which the device goes away.
    Lose,
    /// The job goes on: availability matters for selection only.
    RunOn,
}

/// The need of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// Time.
    Time(Span),
    /// Bits over a link whose rate changes.
    Bits {
        /// How many.
        bits: f64,
        /// The index of the link in the population.
        link: usize,
    },
}

/// A client's traced link in one direction.
#[derive(Clone, Debug)]
pub(super) struct ClientLink {
    pub trace: Arc<LinkTrace>,
    /// Where in its trace the client is at time 0.
    pub offset: Span,
    /// Bits of the model.
    pub bits: f64,
    /// How long they take at the trace's mean rate.
    pub nominal: Span,
}

impl Population {
    /// The index of a client's traced link, if its phase has one.
    fn link_of(&self, client: ClientId, phase: Phase) -> Option<usize> {
        let way = match phase {
            Phase::Download => 0,
            Phase::Compute => return None,
            Phase::Upload => 1,
        };
        let link = self.link_of.get(client.index())?[way];
        (link != u32::MAX).then_some(link as usize)
    }

    /// Whether a client's phase goes over a link whose rate changes.
    pub fn is_traced(&self, client: ClientId, phase: Phase) -> bool {
        self.link_of(client, phase).is_some()
    }

    /// Whether any client's transfers take as long as their bytes need.
    pub fn has_links(&self) -> bool {
        self.groups.iter().any(|group| group.count > 0 && group.has_links)
    }

    /// Whether any client has a link whose rate changes.
    pub const fn has_traced_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// The fate of the client's job when its device goes away.
    pub fn interruption(&self, client: ClientId) -> Interruption {
        self.groups[self.group_of(client)].interruption
    }

    /// Whether any client's device may go away in a job that does not run on.
    pub fn has_interruptions(&self) -> bool {
        let comes_and_goes = |group: &Group| !self.availability.is_always_there(group.first);
        let in_use = self.groups.iter().filter(|group| group.count > 0);
        in_use.filter(|group| comes_and_goes(group)).any(|group| group.interruption != Interruption::RunOn)
    }

    /// The need of the span `drawn` of a phase, or of a part of it.
    fn need_of(&self, client: ClientId, phase: Phase, drawn: Span) -> Need {
        let Some(link) = self.link_of(client, phase) else { return Need::Time(drawn) };
        let ClientLink { bits, nominal, .. } = self.links[link];
        // A jitter factor of the duration is one of the bits; without it, rounding to ns plays no part.
        let bits = match drawn == nominal {
            true => bits,
            false => bits * (drawn.0 as f64 / nominal.0.max(1) as f64),
        };
        Need::Bits { bits, link }
    }

    /// The need of a drawn job's phase. Over a traced link, the drawn span is the phase's duration at the link's mean
    /// rate; its need is in bits.
    pub fn need(&self, draw: &JobDraw, client: ClientId, phase: Phase) -> Need {
        self.need_of(client, phase, draw.phases[phase.index()])
    }

    /// The need up to the client's loss in a phase, if the draw loses it there. Over a traced link, a hazard is one per
    /// time at the link's mean rate: it strikes when that share of the bits has moved.
    pub fn need_until_loss(&self, draw: &JobDraw, client: ClientId, phase: Phase) -> Option<Need> {
        let (_, after) = draw.loss.filter(|(lost_in, _)| *lost_in == phase)?;
        Some(self.need_of(client, phase, after))
    }

    /// When a need that begins at `start` is met; `None` if never. Under [`Interruption::Pause`] nothing passes while
    /// the device is away; otherwise availability does not count, and the caller checks with [`interrupted_at`] whether
    /// the job was lost before.
    pub fn reach(
        &self,
        cursors: &Cursors<'_>,
        client: ClientId,
        need: Need,
        start: VirtualTime,
        interruption: Interruption,
    ) -> Option<VirtualTime> {
        let pauses = interruption == Interruption::Pause && !self.availability.is_always();
        match need {
            Need::Time(span) if pauses => cursors.finish(client, start, span),
            Need::Time(span) => start.0.checked_add(span.0).map(VirtualTime),
            Need::Bits { bits, link } if pauses => {
                let ClientLink { trace, offset, .. } = &self.links[link];
                trace.transfer_while(*offset, start, bits, |time| cursors.stretch(client, time))
            }
            Need::Bits { bits, link } => {
                let ClientLink { trace, offset, .. } = &self.links[link];
                let end = trace.transfer(VirtualTime(start.0.checked_add(offset.0)?), bits)?;
                Some(VirtualTime(end.0 - offset.0))
            }
        }
    }

    /// Bytes of a payload that a phase which began at `start` has moved by `end`, before it is complete: the share of
    /// the time at work, or of the bits over a traced link, rounded down.
    #[expect(clippy::too_many_arguments, reason = "a phase is named by all of these")]
    pub fn moved(
        &self,
        cursors: &Cursors<'_>,
        client: ClientId,
        phase: Phase,
        draw: &JobDraw,
        start: VirtualTime,
        end: VirtualTime,
        payload_bytes: u64,
    ) -> u64 {
        let pauses = self.interruption(client) == Interruption::Pause && !self.availability.is_always();
        match self.need(draw, client, phase) {
            Need::Time(Span::ZERO) => payload_bytes,
            Need::Time(full) => {
                let away = if pauses { cursors.time_away(client, start, end) } else { Span::ZERO };
                let active = (end - start).0 - away.0;
                (u128::from(payload_bytes) * u128::from(active) / u128::from(full.0)) as u64
            }
            Need::Bits { bits, .. } if bits <= 0.0 => payload_bytes,
            Need::Bits { bits, link } => {
                let ClientLink { trace, offset, .. } = &self.links[link];
                let moved = |from: VirtualTime, to: VirtualTime| trace.moved(from + *offset, to + *offset);
                let mut sum = 0.0;
                let mut from = start;
                while from < end {
                    let until = if pauses { cursors.stretch(client, from).until.min(end) } else { end };
                    if !pauses || cursors.is_available(client, from) {
                        sum += moved(from, until);
                    }
                    from = until;
                }
                ((payload_bytes as f64 * (sum / bits)) as u64).min(payload_bytes)
            }
        }
    }

    /// When a phase that begins at `start` ends, if its client is not lost; see [`Population::reach`].
    pub fn finish(
        &self,
        cursors: &Cursors<'_>,
        client: ClientId,
        phase: Phase,
        draw: &JobDraw,
        start: VirtualTime,
        interruption: Interruption,
    ) -> Option<VirtualTime> {
        self.reach(cursors, client, self.need(draw, client, phase), start, interruption)
    }
}

/// The first instant at which a device goes away between `start` and `end` (or never): a job is lost there under
/// [`Interruption::Lose`]. A phase that ends exactly when the device goes away is not lost; one that begins while it is
/// away is lost at once.
pub fn interrupted_at(
    cursors: &Cursors<'_>,
    client: ClientId,
    start: VirtualTime,
    end: Option<VirtualTime>,
) -> Option<VirtualTime> {
    if end == Some(start) {
        return None;
    }
    let Stretch { available, until } = cursors.stretch(client, start);
    let leaves = if available { until } else { start };
    (leaves != VirtualTime::MAX && end.is_none_or(|end| leaves < end)).then_some(leaves)
}

#[cfg(test)]
mod tests;
