//! Compression: fewer bytes for the same change.
//!
//! # Definition
//! `[compression] up` encodes what a client sends. Let `δ` be its change, of all `d` numbers that travel, and `e` what
//! earlier encodings left over, 0 at first. With `error_feedback` the client encodes `v = δ + e` and keeps
//! `e ← v − v̂`, where `v̂` is what the server decodes; without, it encodes `v = δ` and keeps nothing. The server takes
//! `v̂` for the change.
//!
//! | codec | `v̂` | bytes |
//! |---|---|---|
//! | `top-k` | the `k` largest numbers by size (of equal ones the first), 0 elsewhere | `4k + ⌈k⌈log₂ d⌉/8⌉` |
//! | `random-k` | `k` numbers drawn without replacement, 0 elsewhere; times `d/k` without feedback, so that its mean is `v` | `4k + 8` |
//! | `qsgd` | `‖v‖·sign(vᵢ)·l/s`, `s = 2^(bits − 1) − 1`, `l` the number `s·abs(vᵢ)/‖v‖` rounded up or down at random, so that its mean is `v` | `4 + ⌈d·bits/8⌉` |
//! | `sign` | `mean(abs(v))·sign(vᵢ)`, the sign of 0 is + | `4 + ⌈d/8⌉` |
//!
//! `k` is a number of at most `d`, or `max(1, round(share·d))`, halves up. `down = { qsgd = … }` encodes the model that
//! clients are sent, anew for each job and without feedback: they train from what they decode, and send the change from
//! there.
//!
//! What is left over changes only when the update is aggregated, as all memory of clients. Numbers that an algorithm
//! sends beside models travel as they are.
//!
//! # Inputs
//! Of `up` and `down` at least one. `error_feedback`: true if left out, and false under `qsgd`. `encode_rate`: numbers
//! a second, above 0; refused with a recorded log and with meters of mean speeds. For tasks whose updates are whole
//! models; with tables of which clients move rows it is refused, and so is `little-is-enough` of `[adversary]`, which
//! is made after jobs are.
//!
//! # Records
//! `state.safetensors` has `client.K.error.TENSOR` of each client that has something left over.
//!
//! # Source
//! `top-k` with feedback: S. U. Stich, J.-B. Cordonnier, M. Jaggi, "Sparsified SGD with memory", NeurIPS 2018. `qsgd`:
//! D. Alistarh et al., "QSGD: Communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017,
//! Section 3.1. `sign` with feedback: S. P. Karimireddy et al., "Error feedback fixes SignSGD and other gradient
//! compression schemes", ICML 2019, Algorithm 1.
//!
//! # Deviations from the source
//! Changes of models are encoded, not gradients; the norm of `qsgd` is that of the whole vector, and its levels travel
//! in a fixed number of bits.
//!
//! # Cost
//! A pass over the update, for `top-k` a selection. It takes no virtual time, but with `encode_rate`: then the compute
//! phase is longer by `d` numbers over that rate. Memory: with feedback, a model for each client of which an update was
//! aggregated.
//!
//! # Determinism
//! Stream (Compression, client, number of its job), first `down`, then `up`. Norms and means are sums in `f64` in the
//! order of the numbers; `v`, `v̂` and `e` are `f32`.
//!
//! # Example
//! ```toml
//! [compression]
//! up = { top-k = { share = 0.01 } }
//! # up = "sign"
//! # down = { qsgd = { bits = 8 } }
//! ```

use fedgenie_core::config::Complaint;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of this file, which opens with the definition of `[compression]`.
pub const DOCUMENTED: &str = include_str!("compression.rs");

/// `[compression]`: how models and updates are encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompressionConfig {
    /// How updates are encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Codec>,
    /// How models are encoded: by `qsgd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Codec>,
    /// Whether clients keep what an encoding left over, for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_feedback: Option<bool>,
    /// Numbers that a client encodes in a second, after it has trained; above 0. Encoding takes no time if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encode_rate: Option<f64>,
}

