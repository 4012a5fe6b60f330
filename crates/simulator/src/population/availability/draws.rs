//! A client's uniforms for its availability, in blocks of 32.

use fedgenie_core::rng::{KeyedDraw, Purpose, Streams};

/// Uniforms of one stream, and the number of durations that one stream serves.
const BLOCK: u64 = 32;

/// See the [module](self). Asking for ascending numbers opens each stream once.
pub(super) struct Draws<'a> {
    streams: &'a Streams,
    client: u32,
    open: Option<KeyedDraw>,
    /// The number of the uniform that the open stream gives next.
    next: u64,
}

impl<'a> Draws<'a> {
    pub const fn new(streams: &'a Streams, client: u32) -> Self {
        Self { streams, client, open: None, next: 0 }
    }

    /// The client's uniform number `number`, whatever was asked before.
    pub fn uniform(&mut self, number: u64) -> f64 {
        let is_open = self.open.is_some() && self.next <= number && number / BLOCK == self.block();
        if !is_open {
            let block = u32::try_from(number / BLOCK).expect("a device comes and goes fewer than 2^32 times");
            self.next = number / BLOCK * BLOCK;
            self.open = Some(self.streams.draw(Purpose::Availability, self.client, block));
        }
        let stream = self.open.as_mut().expect("a stream was opened");
        stream.skip(number - self.next);
        self.next = number + 1;
        stream.uniform()
    }

    /// The block of the open stream, from which `next - 1` was taken.
    fn block(&self) -> u64 {
        self.next.saturating_sub(1) / BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_belongs_to_its_number() {
        let streams = Streams::new(3);
        let by_hand = |number: u64| {
            let mut stream = streams.stream(Purpose::Availability, 5, (number / 32) as u32);
            (0..number % 32).for_each(|_| {
                stream.bits();
            });
            stream.uniform()
        };
        let mut draws = Draws::new(&streams, 5);
        for number in [0, 1, 2, 31, 32, 33, 70, 63, 64, 5, 31, 32, 95, 96, 0, 0] {
            assert_eq!(draws.uniform(number), by_hand(number), "{number}");
        }
    }
}
