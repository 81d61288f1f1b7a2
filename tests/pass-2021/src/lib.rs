//! The pass cases of the attribute, in edition 2021.

#[cfg(test)]
#[path = "../../ui/pass.rs"]
mod cases;
