//! The description as a page.

use std::fmt::{self, Write};

use serde_json::Value;

use crate::error::ApiError;

pub(super) const STYLE: &str = "\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: start; font-weight: bold; padding-top: .5rem; }
th, td { border-bottom: 1px solid; padding: .25rem .5rem; text-align: start; vertical-align: top; }
:target { outline: 2px solid; outline-offset: .25rem; }
";

/// Text, with what is markup in HTML escaped.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(c),
        })
    }
}

/// Text in which code stands between backquotes.
struct Prose<'a>(&'a str);

impl fmt::Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split('`').enumerate().try_for_each(|(number, part)| match number % 2 {
            0 => Text(part).fmt(f),
            _ => write!(f, "<code>{}</code>", Text(part)),
        })
    }
}

/// A member that is prose.
fn prose<'a>(value: &'a Value, member: &str) -> Prose<'a> {
    Prose(value[member].as_str().unwrap_or_default())
}

/// A member that is text.
fn text<'a>(value: &'a Value, member: &str) -> Text<'a> {
    Text(value[member].as_str().unwrap_or_default())
}

/// The members of an object, in order.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(super) fn html(api: &Value) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(api, &mut page);
    page
}

fn write(api: &Value, page: &mut String) -> fmt::Result {
    let info = &api["info"];
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"stylesheet\" href=\"/docs.css\">\n</head>\n<body>\n\
         <main>\n<h1>{title} {version}</h1>\n<p>{description} \
         For programs: <a href=\"/openapi.json\">OpenAPI {openapi}</a>.</p>\n",
        title = text(info, "title"),
        version = text(info, "version"),
        description = text(info, "description"),
        openapi = text(api, "openapi"),
    )?;
    for (path, operations) in members(&api["paths"]) {
        for (method, operation) in members(operations) {
            write_operation(page, path, method, operation)?;
        }
    }
    page.write_str("<h2>Types</h2>\n")?;
    for (name, schema) in members(&api["components"]["schemas"]) {
        write_schema(page, name, schema)?;
    }
    page.write_str(
        "<h2>Problems</h2>\n<p>Errors are problem details, RFC 9457; <code>type</code> points \
         here.</p>\n<dl>\n",
    )?;
    for problem in ApiError::one_of_each() {
        let (kind, title) = problem.kind();
        writeln!(
            page,
            "<dt id=\"{kind}\"><code>{kind}</code>, {status}: {title}</dt><dd>{detail}</dd>",
            status = problem.status().as_u16(),
            detail = Prose(&problem.detail()),
        )?;
    }
    page.write_str("</dl>\n</main>\n</body>\n</html>\n")
}

fn write_operation(page: &mut String, path: &str, method: &str, operation: &Value) -> fmt::Result {
    writeln!(page, "<h2><code>{} {}</code></h2>", method.to_uppercase(), Text(path))?;
    write!(page, "<p>{}", prose(operation, "summary"))?;
    if let Some(needs) = operation["security"].as_array() {
        let optional = needs.iter().any(|one| members(one).next().is_none());
        page.write_str(if optional { " A token may be sent." } else { " Needs a token." })?;
    }
    page.write_str("</p>\n")?;
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        writeln!(page, "<p>Body: {}</p>", kind(body))?;
    }
    if let Some(parameters) = operation["parameters"].as_array() {
        page.write_str("<table>\n<caption>Parameters</caption>\n")?;
        for parameter in parameters {
            writeln!(
                page,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td></tr>",
                text(parameter, "name"),
                kind(&parameter["schema"]),
                prose(parameter, "description"),
            )?;
        }
        page.write_str("</table>\n")?;
    }
    page.write_str("<table>\n<caption>Answers</caption>\n")?;
    for (status, response) in members(&operation["responses"]) {
        let schema = members(&response["content"]).next().map(|(_, content)| &content["schema"]);
        writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            Text(status),
            schema.map(kind).unwrap_or_default(),
            prose(response, "description"),
        )?;
    }
    page.write_str("</table>\n")
}

fn write_schema(page: &mut String, name: &str, schema: &Value) -> fmt::Result {
    writeln!(
        page,
        "<h3 id=\"type-{0}\">{0}</h3>\n<p>{1}</p>",
        Text(name),
        prose(schema, "description")
    )?;
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        return writeln!(page, "<p>One of <code>{}</code>.</p>", Text(&values.join(", ")));
    }
    page.write_str("<table>\n<caption>Members</caption>\n")?;
    for (member, schema) in members(&schema["properties"]) {
        writeln!(
            page,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td></tr>",
            Text(member),
            kind(schema),
            prose(schema, "description"),
        )?;
    }
    page.write_str("</table>\n")
}

/// What a schema allows, in a few words of HTML.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = Text(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#type-{name}\">{name}</a>");
    }
    let all = |of: &Value| {
        let all = of.as_array().into_iter().flatten().map(kind);
        all.collect::<Vec<_>>().join(" or ")
    };
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("array of {}", kind(&schema["items"])),
        Value::String(name) => match schema["format"].as_str() {
            Some(format) => format!("{} ({})", Text(name), Text(format)),
            None => Text(name).to_string(),
        },
        Value::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            Text(&names.join(" or ")).to_string()
        }
        _ => all(&schema["oneOf"]) + &all(&schema["allOf"]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Prose, html, kind};
    use serde_json::json;

    #[test]
    fn what_is_text_stays_text() {
        let evil = "<script>alert('x')</script>";
        let api = json!({
            "info": { "title": evil },
            "paths": { evil: { "get": { "summary": evil, "responses": { evil: {} } } } },
            "components": { "schemas": { evil: { "properties": { evil: { "type": evil } } } } },
        });
        assert!(!html(&api).contains("<script"));
    }

    #[test]
    fn code_in_prose_is_code() {
        let shown = Prose("See `a<b` and `c`.").to_string();
        assert_eq!(shown, "See <code>a&lt;b</code> and <code>c</code>.");
    }

    #[test]
    fn kinds_are_told_in_a_few_words() {
        let slot = json!({ "$ref": "#/components/schemas/Slot" });
        for (schema, words) in [
            (json!({ "type": "string", "format": "uuid" }), "string (uuid)"),
            (json!({ "type": ["string", "null"] }), "string or null"),
            (json!({ "type": "array", "items": { "type": "string" } }), "array of string"),
            (slot, "<a href=\"#type-Slot\">Slot</a>"),
        ] {
            assert_eq!(kind(&schema), words);
        }
    }
}
