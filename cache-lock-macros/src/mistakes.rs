//! Mistakes that rustc does not see, or for which it has no sentence that helps.

use syn::{Expr, Path, Type};

use crate::{
    args::{Args, Prefix, Template, Time},
    errors::Errors,
    function::Function,
    key::{self, FieldPath, Segment},
};

mod guard;

/// What else is wrong. Gives whether the body consumes the guard, which is only lent to it.
pub(crate) fn check(args: &Args, function: &Function, errors: &mut Errors) -> bool {
    if let Some(template) = &args.key {
        check_floats(template, function, errors);
        if template.is_whole {
            check_text(template, function, errors);
        }
        // What a constant brings in shows when the lock is acquired.
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
            "each call would make a `LockManager`, and the locks of one exclude nothing in another; make one when the program starts, and name it here, as in `with = self.locks`",
        );
    }
    let Some(bind) = &args.bind else { return false };
    guard::check(bind, args.when.is_some(), &function.body, errors)
}

/// A template without a placeholder that is the name of a parameter: one lock for all calls, which
/// cannot be meant.
fn check_text(template: &Template, function: &Function, errors: &mut Errors) {
    let [Segment::Text(text)] = &template.segments[..] else { return };
    // As other frameworks mark a parameter in a text.
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

/// A parameter that is a float, which has more than one text for one number.
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
                "`{name}` is fixed at compile time, and `{ident}` is a parameter; for one that each call decides use `LockManager::run` with `LockOptions::{name}`"
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
