//! "Did you mean": the known name that is nearest to one that is not known.

/// The name among `known` that `typed` is most likely a slip of, if any is near enough.
pub(crate) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = fold(typed);
    known
        .into_iter()
        .map(|name| (distance(&typed, &fold(name)), name))
        .filter(|&(distance, name)| distance <= slips_allowed(&typed, name))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// `a`, `b`, `c`, each in back-ticks.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One slip per three letters: more would suggest words that merely have the same length.
fn slips_allowed(typed: &str, name: &str) -> usize {
    typed.chars().count().max(name.len()) / 3
}

/// `timeOut`, `time_out` and `timeout` are one word to whoever types them.
fn fold(name: &str) -> String {
    name.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect()
}

/// Optimal string alignment: insertions, deletions, substitutions, and swaps of two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("timeot", "timeout"), 1);
        assert_eq!(distance("exprie", "expire"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
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
