//! The database in MongoDB.

use example_support::Mongo;
use mongodb::bson::{Bson, Document, doc, to_bson};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::{IndexOptions, ReturnDocument};
use mongodb::{Collection, IndexModel};

use super::{Attempt, Database, DatabaseError, Outcome, Pool, Result, TARGET, Tally};

const DUPLICATE_KEY: i32 = 11000;

/// A database of this run's own.
#[derive(Debug, Clone)]
pub struct MongoDatabase {
    mongo: Mongo,
    name: String,
    /// For what is no business of the fleet's.
    beside: mongodb::Database,
}

/// A client of MongoDB, which is a pool of connections.
#[derive(Debug, Clone)]
pub struct MongoPool {
    database: mongodb::Database,
}

impl MongoDatabase {
    /// The database `name` on a server.
    #[must_use]
    pub fn new(mongo: Mongo, name: &str) -> Self {
        let beside = mongo.database(name);
        Self { mongo, name: name.to_owned(), beside }
    }

    /// The name of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The schema's document, unless a token later than `token` has been there.
fn fenced(token: i64) -> Document {
    doc! { "_id": "schema", "fence": { "$lte": token } }
}

fn unless_there(inserted: mongodb::error::Result<impl Sized>) -> Result<()> {
    match inserted {
        Err(error) if !is_duplicate_key(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

fn is_duplicate_key(error: &mongodb::error::Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY
    )
}

async fn all<T>(collection: Collection<T>) -> Result<Vec<T>>
where
    T: serde::de::DeserializeOwned + Send + Sync,
{
    let mut cursor = collection.find(doc! {}).sort(doc! { "_id": 1 }).await?;
    let mut documents = Vec::new();
    while cursor.advance().await? {
        documents.push(cursor.deserialize_current()?);
    }
    Ok(documents)
}

impl Database for MongoDatabase {
    type Pool = MongoPool;

    async fn open(&self, process: u32) -> Result<MongoPool> {
        let database = self.mongo.another()?.database(&self.name);
        // The driver connects when it is first used: who has the pool need not wait for that.
        database.collection::<Document>("pools").insert_one(doc! { "process": process }).await?;
        Ok(MongoPool { database })
    }

    async fn tally(&self) -> Result<Tally> {
        let mut pools = Vec::new();
        for pool in all(self.beside.collection::<Document>("pools")).await? {
            let process = pool.get("process").and_then(integer);
            pools.extend(process.and_then(|process| u32::try_from(process).ok()));
        }
        let schema = self.beside.collection::<Document>("migrations");
        let schema = schema.find_one(doc! { "_id": "schema" }).await?.unwrap_or_default();
        let bookings = self.beside.collection::<Document>("bookings");
        Ok(Tally {
            pools,
            attempts: all(self.beside.collection("attempts")).await?,
            bookings: bookings.count_documents(doc! { "version": TARGET }).await?,
            version: schema.get_i32("version").unwrap_or_default(),
        })
    }

    async fn discard(&self) -> Result<()> {
        self.beside.drop().await?;
        Ok(())
    }
}

fn integer(value: &Bson) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}

impl MongoPool {
    fn migrations(&self) -> Collection<Document> {
        self.database.collection("migrations")
    }
}

impl Pool for MongoPool {
    async fn begin(&self, process: u32, token: i64) -> Result<i64> {
        let counter = doc! { "_id": "attempts" };
        let counted = self
            .migrations()
            .find_one_and_update(counter, doc! { "$inc": { "number": 1_i64 } })
            .upsert(true)
            .return_document(ReturnDocument::After)
            .await?;
        let number = counted.as_ref().and_then(|counter| counter.get("number"));
        let number = number.and_then(integer).unwrap_or_default();
        let attempt = Attempt { number, process, token, outcome: Outcome::Begun };
        self.database.collection("attempts").insert_one(attempt).await?;
        Ok(number)
    }

    async fn end(&self, attempt: i64, outcome: Outcome) -> Result<()> {
        let outcome = to_bson(&outcome).map_err(mongodb::error::Error::from)?;
        let attempts = self.database.collection::<Document>("attempts");
        attempts
            .update_one(doc! { "_id": attempt }, doc! { "$set": { "outcome": outcome } })
            .await?;
        Ok(())
    }

    async fn claim(&self, token: i64) -> Result<Option<i32>> {
        let first = doc! { "_id": "schema", "version": 0, "fence": 0_i64 };
        unless_there(self.migrations().insert_one(first).await)?;
        let raise = doc! { "$set": { "fence": token } };
        let claimed = self
            .migrations()
            .find_one_and_update(fenced(token), raise)
            .return_document(ReturnDocument::After)
            .await?;
        Ok(claimed.map(|schema| schema.get_i32("version").unwrap_or_default()))
    }

    async fn apply(&self, version: i32) -> Result<()> {
        let bookings = self.database.collection::<Document>("bookings");
        match version {
            // Bookings of the time before.
            1 => {
                for number in -3..0 {
                    let old = doc! { "_id": number, "seats": 1 };
                    unless_there(bookings.insert_one(old).await)?;
                }
            }
            2 => {
                let old = doc! { "version": { "$exists": false } };
                let update = doc! { "$set": { "version": 2, "number": null } };
                bookings.update_many(old, update).await?;
            }
            _ => {
                let options = IndexOptions::builder().name("by_version".to_owned()).build();
                let index =
                    IndexModel::builder().keys(doc! { "version": 1 }).options(options).build();
                bookings.create_index(index).await?;
            }
        }
        Ok(())
    }

    async fn advance(&self, token: i64, version: i32) -> Result<bool> {
        let update = doc! { "$set": { "version": version, "fence": token } };
        Ok(self.migrations().update_one(fenced(token), update).await?.matched_count == 1)
    }

    async fn book(&self, task: u32, version: i32) -> Result<()> {
        if version != TARGET {
            return Err(DatabaseError::NotMigrated { found: version });
        }
        let booking = doc! { "_id": i64::from(task), "version": version, "seats": 1 };
        unless_there(self.database.collection("bookings").insert_one(booking).await)
    }
}
