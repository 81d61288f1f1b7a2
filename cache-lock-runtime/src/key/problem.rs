//! What is wrong with a key.

use std::fmt;

use super::MAX_LEN;

/// What is wrong with a lock key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyProblem {
    /// It has no characters.
    Empty,
    /// It is longer than 1 KiB.
    #[non_exhaustive]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// It has braces that Redis does not take for a hash tag, so its fence could not be kept in the
    /// same cluster slot.
    Braces,
    /// It ends like the name of a record beside another lock.
    Reserved,
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { len } => {
                write!(f, "is {len} bytes long; the limit is {MAX_LEN}; hash what makes it long")
            }
            Self::Braces => f.write_str(
                "has a brace but no hash tag; write a tag as `{tag}` in the prefix, or leave braces out",
            ),
            Self::Reserved => f.write_str(
                "ends in `:fence`, `:waiting` or `:result`, as the records beside a lock do; end it otherwise",
            ),
        }
    }
}
