//! Random streams: their bits are pinned, neighbours are unrelated, and a draw disturbs no other.
//!
//! The pinned numbers come from a ChaCha written in Python after the comment at the top of `src/rng.rs`, which
//! reproduces the published ChaCha8 and ChaCha20 key streams of an all-zero key; they were not copied from this crate's
//! output.

use fedgenie::rng::{Purpose, StreamRng, Streams};

const ALL: [Purpose; 10] = [
    Purpose::PopulationParameter,
    Purpose::Latency,
    Purpose::Dropout,
    Purpose::Probe,
    Purpose::Policy,
    Purpose::Solver,
    Purpose::Example,
    Purpose::Partition,
    Purpose::ModelInit,
    Purpose::BatchOrder,
];

const DRAWS: usize = 100_000;

#[test]
fn streams_keep_their_bits() {
    // Seed, purpose, entity, index; words 1, 2, 3, 9 and 10: the last two lie in the second block.
    let pinned = [
        (
            7,
            Purpose::Latency,
            17,
            42,
            [
                0x65d3_d19a_cd94_810f,
                0x7595_3f5b_9c54_783e,
                0x7ed4_c0f2_d741_045f,
                0x48c0_f22f_e3c4_a1a4,
                0xa7bf_97b8_41d9_129c,
            ],
        ),
        (
            7,
            Purpose::Latency,
            42,
            17,
            [
                0x7b0a_41e0_7e18_bbff,
                0x4ab1_5cb9_f363_fd2f,
                0x5402_d5e0_0a3e_8559,
                0xa7f9_d769_1971_76d3,
                0x369b_d60d_224b_f4b2,
            ],
        ),
        (
            7,
            Purpose::Policy,
            0,
            42,
            [
                0x0bed_087f_8b7e_0fa2,
                0xd9de_3453_5b97_6022,
                0x0e8d_57db_28d6_4165,
                0x4b5b_d503_3752_8240,
                0xee2d_0218_6668_daa2,
            ],
        ),
        (
            0,
            Purpose::PopulationParameter,
            0,
            0,
            [
                0x1477_f30f_3514_ddf9,
                0x6f42_6331_31a6_00e1,
                0x2cad_269b_c531_731a,
                0x2fd4_31c1_d231_3739,
                0xaa0b_e02d_0177_c8f3,
            ],
        ),
        (
            u64::MAX,
            Purpose::BatchOrder,
            u32::MAX,
            u32::MAX,
            [
                0x7217_b76a_c2c8_5d4f,
                0x209d_70d7_d6b8_e273,
                0xccd7_dce3_8550_9e24,
                0xe1fd_7191_dabf_6381,
                0xbe2e_3c77_e4ba_a4ef,
            ],
        ),
    ];
    for (seed, purpose, entity, index, expected) in pinned {
        let mut rng = Streams::new(seed).stream(purpose, entity, index);
        let words: [u64; 10] = std::array::from_fn(|_| rng.bits());
        assert_eq!([words[0], words[1], words[2], words[8], words[9]], expected, "{seed} {purpose:?} {entity} {index}");
    }
}

#[test]
fn variates_keep_their_bits() {
    let streams = Streams::new(7);
    let mut rng = streams.stream(Purpose::Latency, 17, 42);
    let uniforms: [u64; 3] = std::array::from_fn(|_| rng.uniform().to_bits());
    assert_eq!(uniforms, [0x3fd9_74f4_66b3_6521, 0x3fdd_654f_d6e7_151f, 0x3fdf_b530_3cb5_d041]);

    let mut rng = streams.stream(Purpose::Partition, 3, 0);
    let digits: [u64; 8] = std::array::from_fn(|_| rng.below(10));
    assert_eq!(digits, [6, 3, 8, 5, 7, 9, 2, 3]);

    let mut order: [u32; 8] = std::array::from_fn(|place| place as u32);
    streams.stream(Purpose::BatchOrder, 3, 1).shuffle(&mut order);
    assert_eq!(order, [4, 3, 5, 7, 0, 1, 2, 6]);
}

/// The first uniform of each of many streams.
fn first(stream: impl Fn(u32) -> StreamRng) -> Vec<f64> {
    (0..DRAWS as u32).map(|place| stream(place).uniform()).collect()
}

