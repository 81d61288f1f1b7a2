//! The integration tests, one module for each area. Tests that need a process of their own have
//! binaries beside this one, whose first lines say why.

mod common;

mod access;
mod attribute;
mod body;
mod bursts;
mod cancellation;
mod cluster_slots;
mod connections;
mod deadlines;
mod faults;
mod foreign_records;
mod interop;
mod lease;
mod long_outages;
mod lost_replies;
mod names;
#[cfg(feature = "serde")]
mod once_a_night;
mod processes;
mod readme;
mod runtimes;
mod secrets;
#[cfg(feature = "serde")]
mod single_flight;
mod store_suite;
#[cfg(feature = "tls")]
mod tls;
mod tracing;
mod waiting;
mod wakers;
mod without_pushes;
