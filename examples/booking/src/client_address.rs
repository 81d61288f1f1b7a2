//! Where a request comes from, for the limits.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

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
    entry(last.rsplit(',').next()?.trim())
}

/// An address, with or without a port: `10.0.0.1`, `10.0.0.1:1234`, `2001:db8::1`,
/// `[2001:db8::1]`, `[2001:db8::1]:1234`.
fn entry(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port)
}

/// The network of an address: the address itself, or of IPv6 the /64, as so much belongs to a single
/// line.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, entry, forwarded};

    #[test]
    fn a_client_cannot_choose_its_address() {
        let mut headers = HeaderMap::new();
        for value in ["10.0.0.1", "10.0.0.2, 10.0.0.3"] {
            headers.append("x-forwarded-for", value.parse().expect("a header"));
        }
        assert_eq!(forwarded(&headers).map(|a| a.to_string()).as_deref(), Some("10.0.0.3"));
    }

    #[test]
    fn an_address_may_have_a_port() {
        for (text, address) in [
            ("10.0.0.3", Some("10.0.0.3")),
            ("10.0.0.3:4711", Some("10.0.0.3")),
            ("2001:db8::3", Some("2001:db8::3")),
            ("[2001:db8::3]", Some("2001:db8::3")),
            ("[2001:db8::3]:4711", Some("2001:db8::3")),
            ("[10.0.0.3", None),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(entry(text), address.map(|text| text.parse().expect("it is one")), "{text}");
        }
    }
}
