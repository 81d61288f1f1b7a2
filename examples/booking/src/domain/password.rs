use std::fmt;

use super::{Email, FieldError};

/// The fewest characters. Length is what counts: no rule asks for digits or signs.
const SHORTEST: usize = 12;
/// The most characters. Hashing takes as long for a long one, but its bytes travel and are kept.
const LONGEST: usize = 128;

/// A password as it was sent. It never shows itself.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Any text, for a login: whether it is right is for the hash to say.
    #[must_use]
    pub fn attempt(text: String) -> Self {
        Self(text)
    }

    /// A password for a new account.
    ///
    /// # Errors
    /// A [`FieldError`] of the field `password`.
    pub fn choose(text: String, email: Option<&Email>) -> Result<Self, FieldError> {
        let wrong = |message: &str| Err(FieldError::new("password", message));
        let length = text.chars().count();
        if length < SHORTEST {
            return wrong("must have at least 12 characters; a few words do");
        }
        if length > LONGEST {
            return wrong("must have at most 128 characters");
        }
        let first = text.chars().next();
        if text.chars().all(|c| Some(c) == first) {
            return wrong("must not be one character over and over");
        }
        if email.is_some_and(|email| email.as_str().eq_ignore_ascii_case(&text)) {
            return wrong("must not be the email address");
        }
        Ok(Self(text))
    }

    /// The bytes to be hashed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether it is longer than any password that can be chosen.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.0.chars().count() > LONGEST
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Email, Password};

    #[test]
    fn a_password_is_long_and_not_easily_guessed() {
        let email = Email::parse("ann@example.org").expect("it is an address");
        for (text, right) in [
            ("correct horse battery", true),
            ("zwölf Zeichen", true),
            ("elf Zeichen", false),
            ("aaaaaaaaaaaaaaaa", false),
            ("Ann@Example.org", false),
            (&"ab".repeat(64), true),
            (&"ab".repeat(65), false),
        ] {
            let chosen = Password::choose(text.to_owned(), Some(&email));
            assert_eq!(chosen.is_ok(), right, "{text:?}");
        }
    }

    #[test]
    fn a_password_does_not_show_itself() {
        let shown = format!("{:?}", Password::attempt("correct horse battery".to_owned()));
        assert!(!shown.contains("horse"), "{shown}");
    }
}
