//! Where an expansion finds the runtime.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};

use crate::args::Args;

pub(crate) struct CratePath {
    path: TokenStream,
    is_written: bool,
}

impl CratePath {
    /// `path`, unless the arguments say `crate = ..`.
    pub(crate) fn new(args: &Args, path: TokenStream) -> Self {
        match &args.krate {
            Some(written) => Self { path: written.to_token_stream(), is_written: true },
            None => Self { path, is_written: false },
        }
    }

    /// The crate's path. An error in what is made of it belongs to the tokens at `span`, unless the
    /// user has written the path.
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

    /// The module for expansions.
    pub(crate) fn private(&self, span: Span) -> TokenStream {
        let path = self.at(span);
        quote_spanned!(span=> #path::private)
    }
}
