//! The sheet that pictures are drawn on: compact SVG, or a page of PDF.
//!
//! Coordinates are pixels. SVG has them with one decimal, and says each colour as an attribute: a file needs no style
//! sheet, and a page changes colours by selectors of these attributes.

use super::path;
use super::pdf::Pdf;
use super::pen::{Anchor, Colour, INK, Letters, PAPER, Pen, Point, hex};
use super::{Family, Form, Layout};
use crate::style::{Outline, Style};
use std::fmt::Write;

/// A picture.
pub(super) struct Canvas {
    on: On,
    /// The style of texts in the open group.
    common: Option<Letters>,
    size: [f64; 2],
    heading: String,
    /// Heights at top and bottom that a page has in words of its own: heading and key.
    pub beside: [f64; 2],
}

enum On {
    Svg(String, Family),
    Pdf(Box<Pdf>),
}

impl Canvas {
    /// White, of so many pixels, with a heading.
    pub fn new(size: [f64; 2], heading: &str, layout: Layout) -> Self {
        let on = match layout.form {
            Form::Svg => On::Svg(String::new(), layout.family),
            Form::Pdf => On::Pdf(Box::new(Pdf::new(size, layout.family))),
        };
        let mut canvas = Self { on, common: None, size, heading: heading.to_owned(), beside: [super::HEADING, 0.0] };
        canvas.rectangle([0.0, 0.0, size[0], size[1]], PAPER, "");
        canvas.open("class=\"heading\"");
        let letters = Letters { is_bold: true, ..Letters::of(15.0, Anchor::Centre, INK) };
        canvas.text(heading, (size[0] / 2.0, super::HEADING / 2.0), letters);
        canvas.close();
        canvas
    }

    /// A file.
    pub fn file(self) -> Vec<u8> {
        let [width, height] = self.size;
        match self.on {
            On::Pdf(pdf) => pdf.finish(),
            On::Svg(body, family) => {
                let size = format!("width=\"{width}\" height=\"{height}\"");
                let root = format!(
                    "{size} role=\"img\" font-family=\"{}\" xmlns=\"http://www.w3.org/2000/svg\"",
                    family_names(family)
                );
                let title = format!("<title>{}</title>", escaped(&self.heading));
                svg(&root, [0.0, 0.0, width, height], &(title + &body)).into_bytes()
            }
        }
    }

    /// The same shapes as an element of a page, with these attributes; nothing of PDF.
    pub fn element(self, attributes: &str) -> String {
        let ([width, height], [top, bottom]) = (self.size, self.beside);
        match self.on {
            On::Pdf(_) => String::new(),
            On::Svg(body, _) => {
                let root = format!("{attributes} data-size=\"{width} {height}\"");
                svg(&root, [0.0, top, width, height - top - bottom], &body)
            }
        }
    }

    /// Begins a group with these attributes, which are none of a reader's.
    pub fn open(&mut self, attributes: &str) {
        if let On::Svg(body, _) = &mut self.on {
            let _ = write!(body, "<g {attributes}>");
        }
    }

    pub fn close(&mut self) {
        self.common = None;
        if let On::Svg(body, _) = &mut self.on {
            body.push_str("</g>");
        }
    }

    /// Begins a group of texts in one style.
    pub fn open_texts(&mut self, letters: Letters, attributes: &str) {
        self.open(&format!("{attributes}{}", look(letters)));
        self.common = Some(letters);
    }

    /// Begins a part beyond whose frame (left, top, width, height) nothing is drawn.
    pub fn open_frame(&mut self, [x, y, width, height]: [f64; 4], class: &str) {
        match &mut self.on {
            On::Svg(body, _) => {
                let [x, y, width, height] = [x, y, width, height].map(path::number);
                let place = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
                let _ = write!(body, "<svg class=\"{class}\" {place} viewBox=\"{x} {y} {width} {height}\">");
            }
            On::Pdf(pdf) => pdf.open_frame([x, y, width, height]),
        }
    }

    pub fn close_frame(&mut self) {
        match &mut self.on {
            On::Svg(body, _) => body.push_str("</svg>"),
            On::Pdf(pdf) => pdf.close_frame(),
        }
    }

    /// Moves everything until [`Self::close_moved`] to the right and down; `attributes` are as in [`Self::open`].
    pub fn open_moved(&mut self, (right, down): Point, attributes: &str) {
        match &mut self.on {
            On::Svg(..) => {
                let [right, down] = [right, down].map(path::number);
                self.open(&format!("{attributes} transform=\"translate({right} {down})\""));
            }
            On::Pdf(pdf) => pdf.open_moved((right, down)),
        }
    }

    pub fn close_moved(&mut self) {
        match &mut self.on {
            On::Svg(..) => self.close(),
            On::Pdf(pdf) => pdf.close_frame(),
        }
    }

