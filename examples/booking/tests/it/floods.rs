//! Clients that are slow, and clients that are many.

use std::time::Duration;

use booking::server::raise_file_limit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::{Service, problem};

async fn dial(service: &Service) -> TcpStream {
    TcpStream::connect(service.replica.address()).await.expect("it listens")
}

/// What comes until the service closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let all = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut text)).await;
    // A connection that is reset is closed, too.
    let _ = all.expect("the service closes it");
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let service = Service::embedded(&["--body-seconds", "1"]).await;
    let mut stream = dial(&service).await;
    let head = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 100\r\nconnection: close\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_is_not_waited_for_either() {
    let service = Service::embedded(&["--body-seconds", "1"]).await;
    let mut stream = dial(&service).await;
    let head = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 10000\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let (mut reading, mut writing) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let mut answer = [0; 12];
    reading.read_exact(&mut answer).await.expect("it answers before the body has ended");
    assert_eq!(&answer, b"HTTP/1.1 408");
    trickle.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_do_not_come_or_do_not_end_are_given_up() {
    let patient = Service::embedded(&["--head-seconds", "600"]).await;
    let service = Service::embedded(&["--head-seconds", "1"]).await;
    // It is the argument that says how long: this one came first, and is there to the end.
    let mut first = patient.client().await;
    for begun in ["", "GET /healthz HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = dial(&service).await;
        stream.write_all(begun.as_bytes()).await.expect("it reads");
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let answer = first.call(hyper::Method::GET, "/healthz", None, None).await;
    assert_eq!(answer.expect("it is still open").status, 200);
    let mut stream = dial(&service).await;
    let long = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(40_000));
    // It may close before all of it is written.
    let _ = stream.write_all(long.as_bytes()).await;
    let answer = rest(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_keep_nobody_out() {
    let service = Service::embedded(&["--head-seconds", "600"]).await;
    // On a machine that does not allow so many files, as many as it does.
    let count = usize::try_from(raise_file_limit().saturating_sub(1000)).unwrap_or(usize::MAX);
    let count = count.min(10_000);
    let mut idle = Vec::with_capacity(count);
    while idle.len() < count {
        idle.push(dial(&service).await);
    }
    service.wait_for_metric("booking_connections", count as f64).await;
    assert_eq!(service.get("/slots", None).await.status, 200);
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_does_not_keep_its_connection() {
    let service = Service::embedded(&["--write-seconds", "1"]).await;
    let mut stream = dial(&service).await;
    let request = b"GET /docs HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
    // Until neither side takes any more, or the service has closed it.
    let flood = async { while stream.write_all(&request).await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_secs(60), flood).await.is_ok(), "it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_slowly_gets_everything() {
    let service = Service::embedded(&["--write-seconds", "1"]).await;
    let mut stream = dial(&service).await;
    let request = b"GET /docs HTTP/1.1\r\nhost: x\r\n\r\n".repeat(40);
    let last = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let (mut reading, mut writing) = stream.split();
    let write = async {
        writing.write_all(&request).await.expect("it reads");
        writing.write_all(last).await.expect("it reads");
    };
    let read = async {
        let mut text = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            match reading.read(&mut piece).await.expect("it is not reset") {
                0 => return String::from_utf8_lossy(&text).into_owned(),
                count => text.extend_from_slice(&piece[..count]),
            }
        }
    };
    let ((), text) = tokio::join!(write, read);
    assert!(text.ends_with("{\"status\":\"alive\"}"), "all were answered");
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 41);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_service_still_says_how_it_does() {
    let service = Service::embedded(&["--connections", "4", "--head-seconds", "600"]).await;
    let mut taken = Vec::new();
    for _ in 0..4 {
        let mut client = service.client().await;
        let answer = client.call(hyper::Method::GET, "/slots", None, None).await;
        assert_eq!(answer.expect("it has a place").status, 200);
        taken.push(client);
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = service.get(path, None).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("connection"), Some("close"), "the reserve is not held");
    }
    let refused = service.get("/slots", None).await;
    assert_eq!(problem(&refused, 503)["type"], "/docs#unavailable");
    assert!(refused.header("retry-after").is_some());
    // Connections that have a place are served as before.
    let answer = taken[3].call(hyper::Method::GET, "/slots", None, None).await;
    assert_eq!(answer.expect("it has a place").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_says_it_is_too_large_is_refused_at_once() {
    let service = Service::embedded(&["--body-seconds", "600"]).await;
    let mut stream = dial(&service).await;
    let head = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 10000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_host() {
    let service = Service::embedded(&[]).await;
    for (version, hosts, status) in [
        ("1.1", "", 400),
        ("1.1", "host: x\r\nhost: y\r\n", 400),
        ("1.1", "host: x\r\nHost: x\r\n", 400),
        ("1.0", "host: x\r\nhost: y\r\n", 400),
        ("1.0", "", 200),
        ("1.1", "host: x\r\n", 200),
    ] {
        let mut stream = dial(&service).await;
        let head = format!("GET /healthz HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let answer = rest(&mut stream).await;
        assert_eq!(answer.split(' ').nth(1), Some(&*status.to_string()), "{head}{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_no_place_is_served_when_there_is_one() {
    let service = Service::embedded(&["--connections", "4", "--head-seconds", "1"]).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(dial(&service).await);
    }
    // The idle ones are given up.
    for _ in 0..6000 {
        let answer = service.get("/slots", None).await;
        if answer.status == 200 {
            return;
        }
        problem(&answer, 503);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the idle ones keep their places");
}
