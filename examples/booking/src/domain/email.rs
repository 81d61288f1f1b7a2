use std::fmt;

use super::FieldError;

const LONGEST: usize = 254;

/// An address that names an account, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Email(String);

impl Email {
    /// Reads an address. Only its shape is looked at: whether it exists, a letter would tell.
    ///
    /// # Errors
    /// A [`FieldError`] of the field `email`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let wrong = |message: &str| Err(FieldError::new("email", message));
        if text.len() > LONGEST {
            return wrong("must have at most 254 characters");
        }
        // ASCII alone: letters of other alphabets that look alike would be different accounts.
        let Some((local, domain)) = text.split_once('@') else {
            return wrong("must be an address such as ann@example.org");
        };
        let local_is_right = !local.is_empty()
            && local.len() <= 64
            && local
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b));
        let domain_is_right = domain.contains('.')
            && domain.split('.').all(|label| {
                !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            });
        if local_is_right && domain_is_right {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            wrong("must be an address such as ann@example.org")
        }
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Email;

    #[test]
    fn an_address_is_one_account_however_it_is_written() {
        let email = Email::parse("Ann.O'Hara+x@Example.ORG").map(|email| email.to_string());
        assert_eq!(email, Ok("ann.o'hara+x@example.org".to_owned()));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("{}@example.org", "a".repeat(250));
        for text in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "ann@localhost",
            "ann@example..org",
            "ann@@example.org",
            "a nn@example.org",
            "ann\r\n@example.org",
            "ann@exa mple.org",
            "аnn@example.org",
            "{\"$gt\":\"\"}",
            &long,
        ] {
            assert!(Email::parse(text).is_err(), "{text:?}");
        }
    }
}
