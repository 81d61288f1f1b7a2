//! Key templates: splits `"{user.id}:{slot}"` into literal text and placeholders.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};

/// A piece of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Literal text, with `{{` and `}}` replaced by single braces.
    Text(String),
    /// The value of a parameter or of its field.
    Value(FieldPath),
}

/// The path from a parameter to a value: `user.address.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldPath {
    /// Without `r#`.
    pub(crate) root: String,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Named(String),
    Index(u32),
}

impl Field {
    /// The field as tokens at `span`. A keyword becomes a raw identifier.
    pub(crate) fn to_tokens(&self, span: Span) -> TokenStream {
        match self {
            Field::Named(name) => ident(name, span).into_token_stream(),
            Field::Index(index) => {
                let mut index = Literal::u32_unsuffixed(*index);
                index.set_span(span);
                quote!(#index)
            }
        }
    }
}

/// `name` as an identifier, raw if it is a keyword.
fn ident(name: &str, span: Span) -> Ident {
    match name {
        "self" | "Self" | "super" | "crate" => Ident::new(name, span),
        _ if syn::parse_str::<Ident>(name).is_ok() => Ident::new(name, span),
        _ => Ident::new_raw(name, span),
    }
}

/// Splits a template into the readable segments and an error for each mistake.
pub(crate) fn parse_template(template: &str) -> (Vec<Segment>, Vec<String>) {
    let mut segments = Vec::new();
    let mut errors = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let brace = &rest[at..=at];
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
        } else if brace == "}" {
            errors.push("unmatched `}`; write `}}` for a literal brace".to_owned());
        } else {
            // A brace inside a placeholder means that the placeholder is unclosed.
            let Some(close) = rest.find(['{', '}']).filter(|&i| rest[i..].starts_with('}')) else {
                errors.push(format!(
                    "unclosed `{{` before `{}`; close the placeholder with `}}`, or write `{{{{` for a literal brace",
                    rest.split(['{', '}']).next().unwrap_or_default()
                ));
                continue;
            };
            let inner = &rest[..close];
            rest = &rest[close + 1..];
            match parse_placeholder(inner) {
                Ok(path) => {
                    if text.is_empty()
                        && let Some(Segment::Value(before)) = segments.last()
                    {
                        errors.push(adjacent(before, &path));
                    }
                    if !text.is_empty() {
                        segments.push(Segment::Text(std::mem::take(&mut text)));
                    }
                    segments.push(Segment::Value(path));
                }
                Err(error) => errors.push(error),
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        segments.push(Segment::Text(text));
    }
    (segments, errors)
}

fn adjacent(a: &FieldPath, b: &FieldPath) -> String {
    format!(
        "adjacent placeholders `{{{a}}}{{{b}}}` can make the same key from different values; put a separator between them, such as `{{{a}}}:{{{b}}}`"
    )
}

fn parse_placeholder(inner: &str) -> Result<FieldPath, String> {
    if inner.trim().is_empty() {
        return Err(
            "empty placeholder `{}`; write the name of a parameter in it, or `{{}}` for literal braces"
                .to_owned(),
        );
    }
    // `a::b` is a path, not a format specifier.
    let unpathed = inner.replace("::", "");
    if let Some((name, _)) = inner.split_once(':').filter(|_| unpathed.contains(':')) {
        return Err(format!(
            "format specifiers are not allowed in a key template; write `{{{}}}`",
            name.trim()
        ));
    }
    parse_field_path(inner).ok_or_else(|| {
        let decorated = inner.trim_matches(|c: char| c.is_whitespace() || c == '&' || c == '*');
        match parse_field_path(decorated) {
            Some(path) => format!(
                "`{{{inner}}}` is more than the name of a value; write `{{{path}}}`, without spaces, `&` and `*`"
            ),
            None => format!(
                "`{{{inner}}}` is not a parameter or a field path; only `{{name}}`, `{{name.field}}` and the name of a `const` are allowed in a key template"
            ),
        }
    })
}

/// Whether a name is spelled like a constant: `N`, `SHARD_2`.
pub(crate) fn is_constant_name(name: &str) -> bool {
    name.contains(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// Checks the braces of a whole key. Values cannot add braces, since the runtime escapes them.
pub(crate) fn check_braces(prefix: &str, template: &[Segment]) -> Result<(), String> {
    let mut key = format!("{prefix}:");
    for segment in template {
        match segment {
            Segment::Text(text) => key.push_str(text),
            // Stands for a value, which is not empty.
            Segment::Value(_) => key.push('_'),
        }
    }
    if !key.contains(['{', '}']) {
        return Ok(());
    }
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    if tag.is_none_or(|(tag, _)| tag.is_empty()) {
        return Err(
            "the braces in a key enclose a Redis hash tag; write `{{tag}}`, or `{{{id}}}` for the value of a parameter between braces"
                .to_owned(),
        );
    }
    match RECORD_SUFFIXES.iter().find(|suffix| key.ends_with(**suffix)) {
        Some(suffix) => Err(format!(
            "a key with a hash tag must not end in `{suffix}`, which ends the name of a record that belongs to a lock; choose another ending"
        )),
        None => Ok(()),
    }
}

/// The endings of the records that the runtime keeps beside a lock.
const RECORD_SUFFIXES: [&str; 3] = [":fence", ":waiting", ":result"];

/// Reads `name`, `name.field`, `name.0`.
pub(crate) fn parse_field_path(text: &str) -> Option<FieldPath> {
    let mut parts = text.split('.');
    let root = parse_name(parts.next()?)?;
    let fields = parts.map(parse_field).collect::<Option<_>>()?;
    Some(FieldPath { root, fields })
}

pub(crate) const EXPECTED_FIELD: &str =
    "expected a field, such as `#[lock_key(id)]` or `#[lock_key(address.city)]`";

/// The fields of `#[lock_key(address.0.street)]`, or the error to report there.
pub(crate) fn parse_fields(tokens: TokenStream) -> syn::Result<Vec<Field>> {
    unspaced(tokens.clone())
        .split('.')
        .map(parse_field)
        .collect::<Option<_>>()
        .ok_or_else(|| syn::Error::new_spanned(tokens, EXPECTED_FIELD))
}

/// A field path as text without spaces. Tokens do not suffice, since `0.1` lexes as a float.
pub(crate) fn unspaced(tokens: TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

fn parse_field(text: &str) -> Option<Field> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        // `01` is not an index.
        let index: u32 = text.parse().ok()?;
        return (index.to_string() == text).then_some(Field::Index(index));
    }
    parse_name(text).filter(|name| name != "self").map(Field::Named)
}

/// Reads a name without its `r#`.
fn parse_name(text: &str) -> Option<String> {
    let name = text.strip_prefix("r#").unwrap_or(text);
    let mut chars = name.chars();
    let starts_well = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    if name == "_" || !starts_well || !chars.all(|c| c == '_' || c.is_alphanumeric()) {
        return None;
    }
    // Keywords are allowed: `{type}` is the parameter `r#type`.
    let tokens = syn::parse_str::<Ident>(&format!("r#{name}"));
    (name == "self" || tokens.is_ok()).then(|| name.to_owned())
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.root)?;
        for field in &self.fields {
            match field {
                Field::Named(name) => write!(f, ".{name}")?,
                Field::Index(index) => write!(f, ".{index}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, FieldPath, Segment, check_braces, parse_fields, parse_template};

    fn text(text: &str) -> Segment {
        Segment::Text(text.to_owned())
    }

    fn value(root: &str, fields: &[&str]) -> Segment {
        let fields = fields
            .iter()
            .map(|field| match field.parse() {
                Ok(index) => Field::Index(index),
                Err(_) => Field::Named((*field).to_owned()),
            })
            .collect();
        Segment::Value(FieldPath { root: root.to_owned(), fields })
    }

    fn segments(template: &str) -> Vec<Segment> {
        let (segments, errors) = parse_template(template);
        assert_eq!(errors, [""; 0], "{template}");
        segments
    }

    #[test]
    fn template_splits_into_text_and_values() {
        assert_eq!(segments(""), Vec::new());
        assert_eq!(segments("all"), [text("all")]);
        assert_eq!(segments("{id}"), [value("id", &[])]);
        assert_eq!(
            segments("room:{id}/{day}!"),
            [text("room:"), value("id", &[]), text("/"), value("day", &[]), text("!")]
        );
    }

    #[test]
    fn placeholder_reads_fields_and_indices() {
        assert_eq!(segments("{self.tenant}"), [value("self", &["tenant"])]);
        assert_eq!(segments("{pair.0}"), [value("pair", &["0"])]);
        assert_eq!(segments("{a.0.1.b}"), [value("a", &["0", "1", "b"])]);
        assert_eq!(segments("{größe}"), [value("größe", &[])]);
    }

    #[test]
    fn keyword_in_a_placeholder_is_a_raw_parameter() {
        assert_eq!(segments("{type}"), [value("type", &[])]);
        assert_eq!(segments("{r#type}"), [value("type", &[])]);
        assert_eq!(segments("{a.r#type}"), [value("a", &["type"])]);
    }

    #[test]
    fn doubled_braces_are_literal_text() {
        assert_eq!(segments("{{id}}"), [text("{id}")]);
        assert_eq!(segments("{{{id}}}"), [text("{"), value("id", &[]), text("}")]);
        assert_eq!(segments("a#b%c::d"), [text("a#b%c::d")]);
    }

    #[test]
    fn each_mistake_has_its_error() {
        for (template, expected) in [
            ("{a}{b}", "adjacent placeholders `{a}{b}`"),
            ("{", "unclosed `{`"),
            ("{id", "unclosed `{`"),
            ("{a{b}", "unclosed `{` before `a`"),
            ("}", "unmatched `}`"),
            ("{id}}", "unmatched `}`"),
            ("{}", "empty placeholder `{}`"),
            ("{ }", "empty placeholder `{}`"),
            ("{id:?}", "format specifiers are not allowed in a key template; write `{id}`"),
            ("{id:>5}", "format specifiers are not allowed in a key template; write `{id}`"),
            ("{:?}", "format specifiers are not allowed"),
            ("{a::B}", "`{a::B}` is not a parameter or a field path"),
            ("{id.to_string()}", "`{id.to_string()}` is not a parameter or a field path"),
            ("{0}", "`{0}` is not a parameter"),
            ("{ id }", "`{ id }` is more than the name of a value; write `{id}`"),
            ("{&user.id}", "`{&user.id}` is more than the name of a value; write `{user.id}`"),
            ("{a.}", "`{a.}` is not a parameter"),
            ("{a.01}", "`{a.01}` is not a parameter"),
            ("{_}", "`{_}` is not a parameter"),
            ("{a.self}", "`{a.self}` is not a parameter"),
            ("{*a}", "`{*a}` is more than the name of a value; write `{a}`"),
        ] {
            let (_, errors) = parse_template(template);
            assert_eq!(errors.len(), 1, "{template}: {errors:?}");
            assert!(errors[0].starts_with(expected), "{template}: {errors:?}");
        }
    }

    #[test]
    fn all_mistakes_of_a_template_are_reported() {
        assert_eq!(parse_template("{}:{a:?}:{b c}:}").1.len(), 4);
    }

    #[test]
    fn braces_in_a_key_enclose_a_hash_tag() {
        let check = |prefix: &str, template: &str| check_braces(prefix, &segments(template));
        for template in
            ["", "{id}", "{{eu}}", "{{eu}}:{id}", "{{{id}}}:x", "{id}:{{eu}}", "a:fence"]
        {
            assert_eq!(check("room", template), Ok(()), "{template}");
        }
        for template in ["{{", "}}", "{{}}", "}}eu{{", "{id}:}}", "{{}}{{eu}}"] {
            let error = check("room", template).expect_err(template);
            assert!(error.contains("write `{{tag}}`"), "{error}");
        }
        for end in ["fence", "waiting", "result"] {
            let template = format!("{{{{eu}}}}:{end}");
            let error = check("room", &template).expect_err(end);
            assert!(error.contains(&format!("must not end in `:{end}`")), "{error}");
        }
    }

    #[test]
    fn lock_key_takes_a_field_path() {
        let parse = |text: &str| parse_fields(text.parse().expect("tokens"));
        assert_eq!(parse("id").expect("a field"), [Field::Named("id".to_owned())]);
        assert_eq!(parse("0.1").expect("fields"), [Field::Index(0), Field::Index(1)]);
        assert_eq!(
            parse("address.city").expect("fields"),
            [Field::Named("address".to_owned()), Field::Named("city".to_owned())]
        );
        for text in ["", "id()", "a b.c()", "\"id\"", "a,b", "1x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
