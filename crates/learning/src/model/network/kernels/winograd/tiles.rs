//! How the tiles of a tensor are divided into blocks that are worked on together.

use crate::lanes::LANES;

/// Consecutive tiles of one tile row; the numbers of a strip are (tile column, example), examples innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// Tile row.
    pub row: usize,
    /// First tile column.
    pub column: usize,
    /// Tile columns.
    pub columns: usize,
    /// First vector within the block.
    pub vector: usize,
    /// Vectors, of which the last may be filled in part.
    pub vectors: usize,
    /// First number within the block, where numbers follow each other without gaps between strips.
    pub number: usize,
    /// Numbers: columns times examples.
    pub numbers: usize,
}

/// Strips that are worked on together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In ascending order.
    pub strips: Vec<Strip>,
    /// Vectors of all strips.
    pub vectors: usize,
    /// Numbers of all strips.
    pub numbers: usize,
}

/// All tiles of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Examples.
    pub batch: usize,
    /// In ascending order.
    pub blocks: Vec<Block>,
}

impl Tiling {
    /// Divides `rows × columns` tiles into blocks of at most `limit` vectors (or one tile column, if that is more): of
    /// whole tile rows where they fit, else of equal parts of a tile row that waste few lanes.
    pub fn new(rows: usize, columns: usize, batch: usize, limit: usize) -> Self {
        let vectors = |columns: usize| (columns * batch).div_ceil(LANES);
        let all = vectors(columns);
        let mut tiling = Self { batch, blocks: Vec::new() };
        let (width, rows_of_block) = if all <= limit {
            // As many blocks as needed, all about equally long.
            let most = (limit / all).min(rows);
            (columns, rows.div_ceil(rows.div_ceil(most)))
        } else {
            let total = |width: usize| columns / width * vectors(width) + vectors(columns % width);
            let fitting = (2..=columns).filter(|&width| vectors(width) <= limit);
            (fitting.min_by_key(|&width| (total(width), columns.div_ceil(width))).unwrap_or(1), 1)
        };
        for first in (0..rows).step_by(rows_of_block) {
            for column in (0..columns).step_by(width) {
                let mut block = Block::default();
                for row in first..(first + rows_of_block).min(rows) {
                    let columns = width.min(columns - column);
                    let (vectors, numbers) = (vectors(columns), columns * batch);
                    let (vector, number) = (block.vectors, block.numbers);
                    block.strips.push(Strip { row, column, columns, vector, vectors, number, numbers });
                    block.vectors += vectors;
                    block.numbers += numbers;
                }
                tiling.blocks.push(block);
            }
        }
        tiling
    }

    /// Vectors of the longest block.
    pub fn vectors(&self) -> usize {
        self.blocks.iter().map(|block| block.vectors).max().unwrap_or_default()
    }

    /// Numbers of the longest block.
    pub fn numbers(&self) -> usize {
        self.blocks.iter().map(|block| block.numbers).max().unwrap_or_default()
    }

    /// Tile columns of the longest strip.
    pub fn columns(&self) -> usize {
        self.blocks.iter().flat_map(|block| &block.strips).map(|strip| strip.columns).max().unwrap_or_default()
    }
}