/// An encoding, for example `"sign"` or `{ top-k = { share = 0.01 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum Codec {
    /// The largest numbers.
    TopK {
        /// How many numbers; or give `share`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<usize>,
        /// Which share of the numbers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<f64>,
    },
    /// Numbers that are drawn.
    RandomK {
        /// How many numbers; or give `share`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<usize>,
        /// Which share of the numbers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<f64>,
    },
    /// All numbers, in a few bits each.
    Qsgd {
        /// Bits of a number, from 2 to 16.
        bits: u32,
    },
    /// All signs, and the mean size.
    Sign {},
}

impl Codec {
    /// Its name in scenarios.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TopK { .. } => "top-k",
            Self::RandomK { .. } => "random-k",
            Self::Qsgd { .. } => "qsgd",
            Self::Sign {} => "sign",
        }
    }

    fn check(&self) -> Result<(), Complaint> {
        match *self {
            Self::TopK { k, share } | Self::RandomK { k, share } => match (k, share) {
                (Some(0), _) => Err(Complaint::new("k", "found 0; expected at least 1")),
                (Some(_), None) => Ok(()),
                (None, Some(share)) if share > 0.0 && share <= 1.0 => Ok(()),
                (None, Some(share)) => {
                    Err(Complaint::new("share", format!("found {share}; expected a number above 0, at most 1")))
                }
                _ => Err(Complaint::new("", "says how many numbers by one of k = 100 and share = 0.01; give one")),
            },
            Self::Qsgd { bits } if !(2..=16).contains(&bits) => {
                Err(Complaint::new("bits", format!("found {bits}; expected a number from 2 to 16")))
            }
            Self::Qsgd { .. } | Self::Sign {} => Ok(()),
        }
    }

    /// Checks that as many numbers as it sends are there.
    fn fits(&self, numbers: usize) -> Result<(), Complaint> {
        match *self {
            Self::TopK { k: Some(k), .. } | Self::RandomK { k: Some(k), .. } if k > numbers => {
                Err(Complaint::new("k", format!("found {k}; an update has {numbers} numbers")))
            }
            _ => Ok(()),
        }
    }

    /// How many of so many numbers are sent.
    fn kept(&self, numbers: usize) -> usize {
        match *self {
            Self::TopK { k: Some(k), .. } | Self::RandomK { k: Some(k), .. } => k.min(numbers),
            Self::TopK { share: Some(share), .. } | Self::RandomK { share: Some(share), .. } => {
                ((share * numbers as f64).round() as usize).clamp(1, numbers.max(1)).min(numbers)
            }
            _ => numbers,
        }
    }

    /// Bytes of so many numbers.
    pub fn bytes(&self, numbers: u64) -> u64 {
        let kept = self.kept(numbers as usize) as u64;
        match *self {
            Self::TopK { .. } => {
                let bits_of_place = u64::from(numbers.max(1).next_power_of_two().trailing_zeros());
                4 * kept + (kept * bits_of_place).div_ceil(8)
            }
            Self::RandomK { .. } => 4 * kept + 8,
            Self::Qsgd { bits } => 4 + (numbers * u64::from(bits)).div_ceil(8),
            Self::Sign {} => 4 + numbers.div_ceil(8),
        }
    }

    /// Replaces numbers by what is decoded of them. `is_scaled` says whether drawn numbers stand for the others too.
    pub fn encode(&self, numbers: &mut [f32], is_scaled: bool, rng: &mut StreamRng) {
        let count = numbers.len();
        match *self {
            Self::TopK { .. } => {
                let kept = self.kept(count);
                let mut places: Vec<u32> = (0..count as u32).collect();
                let size = |place: &u32| numbers[*place as usize].abs();
                if kept < count {
                    places.select_nth_unstable_by(kept, |one, other| {
                        size(other).total_cmp(&size(one)).then_with(|| one.cmp(other))
                    });
                }
                places.drain(..kept);
                places.into_iter().for_each(|place| numbers[place as usize] = 0.0);
            }
            Self::RandomK { .. } => {
                let kept = self.kept(count);
                let mut places: Vec<u32> = (0..count as u32).collect();
                for place in 0..kept {
                    let other = place + rng.below((count - place) as u64) as usize;
                    places.swap(place, other);
                }
                let factor = if is_scaled { count as f64 / kept as f64 } else { 1.0 };
                for &place in &places[..kept] {
                    let number = &mut numbers[place as usize];
                    *number = (f64::from(*number) * factor) as f32;
                }
                places.drain(..kept);
                places.into_iter().for_each(|place| numbers[place as usize] = 0.0);
            }
            Self::Qsgd { bits } => {
                let squares = numbers.iter().map(|&number| f64::from(number) * f64::from(number));
                // It travels as a single.
                let norm = f64::from(sqrt(squares.sum::<f64>()) as f32);
                if norm == 0.0 {
                    return;
                }
                let levels = f64::from((1_u32 << (bits - 1)) - 1);
                for number in numbers {
                    let scaled = f64::from(number.abs()) / norm * levels;
                    let below = fedgenie_core::math::float::floor(scaled);
                    let level = below + f64::from(u8::from(rng.uniform() < scaled - below));
                    *number = (norm * level / levels).copysign(f64::from(*number)) as f32;
                }
            }
            Self::Sign {} => {
                let sum: f64 = numbers.iter().map(|number| f64::from(number.abs())).sum();
                let mean = (sum / count as f64) as f32;
                numbers.iter_mut().for_each(|number| *number = if *number < 0.0 { -mean } else { mean });
            }
        }
    }
}

