//! What `#[state(...)]` says of a type and of a field.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, LitStr, Path, Result};

/// How a field is saved.
pub enum How {
    /// As the state of its type.
    Whole,
    /// Not at all.
    Skipped,
    /// Not at all, and it is empty; with the reason.
    Empty(LitStr),
    /// Each item of so many nested lists.
    Each(usize),
    /// By a function.
    With(Path),
}

impl How {
    /// What the attributes of a field say.
    ///
    /// # Errors
    /// If an attribute is unknown, has no reason, or is one of several.
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut found = None;
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("state")) {
            attribute.parse_nested_meta(|meta| {
                let said = Self::of(&meta)?;
                match found.replace(said) {
                    None => Ok(()),
                    Some(_) => Err(meta.error("a field has one attribute `state` at most")),
                }
            })?;
        }
        Ok(found.unwrap_or(Self::Whole))
    }

    fn of(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        if meta.path.is_ident("skip") {
            return reason(meta).map(|_| Self::Skipped);
        }
        if meta.path.is_ident("empty") {
            return reason(meta).map(Self::Empty);
        }
        if meta.path.is_ident("each") {
            return depth(meta).map(Self::Each);
        }
        if meta.path.is_ident("with") {
            return Ok(Self::With(meta.value()?.parse()?));
        }
        Err(meta.error("unknown attribute of a field; there are `skip`, `empty`, `each` and `with`"))
    }
}

/// Why a field is not saved.
fn reason(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    const MISSING: &str = "a field that is not saved needs a reason: `= \"reason\"`";
    let value = meta.value().map_err(|_| meta.error(MISSING))?;
    let text: LitStr = value.parse().map_err(|error| Error::new(error.span(), MISSING))?;
    if text.value().trim().is_empty() { Err(Error::new(text.span(), MISSING)) } else { Ok(text) }
}

/// How many lists are nested in `each(each(...))`.
fn depth(meta: &ParseNestedMeta<'_>) -> Result<usize> {
    let mut depth = 1;
    if meta.input.peek(syn::token::Paren) {
        meta.parse_nested_meta(|nested| {
            if !nested.path.is_ident("each") || depth > 1 {
                return Err(nested.error("`each` holds nothing but one `each`"));
            }
            depth += self::depth(&nested)?;
            Ok(())
        })?;
    }
    Ok(depth)
}

/// What is said of a type.
#[derive(Default)]
pub struct Container {
    /// The function that a loaded component has to satisfy.
    pub check: Option<Path>,
    /// Whether the variant of an enum is that of a new component.
    pub is_fixed: bool,
}

impl Container {
    /// What the attributes of a type say.
    ///
    /// # Errors
    /// If an attribute is unknown.
    pub fn read(attributes: &[Attribute], is_enum: bool) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("state")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("check") && found.check.is_none() {
                    found.check = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("fixed") && is_enum {
                    found.is_fixed = true;
                } else {
                    return Err(meta.error("unknown attribute of a type; there are one `check` and, of enums, `fixed`"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// Refuses attributes where none has a meaning.
///
/// # Errors
/// If there is one.
pub fn none(attributes: &[Attribute]) -> Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("state")) {
        Some(attribute) => Err(Error::new_spanned(attribute, "a variant has no attribute `state`; its fields may")),
        None => Ok(()),
    }
}
