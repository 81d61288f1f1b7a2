//! The path by which an expansion names the runtime.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};

use crate::args::Args;

pub(crate) struct CratePath {
    path: TokenStream,
    is_written: bool,
}

impl CratePath {
    /// The path of the `crate` argument. Default: `path`.
    pub(crate) fn new(args: &Args, path: TokenStream) -> Self {
        match &args.krate {
            Some(written) => Self { path: written.to_token_stream(), is_written: true },
            None => Self { path, is_written: false },
        }
    }

    /// The crate's path at `span`, so that errors point to `span`. A path from the `crate` argument
    /// keeps its own span.
    pub(crate) fn at(&self, span: Span) -> TokenStream {
        if self.is_written {
            return self.path.clone();
        }
        self.path
            .clone()
            .into_iter()
            .map(|mut token| {
                token.set_span(span.resolved_at(token.span()));
                token
            })
            .collect()
    }

    /// The path of the runtime's module for expansions.
    pub(crate) fn private(&self, span: Span) -> TokenStream {
        let path = self.at(span);
        quote_spanned!(span=> #path::private)
    }
}