    /// Lines in one style; `more` are further attributes.
    pub fn lines(&mut self, parts: &[Vec<Point>], pen: Pen, more: &str) {
        match &mut self.on {
            On::Svg(body, _) => {
                let (d, colour) = (path::open(parts), hex(pen.colour));
                let _ = write!(body, "<path{more} d=\"{d}\" fill=\"none\" stroke=\"{colour}\"");
                if pen.width != 1.0 {
                    let _ = write!(body, " stroke-width=\"{}\"", path::number(pen.width));
                }
                if !pen.dashes.is_empty() {
                    let dashes: Vec<String> = pen.dashes.iter().map(f32::to_string).collect();
                    let _ = write!(body, " stroke-dasharray=\"{}\"", dashes.join(" "));
                }
                end(body, pen.opacity);
            }
            On::Pdf(pdf) => parts.iter().for_each(|points| pdf.path(points, pen)),
        }
    }

    pub fn line(&mut self, points: &[Point], pen: Pen, more: &str) {
        self.lines(&[points.to_vec()], pen, more);
    }

    /// Filled shapes of one colour; an `edge` of paper has one pixel.
    pub fn areas(&mut self, shapes: &[Vec<Point>], colour: Colour, opacity: f64, more: &str) {
        match &mut self.on {
            On::Svg(body, _) => {
                let _ = write!(body, "<path{more} d=\"{}\" fill=\"{}\"", path::closed(shapes), hex(colour));
                end(body, opacity);
            }
            On::Pdf(pdf) => shapes.iter().for_each(|corners| pdf.polygon(corners, colour, opacity)),
        }
    }

    /// Left, top, width, height.
    pub fn rectangle(&mut self, rectangle: [f64; 4], colour: Colour, more: &str) {
        self.areas(&[corners(rectangle)], colour, 1.0, more);
    }

    /// Cells of a grid in one colour: runs of a row from a column on, so many of them. `origin` is the grid's upper
    /// left, `size` that of a cell, which is in SVG the unit.
    pub fn cells(&mut self, runs: &[[usize; 3]], origin: Point, size: [f64; 2], colour: Colour) {
        let line = |&[row, column, count]: &[usize; 3]| {
            let (row, column) = (row as f64, column as f64);
            vec![(column, row), (column + count as f64, row)]
        };
        match &mut self.on {
            On::Svg(body, _) => {
                let d = path::open(&runs.iter().map(line).collect::<Vec<_>>());
                let _ = write!(body, "<path d=\"{d}\" stroke=\"{}\"/>", hex(colour));
            }
            On::Pdf(pdf) => {
                for points in runs.iter().map(line) {
                    let at = |&(x, y): &Point| (origin.0 + size[0] * x, origin.1 + size[1] * (y + 0.5));
                    pdf.path(&points.iter().map(at).collect::<Vec<_>>(), Pen::of(colour, size[1]));
                }
            }
        }
    }

    /// Begins a group of [`Self::cells`].
    pub fn open_cells(&mut self, origin: Point, size: [f64; 2]) {
        if let On::Svg(body, _) = &mut self.on {
            let (x, y) = (path::number(origin.0), path::number(origin.1 + size[1] / 2.0));
            let [across, down] = size;
            let _ = write!(body, "<g transform=\"translate({x} {y}) scale({across:.4} {down:.4})\">");
        }
    }

    /// A shape that is there for a pointer alone.
    pub fn target(&mut self, rectangle: [f64; 4]) {
        if let On::Svg(body, _) = &mut self.on {
            let d = path::closed(&[corners(rectangle)]);
            let _ = write!(body, "<path d=\"{d}\" fill=\"none\" pointer-events=\"all\"/>");
        }
    }

