//! A block of columns: an item for each example of a batch, from embeddings and features to scores and back.

use super::attention::{Attend, AttendBack, Pairs};
use super::network::{Slopes, Weights};
use super::products::{Begin, Gather, Inner, Left, Product, Right, Scatter};
use super::projection::{Noise, Projection, room};
use super::{Features, Shape};
use crate::lanes::{LANES, Lanes, Path, run};

/// The users of a batch, a column for each example.
#[derive(Debug, Default)]
pub struct Users {
    /// Dimensions, and their slopes.
    pub values: Vec<f32>,
    pub slopes: Vec<f32>,
    /// The users' part of the first layer of the attention, factor by factor, and its slopes.
    pub hidden: Vec<f32>,
    pub hidden_slopes: Vec<f32>,
}

/// The items of a block.
#[derive(Debug, Default)]
pub struct Block {
    /// Dimensions, channel by channel, and their slopes.
    pub values: Vec<f32>,
    pub slopes: Vec<f32>,
    hidden: Vec<f32>,
    hidden_slopes: Vec<f32>,
    weights: Vec<f32>,
    products: Vec<f32>,
    pub scores: Vec<f32>,
    /// Slopes of scores.
    pub score_slopes: Vec<f32>,
    projections: [Projection; 2],
}

/// The common part of all blocks of a batch.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub path: Path,
    pub shape: &'a Shape,
    pub weights: &'a Weights<'a>,
    pub features: &'a Features,
    /// Numbers of a row.
    pub stride: usize,
}

impl Setting<'_> {
    /// The part of the attention's first layer that a channel enters, added to a block's or the users' sums.
    pub fn attend(&self, channel: usize, values: &[f32], columns: usize, begin: Begin<'_>, out: &mut [f32]) {
        let Self { path, shape, weights, stride, .. } = *self;
        let (width, breadth) = (shape.width(), shape.attention);
        for factor in 0..shape.factors {
            run(
                path,
                Product {
                    left: Left {
                        values: &weights.attention[channel * width..],
                        stride: shape.channels() * width,
                        turned: false,
                    },
                    right: Right { values: &values[factor * width * stride..], stride },
                    begin,
                    rows: breadth,
                    depth: width,
                    columns,
                    out: &mut out[factor * breadth * stride..],
                    out_stride: stride,
                },
            );
        }
    }

    /// The way back of [`Setting::attend`]: adds to the slopes of a channel and of its weights.
    fn attend_back(
        &self,
        channel: usize,
        values: &[f32],
        columns: usize,
        hidden: &[f32],
        to: (&mut [f32], &mut [f32]),
    ) {
        let Self { path, shape, weights, stride, .. } = *self;
        let (width, breadth) = (shape.width(), shape.attention);
        let (slopes, weight_slopes) = to;
        for factor in 0..shape.factors {
            let hidden = &hidden[factor * breadth * stride..];
            let values = &values[factor * width * stride..];
            let row = shape.channels() * width;
            run(
                path,
                Product {
                    left: Left { values: &weights.attention[channel * width..], stride: row, turned: true },
                    right: Right { values: hidden, stride },
                    begin: Begin::Kept,
                    rows: width,
                    depth: breadth,
                    columns,
                    out: &mut slopes[factor * width * stride..],
                    out_stride: stride,
                },
            );
            run(
                path,
                Inner {
                    one: Right { values: hidden, stride },
                    other: Right { values, stride },
                    rows: [breadth, width],
                    depth: columns,
                    out: &mut weight_slopes[channel * width..],
                    out_stride: row,
                },
            );
        }
    }
}

impl Users {
    /// Gathers users and their part of the attention; with `back`, forgets slopes.
    pub fn forward(&mut self, setting: &Setting<'_>, ids: &[u32], back: bool) {
        let Setting { path, shape, weights, stride, .. } = *setting;
        let hidden = shape.factors * shape.attention;
        room(&mut self.values, shape.dim * stride);
        room(&mut self.hidden, hidden * stride);
        run(path, Gather { table: weights.users, width: shape.dim, ids, out: &mut self.values, stride });
        setting.attend(0, &self.values, ids.len(), Begin::Rows(weights.attention_bias), &mut self.hidden);
        if back {
            for (slopes, rows) in [(&mut self.slopes, shape.dim), (&mut self.hidden_slopes, hidden)] {
                slopes.clear();
                slopes.resize(rows * stride, 0.0);
            }
        }
    }

    /// Adds the slopes that all blocks have left here to those of the users' rows and of the attention.
    pub fn backward(&mut self, setting: &Setting<'_>, ids: &[u32], slopes: &mut Slopes<'_>) {
        let Setting { path, shape, stride, .. } = *setting;
        let to = (&mut self.slopes[..], &mut *slopes.attention);
        // Columns behind the last example have no slopes, those of whole vectors may be read.
        setting.attend_back(0, &self.values, ids.len(), &self.hidden_slopes, to);
        for factor in 0..shape.factors {
            let values = &self.hidden_slopes[factor * shape.attention * stride..];
            let out = &mut *slopes.attention_bias;
            run(path, super::attention::RowSums { values, stride, columns: ids.len(), out });
        }
        run(path, Scatter { columns: &self.slopes, stride, width: shape.dim, ids, table: slopes.users });
    }
}

