//! Patterns of parameters: the names that they bind, and the parts that they leave behind.

use proc_macro2::Ident;
use syn::{
    Attribute, Pat, PatIdent, PatRest, PatWild, Token,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

/// A name that a parameter brings into scope.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    pub(crate) mutability: Option<Token![mut]>,
    /// The parameter's attributes: `#[cfg]` and lint levels, which apply to each statement of the name.
    pub(crate) attrs: Vec<Attribute>,
}

pub(crate) fn bindings(pat: &Pat, attrs: &[Attribute]) -> Vec<Binding> {
    struct Collect<'a>(Vec<&'a PatIdent>);
    impl<'a> Visit<'a> for Collect<'a> {
        fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
            if !is_unit_struct(pat) {
                self.0.push(pat);
            }
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut collect = Collect(Vec::new());
    collect.visit_pat(pat);
    collect
        .0
        .into_iter()
        .map(|pat| Binding {
            name: pat.ident.clone(),
            // The `mut` of `ref mut x` belongs to the reference.
            mutability: pat.mutability.filter(|_| pat.by_ref.is_none()),
            attrs: attrs.to_vec(),
        })
        .collect()
}

/// Whether the bindings move the whole argument. Parts skipped by `_` and `..` or borrowed by `ref`
/// stay in the argument.
pub(crate) fn binds_everything(pat: &Pat) -> bool {
    struct Leftover(bool);
    impl<'a> Visit<'a> for Leftover {
        fn visit_pat(&mut self, pat: &'a Pat) {
            self.0 |= matches!(pat, Pat::Macro(_) | Pat::Verbatim(_));
            visit::visit_pat(self, pat);
        }
        fn visit_pat_wild(&mut self, _: &'a PatWild) {
            self.0 = true;
        }
        fn visit_pat_rest(&mut self, _: &'a PatRest) {
            self.0 = true;
        }
        fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
            self.0 |= pat.by_ref.is_some() || pat.subpat.is_some() || is_unit_struct(pat);
        }
    }
    let mut leftover = Leftover(false);
    leftover.visit_pat(pat);
    !leftover.0
}

/// Removes `mut` from the bindings, since they are mutable only after the move into the body.
pub(crate) fn strip_mut(pat: &mut Pat) {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
            if pat.by_ref.is_none() {
                pat.mutability = None;
            }
            visit_mut::visit_pat_ident_mut(self, pat);
        }
    }
    Strip.visit_pat_mut(pat);
}

pub(crate) fn borrows_mutably(pat: &Pat) -> bool {
    struct FindMutableBorrow(bool);
    impl<'a> Visit<'a> for FindMutableBorrow {
        fn visit_pat_ident(&mut self, pat: &'a PatIdent) {
            self.0 |= pat.by_ref.is_some() && pat.mutability.is_some();
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut find = FindMutableBorrow(false);
    find.visit_pat(pat);
    find.0
}

/// Whether the pattern is a unit struct, as in `Marker: Marker`. Syntax alone does not tell it from a
/// binding, so the spelling decides.
fn is_unit_struct(pat: &PatIdent) -> bool {
    pat.by_ref.is_none()
        && pat.mutability.is_none()
        && pat.ident.to_string().starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use quote::ToTokens as _;
    use syn::{Pat, parse::Parser as _};

    fn pat(text: &str) -> Pat {
        Pat::parse_single.parse_str(text).expect(text)
    }

    #[test]
    fn pattern_binds_each_of_its_names() {
        for (text, expected) in [
            ("x", vec!["x"]),
            ("mut x", vec!["mut x"]),
            ("_", vec![]),
            ("Path(id)", vec!["id"]),
            ("(a, mut b)", vec!["a", "mut b"]),
            ("User { id, name: mut n, .. }", vec!["id", "mut n"]),
            ("ref mut x", vec!["x"]),
            ("all @ (a, _)", vec!["all", "a"]),
            ("[first, .., last]", vec!["first", "last"]),
            ("&(a, b)", vec!["a", "b"]),
            ("Marker", vec![]),
        ] {
            let found: Vec<_> = super::bindings(&pat(text), &[])
                .iter()
                .map(|b| {
                    if b.mutability.is_some() {
                        format!("mut {}", b.name)
                    } else {
                        b.name.to_string()
                    }
                })
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn skipped_and_borrowed_parts_stay_in_the_argument() {
        for text in ["x", "mut x", "Path(id)", "(a, (b, c))", "User { id, name }", "&x"] {
            assert!(super::binds_everything(&pat(text)), "{text}");
        }
        for text in ["_", "(a, _)", "User { id, .. }", "[a, ..]", "ref x", "x @ (_, _)", "Marker"] {
            assert!(!super::binds_everything(&pat(text)), "{text}");
        }
    }

    #[test]
    fn mut_is_stripped_from_values_only() {
        let mut pat = pat("(mut a, ref mut b, C { mut d })");
        super::strip_mut(&mut pat);
        assert_eq!(pat.to_token_stream().to_string(), "(a , ref mut b , C { d })");
    }
}
