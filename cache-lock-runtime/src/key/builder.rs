//! Puts the text of a key together.

use std::{fmt, sync::Arc};

use super::{LockKey, LockKeyPart, PartWriter};

/// Longer keys are rare, and take more allocations.
const INLINE: usize = 256;

/// A key that is being put together, on the stack: what is allocated is the finished key alone.
pub struct KeyBuilder {
    start: [u8; INLINE],
    len: usize,
    /// All of the text, if it is too long for the stack.
    spilled: Option<String>,
}

impl KeyBuilder {
    /// A key that starts with `prefix`, as it is.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let mut key = Self { start: [0; INLINE], len: 0, spilled: None };
        key.push_str(prefix);
        key
    }

    /// Adds text of a template, as it is.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push_str(text);
        self
    }

    /// Adds the value of a placeholder, before which and after which other values may stand.
    /// `following` is the template's text right behind the placeholder; its first character is
    /// escaped in the value, so that the value's end can be told.
    pub fn value<T: LockKeyPart + ?Sized>(&mut self, value: &T, following: &str) -> &mut Self {
        value.write_part(&mut PartWriter::new(self, following.chars().next()));
        self
    }

    /// The key.
    #[must_use]
    pub fn finish(&self) -> LockKey {
        LockKey { text: Arc::from(self.as_str()) }
    }

    pub(super) fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    pub(super) fn push_str(&mut self, text: &str) {
        if let Some(spilled) = &mut self.spilled {
            spilled.push_str(text);
        } else if let Some(free) = self.start.get_mut(self.len..self.len + text.len()) {
            free.copy_from_slice(text.as_bytes());
            self.len += text.len();
        } else {
            let mut spilled = String::with_capacity(2 * (self.len + text.len()));
            spilled.push_str(self.as_str());
            spilled.push_str(text);
            self.spilled = Some(spilled);
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match &self.spilled {
            Some(spilled) => spilled,
            None => str::from_utf8(&self.start[..self.len]).expect("strings were put there whole"),
        }
    }
}

impl fmt::Debug for KeyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyBuilder").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever the text passes the end of the stack's part, whole or within a character.
    #[test]
    fn a_key_of_any_length_is_the_text_that_was_put_in() {
        for pieces in [["a", "bcd"], ["é", "€"], ["", "0123456789"]] {
            for len in 0..2 * INLINE {
                let prefix = "x".repeat(len);
                let mut key = KeyBuilder::new(&prefix);
                let mut expected = prefix;
                for piece in pieces.into_iter().cycle().take(100) {
                    key.text(piece);
                    expected.push_str(piece);
                    assert_eq!(key.as_str(), expected);
                }
                assert_eq!(key.finish().as_str(), expected);
            }
        }
    }
}
