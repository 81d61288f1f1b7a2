//! The arguments of the attribute, as written: `prefix = "room", key = "{id}", timeout = "2s"`.

use proc_macro2::Span;
use syn::{Expr, ExprClosure, ExprPath, Ident, LitBool, LitStr, Path};

use crate::key::Segment;

mod parse;
mod table;
mod values;

#[derive(Default)]
pub(crate) struct Args {
    pub(crate) prefix: Option<Prefix>,
    pub(crate) key: Option<Template>,
    pub(crate) timeout: Option<Time>,
    pub(crate) expire: Option<Time>,
    pub(crate) renew: Option<LitBool>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) bind: Option<Ident>,
    pub(crate) or_else: Option<OrElse>,
    pub(crate) skip_if_locked: Option<Span>,
    pub(crate) on_lost: Option<OnLostArg>,
    pub(crate) release: Option<ReleaseArg>,
    pub(crate) when: Option<Expr>,
    pub(crate) with: Option<Expr>,
    pub(crate) krate: Option<Path>,
    /// The names of the written arguments, in order. A misspelled name counts as the suggested name.
    seen: Vec<String>,
}

pub(crate) enum Prefix {
    Literal(LitStr),
    Const(ExprPath),
}

/// `key = ".."`, and the segments of its template.
pub(crate) struct Template {
    pub(crate) span: Span,
    pub(crate) segments: Vec<Segment>,
    /// Whether the template has no errors.
    pub(crate) is_whole: bool,
}

pub(crate) enum Time {
    Millis(u64, Span),
    Const(ExprPath),
}

pub(crate) enum OrElse {
    Path(ExprPath),
    Closure(ExprClosure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLostArg {
    Cancel,
    Finish,
}

/// Whether the caller waits for the reply to the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseArg {
    Background,
    Wait,
}

impl Args {
    /// Whether the attribute has a `key`, valid or not.
    pub(crate) fn has_key(&self) -> bool {
        self.has_seen("key")
    }

    fn has_seen(&self, name: &str) -> bool {
        self.seen.iter().any(|seen| seen == name)
    }
}

#[cfg(test)]
mod tests;
