//! The service, run as a process and asked over HTTP.

mod api;
mod attacks;
mod bookings;
mod command;
mod crowds;
mod floods;
mod memory;
mod page;
mod repeats;
mod repository;
mod service;
mod storm;
