//! Shared by several areas: managers on one store, child processes, and views of a server and of
//! the log.

pub(crate) mod cases;
pub(crate) mod chain;
pub(crate) mod fleet;
pub(crate) mod log;
pub(crate) mod monitor;
pub(crate) mod role;
pub(crate) mod waiters;
