//! An HTTP service that books slots, guarded by `cache-lock`.
//!
//! [`booking`] is what there is to see: the critical section, and what it can fail with. The rest is
//! what a service needs around it: an API ([`api`]) over a [`repository`], users and their tokens
//! ([`auth`], [`accounts`]), limits, metrics, and a server that ends in order.

pub mod accounts;
pub mod api;
pub mod app;
pub mod auth;
pub mod booking;
pub mod cli;
pub mod client;
pub mod client_address;
pub mod clock;
pub mod demo;
pub mod domain;
pub mod error;
pub mod events;
pub mod limits;
pub mod metrics;
pub mod middleware;
pub mod openapi;
pub mod page;
pub mod replica;
pub mod repository;
pub mod run;
pub mod server;
pub mod storm;
