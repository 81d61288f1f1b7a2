//! The servers behind a run.

use std::time::Duration;

use cache_lock::{LockError, LockManager};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;

use crate::Error;
use crate::inventory::{MongoInventory, mongo};
use crate::url::ServerUrl;

/// A server that has not answered by now is taken for unreachable.
const PATIENCE: Duration = Duration::from_secs(4);

/// Locks on the Redis server at `url`.
pub(crate) async fn locks_on(url: &ServerUrl) -> Result<LockManager, Error> {
    let reason = match tokio::time::timeout(PATIENCE, LockManager::connect(url.secret())).await {
        Ok(Ok(locks)) => return Ok(locks),
        // About a URL that cannot be read it names the URL itself.
        Ok(Err(LockError::Connect { server, source, .. }))
            if source.to_string().contains(&*server) =>
        {
            return Err(Error::Unreachable(format!("Redis cannot be used: {source}")));
        }
        // It names the server too; here it is named as it was written.
        Ok(Err(LockError::Connect { source, .. })) => source.to_string(),
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => no_answer(),
    };
    Err(unreachable("Redis", url, &reason))
}

/// A MongoDB server that has answered.
#[derive(Debug, Clone)]
pub(crate) struct Mongo {
    client: Client,
    pub(crate) version: String,
}

impl Mongo {
    pub(crate) fn inventory(&self, database: &str) -> MongoInventory {
        MongoInventory::new(&self.client, database)
    }
}

/// The MongoDB server at `url`.
pub(crate) async fn mongodb_at(url: &ServerUrl) -> Result<Mongo, Error> {
    let reason = match tokio::time::timeout(PATIENCE, connect(url.secret())).await {
        Ok(Ok(mongo)) => return Ok(mongo),
        Ok(Err(error)) => mongo::reason(&error),
        Err(_) => no_answer(),
    };
    Err(unreachable("MongoDB", url, &reason))
}

async fn connect(url: &str) -> mongodb::error::Result<Mongo> {
    let mut options = ClientOptions::parse(url).await?;
    options.server_selection_timeout = Some(PATIENCE - Duration::from_secs(1));
    let client = Client::with_options(options.clone())?;
    let about = client.database("admin").run_command(doc! { "buildInfo": 1 }).await?;
    // From here on a fail-over is worth waiting for.
    options.server_selection_timeout = None;
    let client = Client::with_options(options)?;
    Ok(Mongo { client, version: version(&about) })
}

/// What a reply to `buildInfo` says of the server.
fn version(about: &Document) -> String {
    let version = about.get_str("version").unwrap_or("(version not told)");
    // Every mongod names the commit that it was built from.
    if about.contains_key("gitVersion") {
        version.to_owned()
    } else {
        format!("{version} (a stand-in, not MongoDB's own server)")
    }
}

fn no_answer() -> String {
    format!("no answer within {PATIENCE:?}")
}

fn unreachable(what: &str, url: &ServerUrl, reason: &str) -> Error {
    Error::Unreachable(format!("{what} at {url} cannot be used: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::{doc, version};

    #[test]
    fn a_stand_in_is_not_taken_for_mongodb() {
        let stand_in = doc! { "version": "5.0.0", "versionArray": [5, 0, 0, 0], "ok": 1.0 };
        assert_eq!(version(&stand_in), "5.0.0 (a stand-in, not MongoDB's own server)");
        let mut mongod = stand_in;
        mongod.insert("gitVersion", "1184f004a99660de6f5e745573419bda8a28c0e9");
        assert_eq!(version(&mongod), "5.0.0");
    }
}
