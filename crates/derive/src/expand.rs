//! The implementation that a derive writes.

#[cfg(test)]
mod tests;

use crate::attributes::{Container, How, none};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Path, Result, Type, Variant, WherePredicate, parse_quote};

/// The number of a variant is one byte.
const MOST_VARIANTS: usize = 256;

/// Derives the state of a type, with the trait in `module`.
pub fn expand(input: TokenStream, module: &str) -> TokenStream {
    let derived = syn::parse2(input).and_then(|input| Implementation::of(&input, &syn::parse_str(module)?));
    derived.unwrap_or_else(Error::into_compile_error)
}

/// What goes into an implementation.
struct Implementation<'a> {
    module: &'a Path,
    /// Names of the type parameters.
    parameters: Vec<&'a Ident>,
    /// What has to hold for types that name a parameter.
    bounds: Vec<WherePredicate>,
}

impl Implementation<'_> {
    fn of(input: &DeriveInput, module: &Path) -> Result<TokenStream> {
        let is_enum = matches!(input.data, Data::Enum(_));
        let Container { check, is_fixed } = Container::read(&input.attrs, is_enum)?;
        let parameters = input.generics.type_params().map(|parameter| &parameter.ident).collect();
        let mut made = Implementation { module, parameters, bounds: Vec::new() };
        let body = match &input.data {
            Data::Struct(data) => {
                let (pattern, exchanges) = made.fields(&data.fields)?;
                quote!(let Self #pattern = self; #exchanges)
            }
            Data::Enum(data) if data.variants.is_empty() || data.variants.len() > MOST_VARIANTS => {
                let message = format!("an enum with a state has 1 to {MOST_VARIANTS} variants");
                return Err(Error::new_spanned(&input.ident, message));
            }
            Data::Enum(data) => {
                let variants: Vec<&Variant> = data.variants.iter().collect();
                let arms = variants.iter().map(|variant| made.arm(variant)).collect::<Result<TokenStream>>()?;
                let variant = if is_fixed { quote!() } else { made.variant(&variants) };
                quote!(#variant match self { #arms })
            }
            Data::Union(data) => return Err(Error::new_spanned(data.union_token, "a union has no state to save")),
        };
        let state = state(Span::mixed_site());
        let check = check.map(|path| {
            quote! {
                if #state.is_loading() && !#state.is_refused() {
                    let holds: bool = #path(&*self);
                    #state.require(holds);
                }
            }
        });

        let mut generics = input.generics.clone();
        if !made.bounds.is_empty() {
            generics.make_where_clause().predicates.extend(made.bounds);
        }
        let (generics, arguments, clause) = generics.split_for_impl();
        let name = &input.ident;
        Ok(quote! {
            #[automatically_derived]
            impl #generics #module::Stateful for #name #arguments #clause {
                fn exchange(&mut self, #state: &mut #module::State<'_>) {
                    // A component without fields has no use for it.
                    let _ = &#state;
                    #body
                    #check
                }
            }
        })
    }

    /// A pattern that names all fields, and what is done with them.
    fn fields(&mut self, fields: &Fields) -> Result<(TokenStream, TokenStream)> {
        let (mut pattern, mut exchanges) = (TokenStream::new(), TokenStream::new());
        for (index, (member, field)) in fields.members().zip(fields).enumerate() {
            let how = How::read(&field.attrs)?;
            self.bind(&field.ty, &how);
            // A type that cannot be saved is named where it is written.
            let span = Span::mixed_site().located_at(field.ty.span());
            let name = format_ident!("field_{index}", span = span);
            match exchange(&name, &how, span) {
                Some(exchange) => {
                    pattern.extend(quote!(#member: #name,));
                    exchanges.extend(exchange);
                }
                None => pattern.extend(quote!(#member: _,)),
            }
        }
        Ok((quote!({ #pattern }), exchanges))
    }

    /// Asks of a type that names a parameter what saving it asks for.
    fn bind(&mut self, field: &Type, how: &How) {
        let module = self.module;
        let named = self.parameters.iter().filter(|parameter| names(field.to_token_stream(), parameter));
        match how {
            How::Whole if named.clone().next().is_some() => self.bounds.push(parse_quote!(#field: #module::Stateful)),
            // The type of an item is not written down.
            How::Each(_) => self
                .bounds
                .extend(named.map(|parameter| -> WherePredicate { parse_quote!(#parameter: #module::Stateful) })),
            _ => {}
        }
    }

    fn arm(&mut self, variant: &Variant) -> Result<TokenStream> {
        none(&variant.attrs)?;
        let (pattern, exchanges) = self.fields(&variant.fields)?;
        let name = &variant.ident;
        Ok(quote!(Self::#name #pattern => { #exchanges }))
    }

    /// Saves the number of the variant, or makes the variant of a number that was loaded.
    fn variant(&mut self, variants: &[&Variant]) -> TokenStream {
        let state = state(Span::mixed_site());
        let numbers = 0..=u8::MAX;
        let (mut known, mut made) = (TokenStream::new(), TokenStream::new());
        for (variant, number) in variants.iter().zip(numbers) {
            let name = &variant.ident;
            let members = variant.fields.members();
            known.extend(quote!(Self::#name { .. } => #number,));
            made.extend(quote!(#number => Self::#name { #(#members: ::core::default::Default::default(),)* },));
            for field in &variant.fields {
                if self.parameters.iter().any(|parameter| names(field.ty.to_token_stream(), parameter)) {
                    let field = &field.ty;
                    self.bounds.push(parse_quote!(#field: ::core::default::Default));
                }
            }
        }
        let unknown = (variants.len() < MOST_VARIANTS).then(|| {
            quote! {
                _ => {
                    #state.require(false);
                    return;
                }
            }
        });
        quote! {
            let mut variant: u8 = match self { #known };
            #state.field(&mut variant);
            if #state.is_loading() {
                *self = match variant { #made #unknown };
            }
        }
    }
}

/// What is done with a field, if anything.
fn exchange(name: &Ident, how: &How, span: Span) -> Option<TokenStream> {
    let state = state(span);
    Some(match how {
        How::Skipped => return None,
        How::Whole => quote_spanned!(span=> #state.field(#name);),
        How::With(path) => quote_spanned!(span=> #path(#name, #state);),
        How::Empty(reason) => quote_spanned!(span=> ::core::assert!(#name.is_empty(), "{}", #reason);),
        How::Each(depth) => {
            let each = quote_spanned!(span=> ::core::iter::IntoIterator::into_iter);
            let one = quote_spanned!(span=> #state.field(item));
            let items = (1..*depth).fold(one, |inner, _| quote_spanned!(span=> #each(item).for_each(|item| #inner)));
            quote_spanned!(span=> #each(#name).for_each(|item| #items);)
        }
    })
}

/// The name of the state in an implementation, which no name of a program meets.
fn state(span: Span) -> Ident {
    Ident::new("state", span)
}

/// Whether a type names a parameter.
fn names(tokens: TokenStream, parameter: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *parameter,
        TokenTree::Group(group) => names(group.stream(), parameter),
        _ => false,
    })
}
