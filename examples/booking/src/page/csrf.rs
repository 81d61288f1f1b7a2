//! Against requests that another site's page makes in a user's name.
//!
//! Three checks, since each has its gap: the cookies are `SameSite=Lax`, which does not tell apart
//! hosts of one site; the browser says where a request comes from, which old ones do not; and each
//! form carries a token that only a page for the same session can have.
//!
//! The forms of login and registration are bound to a cookie of the visitor in the same way: else
//! another site could log its reader in to an account of its own, and watch what is booked there.

use axum::http::{HeaderMap, header};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PURPOSE: &[u8] = b"booking: a form of this session";

/// The token of a session's forms: an HMAC, so it does not give away the session.
///
/// The session is the key. A secret of the server would add nothing: whoever knows the cookie, or
/// could set it, could get the right token from us.
pub(super) fn token(session: &str) -> String {
    mac(session).map_or_else(String::new, |mac| {
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Whether this is the token of that session's forms.
pub(super) fn is_right(token: &str, session: &str) -> bool {
    let bytes: Option<Vec<u8>> =
        (token.len() == 64 && token.is_ascii()).then(|| (0..64).step_by(2)).and_then(|starts| {
            starts.map(|at| u8::from_str_radix(&token[at..at + 2], 16).ok()).collect()
        });
    let (Some(bytes), Some(mac)) = (bytes, mac(session)) else { return false };
    // In constant time.
    mac.verify_slice(&bytes).is_ok()
}

fn mac(session: &str) -> Option<Hmac<Sha256>> {
    let mac = Hmac::<Sha256>::new_from_slice(session.as_bytes()).ok()?;
    Some(mac.chain_update(PURPOSE))
}

/// Whether the request comes from a page of ours, as far as the browser tells.
pub(super) fn is_from_here(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site == "same-origin");
    let origin = headers.get(header::ORIGIN).map(|origin| {
        // Of `https://host:port`. The scheme is a proxy's to know. `null` is nobody.
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        matches!((origin, host), (Some((_, origin)), Some(host)) if origin.eq_ignore_ascii_case(host))
    });
    site != Some(false) && origin != Some(false)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::{is_from_here, is_right, token};

    #[test]
    fn a_token_is_of_one_session() {
        let right = token("a");
        assert!(is_right(&right, "a"));
        for (wrong, session) in [
            (right.as_str(), "b"),
            ("", "a"),
            (&right[1..], "a"),
            (&"é".repeat(32), "a"),
            ("+", ""),
        ] {
            assert!(!is_right(wrong, session), "{wrong:?}");
        }
    }

    #[test]
    fn what_another_site_asks_for_is_told_apart() {
        for (headers, right) in [
            (vec![], true),
            (vec![("origin", "https://us.example:444")], true),
            (vec![("origin", "https://us.example:444"), ("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "none")], false),
            (vec![("origin", "null")], false),
            (vec![("origin", "https://us.example")], false),
            (vec![("origin", "https://us.example:444.evil.example")], false),
            (vec![("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")], false),
        ] {
            let mut map = HeaderMap::new();
            map.insert("host", HeaderValue::from_static("us.example:444"));
            for (name, value) in &headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(is_from_here(&map), right, "{headers:?}");
        }
    }
}