    /// Markers of one style, on paper wherever lines come near; `more` are further attributes.
    pub fn markers(&mut self, style: &Style, places: &[Point], more: &str) {
        let (fill, edge) = if style.is_hollow { (PAPER, style.colour) } else { (style.colour, PAPER) };
        match &mut self.on {
            On::Svg(body, _) => {
                let shape = style.marker.path();
                let one = |&(x, y): &Point| format!("M{} {}{shape}", path::number(x), path::number(y));
                let d: String = places.iter().map(one).collect();
                let _ = write!(body, "<path{more} d=\"{d}\" {}/>", marker_paint(style));
            }
            On::Pdf(pdf) => {
                for &(x, y) in places {
                    let pen = Pen::of(edge, if style.is_hollow { 1.4 } else { 2.0 });
                    match style.marker.outline() {
                        Outline::Circle(radius) => pdf.circle((x, y), f64::from(radius), fill, pen),
                        Outline::Polygon(corners) => {
                            let at = |&(right, down): &(i32, i32)| (x + f64::from(right), y + f64::from(down));
                            let corners: Vec<Point> = corners.iter().map(at).collect();
                            let closed: Vec<Point> = corners.iter().chain(&corners[..2]).copied().collect();
                            if style.is_hollow {
                                pdf.polygon(&corners, fill, 1.0);
                                pdf.path(&closed, pen);
                            } else {
                                pdf.path(&closed, pen);
                                pdf.polygon(&corners, fill, 1.0);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Writes a text; the position is that of the middle of its height. Nothing of it is taken for markup.
    pub fn text(&mut self, text: &str, (x, y): Point, letters: Letters) {
        self.text_with(text, (x, y), letters, "");
    }

    /// As [`Self::text`], with further attributes.
    pub fn text_with(&mut self, text: &str, (x, y): Point, letters: Letters, more: &str) {
        match &mut self.on {
            On::Svg(body, _) => {
                let [x, y] = [x, y + 0.35 * letters.size].map(path::number);
                let look = if self.common == Some(letters) { String::new() } else { look(letters) };
                let _ = write!(body, "<text{more} x=\"{x}\" y=\"{y}\"{look}>{}</text>", escaped(text));
            }
            On::Pdf(pdf) => pdf.text(text, (x, y), letters),
        }
    }
}

/// The style of a text as attributes.
fn look(letters: Letters) -> String {
    let anchor = match letters.anchor {
        Anchor::Left => "",
        Anchor::Centre => " text-anchor=\"middle\"",
        Anchor::Right => " text-anchor=\"end\"",
    };
    let (size, colour) = (path::number(letters.size), hex(letters.colour));
    let mut look = format!(" font-size=\"{size}\"{anchor} fill=\"{colour}\"");
    if letters.is_bold {
        look.push_str(" font-weight=\"600\"");
    }
    if let Some(halo) = letters.halo {
        let _ = write!(look, " stroke=\"{}\" stroke-width=\"3\" paint-order=\"stroke\"", hex(halo));
    }
    look
}

/// Fill and edge of a marker as attributes.
pub(super) fn marker_paint(style: &Style) -> String {
    let (colour, paper) = (hex(style.colour), hex(PAPER));
    if style.is_hollow {
        format!("fill=\"{paper}\" stroke=\"{colour}\" stroke-width=\"1.4\"")
    } else {
        // The edge of a filled marker is behind it, so that nothing of a small one is covered.
        format!("fill=\"{colour}\" stroke=\"{paper}\" stroke-width=\"2\" paint-order=\"stroke\"")
    }
}

fn end(body: &mut String, opacity: f64) {
    if opacity < 1.0 {
        let _ = write!(body, " opacity=\"{opacity}\"");
    }
    body.push_str("/>");
}

/// The corners of left, top, width, height.
pub(super) fn corners([x, y, width, height]: [f64; 4]) -> Vec<Point> {
    vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
}

const fn family_names(family: Family) -> &'static str {
    match family {
        Family::SansSerif => "system-ui,Segoe UI,Roboto,Helvetica,Arial,Liberation Sans,sans-serif",
        Family::Serif => "serif",
        Family::Monospace => "monospace",
    }
}

fn svg(root: &str, frame: [f64; 4], body: &str) -> String {
    let frame = frame.map(path::number).join(" ");
    format!("<svg {root} viewBox=\"{frame}\">{body}</svg>\n")
}

/// A text inside an element; without characters that no XML file may have.
pub(super) fn escaped(text: &str) -> String {
    let stripped = fedgenie_core::text::stripped(text);
    let mut written = String::with_capacity(stripped.len());
    for letter in stripped.chars() {
        match letter {
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '&' => written.push_str("&amp;"),
            '"' => written.push_str("&quot;"),
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_texts_and_colours_are_attributes() {
        let mut canvas = Canvas::new([300.0, 200.0], "a<b>&\"\u{202e}\u{1}\u{ffff}", Layout::default());
        canvas.lines(
            &[vec![(1.0, 2.0), (3.0, 2.5)]],
            Pen { opacity: 0.5, ..Pen::of([1, 2, 255], 2.0) },
            " class=\"n0\"",
        );
        let text = String::from_utf8(canvas.file()).unwrap();
        assert!(text.starts_with("<svg width=\"300\" height=\"200\" role=\"img\" font-family="));
        assert!(text.contains(" viewBox=\"0 0 300 200\">"));
        assert!(text.contains(">a&lt;b&gt;&amp;&quot;</text>"), "{text}");
        let line =
            "<path class=\"n0\" d=\"M1 2l2 .5\" fill=\"none\" stroke=\"#0102FF\" stroke-width=\"2\" opacity=\"0.5\"/>";
        assert!(text.contains(line), "{text}");
    }

    /// A page has the shapes of a file, and crops what it says itself.
    #[test]
    fn an_element_has_the_body_of_a_file() {
        let draw = || {
            let mut canvas = Canvas::new([300.0, 200.0], "t", Layout::default());
            canvas.markers(&Style::of_index(1), &[(20.0, 30.5)], "");
            canvas.beside[1] = 20.0;
            canvas
        };
        let (file, element) = (String::from_utf8(draw().file()).unwrap(), draw().element("class=\"wide\""));
        let body = |text: &str| text.split_once('>').unwrap().1.to_owned();
        assert_eq!(body(&file).strip_prefix("<title>t</title>").unwrap(), body(&element));
        let height = 200.0 - 20.0 - super::super::HEADING;
        assert!(element.contains(&format!("viewBox=\"0 {} 300 {height}\"", super::super::HEADING)), "{element}");
    }
}
