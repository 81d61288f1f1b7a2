use super::{Args, Errors, OnLost, OrElse, Prefix, Release, Time};

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
    assert_eq!(args.on_lost, Some(OnLost::Finish));
    assert_eq!(args.release, Some(Release::Wait));
    assert!(args.when.is_some() && args.with.is_some() && args.krate.is_some());
}

#[test]
fn constants() {
    let (args, errors) = read("prefix = names::ROOM, timeout = Self::WAIT, expire = LEASE");
    assert_eq!(errors, [""; 0]);
    assert!(matches!(args.prefix, Some(Prefix::Const(_))));
    assert!(matches!(args.timeout, Some(Time::Const(_))));
    assert!(matches!(args.expire, Some(Time::Const(_))));
}

#[test]
fn all_mistakes_are_reported_and_each_once() {
    let (_, errors) = read(
        r#"prefix = "", timeot = "2s", expire = "5ms", expire = "1s", on_lost = "finis", bind = 3"#,
    );
    assert_eq!(
        errors,
        [
            "`prefix` must not be empty",
            "unknown argument `timeot`; did you mean `timeout`?",
            "`expire` is 5ms; it must be at least 100ms so that the lock outlives a Redis round trip",
            "duplicate `expire` argument",
            "unknown `on_lost` value \"finis\"; did you mean `finish`?",
            "expected a name for the lock guard, as in `bind = lock`",
        ]
    );
}

#[test]
fn a_misspelled_prefix_is_not_missing_too() {
    for text in [r#"lockedPrefix = "a""#, r#"perfix = "a""#, r#""a""#] {
        assert_eq!(read(text).1.len(), 1, "{text}: {:?}", read(text).1);
    }
}

#[test]
fn an_empty_attribute_lacks_the_prefix() {
    assert_eq!(
        read("").1,
        ["missing required argument `prefix`, as in `#[cache_lock(prefix = \"orders\", ..)]`"]
    );
}

#[test]
fn integers_up_to_64_bits() {
    let ok = r#"prefix = "a", timeout = 18446744073709551615"#;
    assert!(matches!(read(ok).0.timeout, Some(Time::Millis(u64::MAX, _))));
    assert_eq!(
        read(r#"prefix = "a", timeout = 18446744073709551616"#).1,
        ["`timeout` does not fit in 64-bit milliseconds"]
    );
    assert_eq!(read(r#"prefix = "a", timeout = -1"#).1, ["`timeout` must not be negative"]);
}
