//! From a URL to a client.

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use super::ATTEMPTS_IN_FLIGHT;
use crate::error::{BackendError, BackendErrorKind};

pub(super) struct Parsed {
    /// The server's address, without a password.
    pub(super) server: String,
    pub(super) client: Client,
    pub(super) client_resp2: Client,
    /// The same, which sends nothing of its own but a password.
    pub(super) client_plain: Client,
}

/// Reads `redis://`, `rediss://` and `unix://` URLs.
pub(super) fn parse(
    url: &str,
    tls: Option<&TlsConfig>,
    attempt: Duration,
) -> Result<Parsed, BackendError> {
    if let Some(why) = unescaped(url) {
        return Err(unreadable(url, why));
    }
    let info = url.into_connection_info().map_err(|error| {
        // Behind a dash comes the kind of the error, which is no news.
        let why = error.to_string();
        unreadable(url, why.split("- ").next().unwrap_or_default())
    })?;
    let server = server(&info);
    let info = info.set_tcp_settings(tcp_settings(attempt));
    let mut settings = info.redis_settings().clone();
    settings = settings.set_lib_name("cache-lock", env!("CARGO_PKG_VERSION"));
    // Unless the URL asks for one of them itself.
    if !url.contains("protocol=") {
        settings = settings.set_protocol(ProtocolVersion::RESP3);
    }
    let info = info.set_redis_settings(settings.clone());
    let settings = settings.set_protocol(ProtocolVersion::RESP2);
    let resp2 = info.clone().set_redis_settings(settings.clone());
    let plain = info.clone().set_redis_settings(settings.set_skip_set_lib_name());
    let client = client(info, tls)?;
    let client_resp2 = self::client(resp2, tls)?;
    let client_plain = self::client(plain, tls)?;
    Ok(Parsed { server, client, client_resp2, client_plain })
}

/// A connection to a machine that went away without a word is noticed by the kernel, too, even
/// while no request is out.
fn tcp_settings(attempt: Duration) -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5));
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(attempt.saturating_mul(ATTEMPTS_IN_FLIGHT));
    #[cfg(not(any(target_os = "android", target_os = "fuchsia", target_os = "linux")))]
    let _ = (attempt, ATTEMPTS_IN_FLIGHT);
    settings
}

fn server(info: &ConnectionInfo) -> String {
    let settings = info.redis_settings();
    let scheme = match info.addr() {
        ConnectionAddr::Unix(_) => "unix",
        ConnectionAddr::TcpTls { .. } => "rediss",
        _ => "redis",
    };
    // A user without a password is not sent, and is likely a password whose colon was forgotten.
    let user = settings.username().filter(|_| settings.password().is_some());
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let address = info.addr();
    match settings.db() {
        0 => format!("{scheme}://{user}{address}"),
        db => format!("{scheme}://{user}{address}/{db}"),
    }
}

/// A user or password in which a character stands that ends its part of a URL. The rest would be taken
/// for something else, and shown.
fn unescaped(url: &str) -> Option<&'static str> {
    if url.contains('#') {
        return Some("a `#` in a user or password is written `%23`");
    }
    let (scheme, rest) = url.split_once("://")?;
    if scheme.ends_with("unix") {
        return None; // Its password is in the query, where these characters may stand.
    }
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    if query.contains('@') {
        return Some("a `?` in a user or password is written `%3F`");
    }
    let (_, path) = address.split_once('/')?;
    path.contains('@').then_some("a `/` in a user or password is written `%2F`")
}

