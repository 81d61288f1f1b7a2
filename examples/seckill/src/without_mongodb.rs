//! In place of MongoDB, where its driver was left out of the build: half of what is to be compiled.
//!
//! No server can be used, so there is none to call these methods of.

use std::convert::Infallible;

use example_support::{ServerUrl, Unusable, unusable};

use crate::inventory::LocalInventory;

/// A MongoDB server that has answered.
#[derive(Debug, Clone)]
pub(crate) struct Mongo(Infallible);

/// A database on such a server.
#[derive(Debug, Clone)]
pub(crate) struct Database(Infallible);

impl Mongo {
    /// As with the driver.
    #[must_use]
    pub(crate) fn version(&self) -> &str {
        match self.0 {}
    }

    /// As with the driver.
    #[must_use]
    pub(crate) fn database(&self, _name: &str) -> Database {
        match self.0 {}
    }
}

/// Refuses the server.
///
/// # Errors
/// [`Unusable`], always; it says how to build with the driver.
pub(crate) async fn mongodb_at(url: &ServerUrl) -> Result<Mongo, Unusable> {
    Err(unusable(
        "MongoDB",
        url,
        "its driver is not in this build; add `--features mongodb` to cargo",
    ))
}

/// The inventory in MongoDB.
#[derive(Debug)]
pub(crate) struct MongoInventory;

impl MongoInventory {
    /// As with the driver.
    #[must_use]
    #[expect(clippy::new_ret_no_self, reason = "it stands in for a type that is left out")]
    #[expect(clippy::needless_pass_by_value, reason = "so does its parameter")]
    pub(crate) fn new(database: Database) -> LocalInventory {
        match database.0 {}
    }
}
