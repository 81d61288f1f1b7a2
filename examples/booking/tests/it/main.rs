//! The service, run as a process and asked over HTTP.

mod api;
mod attacks;
mod bookings;
mod command;
mod floods;
mod page;
mod repository;
mod service;
mod storm;
