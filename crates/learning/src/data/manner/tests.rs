//! Turns, colours and noise, by hand and by the definition.

use super::*;
use crate::data::Targets;

const NOISE: [u32; 2] = [19, 21];

fn split(train: Array2<f32>, shape: Shape) -> Split {
    let part = |features: Array2<f32>| {
        let targets = Targets::Values(vec![0.0; features.nrows()]);
        Dataset::new(features, targets).with_shape(shape)
    };
    let test = train.slice(ndarray::s![..1, ..]).to_owned();
    Split { train: part(train), test: part(test) }
}

/// Every training row in the same manner, and every test row if so.
fn stage(manner: Manner, rows: usize, tests: usize) -> Stage {
    Stage { manners: vec![manner], train: vec![Some(0); rows], test: vec![Some(0); tests], noise: NOISE }
}

fn turned(image: &[f32], shape: Shape, rotation: f64) -> Vec<f32> {
    let data = split(Array2::from_shape_vec((1, image.len()), image.to_vec()).unwrap(), shape);
    let stage = stage(Manner { rotation, ..Manner::default() }, 1, 0);
    let changed = data.changed(&[stage], false, &Streams::new(1)).unwrap();
    assert_eq!(changed.test, data.test);
    changed.train.numbers().unwrap().values.to_vec()
}

#[test]
fn quarter_turns_by_hand() {
    let square = Shape { channels: 2, height: 3, width: 3 };
    #[rustfmt::skip]
    let image = [
        1.0, 2.0, 3.0,
        4.0, 5.0, 6.0,
        7.0, 8.0, 0.1,
        // The other channel.
        0.3, 0.0, 0.0,
        0.0, 0.0, 0.0,
        0.0, 0.0, 0.7,
    ];
    #[rustfmt::skip]
    let quarter = [
        3.0, 6.0, 0.1,
        2.0, 5.0, 8.0,
        1.0, 4.0, 7.0,
        0.0, 0.0, 0.7,
        0.0, 0.0, 0.0,
        0.3, 0.0, 0.0,
    ];
    assert_eq!(turned(&image, square, 90.0), quarter);
    assert_eq!(turned(&image, square, -270.0), quarter);
    assert_eq!(turned(&quarter, square, 270.0), image);
    assert_eq!(turned(&turned(&quarter, square, 90.0), square, 180.0), image);
    for whole in [0.0, 360.0, -720.0] {
        assert_eq!(turned(&image, square, whole), image);
    }
    // An even number of pixels, and half a turn of what is no square.
    let even = Shape { channels: 1, height: 2, width: 2 };
    assert_eq!(turned(&[1.0, 2.0, 3.0, 4.0], even, 90.0), [2.0, 4.0, 1.0, 3.0]);
    let flat = Shape { channels: 1, height: 2, width: 3 };
    assert_eq!(turned(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], flat, 180.0), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
}

/// An eighth of a turn of a cross: its arms come to lie in the corners, at 1/√2 of a pixel from the middle.
#[test]
fn other_turns_are_bilinear() {
    let shape = Shape { channels: 1, height: 3, width: 3 };
    let found = turned(&[0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], shape, 45.0);
    let half = 0.5_f64.sqrt();
    // What comes to (−1, 1) was at (0, √2), what comes to (0, 1) at (√½, √½).
    let expected = [
        1.0 - (2.0_f64.sqrt() - 1.0),
        (1.0 - half) * half + (1.0 - half) * (1.0 - half),
        0.0,
        (1.0 - half) * half + (1.0 - half) * (1.0 - half),
        1.0,
        (1.0 - half) * (1.0 - half),
        0.0,
        (1.0 - half) * (1.0 - half),
        0.0,
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-7, "{found} beside {expected}");
    }
}

