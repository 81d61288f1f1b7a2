//! Mistakes of a body that moves or releases the borrowed guard. Rustc reports a variable of the
//! expansion that cannot be moved; the errors here name a fix.
//!
//! Only certain mistakes are errors: `spawn` functions require `'static`. If the body rebinds the
//! guard's name, the name may mean another value, so nothing is reported. Rustc reports the rest.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Expr, ExprAsync, ExprCall, ExprClosure, ExprMethodCall, ExprPath, Item, Macro, Pat, PatIdent,
    Path, Stmt,
    visit::{self, Visit},
};

use crate::{errors::Errors, key::unspaced};

/// Reports misuse of the guard `bind`, an `Option` if the attribute has `when`. Returns whether the
/// body consumes the guard.
pub(super) fn check(bind: &Ident, is_option: bool, body: &[Stmt], errors: &mut Errors) -> bool {
    let mut search = Search {
        bind,
        is_option,
        starter: None,
        is_later: false,
        is_bound_anew: false,
        is_released: false,
        found: Vec::new(),
    };
    for statement in body {
        search.visit_stmt(statement);
    }
    if search.is_bound_anew {
        return false;
    }
    for (span, message) in search.found {
        errors.at(span, message);
    }
    search.is_released
}

struct Search<'a> {
    bind: &'a Ident,
    is_option: bool,
    /// The function that starts a task or a thread, while the search visits its arguments.
    starter: Option<String>,
    /// Whether the visited code runs in that task or thread.
    is_later: bool,
    is_bound_anew: bool,
    is_released: bool,
    found: Vec<(Span, String)>,
}

impl Search<'_> {
    fn run_later(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = self.is_later;
        self.is_later |= self.starter.is_some();
        visit(self);
        self.is_later = before;
    }

    fn leaves(&mut self, span: Span) {
        let Some(starter) = self.starter.as_ref().filter(|_| self.is_later) else { return };
        let bind = self.bind;
        let token = if self.is_option {
            format!("{bind}.map(|lock| lock.token())")
        } else {
            format!("{bind}.token()")
        };
        self.found.push((
            span,
            format!(
                "the guard `{bind}` cannot leave the body, and `{starter}` starts code that may outlive the body; write `let token = {token};` before the call, and use `token` here"
            ),
        ));
    }

    /// Whether a parameter of the closure has the guard's name.
    fn hides(&self, closure: &ExprClosure) -> bool {
        struct FindName<'a>(&'a Ident, bool);
        impl<'a> Visit<'a> for FindName<'_> {
            fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
                self.1 |= pat.ident == *self.0;
                visit::visit_pat_ident(self, pat);
            }
        }
        let mut find = FindName(self.bind, false);
        closure.inputs.iter().for_each(|input: &Pat| find.visit_pat(input));
        find.1
    }

    /// Searches the tokens of a macro call. A name before a dot is a value; any other use of the name
    /// may bind it.
    fn search_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut is_part_of_path = false;
        while let Some(token) = tokens.next() {
            let is_dot = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.');
            match &token {
                TokenTree::Group(group) => self.search_tokens(group.stream()),
                TokenTree::Ident(ident) if *ident == *self.bind && !is_part_of_path => {
                    if tokens.peek().is_some_and(is_dot) {
                        self.leaves(ident.span());
                    } else {
                        self.is_bound_anew = true;
                    }
                }
                _ => {}
            }
            is_part_of_path =
                matches!(&token, TokenTree::Punct(punct) if ['.', ':'].contains(&punct.as_char()));
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let Expr::Path(path) = &*call.func else { return visit::visit_expr_call(self, call) };
        if !asks_for_static(&path.path) {
            return visit::visit_expr_call(self, call);
        }
        let starter = unspaced(path.path.to_token_stream());
        let before = self.starter.replace(starter);
        call.args.iter().for_each(|arg| self.visit_expr(arg));
        self.starter = before;
    }

    fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
        self.run_later(|search| visit::visit_expr_async(search, block));
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        if !self.hides(closure) {
            self.run_later(|search| visit::visit_expr_closure(search, closure));
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if path.path.is_ident(self.bind) {
            self.leaves(path.path.segments[0].ident.span());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let is_guard = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident(self.bind));
        if is_guard && !self.is_later && !self.is_option && call.method == "release" {
            self.is_released = true;
            self.found.push((
                call.method.span(),
                format!(
                    "the body only borrows the guard `{}`, and the lock is released when the body ends; remove the call, or return earlier",
                    self.bind
                ),
            ));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.search_tokens(mac.tokens.clone());
    }

    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.is_bound_anew |= pat.ident == *self.bind;
        visit::visit_pat_ident(self, pat);
    }

    /// Items do not see local variables.
    fn visit_item(&mut self, _: &'ast Item) {}
}

/// `tokio::spawn`, `thread::spawn`, `task::spawn_blocking` and the like.
fn asks_for_static(path: &Path) -> bool {
    const STARTERS: [&str; 3] = ["spawn", "spawn_blocking", "spawn_local"];
    const MODULES: [&str; 6] = ["tokio", "task", "thread", "smol", "async_std", "rayon"];
    let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
    names.next().is_some_and(|name| STARTERS.contains(&&*name))
        && names.next().is_some_and(|name| MODULES.contains(&&*name))
}
