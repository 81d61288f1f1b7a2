//! A model of the protocol in `docs/protocol.md`, by which managers wait for a key and hand it over.
//!
//! The checker goes through all states that a few managers and waiters can get into while a bounded
//! number of faults happens, and looks for one in which a property does not hold.

mod action;
mod canonical;
mod config;
mod display;
mod manager;
mod message;
mod model;
pub mod properties;
mod scripts;
mod state;
mod step;
mod trace;
mod view;

pub use action::Action;
pub use canonical::State;
pub use config::{Broken, Config, Kinds, Times};
pub use message::{Block, Push, Request, Token};
pub use model::LockModel;
pub use state::{Health, Inbox};
pub use trace::{SectionView, Step, Trace, trace};
pub use view::{Answer, LockView, ManagerView, PhaseView, ServedView, View};