/// Nothing of a URL that may hold a password is shown but its scheme: the password may stand anywhere.
fn unreadable(url: &str, why: &str) -> BackendError {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // Without an `@` what follows a colon is a port, or else a password that lacks its `@`.
    let is_port =
        |text: &str| text.split('/').next().is_none_or(|port| port.parse::<u16>().is_ok());
    let is_plain = !url.contains(['@', '?', '#']) && rest.split(':').skip(1).all(is_port);
    let hint = match scheme {
        "rediss" if !cfg!(feature = "tls") => {
            "for `rediss://` build cache-lock with the feature `tls`"
        }
        _ => {
            "expected `redis://[user[:password]@]host[:port][/database]`, `rediss://..` or `unix:///path`"
        }
    };
    let shown = match scheme {
        _ if is_plain => format!("`{url}`"),
        "redis" | "rediss" | "unix" | "redis+unix" => format!("this `{scheme}://` URL"),
        _ => "this URL".to_owned(),
    };
    BackendError::new(
        BackendErrorKind::Configuration,
        format!("{shown} cannot be read as a Redis URL ({}); {hint}", why.trim()),
    )
}

#[cfg(not(feature = "tls"))]
use super::failure::describe;
#[cfg(feature = "tls")]
use super::tls::{TlsConfig, client};

/// Without the feature there are no TLS settings.
#[cfg(not(feature = "tls"))]
pub(crate) type TlsConfig = std::convert::Infallible;

#[cfg(not(feature = "tls"))]
fn client(info: ConnectionInfo, _tls: Option<&TlsConfig>) -> Result<Client, BackendError> {
    Client::open(info).map_err(describe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Parsed, BackendError> {
        super::parse(url, None, Duration::from_secs(1))
    }

    #[test]
    fn passwords_are_left_out() {
        for (url, server) in [
            ("redis://127.0.0.1/", "redis://127.0.0.1:6379"),
            ("redis://:hunter2@example.org:7000/3", "redis://example.org:7000/3"),
            ("redis://ann:hunter2@example.org", "redis://ann@example.org:6379"),
            ("redis://hunter2@example.org", "redis://example.org:6379"),
            ("redis://hunter2:@example.org/3", "redis://example.org:6379/3"),
            ("unix:///run/redis.sock?user=hunter2", "unix:///run/redis.sock"),
            ("unix:///run/redis.sock?pass=hunter2&db=2", "unix:///run/redis.sock/2"),
        ] {
            assert_eq!(parse(url).map(|parsed| parsed.server).ok().as_deref(), Some(server));
        }
        for url in [
            "http://ann:hunter2@example.org/",
            "redis://ann:hunter2@example.org/not-a-number",
            "redis://ann:hunt@er2@[::1",
            "ann:hunter2@example.org",
            "unix:///run/redis.sock?pass=hunter2&db=x",
            "redis://:hunter2@",
            "redis://:hunt#er2@example.org",
            "redis://ann:1234#hunter2@example.org",
            "redis://ann:1234?hunter2@example.org",
            "redis://:hunt?er2@example.org",
            "redis://:hunt/er2@example.org",
            "redis://ann:1234/hunter2@example.org",
            "valkey://ann:1234/hunter2@example.org",
            "redis://:p@hunt/w#rd@example.org",
        ] {
            let error = parse(url).err().map(|error| format!("{error} {error:?}"));
            let error = error.unwrap_or_else(|| panic!("{url} is refused"));
            assert!(!error.contains("hunt") && error.contains("expected `redis://"), "{error}");
        }
    }
    /// A character is taken as it stands, or the error says how it is written.
    #[test]
    fn each_character_of_a_password_is_read_or_explained() {
        for character in (' '..='~').filter(|character| !character.is_ascii_alphanumeric()) {
            let password = format!("hun{character}ter2");
            for url in [
                format!("redis://:{password}@example.org/1"),
                format!("redis://ann:{password}@example.org/1"),
            ] {
                match parse(&url) {
                    Ok(parsed) => {
                        let settings = parsed.client.get_connection_info().redis_settings();
                        assert_eq!(settings.password(), Some(&*password), "{url}");
                        assert!(!parsed.server.contains("ter2"), "{}", parsed.server);
                    }
                    Err(error) => {
                        let written = format!("is written `%{:02X}`", u32::from(character));
                        assert!(error.to_string().contains(&written), "{url}: {error}");
                        assert!(!error.to_string().contains("ter2"), "{error}");
                    }
                }
            }
        }
    }
}
