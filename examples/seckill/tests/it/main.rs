//! The command, run as a user runs it.

mod command;
mod embedded;
mod failures;
mod inventory;
mod report;
mod servers;
#[cfg(unix)]
mod signals;
