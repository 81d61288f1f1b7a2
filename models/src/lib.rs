//! A model of the protocol in `docs/protocol.md`, by which managers wait for a key and hand it over.
//!
//! The checker goes through all states that a few managers and waiters can get into while a bounded
//! number of faults happens, and looks for one in which a property does not hold.

mod action;
mod canonical;
mod config;
mod display;
mod manager;
mod model;
pub mod properties;
mod scripts;
mod state;
mod step;

pub use action::Action;
pub use canonical::State;
pub use config::{Broken, Config, Kinds, Times};
pub use model::LockModel;
