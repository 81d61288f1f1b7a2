//! The reasons that a server gives for not taking a connection.

use std::time::Duration;

use redis::{Client, ConnectionAddr, ErrorKind, RedisError};
use tokio::net::TcpStream;

use super::failure::describe;
use crate::{
    clock::Instant,
    driver::Driver,
    error::{BackendError, BackendErrorKind},
};

/// How long a server may take to say why it closes a connection, beside the way: a server that is well by
/// now says nothing, and its clients wait as long.
const GREETING: Duration = Duration::from_millis(50);
/// The way is so many times what it took to connect.
const WAYS: u32 = 3;

/// How long it may take to connect.
const CONNECTING: Duration = Duration::from_millis(200);

/// The longest reason that is read, in bytes.
const LONGEST: usize = 1024;

/// Why a connection was not opened.
pub(super) fn refusal(error: RedisError) -> BackendError {
    let said = error.detail().unwrap_or_default();
    match read(error.code().unwrap_or_default(), said) {
        Some(refusal) => refusal.with_source(error),
        None => describe(error),
    }
}

/// A connection was closed while it was set up.
pub(super) fn is_closed(error: &RedisError) -> bool {
    error.is_connection_dropped() && !error.is_connection_refusal()
}

/// Asks a server that closes connections why it does: one that says so at once may close before the
/// answer is read, as nothing was to be sent. So this reads and sends nothing.
pub(super) async fn ask(client: &Client, driver: &Driver) -> Option<BackendError> {
    let ConnectionAddr::Tcp(host, port) = client.get_connection_info().addr() else { return None };
    let start = Instant::now();
    let connecting = TcpStream::connect((host.as_str(), *port));
    let stream = driver.within(start + CONNECTING, connecting).await?.ok()?;
    let way = start.elapsed();
    let reading = async {
        let mut line = Vec::new();
        while line.len() < LONGEST && !line.contains(&b'\n') {
            stream.readable().await.ok()?;
            let mut piece = [0; LONGEST];
            match stream.try_read(&mut piece) {
                Ok(0) => break,
                Ok(read) => line.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        Some(line)
    };
    let line = driver.within(Instant::now() + (GREETING + way * WAYS), reading).await??;
    let line = String::from_utf8_lossy(&line);
    let said = line.lines().next()?.strip_prefix('-')?;
    let (code, detail) = said.split_once(' ').unwrap_or((said, ""));
    read(code, detail).or_else(|| {
        let message = format!("the server closes the connection: {said}");
        Some(BackendError::new(BackendErrorKind::Unavailable, message))
    })
}

fn read(code: &str, said: &str) -> Option<BackendError> {
    let (kind, what) = if said.starts_with("max number of clients") {
        (BackendErrorKind::Unavailable, "the server takes no more connections for now")
    } else if code == "DENIED" {
        (BackendErrorKind::Denied, "the server does not allow connections from here")
    } else {
        return None;
    };
    // Advice for the server's operator follows the first sentence.
    let said = said.split(". ").next().unwrap_or_default();
    Some(BackendError::new(kind, format!("{what} ({said})")))
}

/// The server does not know RESP3, or the command that asks for it, in whatever words: it refuses the
/// command, and neither the user nor, for a while, all commands.
pub(super) fn refuses_resp3(error: &RedisError) -> bool {
    let refused = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    let of_other_reason =
        matches!(
            error.code(),
            Some(
                "WRONGPASS"
                    | "NOAUTH"
                    | "DENIED"
                    | "BUSY"
                    | "LOADING"
                    | "MASTERDOWN"
                    | "CLUSTERDOWN"
                    | "TRYAGAIN"
            )
        ) || error.detail().is_some_and(|said| said.starts_with("max number of clients"));
    error.kind() == ErrorKind::RESP3NotSupported || refused && !of_other_reason
}
