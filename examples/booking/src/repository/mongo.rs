use std::time::Duration;

use async_trait::async_trait;
use mongodb::bson::{DateTime, Document, doc};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::{IndexOptions, ReturnDocument};
use mongodb::{Collection, Database, IndexModel};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Repository, RepositoryError, Result, SlotQuery};
use crate::domain::{Booking, Day, Email, NetworkMark, Role, Slot, SlotId, Title, User, UserId};

const DUPLICATE_KEY: i32 = 11000;

/// A server that is not found by now, or does not answer, is not waited for: whoever asked gets a 503.
/// The driver itself would wait for half a minute, or for ever.
const LONGEST_OPERATION: Duration = Duration::from_secs(5);

/// Users and slots in MongoDB.
///
/// Ids are strings, so that a document reads in the shell as it does in a URL.
#[derive(Debug, Clone)]
pub struct MongoRepository {
    database: Database,
    users: Collection<UserDocument>,
    slots: Collection<SlotDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
struct UserDocument {
    #[serde(rename = "_id")]
    id: String,
    email: String,
    password_hash: String,
    role: Role,
    /// Accounts of earlier versions have none.
    #[serde(default)]
    networks: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SlotDocument {
    #[serde(rename = "_id")]
    id: String,
    title: String,
    day: String,
    starts: DateTime,
    ends: DateTime,
    booking: Option<BookingDocument>,
    /// The greatest fencing token that has been here.
    fence: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct BookingDocument {
    user: String,
    at: DateTime,
    token: i64,
}

impl MongoRepository {
    /// The collections of a [`Mongo`](example_support::Mongo)'s database, with the indexes that the
    /// queries and the uniqueness of addresses rest on.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn open(database: Database) -> Result<Self> {
        let users = database.collection("users");
        let slots = database.collection("slots");
        let repository = Self { database, users, slots };
        repository.create_indexes().await?;
        Ok(repository)
    }

    async fn create_indexes(&self) -> Result<()> {
        let unique = IndexOptions::builder().unique(true).build();
        let by_email = IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build();
        within(self.users.create_index(by_email)).await?;
        let indexes = [
            doc! { "day": 1, "starts": 1, "_id": 1 },
            doc! { "starts": 1, "_id": 1 },
            doc! { "booking.user": 1, "ends": 1 },
        ];
        let indexes = indexes.map(|keys| IndexModel::builder().keys(keys).build());
        within(self.slots.create_indexes(indexes)).await?;
        Ok(())
    }

    /// Removes the database, with all that is in it.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn discard(&self) -> Result<()> {
        within(self.database.drop()).await?;
        Ok(())
    }

    /// Found slots, in the order of their positions.
    async fn find_slots(&self, filter: Document, skip: usize, limit: usize) -> Result<Vec<Slot>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.slots.find(filter).sort(doc! { "starts": 1, "_id": 1 });
        let found = found.skip(skip as u64).limit(limit);
        let documents = within(async {
            let mut cursor = found.await?;
            let mut documents = Vec::new();
            while cursor.advance().await? {
                documents.push(cursor.deserialize_current()?);
            }
            Ok(documents)
        });
        documents.await?.into_iter().map(Slot::try_from).collect()
    }
}

/// The slot, unless a token later than `token` has been there.
fn fenced(id: SlotId, token: i64) -> Document {
    doc! { "_id": id.to_string(), "fence": { "$lte": token } }
}

/// What the operation returns, if it does in time.
async fn within<T>(operation: impl IntoFuture<Output = mongodb::error::Result<T>>) -> Result<T> {
    match tokio::time::timeout(LONGEST_OPERATION, operation.into_future()).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(RepositoryError::Silent),
    }
}

/// Whether the document was inserted; if not, one of its unique fields is taken.
fn inserted<T>(outcome: Result<T>) -> Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(RepositoryError::Mongo(error)) if is_duplicate_key(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_duplicate_key(error: &mongodb::error::Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY
    )
}

#[async_trait]
impl Repository for MongoRepository {
    async fn ping(&self) -> Result<()> {
        within(self.database.run_command(doc! { "ping": 1 })).await?;
        Ok(())
    }

    async fn insert_user(&self, user: &User) -> Result<bool> {
        inserted(within(self.users.insert_one(UserDocument::from(user))).await)
    }

    async fn user_by_email(&self, email: &Email) -> Result<Option<User>> {
        let found = within(self.users.find_one(doc! { "email": email.as_str() })).await?;
        found.map(User::try_from).transpose()
    }

    async fn user(&self, id: UserId) -> Result<Option<User>> {
        let found = within(self.users.find_one(doc! { "_id": id.to_string() })).await?;
        found.map(User::try_from).transpose()
    }

    async fn set_networks(&self, user: UserId, networks: &[NetworkMark]) -> Result<()> {
        let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
        let set = doc! { "$set": { "networks": networks } };
        within(self.users.update_one(doc! { "_id": user.to_string() }, set)).await?;
        Ok(())
    }

    async fn insert_slot(&self, slot: &Slot) -> Result<bool> {
        inserted(within(self.slots.insert_one(SlotDocument::from(slot))).await)
    }

    async fn insert_slots(&self, slots: &[Slot]) -> Result<()> {
        within(self.slots.insert_many(slots.iter().map(SlotDocument::from))).await?;
        Ok(())
    }

    async fn slot(&self, id: SlotId) -> Result<Option<Slot>> {
        let found = within(self.slots.find_one(doc! { "_id": id.to_string() })).await?;
        found.map(Slot::try_from).transpose()
    }