#[test]
fn colours_are_of_channels_and_normalising_comes_last() {
    let shape = Shape { channels: 2, height: 1, width: 2 };
    let data = split(ndarray::array![[0.0, 1.0, 2.0, 4.0], [1.0, 0.0, 4.0, 2.0]], shape);
    let manner = Manner { colour: vec![[2.0, 0.5], [-1.0, 0.25]], ..Manner::default() };
    let plain = data.changed(&[stage(manner.clone(), 2, 0)], false, &Streams::new(1)).unwrap();
    assert_eq!(plain.train.numbers().unwrap().values, [0.5, 2.5, -1.75, -3.75, 2.5, 0.5, -3.75, -1.75]);
    // Means ½ and 3, deviations ½ and 1.
    let normal = data.changed(&[stage(manner.clone(), 2, 0)], true, &Streams::new(1)).unwrap();
    assert_eq!(normal.train.numbers().unwrap().values, [0.0, 4.0, -4.75, -6.75, 4.0, 0.0, -6.75, -4.75]);
    assert_eq!(normal.test, data.clone().normalized().unwrap().test);
    // Twice, and in the test data too.
    let twice = data.changed(&[stage(manner.clone(), 2, 0), stage(manner, 1, 1)], false, &Streams::new(1)).unwrap();
    assert_eq!(twice.train.numbers().unwrap().values[..4], [1.5, 5.5, 2.0, 4.0]);
    assert_eq!(twice.test.numbers().unwrap().values, [0.5, 2.5, -1.75, -3.75]);
}

/// Deviation and mean of 40,000 numbers, within 5 standard errors; each row has noise of its own, the same whatever the
/// other rows have.
#[test]
fn noise_is_normal_and_each_rows_own() {
    let shape = Shape { channels: 1, height: 10, width: 10 };
    let data = split(Array2::from_elem((400, 100), 0.5), shape);
    let manner = Manner { noise: 0.2, ..Manner::default() };
    let noisy = data.changed(&[stage(manner.clone(), 400, 1)], false, &Streams::new(3)).unwrap();
    let noise: Vec<f64> = noisy.train.numbers().unwrap().values.iter().map(|&one| f64::from(one) - 0.5).collect();
    let mean = noise.iter().sum::<f64>() / 40_000.0;
    let deviation = (noise.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 40_000.0).sqrt();
    assert!(mean.abs() < 5.0 * 0.2 / 200.0 && (deviation - 0.2).abs() < 5.0 * 0.2 / 80_000.0_f64.sqrt());
    let mut alone = stage(manner, 400, 0);
    (0..400).filter(|row| *row != 17).for_each(|row| alone.train[row] = None);
    let one = data.changed(&[alone], false, &Streams::new(3)).unwrap();
    let rows = |split: &Split, row: u32| split.train.numbers().unwrap().row(row).to_vec();
    assert_eq!(rows(&one, 17), rows(&noisy, 17));
    assert_eq!(rows(&one, 16), rows(&data, 16));
    assert_ne!(rows(&noisy, 16), rows(&noisy, 17));
    assert_ne!(noisy.test.numbers().unwrap().row(0), &*rows(&noisy, 0), "test examples have streams of their own");
}

/// In a table, noise is in deviations of the column.
#[test]
fn noise_of_tables_has_the_columns_scale() {
    let shape = Shape { channels: 3, height: 1, width: 1 };
    let data = split(ndarray::array![[1.0, 100.0, 7.0], [3.0, 300.0, 7.0]], shape);
    let noisy =
        data.changed(&[stage(Manner { noise: 0.5, ..Manner::default() }, 2, 0)], false, &Streams::new(3)).unwrap();
    let normal =
        data.changed(&[stage(Manner { noise: 0.5, ..Manner::default() }, 2, 0)], true, &Streams::new(3)).unwrap();
    for row in 0..2_u32 {
        let mut stream = Streams::new(3).stream(Purpose::Partition, row, 19);
        for (column, (mean, unit)) in [(2.0, 1.0), (200.0, 100.0), (7.0, 1.0)].into_iter().enumerate() {
            let noise = 0.5 * unit * normal_quantile(stream.uniform());
            let at = |split: &Split| f64::from(split.train.numbers().unwrap().row(row)[column]);
            assert!((at(&noisy) - at(&data) - noise).abs() < 1e-4);
            assert!((at(&normal) - (at(&data) + noise - mean) / unit).abs() < 1e-5);
        }
    }
}
