//! The MongoDB server behind a run.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{
    ClientOptions, DatabaseOptions, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Database};

use crate::services::{PATIENCE, Unusable, no_answer, unusable};
use crate::url::ServerUrl;

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
    if cfg!(not(feature = "srv")) && url.secret().starts_with("mongodb+srv:") {
        let why = "this build finds no `mongodb+srv://` in the DNS; add `--features srv` to cargo";
        return Err(unusable("MongoDB", url, why));
    }
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
