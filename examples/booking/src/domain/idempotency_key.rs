use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::{Email, SlotId, UserId};

const LONGEST: usize = 128;

/// What a client calls a request, so that it can send it again: `Idempotency-Key`, as
/// draft-ietf-httpapi-idempotency-key-header describes it.
///
/// The id of what the request creates is made of the key, so the database's own uniqueness of ids
/// makes it once. There is no list of keys that would have to be kept, bounded, or shared by
/// replicas, and no moment in which a request has a key and not yet a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads the header's value: a string of 1 to 128 visible characters, in quotation marks (as the
    /// draft has it) or without them (as many clients send it). Both are the same key.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim_matches([' ', '\t']);
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let key = quoted.unwrap_or(value);
        // Neither is in a key: it would need escapes, or be half of a quoted string.
        let plain = |c: u8| c.is_ascii_graphic() && !matches!(c, b'"' | b'\\');
        // Without quotation marks, these would begin parameters, or a second value.
        let bare = quoted.is_some() || !key.contains([',', ';']);
        ((1..=LONGEST).contains(&key.len()) && key.bytes().all(plain) && bare)
            .then(|| Self(key.to_owned()))
    }

    /// The id of the slot that this user creates by this key.
    #[must_use]
    pub fn slot(&self, creator: UserId) -> SlotId {
        SlotId(self.id("slot", creator.0.as_bytes()))
    }

    /// The id of the account that is opened for this address by this key.
    #[must_use]
    pub fn user(&self, email: &Email) -> UserId {
        UserId(self.id("user", email.as_str().as_bytes()))
    }

    /// A UUID of version 8. The key of one owner never names what belongs to another: for that, 122
    /// bits of SHA-256 would have to be met.
    fn id(&self, kind: &str, owner: &[u8]) -> Uuid {
        let mut hash = Sha256::new();
        for part in [kind.as_bytes(), owner, self.0.as_bytes()] {
            // With its length, so that no two lists of parts have the same bytes.
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::{Email, IdempotencyKey, UserId};

    #[test]
    fn a_key_is_a_short_string_with_or_without_quotation_marks() {
        let key = IdempotencyKey::parse("a-1");
        assert!(key.is_some());
        assert_eq!(IdempotencyKey::parse(" \"a-1\" "), key);
        for right in ["8e03978e-40d5-43e8-bc93-6894a57f9324", "\"a,b;c\"", &"x".repeat(128)] {
            assert!(IdempotencyKey::parse(right).is_some(), "{right}");
        }
        for wrong in
            ["", " ", "\"\"", "\"", "a b", "\"a", "a\"", "a,b", "\"a\";b=1", "é", &"x".repeat(129)]
        {
            assert!(IdempotencyKey::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_a_key_names_depends_on_its_owner_and_on_nothing_that_changes() {
        let [ann, bob] = [UserId::random(), UserId::random()];
        let [one, two] = ["1", "2"].map(|text| IdempotencyKey::parse(text).expect("it is a key"));
        assert_eq!(one.slot(ann), one.slot(ann));
        assert_ne!(one.slot(ann), one.slot(bob));
        assert_ne!(one.slot(ann), two.slot(ann));
        let email = Email::parse("ann@example.org").expect("it is an address");
        assert_eq!(one.user(&email).to_string(), "e1261566-4e02-811c-ad85-b0764d9ce2b2");
    }
}
