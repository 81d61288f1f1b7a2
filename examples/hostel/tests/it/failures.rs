//! What is wrong with a call is said in one sentence, with exit code 2.

use std::net::TcpListener;

use crate::command::{Output, hostel};

#[track_caller]
fn assert_one_sentence(output: &Output, parts: &[&str]) {
    assert_eq!(output.code, Some(2), "{output:?}");
    assert_eq!(output.stdout, "", "no report, and no run on anything else");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    for part in parts {
        assert!(output.stderr.contains(part), "{part:?} is missing: {output:?}");
    }
    assert!(!output.stderr.contains("hush"), "the password is shown: {output:?}");
}

#[test]
fn an_unreachable_server_is_named_without_its_password() {
    let dead = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let address = dead.local_addr().expect("it is bound").to_string();
    drop(dead);
    let redis = format!("redis://ann:hush@{address}/1");
    let shown = format!("redis://ann@{address}/1");
    assert_one_sentence(&hostel(&["--redis", &redis]), &["Redis", &shown]);
    let mongodb = format!("mongodb://ann:hush@{address}/");
    let shown = format!("mongodb://ann@{address}/");
    assert_one_sentence(&hostel(&["--mongodb", &mongodb]), &["MongoDB", &shown]);
    let recover = ["recover", "--redis", &redis, "--mongodb", &mongodb, "--database", "d"];
    assert_one_sentence(&hostel(&recover), &["cannot be used"]);
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let redis = ["--redis", "redis://ann:hush@127.0.0.1/"];
    let mongodb = ["--mongodb", "mongodb://ann:hush@127.0.0.1/"];
    assert_one_sentence(&hostel(&["--processes", "4"]), &["--redis and --mongodb"]);
    assert_one_sentence(&hostel(&[&redis[..], &["--processes", "4"]].concat()), &["--mongodb"]);
    assert_one_sentence(&hostel(&["recover"]), &["recover", "--redis and --mongodb"]);
    assert_one_sentence(&hostel(&[&mongodb[..], &["recover"]].concat()), &["recover", "--redis"]);
    let both = [&redis[..], &mongodb[..]].concat();
    assert_one_sentence(&hostel(&[&both[..], &["recover"]].concat()), &["recover", "--database"]);
    assert_one_sentence(&hostel(&["check"]), &["check", "--database"]);
    assert_one_sentence(&hostel(&["check", "--database", "d"]), &["--database", "--mongodb"]);
    assert_one_sentence(&hostel(&["--kill-every", "1s"]), &["--kill-every", "--processes"]);
    assert_one_sentence(&hostel(&["--crash-after", "claimed"]), &["--crash-after"]);
    let runs = [&mongodb[..], &["--database", "d", "--runs", "2"]].concat();
    assert_one_sentence(&hostel(&runs), &["--runs", "--database"]);
}

#[test]
fn wrong_arguments_exit_with_2() {
    for (option, value, hint) in [
        ("--students", "0", "0 is not in 1.."),
        ("--students", "-1", "-1 is not in 1.."),
        ("--rooms", "0", "0 is not in 1.."),
        ("--capacity", "-1", "-1 is not in 0.."),
        ("--processes", "0", "0 is not in 1.."),
        ("--runs", "0", "0 is not in 1.."),
        ("--chaos", "1.1", "write a number from 0 to 1"),
        ("--chaos", "-0.1", "write a number from 0 to 1"),
        ("--chaos", "much", "write a number from 0 to 1"),
        ("--kill-every", "0s", "some time to live"),
        ("--payment-time", "1", "write it like 500us, 1ms or 2s"),
        ("--database", "a.b", "letters, digits"),
        ("--unknown", "1", "--unknown"),
    ] {
        let output = hostel(&[option, value]);
        assert_eq!(output.code, Some(2), "{option} {value}: {output:?}");
        assert!(output.stderr.starts_with("error: "), "{option} {value}: {output:?}");
        assert!(output.stderr.contains(hint), "{option} {value}: {output:?}");
    }
}
