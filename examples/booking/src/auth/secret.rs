use std::fmt;

use rand::RngCore;

/// The fewest bytes: as many as the hash has that it is the key of.
const SHORTEST: usize = 32;
/// The fewest different bytes: even 32 random hexadecimal digits have more, but for three in a million.
const FEWEST_DIFFERENT: usize = 9;
/// What examples and tutorials are full of.
const EXAMPLES: [&str; 9] = [
    "secret",
    "password",
    "changeme",
    "change-me",
    "change_me",
    "example",
    "your-",
    "your_",
    "12345678",
];

/// The key that tokens are signed with. It never shows itself.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// Why a secret was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeakSecret {
    /// It has fewer than 32 bytes.
    #[error("it has {0} bytes, and needs 32 at least")]
    Short(usize),
    /// It is a few characters over and over.
    #[error("it has only {0} different characters")]
    Monotonous(usize),
    /// It has words of examples in it.
    #[error("it contains {0:?}, as examples do")]
    Example(&'static str),
    /// It is one shorter text over and over.
    #[error("it repeats itself after {0} bytes")]
    Repeated(usize),
}

impl Secret {
    /// A secret from the outside, if it is not a weak one.
    ///
    /// # Errors
    /// [`WeakSecret`] says in which way it is weak.
    pub fn new(text: &str) -> Result<Self, WeakSecret> {
        let bytes = text.as_bytes();
        if bytes.len() < SHORTEST {
            return Err(WeakSecret::Short(bytes.len()));
        }
        let lower = text.to_ascii_lowercase();
        if let Some(example) = EXAMPLES.iter().find(|example| lower.contains(**example)) {
            return Err(WeakSecret::Example(example));
        }
        let mut seen = [false; 256];
        bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        let different = seen.iter().filter(|seen| **seen).count();
        if different < FEWEST_DIFFERENT {
            return Err(WeakSecret::Monotonous(different));
        }
        let period = (1..=bytes.len() / 2)
            .find(|period| bytes.iter().zip(&bytes[*period..]).all(|(a, b)| a == b));
        if let Some(period) = period {
            return Err(WeakSecret::Repeated(period));
        }
        Ok(Self(bytes.to_vec()))
    }

    /// A new one, which nobody knows: tokens signed with it end with the process.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = vec![0; SHORTEST];
        rand::rng().fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Secret, WeakSecret};

    #[test]
    fn weak_secrets_are_refused() {
        let example = "my-very-secret-key-of-more-than-32-bytes";
        for (text, weakness) in [
            ("", WeakSecret::Short(0)),
            ("f3b1c8a94d7e6025f3b1c8a94d7e602", WeakSecret::Short(31)),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", WeakSecret::Monotonous(1)),
            (example, WeakSecret::Example("secret")),
            ("f3b1c8a94d7e6025f3b1c8a94d7e6025", WeakSecret::Repeated(16)),
        ] {
            assert_eq!(Secret::new(text).err(), Some(weakness), "{text:?}");
        }
    }

    #[test]
    fn a_random_one_is_right_and_does_not_show_itself() {
        let text = "b0a1f3c29d8e47566a7b8c9d0e1f2a3b4c5d6e7f";
        let secret = Secret::new(text).expect("it is strong");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(Secret::random().as_bytes(), Secret::random().as_bytes());
    }
}
