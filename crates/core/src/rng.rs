//! Random numbers: a draw belongs to (seed, purpose, entity, index) and to nothing else.
//!
//! There is no generator state to carry along, to checkpoint, or to disturb: the latency of client 17 in round 42 has
//! the same numbers for every caller, in every order, on every thread, and after any number of other draws. Two
//! policies in one scenario therefore meet the same world (common random numbers), and the latency of a client that was
//! *not* selected can be looked up.
//!
//! # Definition
//! ChaCha with 8 rounds (D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008). The 256-bit key is the seed (8 bytes,
//! little endian), the number of the [`Purpose`] (8 bytes, little endian) and the 16 ASCII bytes `fedgenie-streams`.
//! The 64-bit stream id is `entity << 32 | index`; the block counter starts at 0. A uniform variate takes the next 64
//! bits `w` and is `(⌊w / 2^11⌋ + 1/2) / 2^53` rounded to a double, and `1 − 2^-53` where that would be 1: never 0,
//! never 1.
//!
//! The bits are those of the crate `rand_chacha`. [`StreamRng`] is its generator; [`KeyedDraw`] makes single blocks of
//! the same stream, for draws of a few numbers by many entities.

mod draw;
mod stream;

pub use draw::KeyedDraw;
pub use stream::StreamRng;

/// Purpose of a draw. The numbers are part of the replay contract: never change or reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// A law's parameter that is drawn per client: entity = client, index = phase × 16 + place of the parameter; data
    /// size 48, data quality 49, rates of a device profile 50 (download), 51 (compute), 52 (upload); offset or phase of
    /// availability 53, offsets of link traces 54 (download) and 56 (upload), laws of availability 64 (on) and 80
    /// (off), place of the parameter added; numbers of batteries 96 to 103, phase or offset of their chargers 104.
    /// Permutations of a trace's or a table's records: entity = 2^32 − 1, index = number of records.
    PopulationParameter = 1,
    /// Phase durations: entity = client, index = number of its job; three uniforms in the order download, compute,
    /// upload.
    Latency = 2,
    /// Dropout: entity = client, index = number of its job. Three uniforms in the order download, compute, upload: the
    /// client is lost after `−ln(u)/hazard` seconds of the phase. Then, for losses with a probability, four pairs of
    /// uniforms in the order job, download, compute, upload: the first decides whether, the second where.
    Dropout = 3,
    /// Phase durations of a probe before selection: entity = client, index = turn of the policy; as `Latency`. Where
    /// clients evaluate models after a round: index = 2^32 − 1 less the round.
    Probe = 4,
    /// A policy's own randomness: entity = edge server (0 where there is one server, 2^32 − 1 for the cloud,
    /// 2^32 − 2 for the rule of its clusters), index = turn of the policy.
    Policy = 5,
    /// A heuristic solver's randomness: as `Policy`.
    Solver = 6,
    /// Examples of a data set. Synthetic features: entity = example, index = 0; prototypes of image classes: entity =
    /// class, index = 1; synthetic test images: entity = example, index = 2. Which rows of a table are for testing:
    /// entity = 0, index = 3. Ratings: which are held out of all, entity = 0, index = 4, or of each user's, entity =
    /// user, index = 5; synthetic ones, entity = item, index = 6, and entity = user, index = 7; negatives of a client's
    /// loss, entity = client, index = 8; features of synthetic items, index = 9 to 12; negatives of test and validation
    /// losses, entity = user, index = 13 and 14; features of nodes, entity = user, index = 15, and entity = item, index
    /// = 16; synthetic ratings with trust, index = 17 to 21; training rows for validation, entity = 0, index = 22;
    /// models and examples of synthetic clients, entity = client, index = 23 and 24.
    Example = 7,
    /// Which examples go to which client: entity and index as the partition documents.
    Partition = 8,
    /// Initial model parameters: entity = 0, index = 0; rows of users, entity = user, index = 1; networks over rows,
    /// entity = 0, index = 2 and 3.
    ModelInit = 9,
    /// Order of a client's examples in an epoch: entity = client, index = number of its job. The mini-batch of a probe
    /// before selection: index = 2^32 − 1 less the turn of the policy.
    BatchOrder = 10,
    /// What is random within a training step, such as dropout masks or negatives: entity = client, index = number of
    /// its job.
    TrainingNoise = 11,
    /// When a device is there, for laws that draw it: entity = client, index = block of 32 uniforms. Of a client's
    /// uniforms, number 0 decides the state at time 0, number n + 1 the duration of stretch n.
    Availability = 12,
    /// How long a model travels between the cloud and an edge server: entity = edge server, index = the cloud's round;
    /// two uniforms in the order from the cloud, to the cloud.
    EdgeLink = 13,
    /// Statistics on results, such as the bootstrap: entity = resample; and worlds drawn for a validation: entity =
    /// world. The index is free.
    Resampling = 14,
    /// Noise of scripted metrics: entity = server, index = the server's round; one uniform, of which the noise is the
    /// normal quantile.
    Script = 15,
    /// Noise that a client adds to its upload: entity = client, index = number of its job; a uniform for each number,
    /// of which the noise is the normal quantile. Noise of the server: entity = 2^32 − 1, index = number of its new
    /// model.
    Privacy = 16,
    /// Wrong forecasts of availability: entity = client, index = a mixture of the ends of the interval; one uniform.
    Forecast = 17,
    /// What hostile clients send: entity = client, index = number of its job; a uniform for each number, of which the
    /// noise is the normal quantile. Which clients are hostile: entity = 2^32 − 1, index = 0.
    Attack = 18,
    /// Rounding at random, and numbers that are drawn, in encodings of updates: entity = client, index = number of its
    /// job.
    Compression = 19,
    /// The same in encodings of the models that clients are sent.
    Broadcast = 20,
}

