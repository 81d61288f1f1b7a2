//! Lock keys, and what can be a part of one.

use std::{borrow::Cow, fmt, fmt::Write as _, rc::Rc, sync::Arc};

mod builder;
mod problem;

pub use self::{builder::KeyBuilder, problem::KeyProblem};

/// The longest key that is accepted, in bytes.
pub(crate) const MAX_LEN: usize = 1024;

/// What a lock is taken on: a prefix, which names what kind of thing is locked, and parts, which
/// say which one.
///
/// The text of the key is the name of the lock's record in Redis: `LockKey::new("room").part(42)`
/// is the record `room:42`. Parts are percent-escaped, so that different parts never make the same
/// key; the prefix stands as it was typed.
///
/// ```
/// use cache_lock::LockKey;
///
/// let key = LockKey::new("room").part("berlin").part(42);
/// assert_eq!(key.as_str(), "room:berlin:42");
/// // A part cannot reach across its border:
/// assert_eq!(LockKey::new("room").part("a:b").as_str(), "room:a%3Ab");
/// ```
///
/// A key is used when a lock is acquired; one that is empty, longer than 1 KiB, has braces without
/// being a Redis hash tag, or has one and ends in `:fence`, `:waiting` or `:result`, is refused there
/// with
/// [`LockError::InvalidKey`](crate::LockError::InvalidKey).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    /// Shared by all clones, since a key is held in several places while its lock is.
    text: Arc<str>,
}

impl LockKey {
    /// A key that is nothing but `prefix`. The prefix is a namespace that you choose; keys of
    /// different prefixes are only as different as you make the prefixes.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { text: prefix.into().into() }
    }

    /// Adds `:` and the part, percent-escaped.
    #[must_use]
    pub fn part(self, part: impl LockKeyPart) -> Self {
        KeyBuilder::new(&self.text).text(":").value(&part, "").finish()
    }

    /// The whole key, as it is named in Redis.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn validate(&self) -> Result<(), KeyProblem> {
        if self.text.is_empty() {
            return Err(KeyProblem::Empty);
        }
        if self.text.len() > MAX_LEN {
            return Err(KeyProblem::TooLong { len: self.text.len() });
        }
        match hash_tag(&self.text) {
            Some(_) if is_beside(&self.text) => Err(KeyProblem::Reserved),
            Some(_) => Ok(()),
            None if self.text.contains(['{', '}']) => Err(KeyProblem::Braces),
            None => Ok(()),
        }
    }

    /// The record that keeps the last fencing number: one for each record of a lock, however its
    /// key was put together.
    #[cfg(any(feature = "redis", test))]
    pub(crate) fn fence_key(&self) -> Beside<'_> {
        self.beside(FENCE_SUFFIX)
    }

    /// The record in which managers wait for the lock.
    #[cfg(any(feature = "redis", test))]
    pub(crate) fn waiting_key(&self) -> Beside<'_> {
        self.beside(WAITING_SUFFIX)
    }

    /// The record of a single flight's value.
    #[cfg(any(all(feature = "redis", feature = "serde", feature = "single-flight"), test))]
    pub(crate) fn result_key(&self) -> Beside<'_> {
        self.beside(RESULT_SUFFIX)
    }

    /// A record beside the lock's own. It lies in the same cluster slot, and begins as the key does
    /// up to its last part, so that an ACL rule for a prefix covers it.
    ///
    /// No two records have the same name. Before the suffix stands `}` if the key has no tag of its
    /// own, and then the key is between the braces; else it is `:`, and the key is all before that. Both
    /// names have a tag and such an end, with which [`validate`](Self::validate) accepts no key.
    #[cfg(any(feature = "redis", test))]
    fn beside(&self, suffix: &'static str) -> Beside<'_> {
        Beside { lock: &self.text, suffix }
    }
}

/// The name of a record beside a lock's own: it is written where it is sent, without a copy in between.
#[cfg(any(feature = "redis", test))]
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    lock: &'a str,
    suffix: &'static str,
}

#[cfg(any(feature = "redis", test))]
impl fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, suffix } = *self;
        let parts: &[&str] = if hash_tag(lock).is_some() {
            &[lock, ":", suffix]
        } else {
            let start = lock.rsplit_once(':').map_or(lock, |(start, _)| start);
            &[start, ":{", lock, "}", suffix]
        };
        parts.iter().try_for_each(|part| f.write_str(part))
    }
}

