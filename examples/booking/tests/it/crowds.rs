//! Clients that are many, and what they cannot take from others.

use std::sync::Arc;

use booking::domain::Role;
use hyper::Request;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::service::{PASSWORD, Service, credentials, problem, token};

const WRONG: &str = "another long password";

/// Logs in as a client of this address, behind a proxy that is trusted.
async fn login(service: &Service, address: &str, body: &Value) -> u16 {
    post(service, "/login", address, body).await
}

async fn post(service: &Service, path: &str, address: &str, body: &Value) -> u16 {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header("x-forwarded-for", address)
        .body(body.to_string().into());
    let answer = service.client().await.send(request.expect("a request")).await;
    answer.expect("it answers").status.as_u16()
}

/// Fails to log in to an account from many addresses, until it is closed to strangers.
async fn exhaust(service: &Service, email: &str) {
    let wrong = credentials(email, WRONG);
    for number in 0..100 {
        if login(service, &format!("10.1.{number}.1"), &wrong).await == 429 {
            return;
        }
        login(service, &format!("10.1.{number}.1"), &wrong).await;
    }
    panic!("nobody stops it");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_guess_do_not_keep_the_owner_out() {
    let service = Service::embedded(&["--dev", "--trust-proxy"]).await;
    let right = credentials("ann@example.org", PASSWORD);
    assert_eq!(login(&service, "10.0.0.1", &right).await, 200);
    assert_eq!(login(&service, "[2001:db8::1]:4711", &right).await, 200);
    exhaust(&service, "ann@example.org").await;
    let wrong = credentials("ann@example.org", WRONG);
    assert_eq!(login(&service, "10.2.0.1", &wrong).await, 429, "it is closed to strangers");
    assert_eq!(login(&service, "10.2.0.1", &right).await, 429, "whatever they guess");
    for _ in 0..20 {
        assert_eq!(login(&service, "10.0.0.1", &right).await, 200, "the owner is none");
    }
    assert_eq!(login(&service, "2001:db8::2", &right).await, 200, "nor on the other line");
    // From there, too, guesses are few.
    for _ in 0..5 {
        assert_eq!(login(&service, "10.0.0.1", &wrong).await, 401);
    }
    assert_eq!(login(&service, "10.0.0.1", &wrong).await, 429);
    let bob = credentials("bob@example.org", PASSWORD);
    assert_eq!(login(&service, "10.2.0.1", &bob).await, 200, "other accounts are open");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_keep_a_new_owner_out() {
    let service = Service::embedded(&["--dev", "--trust-proxy"]).await;
    let dora = credentials("dora@example.org", "a password of her own");
    assert_eq!(post(&service, "/register", "10.0.0.1", &dora).await, 201);
    exhaust(&service, "dora@example.org").await;
    assert_eq!(login(&service, "10.2.0.1", &dora).await, 429, "it is closed to strangers");
    assert_eq!(login(&service, "10.0.0.1", &dora).await, 200, "she has registered there");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_password_for_many_accounts_is_stopped_and_a_right_one_uses_up_nothing() {
    let service = Service::embedded(&["--dev", "--trust-proxy"]).await;
    let right = credentials("ann@example.org", PASSWORD);
    for _ in 0..40 {
        assert_eq!(login(&service, "10.0.0.1", &right).await, 200);
    }
    let mut refused = 0;
    for number in 0..40 {
        let body = credentials(&format!("user{number}@example.org"), PASSWORD);
        refused += usize::from(login(&service, "10.0.0.1", &body).await == 429);
    }
    assert!(refused >= 5, "30 a minute: {refused} of 40 were refused");
    assert_eq!(login(&service, "10.0.0.1", &right).await, 200, "she is known there");
    let bob = credentials("bob@example.org", PASSWORD);
    assert_eq!(login(&service, "10.0.0.1", &bob).await, 429, "he is not");
    assert_eq!(login(&service, "10.0.0.2", &bob).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_many_connections_leaves_the_places_to_others() {
    let service = Arc::new(Service::embedded(&["--dev", "--think-ms", "3000"]).await);
    let ann = token(Role::Guest);
    let slot = service.slot(24).await;
    let mut requests = JoinSet::new();
    for _ in 0..300 {
        let (service, slot, ann) = (service.clone(), slot.clone(), ann.clone());
        requests.spawn(async move { service.book(&slot, &ann).await });
    }
    let all = requests.join_all().await;
    let booked = all.iter().filter(|answer| [200, 201].contains(&answer.status.as_u16())).count();
    let busy: Vec<_> = all.iter().filter(|answer| answer.status == 423).collect();
    assert!(booked >= 1 && booked + busy.len() == all.len(), "{all:?}");
    assert_eq!(problem(busy[0], 423)["type"], "/docs#busy");
    // The connection that asks for the user's lock has a place.
    let contended = service.metric("booking_locks_contended_total").await;
    assert_eq!(contended, 0.0, "they waited without one");
}

/// Opens a stream, and returns its head.
async fn stream(service: &Service, day: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(service.replica.address()).await.expect("it listens");
    let head = format!("GET /page/days/{day}/events HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = vec![0; 4096];
    let count = stream.read(&mut answer).await.expect("it answers");
    (stream, String::from_utf8_lossy(&answer[..count]).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_far_days_switch_no_updates_off() {
    let service = Service::embedded(&[]).await;
    let mut open = Vec::new();
    for number in 0..200 {
        let day = format!("{}-02-{:02}", 2028 + number / 28 * 100, number % 28 + 1);
        let (stream, head) = stream(&service, &day).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{day}: {head}");
        open.push(stream);
    }
    let (today, head) = stream(&service, "2027-06-15").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // One address has not any number of them.
    let mut refused = String::new();
    while refused.is_empty() && open.len() < 1000 {
        let (stream, head) = stream(&service, "2027-06-15").await;
        if head.starts_with("HTTP/1.1 200") {
            open.push(stream);
        } else {
            refused = head;
        }
    }
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after"), "{refused}");
    drop((open, today));
}
