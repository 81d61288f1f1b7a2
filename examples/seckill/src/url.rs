//! URLs as they may be shown.

/// `url` without its password, and without its query, which can hold secrets too.
#[must_use]
pub(crate) fn without_password(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    // A password that is not percent-encoded may hold any separator, so the last `@` counts.
    let (user, place) = match rest.rsplit_once('@') {
        Some((credentials, place)) => (credentials.split(':').next(), place),
        None => (None, rest),
    };
    let place = place.split(['?', '#']).next().unwrap_or_default();
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
            ("redis://ann:secret@host/1", "redis://ann@host/1"),
            ("rediss://ann:se/cr:et@2@host", "rediss://ann@host"),
            ("redis://ann:sec?ret#@host", "redis://ann@host"),
            ("mongodb://ann:secret@a:1,b:2/db?x=secret", "mongodb://ann@a:1,b:2/db"),
            ("ann:secret@host", "ann@host"),
            ("unix:///run/redis.sock?pass=secret", "unix:///run/redis.sock"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
