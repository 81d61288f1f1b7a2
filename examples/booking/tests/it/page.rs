//! The page, over HTTP and in a browser.

mod browser;
mod flows;
mod live;
mod looks;
mod protection;
mod visitor;
mod walk;
