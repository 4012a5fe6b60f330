//! Layout of pictures, and its options.

use super::axis::is_resolved;
use fedgenie_experiment::error::Error;

/// How a picture is laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// The file format.
    pub form: Form,
    /// The family of its fonts.
    pub family: Family,
    /// The ends of the horizontal and of the vertical axis of lines, where the data do not decide; lines are cut off
    /// beyond them.
    pub ranges: [Option<[f64; 2]>; 2],
    /// Its width, in pixels.
    pub width: i32,
    /// The height of a plot with lines, in pixels; other pictures are as high as their rows.
    pub height: i32,
    /// Whether legends are below their plot, where several lines have names; otherwise only legends without room in the
    /// plot are.
    pub has_legend_below: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            form: Form::Svg,
            family: Family::SansSerif,
            ranges: [None; 2],
            width: 860,
            height: 480,
            has_legend_below: false,
        }
    }
}

/// File formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Scalable Vector Graphics.
    Svg,
    /// A page of the Portable Document Format, as large as the picture.
    Pdf,
}

/// A family of fonts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// As Helvetica.
    SansSerif,
    /// As Times.
    Serif,
    /// As Courier.
    Monospace,
}

/// Options of pictures, as written on a command line; omitted ones have their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayoutWishes<'a> {
    /// Ends of axes: `LOW:HIGH` or `y=LOW:HIGH` of the vertical, `x=LOW:HIGH` of the horizontal one.
    pub ranges: &'a [String],
    /// Pixels, 300 to 4000.
    pub width: Option<u32>,
    /// Pixels, 200 to 4000.
    pub height: Option<u32>,
    /// `sans-serif`, `serif` or `monospace`.
    pub font: Option<&'a str>,
    /// Whether legends are below their plots.
    pub has_legend_below: bool,
}

impl LayoutWishes<'_> {
    /// The layout that is asked for.
    ///
    /// # Errors
    /// Names the option with an impossible value, and the accepted values.
    pub fn layout(&self) -> Result<Layout, Error> {
        let Layout { width, height, .. } = Layout::default();
        let family = match self.font {
            None | Some("sans-serif") => Family::SansSerif,
            Some("serif") => Family::Serif,
            Some("monospace") => Family::Monospace,
            Some(other) => {
                let message = format!("found --font {other}; expected sans-serif, serif or monospace");
                return Err(Error::Usage(message));
            }
        };
        let mut ranges = [None; 2];
        for text in self.ranges {
            let (axis, ends) = range(text)?;
            ranges[axis] = Some(ends);
        }
        Ok(Layout {
            family,
            ranges,
            width: pixels("--width", self.width, 300)?.unwrap_or(width),
            height: pixels("--height", self.height, 200)?.unwrap_or(height),
            has_legend_below: self.has_legend_below,
            ..Layout::default()
        })
    }
}

fn pixels(option: &str, found: Option<u32>, least: u32) -> Result<Option<i32>, Error> {
    const MOST: u32 = 4000;
    match found {
        None => Ok(None),
        Some(pixels) if (least..=MOST).contains(&pixels) => Ok(Some(pixels as i32)),
        Some(pixels) => Err(Error::Usage(format!("found {option} {pixels}; expected {least} to {MOST} pixels"))),
    }
}

/// Which axis a range is of, 0 for the horizontal one, and its ends.
fn range(text: &str) -> Result<(usize, [f64; 2]), Error> {
    let wrong = || {
        Error::Usage(format!("found --range {text}; expected LOW:HIGH with LOW below HIGH, as 0.5:1, or x=LOW:HIGH"))
    };
    let (axis, ends) = text.split_once('=').unwrap_or(("y", text));
    let axis = ["x", "y"].iter().position(|&name| name == axis).ok_or_else(wrong)?;
    let (low, high) = ends.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let (low, high) = number(low).zip(number(high)).filter(|(low, high)| low < high).ok_or_else(wrong)?;
    if !is_resolved(low, high) {
        let message = format!(
            "found --range {text}; these ends are too close to each other: expected a HIGH that is above LOW by more \
             than 1e-12 of the larger of the two, and by more than 1e-290"
        );
        return Err(Error::Usage(message));
    }
    Ok((axis, [low, high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ranges: &[&str]) -> Result<[Option<[f64; 2]>; 2], String> {
        let ranges: Vec<String> = ranges.iter().map(|&text| text.to_owned()).collect();
        let wishes = LayoutWishes { ranges: &ranges, ..LayoutWishes::default() };
        wishes.layout().map(|layout| layout.ranges).map_err(|error| error.to_string())
    }

    #[test]
    fn ranges_are_of_an_axis_and_have_two_ends_apart() {
        assert_eq!(asked(&["x=0:200", "0.5:1"]), Ok([Some([0.0, 200.0]), Some([0.5, 1.0])]));
        assert_eq!(asked(&["-1e308:1e308"]), Ok([None, Some([-1e308, 1e308])]));
        assert_eq!(asked(&["0:1", "y=0:2"]), Ok([None, Some([0.0, 2.0])]), "the last one counts");
        for bad in ["", "1", ":", "1:", "z=0:1", "1:1", "2:1", "0:inf", "nan:1", "-inf:0", "0:1e999", "x=y=0:1"] {
            assert!(asked(&[bad]).unwrap_err().contains("expected LOW:HIGH"), "{bad}");
        }
        for close in ["0:5e-324", "-1e-300:1e-300", "1:1.0000000000000002", "1e308:1.0000000000000002e308"] {
            assert!(asked(&[close]).unwrap_err().contains("too close"), "{close}");
        }
    }

    #[test]
    fn sizes_and_fonts_are_of_those_that_there_are() {
        let refused = |wishes: LayoutWishes<'_>| wishes.layout().unwrap_err().to_string();
        for pixels in [0, 299, 4001, u32::MAX] {
            let found = refused(LayoutWishes { width: Some(pixels), ..LayoutWishes::default() });
            assert_eq!(found, format!("found --width {pixels}; expected 300 to 4000 pixels"));
        }
        assert!(refused(LayoutWishes { height: Some(199), ..LayoutWishes::default() }).contains("--height 199"));
        assert!(refused(LayoutWishes { font: Some("fun"), ..LayoutWishes::default() }).contains("--font fun"));
        let wishes = LayoutWishes { width: Some(300), height: Some(4000), ..LayoutWishes::default() };
        assert!(wishes.layout().is_ok_and(|layout| (layout.width, layout.height) == (300, 4000)));
    }
}
