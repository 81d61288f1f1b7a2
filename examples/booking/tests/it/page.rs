//! The page, over HTTP and in a browser.

mod begin;
mod browser;
mod expiry;
mod flows;
mod live;
mod looks;
mod narrow;
mod pages;
mod protection;
mod visitor;
mod walk;
