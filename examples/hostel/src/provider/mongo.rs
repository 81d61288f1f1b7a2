//! A provider whose books are in MongoDB, so that they outlive a process that is killed.

use mongodb::bson::doc;
use mongodb::{Collection, Database};

use super::{Entry, Held, Provider, ProviderError, Result};
use crate::store::{all, is_duplicate_key};

/// A provider with its books in the collection `provider`.
#[derive(Debug, Clone)]
pub struct MongoProvider {
    books: Collection<Entry>,
}

impl MongoProvider {
    /// The provider with its books in `database`.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self { books: database.collection("provider") }
    }
}

impl Provider for MongoProvider {
    async fn authorise(&self, key: &str, amount: i64) -> Result<()> {
        let entry = Entry { key: key.to_owned(), amount, state: Held::Authorised };
        match self.books.insert_one(&entry).await {
            Ok(_) => return Ok(()),
            Err(error) if !is_duplicate_key(&error) => return Err(error.into()),
            Err(_) => {}
        }
        match self.books.find_one(doc! { "_id": key }).await? {
            Some(entry) if entry.state != Held::Refunded => Ok(()),
            _ => Err(ProviderError::Closed),
        }
    }

    async fn capture(&self, key: &str) -> Result<()> {
        let held = doc! { "_id": key, "state": { "$in": ["authorised", "captured"] } };
        let capture = doc! { "$set": { "state": "captured" } };
        match self.books.update_one(held, capture).await?.matched_count {
            1 => Ok(()),
            _ => Err(ProviderError::Closed),
        }
    }

    async fn refund(&self, key: &str) -> Result<()> {
        let refund = doc! { "$set": { "state": "refunded" }, "$setOnInsert": { "amount": 0_i64 } };
        loop {
            let refund = self.books.update_one(doc! { "_id": key }, refund.clone()).upsert(true);
            match refund.await {
                // An authorisation came in between: now there is something to update.
                Err(error) if is_duplicate_key(&error) => {}
                outcome => return Ok(outcome.map(drop)?),
            }
        }
    }

    async fn books(&self) -> Result<Vec<Entry>> {
        Ok(all(&self.books, doc! {}).await?)
    }
}