    async fn slots(&self, query: &SlotQuery) -> Result<Vec<Slot>> {
        let mut filter = Document::new();
        if let Some(day) = query.day {
            filter.insert("day", day.to_string());
        }
        if let Some((starts, id)) = query.after {
            let starts = date_time(starts);
            let later = doc! { "starts": { "$gt": starts } };
            let same = doc! { "starts": starts, "_id": { "$gt": id.to_string() } };
            filter.insert("$or", [later, same].to_vec());
        }
        self.find_slots(filter, query.skip, query.limit).await
    }

    async fn slots_before(&self, slot: &Slot) -> Result<u64> {
        let starts = date_time(slot.starts);
        let earlier = doc! { "starts": { "$lt": starts } };
        let same = doc! { "starts": starts, "_id": { "$lt": slot.id.to_string() } };
        let before = doc! { "day": slot.day.to_string(), "$or": [earlier, same] };
        within(self.slots.count_documents(before)).await
    }

    async fn slots_of(&self, user: UserId, now: OffsetDateTime) -> Result<Vec<Slot>> {
        let his = doc! { "booking.user": user.to_string(), "ends": { "$gt": date_time(now) } };
        self.find_slots(his, 0, 200).await
    }

    async fn count_bookings(&self, user: UserId, day: Day) -> Result<u64> {
        let his = doc! { "booking.user": user.to_string(), "day": day.to_string() };
        within(self.slots.count_documents(his)).await
    }

    async fn claim_slot(&self, id: SlotId, token: i64) -> Result<Option<Slot>> {
        let raise = doc! { "$set": { "fence": token } };
        let claimed = self.slots.find_one_and_update(fenced(id, token), raise);
        let claimed = within(claimed.return_document(ReturnDocument::After)).await?;
        claimed.map(Slot::try_from).transpose()
    }

    async fn book_slot(&self, id: SlotId, booking: &Booking) -> Result<bool> {
        let Booking { user, at, token } = *booking;
        let mut free = fenced(id, token);
        free.insert("booking", mongodb::bson::Bson::Null);
        let booking = doc! { "user": user.to_string(), "at": date_time(at), "token": token };
        let book = doc! { "$set": { "booking": booking, "fence": token } };
        Ok(within(self.slots.update_one(free, book)).await?.matched_count == 1)
    }

    async fn release_slot(&self, id: SlotId, user: UserId) -> Result<bool> {
        let his = doc! { "_id": id.to_string(), "booking.user": user.to_string() };
        let release = doc! { "$set": { "booking": mongodb::bson::Bson::Null } };
        Ok(within(self.slots.update_one(his, release)).await?.matched_count == 1)
    }
}

/// MongoDB's times are in milliseconds; all that are written here are in seconds, but for `at`.
fn date_time(time: OffsetDateTime) -> DateTime {
    let milliseconds = time.unix_timestamp_nanos() / 1_000_000;
    DateTime::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

impl From<&User> for UserDocument {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email.to_string(),
            password_hash: user.password_hash.clone(),
            role: user.role,
            networks: user.networks.iter().map(ToString::to_string).collect(),
        }
    }
}

impl TryFrom<UserDocument> for User {
    type Error = RepositoryError;

    fn try_from(document: UserDocument) -> Result<Self> {
        let corrupt = |problem: &str| corrupt("users", &document.id, problem);
        Ok(Self {
            id: UserId(Uuid::try_parse(&document.id).map_err(|_| corrupt("`_id`"))?),
            email: Email::parse(&document.email).map_err(|_| corrupt("`email`"))?,
            role: document.role,
            networks: document
                .networks
                .iter()
                .filter_map(|text| NetworkMark::parse(text))
                .collect(),
            password_hash: document.password_hash,
        })
    }
}

impl From<&Slot> for SlotDocument {
    fn from(slot: &Slot) -> Self {
        let booking = slot.booking.as_ref().map(|booking| BookingDocument {
            user: booking.user.to_string(),
            at: date_time(booking.at),
            token: booking.token,
        });
        Self {
            id: slot.id.to_string(),
            title: slot.title.as_str().to_owned(),
            day: slot.day.to_string(),
            starts: date_time(slot.starts),
            ends: date_time(slot.ends),
            booking,
            fence: 0,
        }
    }
}

impl TryFrom<SlotDocument> for Slot {
    type Error = RepositoryError;

    fn try_from(document: SlotDocument) -> Result<Self> {
        let corrupt = |problem: &str| corrupt("slots", &document.id, problem);
        let time = |field: &str, time: DateTime| {
            let nanoseconds = i128::from(time.timestamp_millis()) * 1_000_000;
            OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).map_err(|_| corrupt(field))
        };
        let booking = document.booking.as_ref().map(|booking| {
            let user = Uuid::try_parse(&booking.user).map_err(|_| corrupt("`booking.user`"))?;
            let at = time("`booking.at`", booking.at)?;
            Ok::<_, RepositoryError>(Booking { user: UserId(user), at, token: booking.token })
        });
        Ok(Self {
            id: SlotId(Uuid::try_parse(&document.id).map_err(|_| corrupt("`_id`"))?),
            title: Title::parse(&document.title).map_err(|_| corrupt("`title`"))?,
            day: Day::parse(&document.day).map_err(|_| corrupt("`day`"))?,
            starts: time("`starts`", document.starts)?,
            ends: time("`ends`", document.ends)?,
            booking: booking.transpose()?,
        })
    }
}

fn corrupt(collection: &'static str, id: &str, problem: &str) -> RepositoryError {
    RepositoryError::Corrupt { collection, problem: format!("{problem} of {id:?}") }
}
