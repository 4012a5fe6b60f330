//! Points on their first principal components, by the eigenvectors of the matrix of their products: few points of many
//! dimensions.

use fedgenie_core::math::float::sqrt;

/// Where each point lies on the first components, of which there are never more than points less one. The sign of a
/// component is arbitrary, and the same for all points.
pub(super) fn projected(points: &[&[f32]], components: usize) -> Vec<Vec<f64>> {
    let count = points.len();
    let mut products = products(points);
    centre(&mut products);
    let (values, vectors) = eigen(products);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| values[other].total_cmp(&values[one]).then(one.cmp(&other)));
    order.truncate(components.min(count.saturating_sub(1)));
    let place = |point: usize| order.iter().map(|&at| sqrt(values[at].max(0.0)) * vectors[point][at]).collect();
    (0..count).map(place).collect()
}

/// The products of all pairs.
fn products(points: &[&[f32]]) -> Vec<Vec<f64>> {
    let product = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(&one, &other)| f64::from(one) * f64::from(other)).sum()
    };
    let mut all = vec![vec![0.0; points.len()]; points.len()];
    for one in 0..points.len() {
        for other in 0..=one {
            let found = product(points[one], points[other]);
            (all[one][other], all[other][one]) = (found, found);
        }
    }
    all
}

/// The products of the points less their mean.
fn centre(products: &mut [Vec<f64>]) {
    let count = products.len() as f64;
    let means: Vec<f64> = products.iter().map(|row| row.iter().sum::<f64>() / count).collect();
    let mean = means.iter().sum::<f64>() / count;
    for (row, own) in products.iter_mut().zip(&means) {
        row.iter_mut().zip(&means).for_each(|(product, other)| *product += mean - own - other);
    }
}

/// Sweeps after which the off-diagonal of any matrix has vanished: convergence is quadratic.
const SWEEPS: usize = 60;

/// Eigenvalues of a symmetric matrix, and the eigenvectors as columns, by Jacobi's rotations in rows and columns in
/// turn.
///
/// Source: G. H. Golub, C. F. Van Loan, *Matrix Computations*, 4th edition, section 8.5 (cyclic Jacobi).
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..count).map(|row| (0..count).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    let norm = |matrix: &[Vec<f64>]| sqrt(matrix.iter().flatten().map(|entry| entry * entry).sum::<f64>());
    let small = 1e-15 * norm(&matrix);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..count {
            for q in p + 1..count {
                let off = matrix[p][q];
                if off.abs() <= small {
                    continue;
                }
                rotated = true;
                let half = (matrix[q][q] - matrix[p][p]) / (2.0 * off);
                let tangent = half.signum() / (half.abs() + sqrt(half * half + 1.0));
                let cosine = 1.0 / sqrt(tangent * tangent + 1.0);
                let sine = tangent * cosine;
                for row in &mut matrix {
                    (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
                }
                let (head, tail) = matrix.split_at_mut(q);
                for (above, below) in head[p].iter_mut().zip(&mut tail[0]) {
                    (*above, *below) = (cosine * *above - sine * *below, sine * *above + cosine * *below);
                }
                for row in &mut vectors {
                    (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
                }
            }
        }
        if !rotated {
            break;
        }
    }
    ((0..count).map(|at| matrix[at][at]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    /// (±3, ±1) about (10, 10): the first component is the first axis, the second the second.
    #[test]
    fn a_rectangle_by_hand() {
        let corners = [[13.0_f32, 11.0], [13.0, 9.0], [7.0, 11.0], [7.0, 9.0]];
        let points: Vec<&[f32]> = corners.iter().map(|corner| &corner[..]).collect();
        let found = projected(&points, 2);
        for (point, corner) in found.iter().zip(corners) {
            approx::assert_relative_eq!(point[0].abs(), 3.0, max_relative = 1e-12);
            approx::assert_relative_eq!(point[1].abs(), 1.0, max_relative = 1e-12);
            let signs = [found[0][0] * f64::from(corner[0] - 10.0), found[0][1] * f64::from(corner[1] - 10.0)];
            assert!(signs[0] * point[0] > 0.0 && signs[1] * point[1] > 0.0);
        }
        assert_eq!(projected(&points[..1], 2), [Vec::<f64>::new()], "one point has no spread");
        assert_eq!(projected(&[], 2), Vec::<Vec<f64>>::new());
    }

    /// All components together keep every distance; the first keeps more of the spread than any other line.
    #[test]
    fn distances_and_spread() {
        let mut rng = Streams::new(4).stream(Purpose::Resampling, 0, 0);
        let clouds: Vec<Vec<f32>> =
            (0..9).map(|_| (0..40).map(|at| (rng.uniform() - 0.5) as f32 * (1 + at % 7) as f32).collect()).collect();
        let points: Vec<&[f32]> = clouds.iter().map(|point| &**point).collect();
        let all = projected(&points, 40);
        assert_eq!(all[0].len(), 8);
        let square = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        for one in 0..9 {
            for other in 0..9 {
                let wide = |point: &[f32]| point.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
                let expected = square(&wide(points[one]), &wide(points[other]));
                approx::assert_relative_eq!(
                    square(&all[one], &all[other]),
                    expected,
                    epsilon = 1e-9,
                    max_relative = 1e-9
                );
            }
        }
        let spread = |of: &dyn Fn(usize) -> f64| {
            let mean = (0..9).map(of).sum::<f64>() / 9.0;
            (0..9).map(|point| (of(point) - mean) * (of(point) - mean)).sum::<f64>()
        };
        let first = spread(&|point| projected(&points, 1)[point][0]);
        for _ in 0..200 {
            let line: Vec<f64> = (0..40).map(|_| rng.uniform() - 0.5).collect();
            let length = line.iter().map(|part| part * part).sum::<f64>().sqrt();
            let along = |point: usize| {
                points[point].iter().zip(&line).map(|(&value, part)| f64::from(value) * part).sum::<f64>() / length
            };
            assert!(spread(&along) <= first * (1.0 + 1e-12));
        }
    }
}
