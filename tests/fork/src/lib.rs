//! Nothing but tests: see `tests/fork.rs`.
