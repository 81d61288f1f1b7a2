//! Runs of the command.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use mongodb::Client;
use serde_json::Value;
use test_support::{MongoServer, RedisServer};

/// Runs `single-flight` with these arguments and with no servers but those they name.
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_single-flight"))
        .args(arguments)
        .env_remove("REDIS_URL")
        .env_remove("MONGODB_URI")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

/// Runs it on these servers.
fn run_on(redis: &RedisServer, arguments: &[&str]) -> Output {
    let redis = redis.url();
    let mut all = vec!["--redis", &redis, "--mongodb", MongoServer::start().uri()];
    all.extend(arguments);
    run(&all)
}

#[track_caller]
fn report(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object of JSON");
    assert_eq!(report["ok"], true, "{report}");
    report
}

fn attempts(report: &Value) -> Vec<&str> {
    let attempts = report["tally"]["attempts"].as_array().expect("it is an array");
    attempts.iter().map(|attempt| attempt["outcome"].as_str().expect("a name")).collect()
}

#[test]
fn inside_one_process() {
    let output = run(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("in the memory of this process") && text.ends_with("\nOK\n"), "{text}");

    let report = report(&run(&["--json", "--processes", "3", "--tasks", "20", "--failures", "5"]));
    assert_eq!(report["tally"]["bookings"], 60);
    assert_eq!(report["tally"]["pools"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        attempts(&report),
        ["failed"; 5].into_iter().chain(["migrated"]).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes() {
    let redis = RedisServer::start();
    let output = run_on(&redis, &["--json"]);
    let report = report(&output);
    assert_eq!(report["tally"]["bookings"], 200);
    assert_eq!(attempts(&report), ["failed", "failed", "migrated"]);
    assert!(report["scripts"].as_u64().is_some_and(|scripts| scripts > 0), "{report}");

    let keys = redis.cli(&["KEYS", "*"]);
    let is_lasting = |key: &str| key.ends_with(":fence") || key.ends_with(":result");
    assert!(keys.lines().all(is_lasting), "{keys}");
    let client = Client::with_uri_str(MongoServer::start().uri()).await.expect("it is reachable");
    let names = client.list_database_names().await.expect("it answers");
    // Of other tests too, which may be under way.
    let kept = String::from_utf8(run_on(&redis, &["--keep"]).stdout).expect("it is text");
    let kept = kept.lines().find_map(|line| line.split_once(", single_flight_")).expect("a name").1;
    let kept = format!("single_flight_{kept}");
    assert!(!names.contains(&kept));
    let names = client.list_database_names().await.expect("it answers");
    assert!(names.contains(&kept), "{names:?}");
    client.database(&kept).drop().await.expect("it is ours");
}

#[test]
fn the_next_process_goes_on_where_a_killed_one_was() {
    let redis = RedisServer::start();
    let report = report(&run_on(&redis, &["--json", "--kill", "--tasks", "10"]));
    assert_eq!(attempts(&report), ["failed", "failed", "begun", "migrated"]);
    assert_eq!(report["tally"]["bookings"], 30);
    let processes = report["processes"].as_array().expect("it is an array");
    assert_eq!(processes.iter().filter(|process| process["killed"] == true).count(), 1);
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    let dead = silent.local_addr().expect("it is bound").to_string();
    drop(silent);
    let redis = format!("redis://ann:hush@{dead}/");
    let mongodb = format!("mongodb://ann:hush@{dead}/");
    for (arguments, part) in [
        (vec!["--redis", &redis, "--mongodb", &mongodb], format!("Redis at redis://ann@{dead}/")),
        (vec!["--redis", &redis], "also give --mongodb".to_owned()),
        (vec!["--mongodb", &mongodb], "also give --redis".to_owned()),
        (vec!["--kill"], "--kill needs real processes".to_owned()),
        (vec!["--keep"], "--keep needs a database".to_owned()),
        (vec!["--processes", "64", "--tasks", "10000"], "640000 tasks".to_owned()),
    ] {
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&part) && said.lines().count() == 1, "{said}");
        assert!(output.stdout.is_empty() && !said.contains("hush"), "{said}");
    }
}
