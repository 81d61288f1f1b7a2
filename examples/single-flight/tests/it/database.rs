//! Both databases do the same.

use example_support::mongodb_at;
use mongodb::bson::oid::ObjectId;
use single_flight::database::{
    Database, DatabaseError, LocalDatabase, MongoDatabase, Outcome, Pool, TARGET,
};
use test_support::MongoServer;

async fn mongodb() -> MongoDatabase {
    let uri = MongoServer::start().uri().to_owned();
    let mongo = mongodb_at(&uri.into()).await.expect("it answers");
    MongoDatabase::new(mongo, &format!("single_flight_{}", ObjectId::new().to_hex()))
}

/// A migration of which an older holder does not know that it is late.
async fn migrate(database: impl Database) {
    let pool = database.open(1).await.expect("it answers");
    assert_eq!(pool.begin(1, 10).await.expect("it answers"), 1);
    assert_eq!(pool.claim(10).await.expect("it answers"), Some(0));
    pool.apply(1).await.expect("it answers");
    assert!(pool.advance(10, 1).await.expect("it answers"));

    assert_eq!(pool.begin(2, 20).await.expect("it answers"), 2);
    assert_eq!(pool.claim(20).await.expect("it answers"), Some(1));
    assert!(!pool.advance(10, 2).await.expect("it answers"), "a later holder has been there");
    assert_eq!(pool.claim(10).await.expect("it answers"), None);
    for version in 1..=TARGET {
        // Also a step that was taken before.
        pool.apply(version).await.expect("it answers");
        assert!(pool.advance(20, version).await.expect("it answers"));
    }
    pool.end(2, Outcome::Migrated).await.expect("it answers");
    assert!(matches!(pool.book(7, 1).await, Err(DatabaseError::NotMigrated { .. })));
    for _ in 0..2 {
        pool.book(7, TARGET).await.expect("it answers");
    }

    let tally = database.tally().await.expect("it answers");
    assert_eq!((tally.bookings, tally.version, &tally.pools[..]), (1, TARGET, &[1][..]));
    let outcomes: Vec<_> = tally.attempts.iter().map(|one| (one.number, one.outcome)).collect();
    assert_eq!(outcomes, [(1, Outcome::Begun), (2, Outcome::Migrated)]);
    database.discard().await.expect("it answers");
    assert_eq!(database.tally().await.expect("it answers"), Default::default());
}

#[tokio::test]
async fn in_memory() {
    migrate(LocalDatabase::default()).await;
}

#[tokio::test]
async fn on_mongodb() {
    migrate(mongodb().await).await;
}
