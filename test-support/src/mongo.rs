use std::env;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::sync::OnceLock;

use crate::process::Process;
use crate::temp_dir::TempDir;
use crate::wait::wait_until;

/// The script that runs `mongod`, else the stand-in, and prints the connection string.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/mongodb.sh");

/// The MongoDB that the tests of one process share: the one that `MONGODB_URI` names, else a
/// private `mongod`, else the stand-in. Tests use databases of their own in it.
#[derive(Debug)]
pub struct MongoServer {
    uri: String,
    /// A static is never dropped, so it is the watcher that ends the server with this process.
    _private: Option<(Process, TempDir)>,
}

impl MongoServer {
    /// The server, started by the first caller; it accepts connections when this returns.
    ///
    /// # Panics
    /// When there is neither `MONGODB_URI` nor what it takes to run a server.
    #[must_use]
    pub fn start() -> &'static Self {
        static SHARED: OnceLock<MongoServer> = OnceLock::new();
        SHARED.get_or_init(|| match env::var("MONGODB_URI") {
            Ok(uri) if !uri.is_empty() => Self { uri, _private: None },
            _ => Self::launch(),
        })
    }

    /// The connection string.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    fn launch() -> Self {
        let dir = TempDir::new("mongodb");
        let mut command = Command::new(SCRIPT);
        command.arg(dir.path());
        let mut process = Process::spawn(command, dir.path());
        let mut uri = String::new();
        wait_until("MongoDB listens", || {
            assert!(process.is_running(), "MongoDB did not start:\n{}", dir.log_tail("err.log"));
            let output = fs::read_to_string(dir.join("out.log")).unwrap_or_default();
            let Some((line, _)) = output.split_once('\n') else { return false };
            uri = line.to_owned();
            uri.strip_prefix("mongodb://")
                .is_some_and(|address| TcpStream::connect(address).is_ok())
        });
        Self { uri, _private: Some((process, dir)) }
    }
}