const FENCE_SUFFIX: &str = ":fence";
const WAITING_SUFFIX: &str = ":waiting";
const RESULT_SUFFIX: &str = ":result";

/// Whether a key that has a hash tag could be a record beside that of another lock.
fn is_beside(key: &str) -> bool {
    [FENCE_SUFFIX, WAITING_SUFFIX, RESULT_SUFFIX].iter().any(|suffix| key.ends_with(suffix))
}

/// The part of a key that Redis Cluster hashes in place of the whole: between the first `{` and
/// the first `}` behind it, if there is anything between them.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key that was refused for its length must not flood the log.
        match self.text.char_indices().nth(80) {
            Some((end, _)) if self.text.len() > MAX_LEN => {
                write!(f, "{}…", &self.text[..end])
            }
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({:?})", self.to_string())
    }
}

impl From<&str> for LockKey {
    fn from(prefix: &str) -> Self {
        Self { text: prefix.into() }
    }
}

impl From<String> for LockKey {
    fn from(prefix: String) -> Self {
        Self::new(prefix)
    }
}

/// A type whose values can be parts of a [`LockKey`].
///
/// Integers, strings, `bool`, `char`, `Uuid` and `ObjectId` (behind the features of their crates),
/// and references and smart pointers to them are. Floats are not, since equal numbers can read
/// differently; `Option` is not, since it must be decided what `None` stands for.
///
/// For a type of your own, write what tells its values apart:
///
/// ```
/// use cache_lock::{LockKey, LockKeyPart, PartWriter};
///
/// struct RoomId { house: u32, number: u32 }
///
/// impl LockKeyPart for RoomId {
///     fn write_part(&self, part: &mut PartWriter<'_>) {
///         self.house.write_part(part);
///         part.push_str("-");
///         self.number.write_part(part);
///     }
/// }
///
/// let key = LockKey::new("room").part(RoomId { house: 3, number: 12 });
/// assert_eq!(key.as_str(), "room:3-12");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written into a lock key",
    label = "this is not a `LockKeyPart`",
    note = "integers, strings, `bool`, `char`, references to them and, behind features, `Uuid` and `ObjectId` can",
    note = "of a struct or a wrapper take a field, as in `{{user.id}}` or `{{p.0}}`, or take it apart in the parameter, as in `Path(p): Path<u64>`",
    note = "of a float pass an integer, such as cents for a price, or a string",
    note = "of an `Option` decide in the signature, or before the call, what `None` stands for",
    note = "for a type of your own: `impl LockKeyPart for YourType {{ fn write_part(&self, part: &mut PartWriter<'_>) {{ self.id.write_part(part) }} }}`"
)]
pub trait LockKeyPart {
    /// Writes the value. Two values that are not the same must be written differently.
    fn write_part(&self, part: &mut PartWriter<'_>);
}

/// Takes the text of one key part and escapes it on its way into the key.
///
/// Escaped are `%`, `:`, `{`, `}`, control characters, and the character that ends the part in its
/// template: each of their UTF-8 bytes becomes `%` and two hexadecimal digits.
pub struct PartWriter<'a> {
    key: &'a mut KeyBuilder,
    end: Option<char>,
    escape: char,
}

impl<'a> PartWriter<'a> {
    fn new(key: &'a mut KeyBuilder, end: Option<char>) -> Self {
        // Where the part ends at a `%`, that sign cannot begin an escape as well.
        let escape = if end == Some('%') { '~' } else { '%' };
        Self { key, end, escape }
    }

    /// Adds text to the part.
    pub fn push_str(&mut self, text: &str) {
        let (escape, end) = (self.escape, self.end);
        let is_special = |c: char| {
            matches!(c, '%' | ':' | '{' | '}') || c == escape || c.is_control() || Some(c) == end
        };
        let mut rest = 0;
        for (at, special) in text.match_indices(is_special) {
            self.key.push_str(&text[rest..at]);
            self.push_escaped(special);
            rest = at + special.len();
        }
        self.key.push_str(&text[rest..]);
    }

