//! A picture as a page of PDF.
//!
//! A pixel is 3/4 of a point, as browsers have it. Texts are in fonts that every reader of PDF has, which have Latin
//! letters and, by the font of symbols, Greek ones and signs of mathematics; other letters are question marks.

use super::Family;
use super::pen::{Anchor, Colour, Letters, Pen, Point};
use pdf_writer::{Content, Finish, Name, Pdf as File, Rect, Ref, Str};

/// Points per pixel.
const SCALE: f32 = 0.75;

/// How far the ends of the curves that make a quarter of a circle are from their handles, as a share of the radius.
const ROUND: f32 = 0.552_284_8;

pub(super) struct Pdf {
    size: [f64; 2],
    family: Family,
    content: Content,
    /// Opacities in use, in thousandths; each has a state of graphics.
    opacities: Vec<u16>,
}

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const LETTERS: Ref = Ref::new(5);
const SYMBOLS: Ref = Ref::new(6);
const FIRST_STATE: i32 = 7;

impl Pdf {
    /// Of so many pixels.
    pub fn new(size: [f64; 2], family: Family) -> Self {
        let mut content = Content::new();
        content.transform([SCALE, 0.0, 0.0, SCALE, 0.0, 0.0]);
        Self { size, family, content, opacities: Vec::new() }
    }

    /// From the top to the bottom: PDF counts the other way.
    fn at(&self, (x, y): Point) -> [f32; 2] {
        [x as f32, (self.size[1] - y) as f32]
    }

    /// Sets colour and opacity for fills, or with a pen for lines; false if they would be invisible.
    fn begin(&mut self, colour: Colour, opacity: f64, pen: Option<Pen>) -> bool {
        let opacity = (1000.0 * opacity.clamp(0.0, 1.0)) as u16;
        let known = self.opacities.iter().position(|&known| known == opacity);
        let state = known.unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        let [red, green, blue] = colour.map(|part| f32::from(part) / 255.0);
        self.content.set_parameters(Name(format!("S{state}").as_bytes()));
        match pen {
            None => self.content.set_fill_rgb(red, green, blue),
            Some(pen) => {
                self.content.set_stroke_rgb(red, green, blue).set_line_width(pen.width as f32);
                self.content.set_dash_pattern(pen.dashes.iter().copied(), 0.0)
            }
        };
        opacity > 0
    }

    /// Begins a part beyond whose frame (left, top, width, height) nothing is drawn.
    pub fn open_frame(&mut self, [x, y, width, height]: [f64; 4]) {
        let [left, bottom] = self.at((x, y + height));
        self.content.save_state().rect(left, bottom, width as f32, height as f32).clip_nonzero().end_path();
    }

    /// Ends what [`Self::open_frame`] or [`Self::open_moved`] began.
    pub fn close_frame(&mut self) {
        self.content.restore_state();
    }

    pub fn open_moved(&mut self, (right, down): Point) {
        self.content.save_state().transform([1.0, 0.0, 0.0, 1.0, right as f32, -down as f32]);
    }

    pub fn path(&mut self, points: &[Point], pen: Pen) {
        if points.len() < 2 || !self.begin(pen.colour, pen.opacity, Some(pen)) {
            return;
        }
        self.lines(points);
        self.content.stroke();
    }

    pub fn polygon(&mut self, corners: &[Point], colour: Colour, opacity: f64) {
        if corners.len() < 3 || !self.begin(colour, opacity, None) {
            return;
        }
        self.lines(corners);
        self.content.close_path().fill_nonzero();
    }

    fn lines(&mut self, points: &[Point]) {
        for (index, &point) in points.iter().enumerate() {
            let [x, y] = self.at(point);
            if index == 0 {
                self.content.move_to(x, y)
            } else {
                self.content.line_to(x, y)
            };
        }
    }

    /// A filled circle with an edge.
    pub fn circle(&mut self, centre: Point, radius: f64, fill: Colour, edge: Pen) {
        let ([x, y], r) = (self.at(centre), radius as f32);
        let h = r * ROUND;
        self.begin(edge.colour, edge.opacity, Some(edge));
        self.begin(fill, 1.0, None);
        self.content.move_to(x + r, y);
        self.content.cubic_to(x + r, y + h, x + h, y + r, x, y + r);
        self.content.cubic_to(x - h, y + r, x - r, y + h, x - r, y);
        self.content.cubic_to(x - r, y - h, x - h, y - r, x, y - r);
        self.content.cubic_to(x + h, y - r, x + r, y - h, x + r, y);
        self.content.close_path().fill_nonzero_and_stroke();
    }

    pub fn text(&mut self, text: &str, position: Point, letters: Letters) {
        if !self.begin(letters.colour, 1.0, None) {
            return;
        }
        let size = letters.size as f32;
        let runs = runs(text, self.family);
        let width = runs.iter().map(|run| run.width).sum::<f32>() * size;
        let along = match letters.anchor {
            Anchor::Left => 0.0,
            Anchor::Centre => -width / 2.0,
            Anchor::Right => -width,
        };
        let [x, y] = self.at(position);
        // A letter's middle is about a third of its size above the line that it stands on.
        let start = [x + along, y - 0.35 * size];
        self.content.begin_text().set_text_matrix([1.0, 0.0, 0.0, 1.0, start[0], start[1]]);
        for run in &runs {
            self.content.set_font(Name(if run.is_symbols { b"Symbols" } else { b"Letters" }), size);
            self.content.show(Str(&run.bytes));
        }
        self.content.end_text();
    }

