use std::collections::HashMap;
use std::net::SocketAddr;

use hyper::Method;

use crate::client::{Client, ClientError};
use crate::domain::UserId;
use crate::repository::{MongoRepository, Repository, Result, SlotQuery};

/// Who has each slot that somebody has.
pub(super) type Owners = HashMap<String, Vec<UserId>>;

/// As the database has it.
pub(super) async fn by_database(repository: &MongoRepository) -> Result<Owners> {
    let all = repository.slots(&SlotQuery { limit: 10_000, ..SlotQuery::default() }).await?;
    let booked = all.into_iter().filter_map(|slot| {
        let booking = slot.booking?;
        Some((slot.id.to_string(), vec![booking.user]))
    });
    Ok(booked.collect())
}

/// As the service tells each client, where its data is in its own memory.
pub(super) async fn by_api(
    address: SocketAddr,
    users: &[(UserId, String)],
) -> std::result::Result<Owners, ClientError> {
    let mut client = Client::connect(address).await?;
    let mut owners = Owners::new();
    for (user, token) in users {
        let mine = client.call(Method::GET, "/me/bookings", Some(token), None).await?.json();
        for slot in mine["slots"].as_array().into_iter().flatten() {
            if let Some(id) = slot["id"].as_str() {
                owners.entry(id.to_owned()).or_default().push(*user);
            }
        }
    }
    Ok(owners)
}
