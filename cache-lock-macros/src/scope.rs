//! The names in the attribute's arguments, looked up among the function's parameters.

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

/// A piece of the key, ready to be written.
pub(crate) enum Part {
    Text(String),
    /// An expression for the value, such as `user.id`, at the place where the user named it.
    Value(TokenStream, Span),
}

/// The pieces of the key behind its prefix. Every name that is not in scope is an error.
pub(crate) fn key(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let mut parts = match &args.key {
        Some(template) => from_template(template, function, errors),
        None => from_parameters(function),
    };
    // Between the prefix and the rest, if there is a rest.
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
                    // Where the template is, but with the name's hygiene: both may come from
                    // different expansions of somebody's macro.
                    let span = template.span.resolved_at(name.span());
                    name.set_span(span);
                    // Ours, or rustc offers a field that is spelled alike in place of the template.
                    let ours = template.span.resolved_at(Span::mixed_site());
                    let fields = path.fields.iter().map(|field| field.to_tokens(ours));
                    parts.push(Part::Value(quote_spanned!(span=> #name #(.#fields)*), span));
                }
                Err(message) => errors.at(template.span, message),
            },
        }
    }
    parts
}

/// The values of the parameters with `#[lock_key]`, with colons in between.
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
            .ok_or_else(|| format!("`{{{path}}}` needs a method; this function has no `self`"));
    }
    if let Some(name) = function.parameter(root).or_else(|| function.const_parameter(root)) {
        return Ok(name.clone());
    }
    if function.has_type_parameter(root) {
        return Err(format!(
            "`{root}` is a type, and a key is made of values; take a parameter whose value tells the types apart"
        ));
    }
    // A constant that is in scope, or a parameter of the `impl`, which only rustc sees.
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

/// The guard's name must not hide a parameter from the body.
pub(crate) fn check_bind(args: &Args, function: &Function, errors: &mut Errors) {
    if let Some(bind) = &args.bind
        && function.parameter(&bind.unraw().to_string()).is_some()
    {
        errors.at(bind.span(), format!("`bind = {bind}` would shadow the parameter `{bind}`"));
    }
}

/// Whether an expression of the attribute names `ident`.
pub(crate) fn mentions(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == *ident,
        TokenTree::Group(group) => mentions(group.stream(), ident),
        // Perhaps a format string with the name in it.
        TokenTree::Literal(literal) => literal.to_string().contains(&ident.to_string()),
        TokenTree::Punct(_) => false,
    })
}

/// An expression of the attribute with `self` under the name that it has in the function:
/// async_trait has renamed it in the body, but does not see the attribute's arguments.
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
