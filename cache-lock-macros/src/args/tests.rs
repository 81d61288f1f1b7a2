use super::{
    Args, OnLostArg, OrElse, Prefix, ReleaseArg, Time,
    table::{ARGUMENTS, Argument},
};
use crate::errors::Errors;

fn read(text: &str) -> (Args, Vec<String>) {
    let mut errors = Errors::default();
    let args = Args::parse(text.parse().expect("tokens"), &mut errors);
    (args, errors.messages())
}

#[test]
fn every_argument_is_read() {
    let (args, errors) = read(
        r#"prefix = "room", key = "{id}", timeout = "2s", expire = 10_000, renew = true,
           max_hold = "1m", bind = lock, or_else = |e| Err(e.into()), skip_if_locked,
           on_lost = "finish", release = "wait", when = id > 3, with = self.locks, crate = a::b,"#,
    );
    assert_eq!(errors, [""; 0]);
    assert!(matches!(args.prefix, Some(Prefix::Literal(text)) if text.value() == "room"));
    assert!(args.key.is_some_and(|key| key.segments.len() == 1));
    assert!(matches!(args.timeout, Some(Time::Millis(2_000, _))));
    assert!(matches!(args.expire, Some(Time::Millis(10_000, _))));
    assert!(matches!(args.max_hold, Some(Time::Millis(60_000, _))));
    assert!(args.renew.is_some_and(|renew| renew.value));
    assert!(args.bind.is_some_and(|bind| bind == "lock"));
    assert!(matches!(args.or_else, Some(OrElse::Closure(_))));
    assert!(args.skip_if_locked.is_some());
    assert_eq!(args.on_lost, Some(OnLostArg::Finish));
    assert_eq!(args.release, Some(ReleaseArg::Wait));
    assert!(args.when.is_some() && args.with.is_some() && args.krate.is_some());
}

#[test]
fn paths_are_constants() {
    let (args, errors) = read("prefix = names::ROOM, timeout = Self::WAIT, expire = LEASE");
    assert_eq!(errors, [""; 0]);
    assert!(matches!(args.prefix, Some(Prefix::Const(_))));
    assert!(matches!(args.timeout, Some(Time::Const(_))));
    assert!(matches!(args.expire, Some(Time::Const(_))));
}

#[test]
fn each_mistake_is_reported_once() {
    let (_, errors) = read(
        r#"prefix = "", timeot = "2s", expire = "5ms", expire = "1s", on_lost = "finis", bind = 3"#,
    );
    assert_eq!(
        errors,
        [
            "`prefix` must not be empty",
            "unknown argument `timeot`; did you mean `timeout`?",
            "`expire` is 5ms; it must be at least 100ms so that the lock outlives a Redis round trip",
            "duplicate argument `expire`; keep a single `expire`",
            "unknown `on_lost` value \"finis\"; did you mean `finish`?",
            "expected a name for the lock guard, as in `bind = lock`",
        ]
    );
}

#[test]
fn misspelled_prefix_is_not_reported_as_missing() {
    for text in [r#"lockedPrefix = "a""#, r#"perfix = "a""#, r#""a""#] {
        assert_eq!(read(text).1.len(), 1, "{text}: {:?}", read(text).1);
    }
}

#[test]
fn empty_attribute_lacks_the_prefix() {
    assert_eq!(
        read("").1,
        ["missing required argument `prefix`, as in `#[cache_lock(prefix = \"orders\", ..)]`"]
    );
}