const PURPOSES: usize = 20;

impl Purpose {
    const ALL: [Self; PURPOSES] = [
        Self::PopulationParameter,
        Self::Latency,
        Self::Dropout,
        Self::Probe,
        Self::Policy,
        Self::Solver,
        Self::Example,
        Self::Partition,
        Self::ModelInit,
        Self::BatchOrder,
        Self::TrainingNoise,
        Self::Availability,
        Self::EdgeLink,
        Self::Resampling,
        Self::Script,
        Self::Privacy,
        Self::Forecast,
        Self::Attack,
        Self::Compression,
        Self::Broadcast,
    ];
}

/// The key of a purpose's streams.
type Key = [u8; 32];

/// All random numbers of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    /// A key for each purpose.
    keys: [Key; PURPOSES],
}

impl Streams {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        let keys = Purpose::ALL.map(|purpose| {
            let mut key: Key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..16].copy_from_slice(&u64::from(purpose as u8).to_le_bytes());
            key[16..].copy_from_slice(b"fedgenie-streams");
            key
        });
        Self { seed, keys }
    }

    /// The seed these streams belong to.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of one purpose, entity and index, from its beginning: for many numbers.
    pub fn stream(&self, purpose: Purpose, entity: u32, index: u32) -> StreamRng {
        StreamRng::new(self.key(purpose), id(entity, index))
    }

    /// [`Streams::stream`] after so many of its numbers ([`StreamRng::drawn`]): where many streams are read by turns, a
    /// number takes less room than a generator.
    pub fn stream_from(&self, purpose: Purpose, entity: u32, index: u32, drawn: u64) -> StreamRng {
        let mut stream = self.stream(purpose, entity, index);
        stream.go_to(drawn);
        stream
    }

    /// The first numbers of [`Streams::stream`], for an entity that draws a few of them.
    #[inline]
    pub fn draw(&self, purpose: Purpose, entity: u32, index: u32) -> KeyedDraw {
        KeyedDraw::new(self.key(purpose), id(entity, index))
    }

    const fn key(&self, purpose: Purpose) -> &Key {
        &self.keys[purpose as usize - 1]
    }
}

/// The 64-bit id of a stream.
const fn id(entity: u32, index: u32) -> u64 {
    (entity as u64) << 32 | index as u64
}

/// The uniform variate of 64 random bits.
#[inline]
fn uniform_from(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    // Above 1/2 the half step is rounded away; at the very top that would give 1.
    (((bits >> 11) as f64 + 0.5) * STEP).min(1.0 - STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_has_the_numbers_of_its_stream() {
        for seed in [0, 5, u64::MAX] {
            let streams = Streams::new(seed);
            for purpose in Purpose::ALL {
                for (entity, index) in [(0, 0), (17, 42), (u32::MAX, 3), (3, u32::MAX), (u32::MAX, u32::MAX)] {
                    let (mut stream, mut draw) =
                        (streams.stream(purpose, entity, index), streams.draw(purpose, entity, index));
                    for number in 0..40 {
                        assert_eq!(stream.bits(), draw.bits(), "{purpose:?}, {entity}, {index}, number {number}");
                    }
                    assert_eq!(stream.uniform(), draw.uniform());
                }
            }
        }
    }

    #[test]
    fn a_uniform_variate_is_never_0_and_never_1() {
        assert_eq!(uniform_from(0), 1.0 / (1u64 << 54) as f64);
        assert_eq!(uniform_from(u64::MAX), 1.0 - 1.0 / (1u64 << 53) as f64);
        assert_eq!(uniform_from(1 << 63), 0.5);
    }
}