    /// The file.
    pub fn finish(self) -> Vec<u8> {
        let [width, height] = self.size.map(|pixels| pixels as f32 * SCALE);
        let mut file = File::new();
        file.catalog(CATALOG).pages(PAGES);
        file.pages(PAGES).kids([PAGE]).count(1);
        let mut page = file.page(PAGE);
        page.media_box(Rect::new(0.0, 0.0, width, height)).parent(PAGES).contents(CONTENT);
        let mut resources = page.resources();
        resources.fonts().pair(Name(b"Letters"), LETTERS).pair(Name(b"Symbols"), SYMBOLS);
        let mut states = resources.ext_g_states();
        for number in 0..self.opacities.len() {
            states.pair(Name(format!("S{number}").as_bytes()), Ref::new(FIRST_STATE + number as i32));
        }
        states.finish();
        resources.finish();
        page.finish();
        for (&opacity, number) in self.opacities.iter().zip(FIRST_STATE..) {
            let opacity = f32::from(opacity) / 1000.0;
            file.ext_graphics(Ref::new(number)).stroking_alpha(opacity).non_stroking_alpha(opacity);
        }
        let name: &[u8] = match self.family {
            Family::SansSerif => b"Helvetica",
            Family::Serif => b"Times-Roman",
            Family::Monospace => b"Courier",
        };
        file.type1_font(LETTERS).base_font(Name(name)).encoding_predefined(Name(b"WinAnsiEncoding"));
        file.type1_font(SYMBOLS).base_font(Name(b"Symbol"));
        file.stream(CONTENT, &self.content.finish());
        file.finish()
    }
}

/// Letters of one font.
struct Run {
    is_symbols: bool,
    /// In the encoding of the font.
    bytes: Vec<u8>,
    /// In units of the size.
    width: f32,
}

/// The letters of a text by their fonts.
fn runs(text: &str, family: Family) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for letter in text.chars() {
        let (is_symbols, byte, width) = encoded(letter, family);
        match runs.last_mut().filter(|run| run.is_symbols == is_symbols) {
            Some(run) => {
                run.bytes.push(byte);
                run.width += width;
            }
            None => runs.push(Run { is_symbols, bytes: vec![byte], width }),
        }
    }
    runs
}

/// Whether a letter is in the font of symbols, its byte there, and its width.
fn encoded(letter: char, family: Family) -> (bool, u8, f32) {
    const SIGNS: [(char, u8, u16); 12] = [
        ('≤', 0xa3, 549),
        ('≥', 0xb3, 549),
        ('∞', 0xa5, 713),
        ('−', 0x2d, 549),
        ('Σ', 0x53, 592),
        ('Δ', 0x44, 612),
        ('√', 0xd6, 549),
        ('≈', 0xbb, 549),
        ('∈', 0xce, 713),
        ('↑', 0xad, 603),
        ('→', 0xae, 987),
        ('↓', 0xaf, 603),
    ];
    // In the order of Unicode, from α on; the letters of the font are Latin.
    const GREEK: &[u8; 25] = b"abgdezhqiklmnxoprVstufcyw";
    let of_letters = |byte: u8| (false, byte, f32::from(width(byte, family)) / 1000.0);
    match letter {
        ' '..='~' | '\u{a0}'..='\u{ff}' => of_letters(letter as u32 as u8),
        '…' => of_letters(0x85),
        '‘' => of_letters(0x91),
        '’' => of_letters(0x92),
        '“' => of_letters(0x93),
        '”' => of_letters(0x94),
        '–' => of_letters(0x96),
        '—' => of_letters(0x97),
        '€' => of_letters(0x80),
        'α'..='ω' => (true, GREEK[letter as usize - 'α' as usize], 0.54),
        _ => match SIGNS.iter().find(|(sign, ..)| *sign == letter) {
            Some(&(_, byte, width)) => (true, byte, f32::from(width) / 1000.0),
            None => of_letters(b'?'),
        },
    }
}

/// Widths of the letters from the space to the tilde, in thousandths of the size, as Adobe's metrics of the fonts have
/// them.
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];

const TIMES: [u16; 95] = [
    250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500, 500,
    500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889,
    722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500,
    444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480,
    200, 480, 541,
];

/// The width of a letter; approximate beyond the tilde.
fn width(byte: u8, family: Family) -> u16 {
    let of = |known: &[u16; 95], other: u16| {
        let place = byte.checked_sub(b' ').map(usize::from);
        place.and_then(|place| known.get(place)).copied().unwrap_or(other)
    };
    match (family, byte) {
        (Family::Monospace, _) => 600,
        (_, 0x85) => 1000,
        (_, 0xb2 | 0xb3 | 0xb9) => 333,
        (Family::SansSerif, _) => of(&HELVETICA, 556),
        (Family::Serif, _) => of(&TIMES, 500),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_to_the_font_that_has_them() {
        let found = runs("E[τ] ≤ 2 °C 你", Family::SansSerif);
        let texts: Vec<(bool, &[u8])> = found.iter().map(|run| (run.is_symbols, &run.bytes[..])).collect();
        assert_eq!(texts, [(false, &b"E["[..]), (true, b"t"), (false, b"] "), (true, b"\xa3"), (false, b" 2 \xb0C ?")]);
        // Helvetica: A 667, two dots 278 each, as Adobe has them.
        assert!((runs("A..", Family::SansSerif)[0].width - 1.223).abs() < 1e-6);
        assert!((runs("A..", Family::Serif)[0].width - 1.222).abs() < 1e-6);
        assert!((runs("A..", Family::Monospace)[0].width - 1.8).abs() < 1e-6);
        assert_eq!((encoded('ω', Family::Serif).1, encoded('ς', Family::Serif).1), (b'w', b'V'));
    }
}
