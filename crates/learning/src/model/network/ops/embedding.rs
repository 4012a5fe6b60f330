//! Embedding: each feature is the number of a row of a table.

use super::Table;

/// A table of vectors.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// Offset of the table, entry × dimension.
    pub table: usize,
    pub entries: usize,
    pub dimensions: usize,
}

impl Embedding {
    /// The row that a feature names; numbers outside the table, which no checked data set holds, take the nearest row.
    fn row(&self, feature: f32) -> usize {
        self.table + (feature as usize).min(self.entries - 1) * self.dimensions
    }

    pub fn forward(&self, Table { features, output }: Table<'_>, parameters: &[f32], input: &[f32], out: &mut [f32]) {
        for (index, &feature) in features.iter().enumerate() {
            for example in 0..output.batch {
                let row = self.row(input[feature as usize + example]);
                for dimension in 0..self.dimensions {
                    out[(index * self.dimensions + dimension) * output.row + example] = parameters[row + dimension];
                }
            }
        }
    }

    /// Adds the slopes to the rows that were read, feature by feature, examples ascending.
    pub fn weight_gradient(
        &self,
        Table { features, output }: Table<'_>,
        input: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
    ) {
        gradient[self.table..][..self.entries * self.dimensions].fill(0.0);
        for (index, &feature) in features.iter().enumerate() {
            for example in 0..output.batch {
                let row = self.row(input[feature as usize + example]);
                for dimension in 0..self.dimensions {
                    gradient[row + dimension] += slopes[(index * self.dimensions + dimension) * output.row + example];
                }
            }
        }
    }
}
