//! The library and the command, used as a user does.

mod calls;
mod command;
mod crashes;
mod failures;
mod fences;
mod house;
mod races;
mod servers;
