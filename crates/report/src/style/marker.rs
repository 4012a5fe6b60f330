//! Shapes of dots. All coordinates are whole pixels, so that no renderer rounds them.

use serde::{Serialize, Serializer};

/// The shape of a dot: one of sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marker(u8);

/// The edge of a shape, around its centre; `y` grows downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outline {
    /// A circle of this radius.
    Circle(i32),
    /// Corners of a polygon.
    Polygon(&'static [(i32, i32)]),
}

/// All shapes, of about ten pixels.
const OUTLINES: [Outline; 16] = [
    Outline::Circle(5),
    // Square, triangles, diamond.
    Outline::Polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
    Outline::Polygon(&[(0, -5), (5, 4), (-5, 4)]),
    Outline::Polygon(&[(0, -6), (5, 0), (0, 6), (-5, 0)]),
    Outline::Polygon(&[(-5, -4), (5, -4), (0, 5)]),
    // Cross, plus, star.
    Outline::Polygon(&[
        (-3, -5),
        (0, -2),
        (3, -5),
        (5, -3),
        (2, 0),
        (5, 3),
        (3, 5),
        (0, 2),
        (-3, 5),
        (-5, 3),
        (-2, 0),
        (-5, -3),
    ]),
    Outline::Polygon(&[
        (-2, -5),
        (2, -5),
        (2, -2),
        (5, -2),
        (5, 2),
        (2, 2),
        (2, 5),
        (-2, 5),
        (-2, 2),
        (-5, 2),
        (-5, -2),
        (-2, -2),
    ]),
    Outline::Polygon(&[(0, -6), (1, -2), (6, -2), (2, 1), (4, 5), (0, 2), (-4, 5), (-2, 1), (-6, -2), (-1, -2)]),
    // Triangles to the sides, hourglass, bow tie.
    Outline::Polygon(&[(-5, 0), (4, -5), (4, 5)]),
    Outline::Polygon(&[(5, 0), (-4, -5), (-4, 5)]),
    Outline::Polygon(&[(-4, -5), (4, -5), (1, 0), (4, 5), (-4, 5), (-1, 0)]),
    Outline::Polygon(&[(-5, -4), (0, -1), (5, -4), (5, 4), (0, 1), (-5, 4)]),
    // Bar, T, half disc, chevron.
    Outline::Polygon(&[(-2, -6), (2, -6), (2, 6), (-2, 6)]),
    Outline::Polygon(&[(-5, -5), (5, -5), (5, -1), (2, -1), (2, 5), (-2, 5), (-2, -1), (-5, -1)]),
    Outline::Polygon(&[(-5, 3), (-5, 1), (-3, -3), (0, -4), (3, -3), (5, 1), (5, 3)]),
    Outline::Polygon(&[(-5, 5), (-5, 1), (0, -5), (5, 1), (5, 5), (0, -1)]),
];

/// Every shape once.
pub(super) const MARKERS: [Marker; 16] = {
    let mut all = [Marker(0); 16];
    let mut index = 0;
    while index < all.len() {
        all[index] = Marker(index as u8);
        index += 1;
    }
    all
};

impl Marker {
    /// Its edge.
    pub const fn outline(self) -> Outline {
        OUTLINES[self.0 as usize]
    }

    /// Its edge as the `d` of an SVG path, relative to the place before.
    pub fn path(self) -> String {
        match self.outline() {
            Outline::Circle(r) => format!("m0-{r}a{r} {r} 0 1 1 0 {d}a{r} {r} 0 1 1 0-{d}z", d = 2 * r),
            Outline::Polygon(corners) => {
                let steps = corners.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
                let steps: Vec<String> = corners.iter().copied().take(1).chain(steps).map(step).collect();
                format!("m{}z", steps.join("l"))
            }
        }
    }
}

/// Two numbers; a sign parts them as well as a space.
fn step((right, down): (i32, i32)) -> String {
    if down < 0 { format!("{right}{down}") } else { format!("{right} {down}") }
}

impl Serialize for Marker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.path())
    }
}
