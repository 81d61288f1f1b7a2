//! TLS, through rustls.

use std::{error::Error, fmt, io, sync::Arc};

use redis::{Client, ConnectionAddr, ConnectionInfo, RedisError};

use super::failure::describe;
use crate::error::{BackendError, BackendErrorKind};

/// Certificates for a `rediss://` connection, each in PEM format.
///
/// Without it the system's root certificates are trusted, and no client certificate is shown.
#[derive(Clone, Default)]
pub struct TlsConfig {
    root: Option<Vec<u8>>,
    client: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsConfig {
    /// The system's root certificates.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts this root certificate in place of the system's.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root = Some(pem.into());
        self
    }

    /// Shows the server a client certificate.
    #[must_use]
    pub fn client_certificate(
        mut self,
        certificate_pem: impl Into<Vec<u8>>,
        key_pem: impl Into<Vec<u8>>,
    ) -> Self {
        self.client = Some((certificate_pem.into(), key_pem.into()));
        self
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("root", &self.root.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}

/// A client for a server with or without TLS.
pub(super) fn client(
    info: ConnectionInfo,
    tls: Option<&TlsConfig>,
) -> Result<Client, BackendError> {
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return Client::open(info).map_err(describe);
    }
    let unusable = |error: RedisError| {
        BackendError::new(BackendErrorKind::Configuration, error.to_string()).with_source(error)
    };
    // A program that has chosen a provider keeps it; `Err` says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(tls) = tls else { return Client::open(info).map_err(unusable) };
    let client_tls = tls
        .client
        .clone()
        .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
    let certificates = redis::TlsCertificates { client_tls, root_cert: tls.root.clone() };
    Client::build_with_tls(info, certificates).map_err(unusable)
}

/// Why one side has refused the other's certificate, or TLS altogether. No retry helps.
pub(super) fn refusal(error: &RedisError) -> Option<&rustls::Error> {
    // The chain is that of `redis`, which shares the I/O errors that it wraps.
    let shared = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    let error = shared.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()?;
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    matches!(error, AlertReceived(_) | InvalidCertificate(_) | InvalidMessage(_)).then_some(error)
}
