//! Where a request comes from, for the limits.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, request::Parts};

use crate::app::{AppState, Peer};
use crate::error::ApiError;

/// The client's address: the other end of the connection, or what the proxy in front says of it.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

impl FromRequestParts<AppState> for ClientAddress {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<Peer>().ok_or(ApiError::Internal)?.0;
        let forwarded = state.settings.trust_proxy.then(|| forwarded(&parts.headers)).flatten();
        Ok(Self(forwarded.unwrap_or(peer)))
    }
}

/// The last address of the last `X-Forwarded-For`: the proxy's own entry. All before it is what the
/// client says of itself.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    last.rsplit(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, forwarded};

    #[test]
    fn a_client_cannot_choose_its_address() {
        let mut headers = HeaderMap::new();
        for value in ["10.0.0.1", "10.0.0.2, 10.0.0.3"] {
            headers.append("x-forwarded-for", value.parse().expect("a header"));
        }
        assert_eq!(forwarded(&headers).map(|a| a.to_string()).as_deref(), Some("10.0.0.3"));
    }
}
