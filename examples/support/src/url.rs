//! URLs of servers, which may hold passwords.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The URL of a server. It shows itself without its password.
#[derive(Clone, Serialize, Deserialize)]
pub struct ServerUrl(String);

impl ServerUrl {
    /// The URL in full, for the client that connects.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for ServerUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// `url` without its password, and without its query, which can hold secrets too. A user without a
/// password is left out: it is likely a password whose colon was forgotten.
fn without_password(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    // A password that is not percent-encoded may hold any separator, so the last `@` counts.
    let (user, place) = match rest.rsplit_once('@') {
        Some((credentials, place)) => (credentials.split_once(':').map(|(user, _)| user), place),
        None => (None, rest),
    };
    let place = place.split(['?', '#']).next().unwrap_or_default();
    // What follows a colon is a port, or else a password that lacks its `@`.
    let hosts = place.split('/').next().unwrap_or_default();
    let is_port =
        |host: &str| host.split_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok());
    if scheme != "unix://" && !hosts.starts_with('[') && !hosts.split(',').all(is_port) {
        return format!("{scheme}..");
    }
    match user {
        Some(user) if !user.is_empty() => format!("{scheme}{user}@{place}"),
        _ => format!("{scheme}{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn no_part_of_a_password_is_left() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/2", "redis://127.0.0.1:6379/2"),
            ("redis://:secret@host", "redis://host"),
            ("redis://secret@host", "redis://host"),
            ("secret@host", "host"),
            ("mongodb://secret@a:1,b:2/db", "mongodb://a:1,b:2/db"),
            ("redis://ann:secret@host/1", "redis://ann@host/1"),
            ("rediss://ann:se/cr:et@2@host", "rediss://ann@host"),
            ("redis://ann:sec?ret#@host", "redis://ann@host"),
            ("mongodb://ann:secret@a:1,b:2/db?x=secret", "mongodb://ann@a:1,b:2/db"),
            ("ann:secret@host", "ann@host"),
            ("unix:///run/redis.sock?pass=secret", "unix:///run/redis.sock"),
            ("mongodb://ann:secret127.0.0.1:27017/", "mongodb://.."),
            ("ann:secret", ".."),
            ("redis://[::1]:6379/", "redis://[::1]:6379/"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
