//! Boxed bodies: `async_trait` turns an `async fn` into a `fn` with the body
//! `Box::pin(async move { .. })`. The expansion acquires the lock inside that block.

use proc_macro2::Ident;
use syn::{
    AssocType, Block, Expr, ExprAsync, FnArg, ItemFn, Local, Pat, PatIdent, Path, ReturnType,
    Signature, Stmt, Type,
    visit::{self, Visit},
};

/// The statements of the boxed block.
pub(crate) struct Boxed {
    /// The statement that async_trait inserts first; it fixes the type of `return` and `?`.
    pub(crate) pin: Option<Stmt>,
    /// The statements that move arguments into the block: `let x = x;` and
    /// `let (a, b) = { let __arg0 = __arg0; __arg0 };`.
    pub(crate) arguments: Vec<MovedArgument>,
    pub(crate) body: Vec<Stmt>,
}

impl Boxed {
    /// The user's pattern for a parameter that async_trait has renamed.
    pub(crate) fn pattern_of(&self, parameter: &Pat) -> Option<&Pat> {
        let Pat::Ident(PatIdent { ident, .. }) = parameter else { return None };
        let argument = self.arguments.iter().find(|argument| argument.parameter == *ident)?;
        Some(&argument.local.pat)
    }
}

/// `let pattern = parameter;`
pub(crate) struct MovedArgument {
    pub(crate) parameter: Ident,
    pub(crate) local: Local,
}

/// The output type of the boxed `async` block. `None` if the body is not such a block.
pub(crate) fn output(function: &ItemFn) -> Option<Type> {
    async_block(&function.block)?;
    let ReturnType::Type(_, ty) = &function.sig.output else { return None };
    struct FindOutput<'a>(Option<&'a Type>);
    impl<'a> Visit<'a> for FindOutput<'a> {
        fn visit_assoc_type(&mut self, assoc: &'a AssocType) {
            if self.0.is_none() && assoc.ident == "Output" {
                self.0 = Some(&assoc.ty);
            }
            visit::visit_assoc_type(self, assoc);
        }
    }
    let mut output = FindOutput(None);
    output.visit_type(ty);
    output.0.cloned()
}

/// Takes the statements out of the boxed block. `None` for an `async fn`, which has no such block.
pub(crate) fn take(function: &mut ItemFn) -> Option<Boxed> {
    if function.sig.asyncness.is_some() {
        return None;
    }
    let sig = function.sig.clone();
    let block = async_block_mut(&mut function.block)?;
    let mut statements = std::mem::take(&mut block.block.stmts).into_iter().peekable();
    let pin = statements.next_if(is_pin);
    let mut arguments = Vec::new();
    while let Some(parameter) = statements.peek().and_then(|stmt| moved_parameter(stmt, &sig)) {
        if let Some(Stmt::Local(local)) = statements.next() {
            arguments.push(MovedArgument { parameter, local });
        }
    }
    Some(Boxed { pin, arguments, body: statements.collect() })
}

/// Puts statements into the block that [`take`] has emptied.
pub(crate) fn put(function: &mut ItemFn, statements: Vec<Stmt>) {
    if let Some(block) = async_block_mut(&mut function.block) {
        block.block.stmts = statements;
    }
}

fn async_block(block: &Block) -> Option<&ExprAsync> {
    let Some(Stmt::Expr(Expr::Call(call), None)) = block.stmts.last() else { return None };
    match (&*call.func, call.args.first()) {
        (Expr::Path(func), Some(Expr::Async(block))) if is_box_pin(&func.path) => Some(block),
        _ => None,
    }
}

fn async_block_mut(block: &mut Block) -> Option<&mut ExprAsync> {
    let Some(Stmt::Expr(Expr::Call(call), None)) = block.stmts.last_mut() else { return None };
    match (&*call.func, call.args.first_mut()) {
        (Expr::Path(func), Some(Expr::Async(block))) if is_box_pin(&func.path) => Some(block),
        _ => None,
    }
}

fn is_box_pin(path: &Path) -> bool {
    let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
    names.next().is_some_and(|name| name == "pin") && names.next().is_some_and(|name| name == "Box")
}

/// `if let Some(__ret) = None::<Ret> { return __ret; }`
fn is_pin(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Expr(Expr::If(expr), _) if matches!(&*expr.cond, Expr::Let(_)) && expr.else_branch.is_none())
}

/// The parameter that a statement only moves into a pattern.
fn moved_parameter(stmt: &Stmt, sig: &Signature) -> Option<Ident> {
    let Stmt::Local(Local { init: Some(init), .. }) = stmt else { return None };
    let value = match &*init.expr {
        Expr::Block(block) => match block.block.stmts.last() {
            Some(Stmt::Expr(value, None)) => value,
            _ => return None,
        },
        value => value,
    };
    let Expr::Path(path) = value else { return None };
    path.path.get_ident().filter(|name| is_parameter(name, sig)).cloned()
}

fn is_parameter(name: &Ident, sig: &Signature) -> bool {
    sig.inputs.iter().any(|input| match input {
        FnArg::Receiver(_) => name == "self",
        FnArg::Typed(typed) => matches!(&*typed.pat, Pat::Ident(pat) if pat.ident == *name),
    })
}