impl CompressionConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below `compression`.
    pub fn check(&self) -> Result<(), Complaint> {
        for (key, codec) in [("up", &self.up), ("down", &self.down)] {
            if let Some(codec) = codec {
                codec.check().map_err(|complaint| complaint.below(codec.kind()).below(key))?;
            }
        }
        match (&self.up, &self.down) {
            (None, None) => Err(Complaint::new("", "encodes nothing; give up = \"sign\", or take the section out")),
            (_, Some(codec)) if !matches!(codec, Codec::Qsgd { .. }) => {
                let found = codec.kind();
                let message = format!("found {found:?}; models travel as they are, or by qsgd = {{ bits = 8 }}");
                Err(Complaint::new("down", message))
            }
            _ if self.encode_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) => {
                let found = self.encode_rate.unwrap_or_default();
                Err(Complaint::new(
                    "encode_rate",
                    format!("found {found}; expected a number above 0, of numbers a second"),
                ))
            }
            (None, _) if self.encode_rate.is_some() => {
                Err(Complaint::new("encode_rate", "is for updates, and up is left out"))
            }
            (None, _) if self.error_feedback.is_some() => {
                Err(Complaint::new("error_feedback", "is for updates, and up is left out"))
            }
            _ => Ok(()),
        }
    }

    /// Seconds in which a client encodes so many numbers.
    pub fn seconds(&self, numbers: usize) -> f64 {
        self.encode_rate.map_or(0.0, |rate| numbers as f64 / rate)
    }

    /// Checks that updates of so many numbers can be encoded.
    ///
    /// # Errors
    /// A complaint with a path below `compression`.
    pub fn fits(&self, numbers: usize) -> Result<(), Complaint> {
        let Some(up) = &self.up else { return Ok(()) };
        up.fits(numbers).map_err(|complaint| complaint.below(up.kind()).below("up"))
    }

    /// Whether clients keep what an encoding left over.
    pub fn keeps_errors(&self) -> bool {
        let usual = |codec: &Codec| !matches!(codec, Codec::Qsgd { .. });
        self.up.as_ref().is_some_and(|codec| self.error_feedback.unwrap_or_else(|| usual(codec)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    fn decoded(codec: &Codec, numbers: &[f32], is_scaled: bool, job: u32) -> Vec<f32> {
        let mut numbers = numbers.to_vec();
        codec.encode(&mut numbers, is_scaled, &mut Streams::new(1).stream(Purpose::Compression, 0, job));
        numbers
    }

    const NUMBERS: [f32; 6] = [0.5, -2.0, 0.0, 2.0, -1.0, 0.25];

    #[test]
    fn the_largest_are_kept() {
        let top = |k| decoded(&Codec::TopK { k: Some(k), share: None }, &NUMBERS, false, 1);
        assert_eq!(top(1), [0.0, -2.0, 0.0, 0.0, 0.0, 0.0], "of equal sizes the first");
        assert_eq!(top(3), [0.0, -2.0, 0.0, 2.0, -1.0, 0.0]);
        assert_eq!(top(9), NUMBERS);
    }

    #[test]
    fn signs_have_the_mean_size() {
        // 5.75/6 of six numbers; 0 counts as positive.
        let mean = 5.75_f32 / 6.0;
        assert_eq!(decoded(&Codec::Sign {}, &NUMBERS, false, 1), [mean, -mean, mean, mean, -mean, mean]);
    }

    /// Means over many jobs are the numbers, within four standard errors.
    #[test]
    fn drawn_codecs_have_no_bias() {
        const JOBS: u32 = 20_000;
        for codec in [Codec::RandomK { k: Some(2), share: None }, Codec::Qsgd { bits: 2 }, Codec::Qsgd { bits: 4 }] {
            let (mut sums, mut squares) = ([0.0; 6], [0.0; 6]);
            for job in 0..JOBS {
                for (place, number) in decoded(&codec, &NUMBERS, true, job).into_iter().enumerate() {
                    sums[place] += f64::from(number);
                    squares[place] += f64::from(number) * f64::from(number);
                }
            }
            for place in 0..6 {
                let mean = sums[place] / f64::from(JOBS);
                let error = ((squares[place] / f64::from(JOBS) - mean * mean).max(0.0) / f64::from(JOBS)).sqrt();
                let expected = f64::from(NUMBERS[place]);
                assert!(
                    (mean - expected).abs() <= 4.0 * error + 1e-6,
                    "{codec:?} {place}: {mean}, {expected}, {error}"
                );
            }
        }
    }

    /// With two bits a number is −‖v‖, 0 or ‖v‖; with feedback drawn numbers stand for themselves.
    #[test]
    fn levels_and_drawn_numbers() {
        let norm = 9.3125_f32.sqrt();
        for job in 0..50 {
            let found = decoded(&Codec::Qsgd { bits: 2 }, &NUMBERS, false, job);
            assert!(found.iter().all(|number| number.abs() == 0.0 || (number.abs() - norm).abs() < 1e-6), "{found:?}");
            let found = decoded(&Codec::RandomK { k: Some(2), share: None }, &NUMBERS, false, job);
            let kept = found.iter().zip(NUMBERS).filter(|(found, number)| **found == *number && *number != 0.0).count();
            assert!(kept <= 2 && found.iter().zip(NUMBERS).all(|(found, number)| *found == number || *found == 0.0));
        }
    }

    #[test]
    fn bytes_by_hand() {
        // 7,850 numbers: places of 13 bits.
        let share = |share| Codec::TopK { k: None, share: Some(share) };
        assert_eq!(share(0.01).bytes(7_850), 4 * 79 + (79 * 13_u64).div_ceil(8));
        assert_eq!(share(1e-9).bytes(7_850), 4 + 2);
        assert_eq!(Codec::TopK { k: Some(8), share: None }.bytes(8), 32 + 3);
        assert_eq!(Codec::RandomK { k: Some(10), share: None }.bytes(7_850), 48);
        assert_eq!(Codec::Qsgd { bits: 4 }.bytes(7_851), 4 + 3_926);
        assert_eq!(Codec::Sign {}.bytes(7_851), 4 + 982);
    }

    #[test]
    fn ranges() {
        let of = |text: &str| toml::from_str::<CompressionConfig>(text).unwrap().check();
        for (text, path) in [
            ("", ""),
            ("up = { top-k = {} }", "up.top-k"),
            ("up = { top-k = { k = 0 } }", "up.top-k.k"),
            ("up = { random-k = { share = 1.5 } }", "up.random-k.share"),
            ("up = { qsgd = { bits = 1 } }", "up.qsgd.bits"),
            ("down = { sign = {} }", "down"),
            ("down = { qsgd = { bits = 8 } }\nerror_feedback = true", "error_feedback"),
        ] {
            assert_eq!(of(text).unwrap_err().path, path, "{text}");
        }
        let keeps = |text: &str| toml::from_str::<CompressionConfig>(text).unwrap().keeps_errors();
        assert!(keeps("up = { sign = {} }") && keeps("up = { qsgd = { bits = 4 } }\nerror_feedback = true"));
        assert!(!keeps("up = { qsgd = { bits = 4 } }") && !keeps("up = { sign = {} }\nerror_feedback = false"));
    }
}
