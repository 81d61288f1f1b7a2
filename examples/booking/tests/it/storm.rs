//! Two replicas, many clients, few slots.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use test_support::{MongoServer, RedisServer};

use crate::service::locks_in;

#[test]
fn replicas_book_each_slot_once() {
    let redis = RedisServer::start();
    let output = Command::new(env!("CARGO_BIN_EXE_booking"))
        .args(["storm", "--replicas", "2", "--clients", "60", "--slots", "10", "--seconds", "2"])
        .env("REDIS_URL", redis.url())
        .env("MONGODB_URI", MongoServer::start().uri())
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let answers = |status: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let found = words.next() == Some("race") && words.next() == Some(status);
            found.then(|| words.next()?.parse::<u32>().ok())?
        })
    };
    assert_eq!(answers("201"), Some(10), "{text}");
    assert_eq!(answers("409"), Some(110), "{text}");
    assert_eq!(locks_in(&redis), [""; 0]);
}

#[test]
fn one_replica_needs_no_servers_and_two_do() {
    let storm = |replicas: &str| {
        Command::new(env!("CARGO_BIN_EXE_booking"))
            .args(["storm", "--replicas", replicas, "--clients", "20", "--slots", "4"])
            .env_remove("REDIS_URL")
            .env_remove("MONGODB_URI")
            .output()
            .expect("the command starts")
    };
    let one = storm("1");
    assert!(one.status.success(), "{one:?}");
    let two = storm("2");
    assert_eq!(two.status.code(), Some(2), "{two:?}");
    assert!(String::from_utf8_lossy(&two.stderr).contains("--mongodb"), "{two:?}");
}

#[test]
fn a_replica_whose_starter_is_killed_ends() {
    let mut storm = Command::new(env!("CARGO_BIN_EXE_booking"))
        .args(["storm", "--replicas", "1", "--clients", "4", "--slots", "1", "--seconds", "600"])
        .env_remove("REDIS_URL")
        .env_remove("MONGODB_URI")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The replica writes there, too.
    let mut stderr = BufReader::new(storm.stderr.take().expect("it is a pipe"));
    let mut warning = String::new();
    stderr.read_line(&mut warning).expect("it is text");
    storm.kill().expect("it is our child");
    storm.wait().expect("it is our child");
    assert!(warning.contains("this is for one process"), "the replica listens: {warning}");
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(stderr.read_to_string(&mut String::new()).is_ok()));
    assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "the replica is still there");
}
