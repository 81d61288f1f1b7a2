//! What is wrong with a call is said in one sentence, with exit code 2.

use std::net::TcpListener;

use crate::command::{Output, seckill};

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

/// An address where nobody listens, and one where somebody does who says nothing.
fn dead_and_silent() -> (String, TcpListener) {
    let dead = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let dead = dead.local_addr().expect("it is bound").to_string();
    (dead, TcpListener::bind("127.0.0.1:0").expect("some port is free"))
}

#[test]
fn an_unreachable_redis_is_named_without_its_password() {
    let (dead, silent) = dead_and_silent();
    let silent_address = silent.local_addr().expect("it is bound").to_string();
    for address in [dead, silent_address] {
        let url = format!("redis://ann:hush@{address}/1");
        let shown = format!("redis://ann@{address}/1");
        assert_one_sentence(&seckill(&["--redis", &url]), &["Redis", &shown]);
        assert_one_sentence(&seckill(&["--redis", &url, "--json"]), &["Redis", &shown]);
    }
}

#[cfg(not(feature = "mongodb"))]
#[test]
fn without_its_driver_a_mongodb_is_refused_with_what_to_do() {
    let output = seckill(&["--mongodb", "mongodb://ann:hush@127.0.0.1/"]);
    assert_one_sentence(&output, &["mongodb://ann@127.0.0.1/", "`--features mongodb`"]);
}

#[cfg(all(feature = "mongodb", not(feature = "srv")))]
#[test]
fn without_dns_a_hosted_mongodb_is_refused_with_what_to_do() {
    let output = seckill(&["--mongodb", "mongodb+srv://ann:hush@cluster.example.org/"]);
    assert_one_sentence(&output, &["mongodb+srv://ann@cluster.example.org/", "`--features srv`"]);
}

#[cfg(feature = "mongodb")]
#[test]
fn an_unreachable_mongodb_is_named_without_its_password() {
    let (dead, silent) = dead_and_silent();
    let silent_address = silent.local_addr().expect("it is bound").to_string();
    for address in [dead, silent_address] {
        let url = format!("mongodb://ann:hush@{address}/");
        let shown = format!("mongodb://ann@{address}/");
        assert_one_sentence(&seckill(&["--mongodb", &url]), &["MongoDB", &shown]);
    }
}

#[test]
fn something_that_is_no_url_is_an_error_too() {
    assert_one_sentence(&seckill(&["--redis", "localhost:6379"]), &["Redis", "localhost:6379"]);
    assert_one_sentence(&seckill(&["--redis", "ann:hush@localhost"]), &["Redis"]);
    let output = seckill(&["--redis", "http://ann:hush@localhost/"]);
    assert_one_sentence(&output, &["cannot be read as a Redis URL"]);
    assert_one_sentence(&seckill(&["--mongodb", "localhost"]), &["MongoDB", "localhost"]);
    assert_one_sentence(&seckill(&["--mongodb", "http://ann:hush@localhost"]), &["MongoDB"]);
}

#[test]
fn processes_need_servers_that_they_share() {
    let output = seckill(&["--processes", "4"]);
    assert_one_sentence(&output, &["--processes 4", "--redis and --mongodb"]);
    let output = seckill(&["--processes", "4", "--redis", "redis://ann:hush@127.0.0.1/"]);
    assert_one_sentence(&output, &["--mongodb"]);
}

#[test]
fn a_picture_that_cannot_be_written_is_found_before_the_run() {
    assert_one_sentence(&seckill(&["--plot", "/nowhere/waits.svg"]), &["/nowhere/waits.svg"]);
}

#[test]
fn a_picture_of_an_earlier_run_stands_until_there_is_a_new_one() {
    let path = std::env::temp_dir().join(format!("seckill-kept-{}.svg", std::process::id()));
    std::fs::write(&path, "earlier").expect("the temporary directory is writable");
    let (dead, _silent) = dead_and_silent();
    let plot = path.to_str().expect("it is UTF-8");
    let output = seckill(&["--redis", &format!("redis://{dead}/"), "--plot", plot]);
    let picture = std::fs::read_to_string(&path).expect("it is there");
    std::fs::remove_file(&path).expect("it is ours");
    assert_one_sentence(&output, &[&dead]);
    assert_eq!(picture, "earlier");
}

#[test]
fn options_without_their_object_are_refused() {
    for mode in ["naive", "atomic"] {
        assert_one_sentence(&seckill(&["--stall", "--mode", mode]), &["--stall", "--mode lock"]);
    }
    assert_one_sentence(&seckill(&["--keep"]), &["--keep", "--mongodb"]);
}

#[test]
fn a_stall_needs_somebody_to_buy_meanwhile() {
    assert_one_sentence(&seckill(&["--stall", "--buyers", "2"]), &["--stall", "--buyers"]);
    assert_one_sentence(&seckill(&["--stall", "--stock", "0"]), &["--stall", "--stock"]);
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [
        &["--mode", "optimistic"][..],
        &["--think", "1h"],
        &["--buyers", "0"],
        &["--items", "0"],
        &["--processes", "0"],
        &["--stock", "-1"],
        &["--unknown"],
    ] {
        let output = seckill(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.starts_with("error: "), "{arguments:?}: {output:?}");
    }
    for (option, value, hint) in [
        ("--buyers", "-1", "-1 is not in 1.."),
        ("--buyers", "4294967295", "4294967295 is not in 1..=100000"),
        ("--items", "4294967295", "4294967295 is not in 1..=10000"),
        ("--stock", "-1", "-1 is not in 0.."),
        ("--think", "1", "write it like 500us, 1ms or 2s"),
        ("--think", "1.5ms", "write it like 500us, 1ms or 2s"),
    ] {
        let output = seckill(&[option, value]);
        assert_eq!(output.code, Some(2), "{option} {value}: {output:?}");
        assert!(output.stderr.contains(hint), "{option} {value}: {output:?}");
    }
}