fn assert_uniform(draws: &[f64], what: &str) {
    let mut sorted = draws.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = |(place, &u): (usize, &f64)| ((place + 1) as f64 / n - u).max(u - place as f64 / n);
    let largest = sorted.iter().enumerate().map(distance).fold(0.0, f64::max);
    // Kolmogorov–Smirnov; a fair generator exceeds this once in a thousand times, and the draws never change.
    assert!(largest < 1.95 / n.sqrt(), "{what}: distance {largest} from the uniform law");
}

fn assert_unrelated(left: &[f64], right: &[f64], what: &str) {
    assert_eq!(left.len(), right.len());
    let n = left.len() as f64;
    let mean = |draws: &[f64]| draws.iter().sum::<f64>() / n;
    let (mean_left, mean_right) = (mean(left), mean(right));
    let (mut joint, mut own_left, mut own_right) = (0.0, 0.0, 0.0);
    for (x, y) in left.iter().zip(right) {
        joint += (x - mean_left) * (y - mean_right);
        own_left += (x - mean_left).powi(2);
        own_right += (y - mean_right).powi(2);
    }
    let correlation: f64 = joint / (own_left * own_right).sqrt();
    assert!(correlation.abs() < 4.0 / n.sqrt(), "{what}: correlation {correlation}");
}

/// Uniform, and each unrelated to the next.
fn assert_good(draws: &[f64], what: &str) {
    assert_uniform(draws, what);
    assert_unrelated(&draws[1..], &draws[..draws.len() - 1], what);
}

#[test]
fn neighbouring_entities_are_unrelated() {
    let streams = Streams::new(1);
    assert_good(&first(|client| streams.stream(Purpose::Latency, client, 1)), "clients of one round");
    assert_good(&first(|client| streams.stream(Purpose::PopulationParameter, client, 0)), "parameters of clients");
}

#[test]
fn neighbouring_indices_are_unrelated() {
    let streams = Streams::new(2);
    assert_good(&first(|round| streams.stream(Purpose::Latency, 17, round)), "rounds of one client");
    // A stream id is `entity << 32 | index`: one client's draw must not be another's in another round.
    let swapped = first(|round| streams.stream(Purpose::Latency, round, 17));
    assert_unrelated(&first(|round| streams.stream(Purpose::Latency, 17, round)), &swapped, "client and round swapped");
}

#[test]
fn neighbouring_purposes_are_unrelated() {
    let streams = Streams::new(3);
    let draws: Vec<Vec<f64>> =
        ALL.into_iter().map(|purpose| first(|place| streams.stream(purpose, place, 1))).collect();
    for (place, left) in draws.iter().enumerate() {
        assert_uniform(left, &format!("{:?}", ALL[place]));
        for (other, right) in draws.iter().enumerate().skip(place + 1) {
            assert_unrelated(left, right, &format!("{:?} and {:?}", ALL[place], ALL[other]));
        }
    }
}

#[test]
fn neighbouring_seeds_and_successive_draws_are_unrelated() {
    let (one, next) = (Streams::new(4), Streams::new(5));
    let left = first(|client| one.stream(Purpose::Latency, client, 1));
    assert_unrelated(&left, &first(|client| next.stream(Purpose::Latency, client, 1)), "seeds 4 and 5");
    let mut rng = one.stream(Purpose::Latency, 0, 0);
    let successive: Vec<f64> = (0..DRAWS).map(|_| rng.uniform()).collect();
    assert_good(&successive, "one stream");
}

#[test]
fn drawing_disturbs_no_other_draw() {
    let streams = Streams::new(9);
    let draw = |purpose| streams.stream(purpose, 3, 4).bits();
    let before = ALL.map(draw);
    for used in ALL {
        let mut rng = streams.stream(used, 3, 4);
        (0..1_000).for_each(|_| {
            rng.bits();
        });
        assert_eq!(ALL.map(draw), before, "after a thousand draws for {used:?}");
    }
    // The order of asking does not matter either.
    let mut backwards = ALL;
    backwards.reverse();
    let mut found = backwards.map(draw);
    found.reverse();
    assert_eq!(found, before);
}
