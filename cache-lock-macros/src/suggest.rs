//! Suggestions for unknown names: the nearest known name.

use strsim::osa_distance;

/// The name in `known` with the smallest edit distance to `typed`. `None` if all exceed the limit.
pub(crate) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = fold(typed);
    known
        .into_iter()
        .map(|name| (osa_distance(&typed, &fold(name)), name))
        .filter(|&(distance, name)| distance <= slips_allowed(&typed, name))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// `a`, `b`, `c`, each in back-ticks.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The limit of the edit distance: a third of the longer name. A higher limit would match unrelated
/// words of similar length.
fn slips_allowed(typed: &str, name: &str) -> usize {
    typed.chars().count().max(name.len()) / 3
}

/// Removes case and underscores, so that `timeOut`, `time_out` and `timeout` are equal.
fn fold(name: &str) -> String {
    name.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    /// The distance counts a swap of two neighbours once.
    #[test]
    fn longer_words_allow_more_slips() {
        assert_eq!(nearest("", ["abc"]), None);
        assert_eq!(nearest("timeot", ["timeout"]), Some("timeout"));
        assert_eq!(nearest("exprie", ["expire"]), Some("expire"));
        assert_eq!(nearest("ba", ["ab"]), None);
        assert_eq!(nearest("bac", ["abc"]), Some("abc"));
        assert_eq!(nearest("kitten", ["sitting"]), None);
        assert_eq!(nearest("same", ["same"]), Some("same"));
    }

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["prefix", "key", "timeout", "expire", "or_else"];
        assert_eq!(nearest("timeot", known), Some("timeout"));
        assert_eq!(nearest("timeOut", known), Some("timeout"));
        assert_eq!(nearest("orElse", known), Some("or_else"));
        assert_eq!(nearest("perfix", known), Some("prefix"));
        assert_eq!(nearest("kye", known), Some("key"));
        assert_eq!(nearest("zzzzz", known), None);
        assert_eq!(nearest("id", ["amount"]), None);
        assert_eq!(nearest("usr", ["id", "user"]), Some("user"));
    }
}
