//! The command, run as a user runs it, and the databases that it runs on.

mod command;
mod database;