    fn push_escaped(&mut self, special: &str) {
        for byte in special.bytes() {
            self.key.push(self.escape);
            for digit in [byte >> 4, byte & 0xf] {
                self.key.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
}

impl fmt::Write for PartWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl fmt::Debug for PartWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartWriter").field("key", &self.key).finish_non_exhaustive()
    }
}

impl LockKeyPart for str {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        part.push_str(self);
    }
}

impl LockKeyPart for String {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        part.push_str(self);
    }
}

impl LockKeyPart for char {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        part.push_str(self.encode_utf8(&mut [0; 4]));
    }
}

macro_rules! displayed {
    ($($(#[$attribute:meta])* $type:ty),+ $(,)?) => {$(
        $(#[$attribute])*
        impl LockKeyPart for $type {
            fn write_part(&self, part: &mut PartWriter<'_>) {
                // `PartWriter` never fails.
                let _ = write!(part, "{self}");
            }
        }
    )+};
}

displayed!(
    bool,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    #[cfg(feature = "uuid")]
    uuid::Uuid,
);

#[cfg(feature = "bson-2")]
impl LockKeyPart for bson_2::oid::ObjectId {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        part.push_str(&self.to_hex());
    }
}

#[cfg(feature = "bson-3")]
impl LockKeyPart for bson_3::oid::ObjectId {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        part.push_str(&self.to_hex());
    }
}

macro_rules! through_pointer {
    ($($pointer:ty),+) => {$(
        impl<T: LockKeyPart + ?Sized> LockKeyPart for $pointer {
            fn write_part(&self, part: &mut PartWriter<'_>) {
                (**self).write_part(part);
            }
        }
    )+};
}

