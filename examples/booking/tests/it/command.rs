//! The command line: what it refuses, and why.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use booking::domain::{Email, Role};
use booking::repository::Repository;
use test_support::MongoServer;

use crate::service::{SECRET, database, repository};

/// Runs `booking` with these variables and no servers; it must end by itself.
fn booking(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_booking"))
        .args(["--listen", "127.0.0.1:0"])
        .args(arguments)
        .env_remove("REDIS_URL")
        .env_remove("MONGODB_URI")
        .env_remove("BOOKING_JWT_SECRET")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A service that was to be refused and runs is a failure, not a hang.
    let started = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it is our child");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("it has ended")
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "it does not listen: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_does_not_start_without_a_secret_or_with_a_weak_one() {
    let text = refusal(&booking(&[], &[]));
    assert!(text.contains("set BOOKING_JWT_SECRET") && text.contains("--dev"), "{text}");
    for weak in ["", "short", &"a".repeat(64), "your-256-bit-secret-your-256-bit-secret"] {
        let text = refusal(&booking(&[], &[("BOOKING_JWT_SECRET", weak)]));
        assert!(text.contains("openssl rand -hex 32"), "{text}");
        assert!(weak.is_empty() || !text.contains(weak), "it shows no secret: {text}");
    }
    let weak = [("BOOKING_JWT_SECRET", "short")];
    refusal(&booking(&["--dev"], &weak));
}

#[test]
fn a_server_that_was_asked_for_and_is_not_there_is_an_error() {
    let secret = ("BOOKING_JWT_SECRET", SECRET);
    let text = refusal(&booking(&["--redis", "redis://ann:hunter2@127.0.0.1:1/"], &[secret]));
    assert!(text.contains("redis://ann@127.0.0.1:1") && !text.contains("hunter2"), "{text}");
    let text = refusal(&booking(&["--mongodb", "mongodb://ann:hunter2@127.0.0.1:1/"], &[secret]));
    assert!(text.contains("mongodb://ann@127.0.0.1:1") && !text.contains("hunter2"), "{text}");
}

#[test]
fn what_makes_it_easier_to_attack_is_for_development() {
    for argument in [&["--unlimited"][..], &["--think-ms", "1"]] {
        let output = booking(argument, &[("BOOKING_JWT_SECRET", SECRET)]);
        assert!(refusal(&output).contains("--dev"), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organiser_is_made_by_whoever_has_the_database() {
    let (uri, database) = (MongoServer::start().uri(), database());
    let create = |password: &'static str| {
        let arguments = ["create-organiser", "Olga@example.org", "--database", &database];
        let variables = [("MONGODB_URI", uri), ("BOOKING_ORGANISER_PASSWORD", password)];
        booking(&arguments, &variables)
    };
    assert!(refusal(&create("")).contains("BOOKING_ORGANISER_PASSWORD"));
    assert!(refusal(&create("short")).contains("12 characters"));
    let output = create("correct horse battery");
    assert!(output.status.success(), "{output:?}");
    assert!(refusal(&create("correct horse battery")).contains("already"));

    let repository = repository(&database).await;
    let email = Email::parse("olga@example.org").expect("it is an address");
    let olga = repository.user_by_email(&email).await.expect("it reads").expect("she is there");
    assert_eq!(olga.role, Role::Organiser);
    repository.discard().await.expect("it goes");
}