impl Block {
    fn pairs<'a>(&'a self, setting: &Setting<'a>, users: &'a Users, columns: usize) -> Pairs<'a> {
        let Setting { shape, weights, stride, .. } = *setting;
        let (second, bias) = (weights.second, weights.second_bias);
        Pairs { shape, stride, columns, users: &users.values, items: &self.values, weights: second, bias }
    }

    /// Scores of the users' columns with these items.
    pub fn forward(&mut self, setting: &Setting<'_>, users: &Users, ids: &[u32], mut noise: Option<&mut Noise<'_>>) {
        let Setting { path, shape, weights, features, stride } = *setting;
        let (dim, channels) = (shape.dim, shape.channels());
        room(&mut self.values, (channels - 1) * dim * stride);
        room(&mut self.hidden, shape.factors * shape.attention * stride);
        room(&mut self.weights, shape.factors * channels * stride);
        room(&mut self.products, shape.factors * channels * stride);
        room(&mut self.scores, stride);
        run(path, Gather { table: weights.items, width: dim, ids, out: &mut self.values, stride });
        for (index, (mode, layers)) in weights.modes().enumerate() {
            let out = &mut self.values[(index + 1) * dim * stride..];
            let table = (&features.0[mode][..], shape.features[mode].unwrap_or(0));
            self.projections[mode].forward(path, table, layers, (ids, stride), noise.as_deref_mut(), out);
        }
        for channel in 1..channels {
            let begin = if channel == 1 { Begin::Zero } else { Begin::Kept };
            let values = &self.values[(channel - 1) * dim * stride..];
            setting.attend(channel, values, ids.len(), begin, &mut self.hidden);
        }
        let Self { values, hidden, weights: shares, products, scores, .. } = self;
        let (second, bias) = (weights.second, weights.second_bias);
        let columns = ids.len().div_ceil(LANES) * LANES;
        let pairs = Pairs { shape, stride, columns, users: &users.values, items: values, weights: second, bias };
        run(path, Attend { pairs, of_users: &users.hidden, hidden, weights: shares, products, scores });
    }

    /// From the slopes of scores to those of the items' embeddings, before their parts.
    pub fn backward(
        &mut self,
        setting: &Setting<'_>,
        users: &mut Users,
        ids: &[u32],
        sums: &mut [Lanes],
        slopes: &mut Slopes<'_>,
    ) {
        let Setting { path, shape, stride, .. } = *setting;
        let (dim, channels) = (shape.dim, shape.channels());
        let columns = ids.len().div_ceil(LANES) * LANES;
        let mut item_slopes = std::mem::take(&mut self.slopes);
        let mut hidden_slopes = std::mem::take(&mut self.hidden_slopes);
        room(&mut item_slopes, (channels - 1) * dim * stride);
        room(&mut hidden_slopes, shape.factors * shape.attention * stride);
        let mut user_slopes = std::mem::take(&mut users.slopes);
        let mut of_users_slopes = std::mem::take(&mut users.hidden_slopes);
        run(
            path,
            AttendBack {
                pairs: self.pairs(setting, users, columns),
                hidden: &self.hidden,
                weights: &self.weights,
                products: &self.products,
                slopes: &self.score_slopes,
                hidden_slopes: &mut hidden_slopes,
                item_slopes: &mut item_slopes,
                user_slopes: &mut user_slopes,
                of_users_slopes: &mut of_users_slopes,
                sums,
            },
        );
        (users.slopes, users.hidden_slopes) = (user_slopes, of_users_slopes);
        for channel in 1..channels {
            let at = (channel - 1) * dim * stride;
            let to = (&mut item_slopes[at..], &mut *slopes.attention);
            setting.attend_back(channel, &self.values[at..], ids.len(), &hidden_slopes, to);
        }
        (self.slopes, self.hidden_slopes) = (item_slopes, hidden_slopes);
    }

    /// From the slopes of items to those of rows and layers.
    pub fn finish(&mut self, setting: &Setting<'_>, ids: &[u32], slopes: &mut Slopes<'_>) {
        let Setting { path, shape, weights, features, stride } = *setting;
        let dim = shape.dim;
        let Self { values, slopes: of_values, projections, .. } = self;
        run(path, Scatter { columns: of_values, stride, width: dim, ids, table: slopes.items });
        for (index, (mode, layers)) in weights.modes().enumerate() {
            let at = (index + 1) * dim * stride;
            let table = (&features.0[mode][..], shape.features[mode].unwrap_or(0));
            let out = (&values[at..], &mut of_values[at..]);
            let of_layers = slopes.modes[index].as_mut().expect("a channel with weights has slopes");
            projections[mode].backward(path, table, layers, (ids, stride), out, of_layers);
        }
    }

    /// Forgets the slopes of layers.
    pub fn begin(&mut self, shape: &Shape) {
        for (projection, width) in self.projections.iter_mut().zip(shape.features) {
            if let Some(width) = width {
                projection.begin(width, shape.hidden, shape.dim);
            }
        }
    }

    /// Adds the slopes of layers.
    pub fn write(&self, shape: &Shape, slopes: &mut Slopes<'_>) {
        let modes = self.projections.iter().zip(shape.features).filter_map(|(mode, width)| Some((mode, width?)));
        for ((projection, width), slopes) in modes.zip(slopes.modes.iter_mut().flatten()) {
            projection.finish(width, shape.hidden, slopes);
        }
    }
}
