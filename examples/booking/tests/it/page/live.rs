//! The stream of a day's slots.

use std::process::Stdio;
use std::time::Duration;

use axum::body::Bytes;
use booking::domain::{Role, UserId};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{COOKIE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::visitor::{Visitor, between, day_of, html, item};
use crate::service::{Service, token, tokens};

/// A stream of events.
pub(super) struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    pub(super) async fn open(service: &Service, path: &str, session: Option<&str>) -> Self {
        let answer = ask(service, path, session).await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { body: answer.into_body(), text: String::new() }
    }

    /// The next event; none when the stream has ended. To wait in vain is a failure, not a hang.
    pub(super) async fn next(&mut self) -> Option<String> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.read());
        next.await.expect("there is an event, or the end")
    }

    /// The next list.
    pub(super) async fn next_list(&mut self) -> String {
        let list = async {
            loop {
                let event = self.next().await.expect("the stream goes on");
                if event.contains("event: slots") {
                    return event;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), list).await.expect("there is another list")
    }

    /// Waits for the end of the stream. Nothing happens before.
    async fn end(&mut self) {
        while let Some(event) = self.next().await {
            assert!(event.contains("event: beat"), "{event}");
        }
    }

    async fn read(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(event);
            }
            let frame = self.body.frame().await?.expect("the stream does not break");
            let data = frame.into_data().expect("it has data alone");
            self.text.push_str(std::str::from_utf8(&data).expect("it is text"));
        }
    }
}

async fn ask(service: &Service, path: &str, session: Option<&str>) -> Response<Incoming> {
    let stream = TcpStream::connect(service.replica.address()).await.expect("it listens");
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
    tokio::spawn(connection);
    let cookie = session.map_or_else(String::new, |session| format!("__Host-session={session}"));
    let request = Request::get(path)
        .header(HOST, service.replica.address().to_string())
        .header(COOKIE, cookie)
        .body(Empty::<Bytes>::new());
    sender.send_request(request.expect("it is a request")).await.expect("it answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_another_client_makes_comes_through_the_stream() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let page = html(&ann.get(&day_of(&service, &slot).await).await);
    let path = between(&page, "data-events=\"", "\"").expect("the page names its stream");
    let mut events = Events::open(&service, &path, Some(&ann.cookies["__Host-session"])).await;

    let first = events.next().await.expect("there is a list at once");
    assert!(first.contains("event: slots") && first.contains("retry: "), "{first}");
    assert!(item(&first, &slot).contains("data-state=\"Free\""), "{first}");
    assert_eq!(item(&first, &slot), item(&page, &slot), "it is as the page has it");
    assert!(!first.contains("csrf"), "no secret is in it: {first}");

    let bob = token(Role::Guest);
    assert_eq!(service.book(&slot, &bob).await.status, 201);
    let second = events.next_list().await;
    assert!(item(&second, &slot).contains("data-state=\"Taken\""), "{second}");
    service.cancel(&slot, &bob).await;
    let third = events.next_list().await;
    assert!(item(&third, &slot).contains("data-state=\"Free\""), "{third}");
}

/// The hours at which a day has few slots left, or none, and the days that a year has once or less.
const HOURS: [&str; 6] = [
    "2027-06-15T23:00:00Z",
    "2027-06-15T23:30:00Z",
    "2027-06-16T00:00:00Z",
    "2028-02-29T23:30:00Z",
    "2028-03-01T00:00:00Z",
    "2027-12-31T23:59:55Z",
];

#[tokio::test(flavor = "multi_thread")]
async fn today_is_told_at_any_hour_with_slots_or_without() {
    for hour in HOURS {
        let service = Service::start_at(hour, &["--dev"], "", "", Stdio::null()).await;
        let today = html(&Visitor::new(&service).get("/").await);
        let path = between(&today, "data-events=\"", "\"").expect("the page names its stream");
        let event = Events::open(&service, &path, None).await.next().await.expect("it is told");
        // A browser drops an event that has no data.
        assert!(event.contains("event: slots\ndata:"), "{hour}: {event}");
        let slots = |text: &str| text.matches("id=\"slot-").count();
        assert_eq!(slots(&event), slots(&today), "{hour}: {event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_made_for_somebody_else_is_told_so() {
    let service = Service::embedded(&[]).await;
    let ann = Visitor::registered(&service, "ann@example.org").await;
    let session = ann.cookies["__Host-session"].as_str();
    let someone = "00000000-0000-4000-8000-000000000000";
    for (path, session) in [
        ("/page/days/2999-01-01/events".to_owned(), Some(session)),
        (format!("/page/days/2999-01-01/events?user={someone}"), Some(session)),
        (format!("/page/days/2999-01-01/events?user={someone}"), None),
    ] {
        let mut events = Events::open(&service, &path, session).await;
        let only = events.next().await.expect("it is told");
        assert!(only.contains("event: viewer") && only.contains("data: "), "{only}");
        assert_eq!(events.next().await, None);
    }
    let missing = ask(&service, "/page/days/2999-02-30/events", None).await;
    assert_eq!(missing.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_login_of_who_reads_it() {
    let service = Service::embedded(&[]).await;
    // By the clock of the service, which has begun: with the leeway of a token it has 9 s to come here.
    let tokens = tokens(Duration::from_secs(4));
    let user = UserId::random();
    let session = tokens.issue(user, Role::Guest).expect("it signs").text;
    let path = format!("/page/days/2999-01-01/events?user={user}");
    let mut events = Events::open(&service, &path, Some(&session)).await;
    events.next().await.expect("there is a list at once");
    events.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_service_and_does_not_hold_it_up() {
    // Longer than the test waits: the stream ends by itself, or the test fails.
    let mut service = Service::embedded(&["--drain-seconds", "600"]).await;
    let mut events = Events::open(&service, "/page/days/2999-01-01/events", None).await;
    events.next().await.expect("there is a list at once");
    service.replica.terminate().expect("it runs");
    events.end().await;
    let end = tokio::time::timeout(Duration::from_secs(60), service.replica.wait()).await;
    assert!(end.expect("nothing holds it up").expect("it ends").success());
}
