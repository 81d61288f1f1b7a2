//! Resolves the names in the attribute's arguments to the function's parameters.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::ext::IdentExt as _;

use crate::{
    args::{Args, Template},
    errors::Errors,
    function::Function,
    key::{self, FieldPath, Segment},
    suggest,
};

/// A resolved segment of the key.
pub(crate) enum Part {
    Text(String),
    /// The expression of a value, such as `user.id`, and the span of its name in the source.
    Value(TokenStream, Span),
}

/// The parts of the key after its prefix. A name that is not in scope is an error.
pub(crate) fn key(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let mut parts = match &args.key {
        Some(template) => from_template(template, function, errors),
        None => from_parameters(function),
    };
    // A colon separates the prefix from the other parts, if any.
    match parts.first_mut() {
        Some(Part::Text(text)) => text.insert(0, ':'),
        Some(Part::Value(..)) => parts.insert(0, Part::Text(":".to_owned())),
        None => {}
    }
    parts
}

fn from_template(template: &Template, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let mut parts = Vec::new();
    for segment in &template.segments {
        match segment {
            Segment::Text(text) => parts.push(Part::Text(text.clone())),
            Segment::Value(path) => match root(path, template.span, function) {
                Ok(mut name) => {
                    // The template's location with the name's hygiene, since the two may come from
                    // different macro expansions.
                    let span = template.span.resolved_at(name.span());
                    name.set_span(span);
                    // With the user's hygiene, rustc suggests to replace the whole template by a
                    // similar field.
                    let mixed = template.span.resolved_at(Span::mixed_site());
                    let fields = path.fields.iter().map(|field| field.to_tokens(mixed));
                    parts.push(Part::Value(quote_spanned!(span=> #name #(.#fields)*), span));
                }
                Err(message) => errors.at(template.span, message),
            },
        }
    }
    parts
}

/// The values of the parameters with `#[lock_key]`, separated by colons.
fn from_parameters(function: &Function) -> Vec<Part> {
    let mut parts = Vec::new();
    for param in &function.lock_keys {
        if !parts.is_empty() {
            parts.push(Part::Text(":".to_owned()));
        }
        let (mut name, span) = (param.name.clone(), param.span);
        name.set_span(span);
        let fields = param.fields.iter().map(|field| field.to_tokens(span));
        parts.push(Part::Value(quote_spanned!(span=> #name #(.#fields)*), span));
    }
    parts
}

fn root(path: &FieldPath, template: Span, function: &Function) -> Result<Ident, String> {
    let root = &path.root;
    if root == "self" {
        return function
            .receiver
            .clone()
            .ok_or_else(|| format!("`{{{path}}}` uses `self`, and this function has no `self`; use the name of a parameter"));
    }
    if let Some(name) = function.parameter(root).or_else(|| function.const_parameter(root)) {
        return Ok(name.clone());
    }
    if function.has_type_parameter(root) {
        return Err(format!(
            "`{root}` is a type, and a key is made of values; take a parameter whose value tells the types apart"
        ));
    }
    // Only rustc sees constants in scope and const parameters of the `impl`.
    if key::is_constant_name(root) {
        return Ok(Ident::new(root, template.resolved_at(Span::mixed_site())));
    }
    let names: Vec<_> = function.parameters().map(|name| name.unraw().to_string()).collect();
    let names = || names.iter().map(String::as_str);
    let help = match (suggest::nearest(root, names()), names().count()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, 0) if function.receiver.is_some() => {
            format!("for a field of `self` write `{{self.{path}}}`")
        }
        (None, 0) => "this function has no parameters".to_owned(),
        (None, 1) => format!("the only parameter is {}", suggest::list(names())),
        (None, _) => format!("the parameters are {}", suggest::list(names())),
    };
    Err(format!("no parameter named `{root}` in this function; {help}"))
}

/// Reports a guard's name that shadows a parameter.
pub(crate) fn check_bind(args: &Args, function: &Function, errors: &mut Errors) {
    if let Some(bind) = &args.bind
        && function.parameter(&bind.unraw().to_string()).is_some()
    {
        errors.at(bind.span(), format!("`bind = {bind}` would shadow the parameter `{bind}`; choose another name for the guard"));
    }
}

/// Whether an expression of the attribute names `ident`.
pub(crate) fn mentions(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == *ident,
        TokenTree::Group(group) => mentions(group.stream(), ident),
        // A format string may contain the name.
        TokenTree::Literal(literal) => literal.to_string().contains(&ident.to_string()),
        TokenTree::Punct(_) => false,
    })
}

/// Renames `self` in an expression of the attribute to `receiver`. async_trait renames `self` in the
/// body, but does not see the attribute's arguments.
pub(crate) fn rename_self(tokens: TokenStream, receiver: Option<&Ident>) -> TokenStream {
    let Some(receiver) = receiver.filter(|receiver| *receiver != "self") else { return tokens };
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(ident) if ident == "self" => {
                let mut receiver = receiver.clone();
                receiver.set_span(ident.span().resolved_at(receiver.span()));
                receiver.into_token_stream()
            }
            TokenTree::Group(group) => {
                let stream = rename_self(group.stream(), Some(receiver));
                let mut renamed = Group::new(group.delimiter(), stream);
                renamed.set_span(group.span());
                TokenTree::Group(renamed).into()
            }
            other => other.into(),
        })
        .collect()
}
