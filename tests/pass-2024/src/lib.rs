//! The pass cases of the attribute, in edition 2024.
#![cfg(test)]

#[path = "../../ui/pass.rs"]
mod cases;