#[test]
fn milliseconds_fit_in_64_bits() {
    let ok = r#"prefix = "a", timeout = 18446744073709551615"#;
    assert!(matches!(read(ok).0.timeout, Some(Time::Millis(u64::MAX, _))));
    assert_eq!(
        read(r#"prefix = "a", timeout = 18446744073709551616"#).1,
        ["`timeout` does not fit in 64-bit milliseconds"]
    );
    assert_eq!(read(r#"prefix = "a", timeout = -1"#).1, ["`timeout` must not be negative"]);
}

#[test]
fn each_row_fills_its_own_field_and_is_documented() {
    let page = include_str!("../cache_lock.md");
    for Argument { name, example, .. } in ARGUMENTS {
        let (args, errors) = read(&format!("prefix = \"a\", {example}"));
        let errors: Vec<_> =
            errors.iter().filter(|error| !error.starts_with("duplicate argument")).collect();
        assert_eq!(errors, [""; 0], "{example}");
        let fields = [
            ("prefix", args.prefix.is_some()),
            ("key", args.key.is_some()),
            ("timeout", args.timeout.is_some()),
            ("expire", args.expire.is_some()),
            ("renew", args.renew.is_some()),
            ("max_hold", args.max_hold.is_some()),
            ("bind", args.bind.is_some()),
            ("or_else", args.or_else.is_some()),
            ("skip_if_locked", args.skip_if_locked.is_some()),
            ("on_lost", args.on_lost.is_some()),
            ("release", args.release.is_some()),
            ("when", args.when.is_some()),
            ("with", args.with.is_some()),
            ("crate", args.krate.is_some()),
        ];
        let read: Vec<_> = fields.iter().filter(|field| field.1).map(|field| field.0).collect();
        let expected = if name == "prefix" { vec![name] } else { vec!["prefix", name] };
        assert_eq!(read, expected, "{example}");
        assert!(
            page.contains(&format!("\n| `{name}` |")),
            "{name} is not in the table of the page"
        );
    }
}

#[test]
fn names_from_other_libraries_suggest_the_argument() {
    let mut count = 0;
    for Argument { name, elsewhere, .. } in ARGUMENTS {
        for alias in elsewhere {
            let (_, errors) = read(&format!("prefix = \"a\", {alias} = 1"));
            assert_eq!(errors, [format!("unknown argument `{alias}`; did you mean `{name}`?")]);
            count += 1;
        }
    }
    assert_eq!(count, 30);
}

#[test]
fn value_after_the_template_belongs_in_the_template() {
    let (_, errors) = read(r#"prefix = "a", key = "{id}", id"#);
    assert!(errors[0].contains("write the value into the template, as in `key = \"{id}\"`"));
    let (_, errors) = read(r#"prefix = "a", key = "{id}", fail_fast"#);
    assert_eq!(errors, ["unknown argument `fail_fast`; did you mean `skip_if_locked`?"]);
}

/// 0 is exempt, since it is the same in any unit.
#[test]
fn small_integer_needs_a_unit() {
    for name in ["timeout", "expire", "max_hold"] {
        for count in [1, 5, 99] {
            let (_, errors) = read(&format!("prefix = \"a\", {name} = {count}"));
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].starts_with("a bare integer counts milliseconds"), "{errors:?}");
            assert!(errors[0].contains(&format!("write `{name} = \"{count}s\"`")), "{errors:?}");
        }
        assert_eq!(read(&format!("prefix = \"a\", {name} = 100")).1, [""; 0]);
    }
    assert_eq!(read("prefix = \"a\", timeout = 0").1, [""; 0]);
}

#[test]
fn prefix_with_braces_is_shown_as_prefix_and_key() {
    for (prefix, shown) in [
        ("orders:{id}", ["`prefix = \"orders\"`", "`key = \"{id}\"`", "`key = \"{{id}}\"`"]),
        (
            "{eu}:room",
            ["`prefix = \"orders\"`", "`key = \"{eu}:room\"`", "`key = \"{{eu}}:room\"`"],
        ),
        ("a{{eu}}", ["`prefix = \"a\"`", "`key = \"{eu}\"`", "`key = \"{{eu}}\"`"]),
        ("{}", ["`prefix = \"orders\"`", "`key = \"{id}\"`", "`key = \"{{id}}\"`"]),
    ] {
        let (_, errors) = read(&format!("prefix = {prefix:?}"));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(shown.iter().all(|shown| errors[0].contains(shown)), "{errors:?}");
    }
}
