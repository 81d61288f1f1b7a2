//! The pass cases of the attribute, in edition 2024.

#[cfg(test)]
#[path = "../../ui/pass.rs"]
mod cases;

/// The attribute's page, whose examples need the facade.
#[cfg(doctest)]
#[doc = include_str!("../../../cache-lock-macros/src/cache_lock.md")]
mod attribute {}
