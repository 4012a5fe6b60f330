//! stub
use crate::id::ClientId;
use crate::time::{Span, VirtualTime};
#[derive(Clone, Copy, Debug)]
pub struct Stretch { pub available: bool, pub until: VirtualTime }
#[derive(Debug)]
pub struct Cursors<'a>(pub usize, pub std::marker::PhantomData<&'a ()>);
impl Cursors<'_> {
    pub fn clients(&self) -> usize { self.0 }
    pub fn is_always(&self) -> bool { true }
    pub fn is_available(&self, _: ClientId, _: VirtualTime) -> bool { true }
    pub fn next_available(&self, _: ClientId, t: VirtualTime) -> Option<VirtualTime> { Some(t) }
    pub fn stretch(&self, _: ClientId, _: VirtualTime) -> Stretch { Stretch { available: true, until: VirtualTime(u64::MAX) } }
    pub fn finish(&self, _: ClientId, t: VirtualTime, work: Span) -> Option<VirtualTime> { Some(t + work) }
    pub fn time_away(&self, _: ClientId, _: VirtualTime, _: VirtualTime) -> Span { Span::ZERO }
}
