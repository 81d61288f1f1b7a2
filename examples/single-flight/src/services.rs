//! The servers behind a run.

use std::time::Duration;

use cache_lock::{LockError, LockManager};
use mongodb::Client;
use mongodb::bson::doc;
use mongodb::options::ClientOptions;

use crate::Error;
use crate::database::{MongoDatabase, mongo};
use crate::url::ServerUrl;

/// A server that has not answered by now is taken for unreachable.
const PATIENCE: Duration = Duration::from_secs(4);

/// Locks on the Redis server at `url`.
pub(crate) async fn locks_on(url: &ServerUrl) -> Result<LockManager, Error> {
    match LockManager::connect(url.secret()).await {
        Ok(locks) => Ok(locks),
        // It names the server too; here it is named as it was written.
        Err(LockError::Connect { source, .. }) => {
            Err(Error::Unreachable(format!("Redis at {url} cannot be used: {source}")))
        }
        Err(error) => Err(error.into()),
    }
}

/// The MongoDB server at `url`, which has answered, and its version.
pub(crate) async fn mongodb_at(
    url: &ServerUrl,
    database: &str,
) -> Result<(MongoDatabase, String), Error> {
    let reason = match tokio::time::timeout(PATIENCE, connect(url.secret(), database)).await {
        Ok(Ok(connected)) => return Ok(connected),
        Ok(Err(error)) => mongo::reason(&error),
        Err(_) => format!("no answer within {PATIENCE:?}"),
    };
    Err(Error::Unreachable(format!("MongoDB at {url} cannot be used: {reason}")))
}

async fn connect(url: &str, database: &str) -> mongodb::error::Result<(MongoDatabase, String)> {
    let mut options = ClientOptions::parse(url).await?;
    options.server_selection_timeout = Some(PATIENCE - Duration::from_secs(1));
    let client = Client::with_options(options.clone())?;
    let about = client.database("admin").run_command(doc! { "buildInfo": 1 }).await?;
    let version = about.get_str("version").unwrap_or("(version not told)");
    // Every mongod names the commit that it was built from.
    let stand_in = if about.contains_key("gitVersion") {
        ""
    } else {
        " (a stand-in, not MongoDB's own server)"
    };
    // From here on a fail-over is worth waiting for.
    options.server_selection_timeout = None;
    let client = Client::with_options(options.clone())?;
    Ok((MongoDatabase::new(&client, options, database), format!("{version}{stand_in}")))
}
