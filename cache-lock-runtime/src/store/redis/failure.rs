//! What a failed call says about the server, and about the fate of the request.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::{BackendError, BackendErrorKind};

/// Whether a request that failed may have been, or may yet be, carried out.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server answered: it was not.
    Refused(BackendError),
    /// The connection is over: it may have been.
    Closed(BackendError),
    /// There is no answer yet: everything is open.
    Overdue(BackendError),
}

impl Failure {
    pub(super) fn into_error(self) -> BackendError {
        match self {
            Self::Refused(error) | Self::Closed(error) | Self::Overdue(error) => error,
        }
    }

    pub(super) fn overdue() -> Self {
        Self::Overdue(BackendError::new(BackendErrorKind::Timeout, "the server did not answer"))
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let closed = error.is_io_error() || error.is_unrecoverable_error();
        let error = describe(error);
        // The setup of a connection fails with what the server said to it, and closes it too.
        if closed { Self::Closed(error) } else { Self::Refused(error) }
    }
}

/// The error of ours for one of the driver's.
pub(super) fn describe(error: RedisError) -> BackendError {
    use BackendErrorKind::{
        Configuration, Denied, ForeignRecord, Loading, OutOfMemory, ReadOnly, Server, Unavailable,
        Unreachable,
    };
    #[cfg(feature = "tls")]
    if let Some(refusal) = super::tls::refusal(&error) {
        let message = format!("no TLS connection to the server can be made: {refusal}");
        return BackendError::new(Configuration, message).with_source(error);
    }
    let code = error.code().unwrap_or_default();
    let detail = error.detail().unwrap_or_default().to_owned();
    let said = |what: &str| {
        if detail.is_empty() { what.to_owned() } else { format!("{what} ({detail})") }
    };
    let (kind, message) = match (error.kind(), code) {
        (ErrorKind::Server(ServerErrorKind::BusyLoading), _) => {
            (Loading, "the server is loading its data".to_owned())
        }
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => {
            (ReadOnly, "the server is a replica and takes no writes".to_owned())
        }
        (_, "NOREPLICAS" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN") => {
            (Unavailable, said("the server takes no writes for now"))
        }
        (_, "OOM") => (OutOfMemory, said("the server is out of memory")),
        (_, "WRONGTYPE") => (
            ForeignRecord,
            "the record under this key, or under the key of its fence, is not a lock: \
             something else uses the same name"
                .to_owned(),
        ),
        (ErrorKind::Server(ServerErrorKind::NoPerm) | ErrorKind::AuthenticationFailed, _)
        | (_, "WRONGPASS" | "NOPERM") => (Denied, said("the server does not allow it")),
        (_, "NOAUTH") => (Denied, "the server asks for a password".to_owned()),
        // What a script may not do has no code of its own, and other words from version 7.2 on.
        _ if detail.starts_with("The user executing the script can't")
            || detail.starts_with("ACL failure in script") =>
        {
            (Denied, said("the server does not allow it"))
        }
        (ErrorKind::Io, _) => (Unreachable, format!("the server is unreachable: {error}")),
        (ErrorKind::Parse, _) => {
            (Configuration, "what answers there is no Redis server".to_owned())
        }
        (ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported, _) => {
            (Configuration, error.to_string())
        }
        _ => (Server, error.to_string()),
    };
    BackendError::new(kind, message).with_source(error)
}
