//! The pass cases of the attribute, in edition 2021.

#[cfg(test)]
#[rustfmt::skip] // It is formatted as a module of the other edition's crate.
#[path = "../../ui/pass.rs"]
mod cases;
