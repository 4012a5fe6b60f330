//! Colours, places, and the styles of lines and texts.

/// Red, green, blue.
pub(super) type Colour = [u8; 3];

/// Letters, and lines at zero.
pub(crate) const INK: Colour = [27, 31, 36];
/// Numbers of axes.
pub(crate) const FAINT: Colour = [90, 100, 112];
/// Lines of the grid.
pub(crate) const RULE: Colour = [223, 227, 232];
/// Behind everything.
pub(crate) const PAPER: Colour = [255, 255, 255];
/// Cells without a number.
pub(crate) const EMPTY: Colour = [236, 239, 242];

/// A horizontal and a vertical coordinate.
pub(super) type Point = (f64, f64);

/// How lines are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub colour: Colour,
    pub width: f64,
    pub opacity: f64,
    /// Lengths of dashes and gaps; none for a solid line.
    pub dashes: &'static [f32],
}

impl Pen {
    pub const fn of(colour: Colour, width: f64) -> Self {
        Self { colour, width, opacity: 1.0, dashes: &[] }
    }
}

/// Where a text stands, relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Left,
    Centre,
    Right,
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Letters {
    pub size: f64,
    pub anchor: Anchor,
    pub colour: Colour,
    pub is_bold: bool,
    /// The colour around the letters.
    pub halo: Option<Colour>,
}

impl Letters {
    pub const fn of(size: f64, anchor: Anchor, colour: Colour) -> Self {
        Self { size, anchor, colour, is_bold: false, halo: None }
    }
}

/// A colour as SVG and CSS write it.
pub(crate) fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Letters on cells and bars, the same on light and dark pages: not quite white, which is the colour of paper.
pub(super) const BRIGHT: Colour = [255, 255, 254];
pub(super) const DIM: Colour = [17, 17, 17];
