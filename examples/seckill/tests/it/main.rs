//! The command, run as a user runs it.

mod command;
mod embedded;
mod failures;
mod inventory;
mod report;
#[cfg(feature = "mongodb")]
mod servers;
#[cfg(all(unix, feature = "mongodb"))]
mod signals;
