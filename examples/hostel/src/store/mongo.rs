//! The collections in MongoDB.

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{IndexOptions, ReturnDocument};
use mongodb::{Collection, Database, IndexModel};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Claim, Result, Store};
use crate::model::{Bed, Payment, PaymentState, Room, Student};

pub(crate) const DUPLICATE_KEY: i32 = 11000;

/// The collections in a database.
#[derive(Debug, Clone)]
pub struct MongoStore {
    rooms: Collection<Room>,
    students: Collection<Student>,
    payments: Collection<Payment>,
}

impl MongoStore {
    /// The collections in `database`, which must read from the primary and write to the majority;
    /// sets up their indexes.
    ///
    /// # Errors
    /// When the database cannot do that.
    pub async fn open(database: &Database) -> Result<Self> {
        let store = Self {
            rooms: database.collection("rooms"),
            students: database.collection("students"),
            payments: database.collection("payments"),
        };
        let unique = IndexOptions::builder().unique(true).build();
        let by_number = IndexModel::builder().keys(doc! { "number": 1 }).options(unique).build();
        store.rooms.create_index(by_number).await?;
        let by_student = IndexModel::builder().keys(doc! { "student": 1, "open": 1 }).build();
        store.payments.create_index(by_student).await?;
        Ok(store)
    }
}

fn room_number(number: u32) -> Document {
    doc! { "number": i64::from(number) }
}

/// The first write of a hold: raises the fence, unless it is higher already, and reads.
async fn claim<T>(collection: &Collection<T>, which: Document, token: i64) -> Result<Claim<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    find_fenced(collection, which, doc! { "$lte": token }.into(), token).await
}

async fn find_fenced<T>(
    collection: &Collection<T>,
    which: Document,
    fence: Bson,
    token: i64,
) -> Result<Claim<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    let mut fenced = which.clone();
    fenced.insert("fence", fence);
    let raise = doc! { "$set": { "fence": token } };
    let found =
        collection.find_one_and_update(fenced, raise).return_document(ReturnDocument::After);
    if let Some(document) = found.await? {
        return Ok(Claim::Held(document));
    }
    let is_there = collection.clone_with_type::<Document>().find_one(which).await?.is_some();
    Ok(if is_there { Claim::Stale } else { Claim::Missing })
}

/// A later write of a hold: the document must still carry its token. A greater one is a later
/// holder's, a smaller one means that this is another document in the place of the old one.
async fn write<T>(
    collection: &Collection<T>,
    mut which: Document,
    token: i64,
    update: Document,
) -> Result<bool>
where
    T: Send + Sync,
{
    which.insert("fence", token);
    Ok(collection.update_one(which, update).await?.matched_count == 1)
}

/// Inserts what is not there yet.
async fn insert_missing<T>(collection: &Collection<T>, documents: &[T]) -> Result<()>
where
    T: Serialize + Send + Sync,
{
    match collection.insert_many(documents).ordered(false).await {
        Err(error) if !is_duplicate_key(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether nothing else is wrong than that documents are there already.
pub(crate) fn is_duplicate_key(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(write)) => write.code == DUPLICATE_KEY,
        ErrorKind::InsertMany(many) => {
            many.write_concern_error.is_none()
                && many.write_errors.iter().flatten().all(|write| write.code == DUPLICATE_KEY)
        }
        ErrorKind::Command(command) => command.code == DUPLICATE_KEY,
        _ => false,
    }
}

pub(crate) async fn all<T>(
    collection: &Collection<T>,
    filter: Document,
) -> mongodb::error::Result<Vec<T>>
where
    T: DeserializeOwned + Send + Sync,
{
    let mut cursor = collection.find(filter).await?;
    let mut documents = Vec::new();
    while cursor.advance().await? {
        documents.push(cursor.deserialize_current()?);
    }
    Ok(documents)
}

impl Store for MongoStore {
    async fn add_rooms(&self, rooms: &[Room]) -> Result<()> {
        insert_missing(&self.rooms, rooms).await
    }

    async fn enrol(&self, students: &[Student]) -> Result<()> {
        insert_missing(&self.students, students).await
    }

    async fn expel(&self, student: &str) -> Result<bool> {
        let without_bed = doc! { "_id": student, "room": null };
        Ok(self.students.delete_one(without_bed).await?.deleted_count == 1)
    }

    async fn claim_room(&self, number: u32, token: i64) -> Result<Claim<Room>> {
        claim(&self.rooms, room_number(number), token).await
    }

    async fn claim_student(&self, id: &str, token: i64) -> Result<Claim<Student>> {
        claim(&self.students, doc! { "_id": id }, token).await
    }

    async fn confirm_student(&self, id: &str, token: i64) -> Result<Claim<Student>> {
        // A write that changes nothing, and not a read: a primary that has been deposed and does not
        // know would answer a read with what was true before.
        find_fenced(&self.students, doc! { "_id": id }, token.into(), token).await
    }

    async fn claim_payment(&self, key: &str, token: i64) -> Result<Claim<Payment>> {
        claim(&self.payments, doc! { "_id": key }, token).await
    }

    async fn add_occupant(&self, number: u32, token: i64, student: &str) -> Result<bool> {
        let add = doc! { "$addToSet": { "occupants": student } };
        write(&self.rooms, room_number(number), token, add).await
    }

    async fn remove_occupant(&self, number: u32, token: i64, student: &str) -> Result<bool> {
        let remove = doc! { "$pull": { "occupants": student } };
        write(&self.rooms, room_number(number), token, remove).await
    }

    async fn assign(&self, student: &str, token: i64, bed: Option<Bed<'_>>) -> Result<bool> {
        let bed = doc! { "$set": {
            "room": bed.map(|bed| i64::from(bed.room)),
            "payment": bed.map(|bed| bed.payment),
        } };
        write(&self.students, doc! { "_id": student }, token, bed).await
    }

    async fn add_payment(&self, payment: &Payment) -> Result<bool> {
        match self.payments.insert_one(payment).await {
            Ok(_) => Ok(true),
            Err(error) if is_duplicate_key(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn set_payment(
        &self,
        key: &str,
        token: i64,
        state: PaymentState,
        open: bool,
    ) -> Result<bool> {
        let state = doc! { "$set": { "state": state.name(), "open": open } };
        write(&self.payments, doc! { "_id": key }, token, state).await
    }

    async fn room(&self, number: u32) -> Result<Option<Room>> {
        Ok(self.rooms.find_one(room_number(number)).await?)
    }

    async fn payment(&self, key: &str) -> Result<Option<Payment>> {
        Ok(self.payments.find_one(doc! { "_id": key }).await?)
    }

    async fn open_payments(&self, student: Option<&str>) -> Result<Vec<Payment>> {
        let mut open = doc! { "open": true };
        if let Some(student) = student {
            open.insert("student", student);
        }
        Ok(all(&self.payments, open).await?)
    }

    async fn rooms(&self) -> Result<Vec<Room>> {
        let mut rooms = all(&self.rooms, doc! {}).await?;
        rooms.sort_by_key(|room| room.number);
        Ok(rooms)
    }

    async fn students(&self) -> Result<Vec<Student>> {
        Ok(all(&self.students, doc! {}).await?)
    }

    async fn payments(&self) -> Result<Vec<Payment>> {
        Ok(all(&self.payments, doc! {}).await?)
    }
}
