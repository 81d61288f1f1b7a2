//! An error and its causes.

use std::{error::Error, iter::successors};

/// A report of the whole chain repeats no text.
#[track_caller]
pub(crate) fn says_nothing_twice(error: &dyn Error) {
    let chain = successors(Some(error), |&error| error.source());
    let texts: Vec<_> = chain.map(ToString::to_string).collect();
    for (link, text) in texts.iter().enumerate() {
        let mut later = texts[link + 1..].iter();
        assert!(later.all(|later| !text.contains(later.as_str())), "{texts:?}");
    }
}
