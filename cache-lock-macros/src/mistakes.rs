//! Mistakes that rustc accepts, or reports without help.

use syn::{Expr, Path, Type};

use crate::{
    args::{Args, Prefix, Template, Time},
    errors::Errors,
    function::Function,
    key::{self, FieldPath, Segment},
};

mod guard;

/// Reports the mistakes. Returns whether the body consumes the guard that it only borrows.
pub(crate) fn check(args: &Args, function: &Function, errors: &mut Errors) -> bool {
    if let Some(template) = &args.key {
        check_floats(template, function, errors);
        if template.is_whole {
            check_text(template, function, errors);
        }
        // The runtime checks the braces of a prefix that is a constant.
        if template.is_whole
            && let Some(Prefix::Literal(prefix)) = &args.prefix
            && let Err(message) = key::check_braces(&prefix.value(), &template.segments)
        {
            errors.at(template.span, message);
        }
    }
    for (name, time) in
        [("timeout", &args.timeout), ("expire", &args.expire), ("max_hold", &args.max_hold)]
    {
        if let Some(Time::Const(path)) = time {
            check_duration(name, &path.path, function, errors);
        }
    }
    if let Some(with) = &args.with
        && makes_a_manager(with)
        && !function.runs_once()
    {
        errors.on(
            with,
            "each call would create a `LockManager` with connections or memory of its own; create the manager when the program starts, and name it here, as in `with = self.locks`",
        );
    }
    let Some(bind) = &args.bind else { return false };
    guard::check(bind, args.when.is_some(), &function.body, errors)
}

/// Reports a template that is a parameter's name without braces. All calls would share a lock, which
/// is probably a mistake.
fn check_text(template: &Template, function: &Function, errors: &mut Errors) {
    let [Segment::Text(text)] = &template.segments[..] else { return };
    // Other frameworks mark a parameter in a text with such a character.
    let name = text.trim_start_matches(['#', '$', ':', '@']);
    let Some(path) = key::parse_field_path(name) else { return };
    let is_parameter = match &path.root[..] {
        "self" => function.receiver.is_some() && !path.fields.is_empty(),
        root => function.parameter(root).is_some(),
    };
    if is_parameter {
        errors.at(
            template.span,
            format!(
                "the key {text:?} is the same in every call; write `key = \"{{{path}}}\"` for the value of `{path}`"
            ),
        );
    }
}

/// Reports a parameter that is a float, since equal floats can differ as text.
fn check_floats(template: &Template, function: &Function, errors: &mut Errors) {
    for segment in &template.segments {
        if let Segment::Value(FieldPath { root, fields }) = segment
            && fields.is_empty()
            && let Some(float) = function.type_of(root).and_then(float)
        {
            errors.at(
                template.span,
                format!(
                    "`{root}` is an `{float}`, and equal floats can read differently; pass an integer, such as cents for a price, or a string"
                ),
            );
        }
    }
}

fn float(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(reference) => float(&reference.elem),
        Type::Path(path) if path.path.is_ident("f64") => Some("f64"),
        Type::Path(path) if path.path.is_ident("f32") => Some("f32"),
        _ => None,
    }
}

fn check_duration(name: &str, path: &Path, function: &Function, errors: &mut Errors) {
    if let Some(ident) = path.get_ident()
        && function.parameter(&ident.to_string()).is_some()
    {
        errors.on(
            path,
            format!(
                "`{name}` is fixed at compile time, and `{ident}` is a parameter; for a value that each call decides, use `LockManager::run` with `LockOptions::{name}`"
            ),
        );
    }
}

/// `LockManager::in_memory()`, `LockManager::connect(url).await?` and the like.
fn makes_a_manager(expr: &Expr) -> bool {
    match expr {
        Expr::Await(expr) => makes_a_manager(&expr.base),
        Expr::MethodCall(expr) => makes_a_manager(&expr.receiver),
        Expr::Reference(expr) => makes_a_manager(&expr.expr),
        Expr::Try(expr) => makes_a_manager(&expr.expr),
        Expr::Call(call) => matches!(&*call.func, Expr::Path(path) if is_constructor(&path.path)),
        _ => false,
    }
}

fn is_constructor(path: &Path) -> bool {
    let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
    names.next().is_some_and(|name| ["builder", "connect", "in_memory"].iter().any(|n| name == n))
        && names.next().is_some_and(|name| name == "LockManager")
}
