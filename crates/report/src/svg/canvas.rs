//! The canvas of pictures: SVG or PDF, with one family of fonts.

use super::pdf::Pdf;
use super::{Family, Form, Layout};
use plotters::prelude::{IntoDrawingArea, SVGBackend};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontFamily,
    FontStyle, FontTransform, text_anchor,
};
use std::io;

pub(super) struct Canvas<'a> {
    on: On<'a>,
    family: Family,
}

enum On<'a> {
    Svg(SVGBackend<'a>),
    Pdf(Pdf<'a>),
}

/// A picture of so many pixels; `None` if drawing fails.
pub(super) fn drawn(
    [width, height]: [i32; 2],
    layout: Layout,
    draw: impl FnOnce(&super::Area<'_>) -> Result<(), super::Failed>,
) -> Option<Vec<u8>> {
    let size = (width.max(1) as u32, height.max(1) as u32);
    let (mut text, mut bytes) = (String::new(), Vec::new());
    let on = match layout.form {
        Form::Svg => On::Svg(SVGBackend::with_string(&mut text, size)),
        Form::Pdf => On::Pdf(Pdf::new(&mut bytes, size, layout.family)),
    };
    {
        let area = Canvas { on, family: layout.family }.into_drawing_area();
        area.fill(&plotters::style::WHITE).ok()?;
        draw(&area).ok()?;
        area.present().ok()?;
    }
    Some(match layout.form {
        Form::Svg => fedgenie_core::text::stripped_lines(&text).into_owned().into_bytes(),
        Form::Pdf => bytes,
    })
}

type Outcome = Result<(), DrawingErrorKind<io::Error>>;

impl DrawingBackend for Canvas<'_> {
    type ErrorType = io::Error;

    fn get_size(&self) -> (u32, u32) {
        match &self.on {
            On::Svg(on) => on.get_size(),
            On::Pdf(on) => on.size(),
        }
    }

    fn ensure_prepared(&mut self) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.ensure_prepared(),
            On::Pdf(_) => Ok(()),
        }
    }

    fn present(&mut self) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.present(),
            On::Pdf(on) => {
                on.finish();
                Ok(())
            }
        }
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_pixel(point, colour),
            On::Pdf(on) => {
                on.rectangle([point, (point.0 + 1, point.1 + 1)], &colour, true);
                Ok(())
            }
        }
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_line(from, to, style),
            On::Pdf(on) => {
                on.path(&[from, to], style);
                Ok(())
            }
        }
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        lower_right: BackendCoord,
        style: &S,
        is_filled: bool,
    ) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_rect(upper_left, lower_right, style, is_filled),
            On::Pdf(on) => {
                on.rectangle([upper_left, lower_right], style, is_filled);
                Ok(())
            }
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_path(path, style),
            On::Pdf(on) => {
                on.path(&path.into_iter().collect::<Vec<_>>(), style);
                Ok(())
            }
        }
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        is_filled: bool,
    ) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_circle(centre, radius, style, is_filled),
            On::Pdf(on) => {
                on.circle(centre, radius, style, is_filled);
                Ok(())
            }
        }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.fill_polygon(corners, style),
            On::Pdf(on) => {
                on.polygon(&corners.into_iter().collect::<Vec<_>>(), style);
                Ok(())
            }
        }
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, position: BackendCoord) -> Outcome {
        match &mut self.on {
            On::Svg(on) => on.draw_text(text, &InFamily { style, family: self.family }, position),
            On::Pdf(on) => {
                on.text(text, style, position);
                Ok(())
            }
        }
    }
}

/// A style of text in another family of fonts.
struct InFamily<'a, S> {
    style: &'a S,
    family: Family,
}

impl<S: BackendTextStyle> BackendTextStyle for InFamily<'_, S> {
    type FontError = S::FontError;

    fn color(&self) -> BackendColor {
        self.style.color()
    }

    fn size(&self) -> f64 {
        self.style.size()
    }

    fn transform(&self) -> FontTransform {
        self.style.transform()
    }

    fn style(&self) -> FontStyle {
        self.style.style()
    }

    fn anchor(&self) -> text_anchor::Pos {
        self.style.anchor()
    }

    fn family(&self) -> FontFamily<'_> {
        match self.family {
            Family::SansSerif => FontFamily::SansSerif,
            Family::Serif => FontFamily::Serif,
            Family::Monospace => FontFamily::Monospace,
        }
    }

    fn layout_box(&self, text: &str) -> Result<((i32, i32), (i32, i32)), S::FontError> {
        self.style.layout_box(text)
    }

    fn draw<E, D: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        text: &str,
        position: BackendCoord,
        draw: D,
    ) -> Result<Result<(), E>, S::FontError> {
        self.style.draw(text, position, draw)
    }
}
