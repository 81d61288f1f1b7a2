//! Durations as users write them: `"250ms"`, `"2s"`, `"1m"`, or a bare integer of milliseconds.

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// The number of milliseconds that `text` stands for. `name` is the argument, for the error.
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

/// Milliseconds in the longest unit that leaves no remainder: `10s`, `1500ms`.
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

/// About an integer that is small for a number of milliseconds.
pub(crate) fn bare(name: &str, millis: u64) -> String {
    // `expire` cannot be as short as that.
    let intended = match name {
        "expire" => String::new(),
        _ => format!(", or `{name} = \"{millis}ms\"` if milliseconds are meant"),
    };
    format!(
        "a bare integer counts milliseconds, and {millis} of them are too few to be meant; write `{name} = \"{millis}s\"` for seconds{intended}"
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
    fn units() {
        assert_eq!(parse("timeout", "250ms"), Ok(250));
        assert_eq!(parse("timeout", "2s"), Ok(2_000));
        assert_eq!(parse("timeout", "1m"), Ok(60_000));
        assert_eq!(parse("timeout", "3h"), Ok(10_800_000));
        assert_eq!(parse("timeout", "0s"), Ok(0));
        assert_eq!(parse("timeout", "007ms"), Ok(7));
    }

    #[test]
    fn the_largest_value_fits_and_the_next_does_not() {
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
    fn a_missing_unit_is_shown_with_the_three_ways_to_write_it() {
        assert_eq!(
            parse("timeout", "2"),
            Err("`timeout` has no unit; write \"2s\", \"2ms\", or the bare integer 2 for milliseconds"
                .to_owned())
        );
    }

    #[test]
    fn negative() {
        assert_eq!(parse("expire", "-2s"), Err("`expire` must not be negative".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
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
    fn displayed_in_the_unit_that_reads_best() {
        assert_eq!(display(0), "0ms");
        assert_eq!(display(5), "5ms");
        assert_eq!(display(1_500), "1500ms");
        assert_eq!(display(10_000), "10s");
        assert_eq!(display(90_000), "90s");
        assert_eq!(display(86_400_000), "24h");
    }
}
