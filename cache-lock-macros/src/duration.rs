//! Durations in arguments: `"250ms"`, `"2s"`, `"1m"`, or a bare integer of milliseconds.

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads `text` as milliseconds. The error names the argument `name`.
pub(crate) fn parse(name: &str, text: &str) -> Result<u64, String> {
    if text.starts_with('-') {
        return Err(negative(name));
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(unreadable(text));
    }
    if unit.is_empty() {
        return Err(format!(
            "`{name}` has no unit; write \"{number}s\", \"{number}ms\", or the bare integer {number} for milliseconds"
        ));
    }
    let Some(&(_, factor)) = UNITS.iter().find(|(known, _)| *known == unit) else {
        return Err(unreadable(text));
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| too_long(name))
}

/// Formats milliseconds in the longest unit that leaves no remainder: `10s`, `1500ms`.
pub(crate) fn display(millis: u64) -> String {
    let (unit, factor) = UNITS
        .into_iter()
        .rev()
        .find(|&(_, factor)| millis != 0 && millis.is_multiple_of(factor))
        .unwrap_or(UNITS[0]);
    format!("{}{unit}", millis / factor)
}

pub(crate) fn negative(name: &str) -> String {
    format!("`{name}` must not be negative")
}

/// The error for a bare integer that is too small for milliseconds.
pub(crate) fn bare(name: &str, millis: u64) -> String {
    // `expire` has a minimum of 100 ms, so milliseconds are no alternative.
    let intended = match name {
        "expire" => String::new(),
        _ => format!(", or `{name} = \"{millis}ms\"` for milliseconds"),
    };
    format!(
        "a bare integer counts milliseconds, and {millis}ms is probably a mistake; write `{name} = \"{millis}s\"` for seconds{intended}"
    )
}

pub(crate) fn too_long(name: &str) -> String {
    format!("`{name}` does not fit in 64-bit milliseconds")
}

fn unreadable(text: &str) -> String {
    format!(
        "cannot read {text:?} as a duration; expected a whole number and one of `ms`, `s`, `m`, `h`, such as \"2s\""
    )
}

#[cfg(test)]
mod tests {
    use super::{display, parse};

    #[test]
    fn each_unit_converts_to_milliseconds() {
        assert_eq!(parse("timeout", "250ms"), Ok(250));
        assert_eq!(parse("timeout", "2s"), Ok(2_000));
        assert_eq!(parse("timeout", "1m"), Ok(60_000));
        assert_eq!(parse("timeout", "3h"), Ok(10_800_000));
        assert_eq!(parse("timeout", "0s"), Ok(0));
        assert_eq!(parse("timeout", "007ms"), Ok(7));
    }

    #[test]
    fn largest_value_fits_and_the_next_does_not() {
        assert_eq!(parse("timeout", "18446744073709551615ms"), Ok(u64::MAX));
        for text in ["18446744073709551616ms", "18446744073709552s", "9999999999999999999999h"] {
            assert_eq!(
                parse("timeout", text),
                Err("`timeout` does not fit in 64-bit milliseconds".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn missing_unit_is_shown_with_its_three_spellings() {
        assert_eq!(
            parse("timeout", "2"),
            Err("`timeout` has no unit; write \"2s\", \"2ms\", or the bare integer 2 for milliseconds"
                .to_owned())
        );
    }

    #[test]
    fn negative_duration_is_refused() {
        assert_eq!(parse("expire", "-2s"), Err("`expire` must not be negative".to_owned()));
    }

    #[test]
    fn unreadable_duration_lists_the_units() {
        for text in [
            "", " ", "s", "2 sec", "2 s", " 2s", "2s ", "2S", "2.5s", "2us", "2d", "1m30s", "+2s",
            "２s",
        ] {
            let error = parse("timeout", text).expect_err(text);
            assert!(error.starts_with(&format!("cannot read {text:?} as a duration")), "{error}");
            assert!(error.contains("one of `ms`, `s`, `m`, `h`"), "{error}");
        }
    }

    #[test]
    fn display_uses_the_longest_unit_without_remainder() {
        assert_eq!(display(0), "0ms");
        assert_eq!(display(5), "5ms");
        assert_eq!(display(1_500), "1500ms");
        assert_eq!(display(10_000), "10s");
        assert_eq!(display(90_000), "90s");
        assert_eq!(display(86_400_000), "24h");
    }
}