through_pointer!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: LockKeyPart + ToOwned + ?Sized> LockKeyPart for Cow<'_, T> {
    fn write_part(&self, part: &mut PartWriter<'_>) {
        (**self).write_part(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> LockKey {
        LockKey::new(text)
    }

    #[test]
    fn parts_are_escaped_and_prefixes_are_not() {
        let plain = key("sale#1 %").part("a:b%{c}\n\u{85}").part('x').part(true).part(-3);
        assert_eq!(plain.as_str(), "sale#1 %:a%3Ab%25%7Bc%7D%0A%C2%85:x:true:-3");
    }

    #[test]
    fn pointers_are_written_like_what_they_point_at() {
        let word = String::from("w");
        let key = key("p").part(&word).part(Box::new(1)).part(Arc::<str>::from("s"));
        assert_eq!(key.part(Cow::Borrowed("c")).part(Rc::new('r')).as_str(), "p:w:1:s:c:r");
    }

    /// Every pair of values, in templates of several separators, among them those that could be
    /// mistaken for an escape, gives a key of its own.
    #[test]
    fn keys_are_injective_within_a_template() {
        let values = [
            "", "a", "5", "%", "%%", "%25", "%35", "~", "~7E", "~25", "-", "a-", "-a", ":", "::",
            "%3A", "é", "%C3%A9", "{", "}", "2", "25", "null", "\0", "\n",
        ];
        for separator in [":", "-", "5", "%", "%25", "~", "é", "a", "2", "}{", "--"] {
            let mut seen = std::collections::HashMap::new();
            for a in values {
                for b in values {
                    let mut key = KeyBuilder::new("p:");
                    let key = key.value(a, separator).text(separator).value(b, "").finish();
                    let clash = seen.insert(key.clone(), (a, b));
                    assert_eq!(clash, None, "{:?} with {separator:?}: {:?}", (a, b), key);
                }
            }
        }
    }

    #[test]
    fn the_template_and_the_parts_agree() {
        for (a, b) in [("a", "b"), ("a:b", "%"), ("", "{}")] {
            let mut template = KeyBuilder::new("p");
            let template = template.text(":").value(a, ":").text(":").value(b, "");
            assert_eq!(template.finish(), key("p").part(a).part(b));
        }
    }

    #[test]
    fn a_key_is_its_text_however_it_was_put_together() {
        assert_eq!(key("room:7"), key("room").part(7));
        let fences = [key("a:b").part(1), key("a").part("b").part(1)].map(|key| fence_of(&key));
        assert_eq!(fences[0], fences[1]);
    }

    #[test]
    fn refused_keys() {
        assert_eq!(key("").validate(), Err(KeyProblem::Empty));
        assert_eq!(key(&"x".repeat(1024)).validate(), Ok(()));
        assert_eq!(key(&"x".repeat(1025)).validate(), Err(KeyProblem::TooLong { len: 1025 }));
        for braces in ["{", "}", "a{}b", "}{", "{}{a}", "a}b"] {
            assert_eq!(key(braces).validate(), Err(KeyProblem::Braces), "{braces}");
        }
        for tagged in ["{a}", "x{a}y", "{a}{}", "{a", "{{a}}"] {
            let expected = if tagged == "{a" { Err(KeyProblem::Braces) } else { Ok(()) };
            assert_eq!(key(tagged).validate(), expected, "{tagged}");
        }
        for reserved in ["{a}:b:fence", "{a}:b:waiting", "{a}:b:result"] {
            assert_eq!(key(reserved).validate(), Err(KeyProblem::Reserved), "{reserved}");
        }
    }

    #[test]
    fn the_fence_lies_in_the_slot_of_the_lock_and_under_its_prefix() {
        for (lock, fence) in [
            (key("room").part(42), "room:{room:42}:fence"),
            (key("room:42"), "room:{room:42}:fence"),
            (key("shop:eu").part("a").part(1), "shop:eu:a:{shop:eu:a:1}:fence"),
            (key("job"), "job:{job}:fence"),
            (key("{eu}:room").part(42), "{eu}:room:42::fence"),
            (key("job:{job}"), "job:{job}::fence"),
        ] {
            assert_eq!(lock.fence_key().to_string(), fence);
            assert_eq!(lock.result_key().to_string(), fence.replace(":fence", ":result"));
            let slot_of_lock = hash_tag(lock.as_str()).unwrap_or(lock.as_str());
            assert_eq!(hash_tag(fence), Some(slot_of_lock));
        }
    }

    /// All keys of up to five of these pieces, the names of records beside those, and the names beside
    /// them in turn.
    #[test]
    fn no_two_records_have_the_same_name() {
        let pieces = ["", "a", ":", "{", "}", "{a}", ":fence", ":result", ":waiting"];
        let mut keys = std::collections::BTreeSet::from([String::new()]);
        for _ in 0..5 {
            let longer = keys.iter().flat_map(|key| pieces.map(|piece| format!("{key}{piece}")));
            keys = longer.collect();
        }
        for _ in 0..2 {
            let lock_keys: Vec<_> = keys.iter().map(|text| key(text)).collect();
            keys.extend(lock_keys.iter().flat_map(records_beside));
        }
        let accepted = || keys.iter().map(|text| key(text)).filter(|key| key.validate().is_ok());
        assert!(accepted().count() > 10_000);
        let mut names = std::collections::HashMap::new();
        for key in accepted() {
            let own = [key.as_str().to_owned()];
            for name in own.into_iter().chain(records_beside(&key)) {
                assert_eq!(hash_tag(&name).unwrap_or(&name), slot(&key), "{name} of {key}");
                // As the rules `~prefix:*`, and `~key ~key:*` for a key that is nothing but a prefix.
                for (end, _) in key.as_str().match_indices(':') {
                    assert!(name.starts_with(&key.as_str()[..=end]), "{name} of {key}");
                }
                if !key.as_str().contains(':') && name != key.as_str() {
                    assert!(name.starts_with(&format!("{key}:")), "{name} of {key}");
                }
                if let Some(other) = names.insert(name, key.clone()) {
                    panic!("{key} and {other} share a record");
                }
            }
        }
    }

    fn fence_of(key: &LockKey) -> String {
        key.fence_key().to_string()
    }

    fn records_beside(key: &LockKey) -> [String; 3] {
        [key.fence_key(), key.waiting_key(), key.result_key()].map(|name| name.to_string())
    }

    /// What Redis Cluster hashes.
    fn slot(key: &LockKey) -> &str {
        hash_tag(key.as_str()).unwrap_or(key.as_str())
    }

    #[test]
    fn a_refused_key_does_not_flood_the_log() {
        assert_eq!(key(&"é".repeat(5000)).to_string().chars().count(), 81);
        assert_eq!(key(&"x".repeat(1024)).to_string().len(), 1024);
    }
}
