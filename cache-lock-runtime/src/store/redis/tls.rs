//! TLS, through rustls.

use std::fmt;

use redis::{Client, ConnectionAddr, ConnectionInfo};

use super::failure::describe;
use crate::error::BackendError;

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
    // A program that has chosen a provider keeps it; `Err` says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(tls) = tls else { return Client::open(info).map_err(describe) };
    let client_tls = tls
        .client
        .clone()
        .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
    let certificates = redis::TlsCertificates { client_tls, root_cert: tls.root.clone() };
    Client::build_with_tls(info, certificates).map_err(describe)
}
