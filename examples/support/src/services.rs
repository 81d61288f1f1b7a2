//! The servers behind a run.

use std::time::Duration;

use cache_lock::{LockError, LockManager};
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{
    ClientOptions, DatabaseOptions, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Database};

use crate::url::ServerUrl;

/// A server that has not answered by now is taken for unreachable.
const PATIENCE: Duration = Duration::from_secs(4);

/// A server that was asked for and cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

/// Locks on the Redis server at `url`.
///
/// # Errors
/// [`Unusable`] within five seconds.
pub async fn locks_on(url: &ServerUrl) -> Result<LockManager, Unusable> {
    let why = match tokio::time::timeout(PATIENCE, LockManager::connect(url.secret())).await {
        Ok(Ok(locks)) => return Ok(locks),
        // About a URL that cannot be read it names the URL itself.
        Ok(Err(LockError::Connect { server, source, .. }))
            if source.to_string().contains(&*server) =>
        {
            return Err(Unusable(format!("Redis cannot be used: {source}")));
        }
        // It names the server too; here it is named as it was written.
        Ok(Err(LockError::Connect { source, .. })) => source.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => no_answer(),
    };
    Err(unusable("Redis", url, &why))
}

/// A MongoDB server that has answered.
#[derive(Debug, Clone)]
pub struct Mongo {
    options: ClientOptions,
    client: Client,
    version: String,
}

impl Mongo {
    /// The version, and whether it is MongoDB's own server.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The database `name`, read from the primary and written to the majority.
    ///
    /// A lock puts the holders in order, not the replicas: a holder that reads from a secondary, or
    /// whose write is rolled back, breaks what the lock promised. So this overrides what the URL says.
    #[must_use]
    pub fn database(&self, name: &str) -> Database {
        let options = DatabaseOptions::builder()
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .write_concern(WriteConcern::majority())
            .build();
        self.client.database_with_options(name, options)
    }

    /// The same server through another pool of connections.
    ///
    /// # Errors
    /// None where the first one could be had.
    pub fn another(&self) -> mongodb::error::Result<Self> {
        let client = Client::with_options(self.options.clone())?;
        Ok(Self { client, ..self.clone() })
    }
}

/// The error in a few words: the driver lists its whole view of the deployment, and labels in any
/// order.
#[must_use]
pub fn reason(error: &mongodb::error::Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::ServerSelection { .. } => "no server could be reached".to_owned(),
        // It quotes what it could not read, which may be a part of a password.
        ErrorKind::InvalidArgument { .. } => {
            "it cannot be read as `mongodb://[user:password@]host[:port][/..]`; characters such as `?`, \
             `/` and `@` in a password are percent-encoded"
                .to_owned()
        }
        kind => kind.to_string(),
    }
}

/// The MongoDB server at `url`.
///
/// # Errors
/// [`Unusable`] within five seconds.
pub async fn mongodb_at(url: &ServerUrl) -> Result<Mongo, Unusable> {
    let why = match tokio::time::timeout(PATIENCE, connect(url.secret())).await {
        Ok(Ok(mongo)) => return Ok(mongo),
        Ok(Err(error)) => reason(&error),
        Err(_) => no_answer(),
    };
    Err(unusable("MongoDB", url, &why))
}

async fn connect(url: &str) -> mongodb::error::Result<Mongo> {
    let mut options = ClientOptions::parse(url).await?;
    options.server_selection_timeout = Some(PATIENCE - Duration::from_secs(1));
    let client = Client::with_options(options.clone())?;
    let about = client.database("admin").run_command(doc! { "buildInfo": 1 }).await?;
    // From here on a fail-over is worth waiting for.
    options.server_selection_timeout = None;
    let client = Client::with_options(options.clone())?;
    Ok(Mongo { options, client, version: version(&about) })
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

fn unusable(what: &str, url: &ServerUrl, reason: &str) -> Unusable {
    Unusable(format!("{what} at {url} cannot be used: {reason}"))
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
