//! Requests that are sent again: those without an answer, and those with the same key.

use std::process::Stdio;
use std::time::Duration;

use booking::client::Answer;
use booking::domain::Role;
use hyper::Request;
use serde_json::{Value, json};
use test_support::{Direction, Fault, MongoServer, Proxy, RedisServer};
use tokio::task::JoinSet;

use crate::service::{PASSWORD, Service, credentials, database, discard, problem, slot_in, token};

/// Sends a request with a key.
async fn keyed(
    service: &Service,
    path: &str,
    token: Option<&str>,
    key: &str,
    body: &Value,
) -> Answer {
    let mut request = Request::post(path)
        .header("content-type", "application/json")
        .header("idempotency-key", key);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(body.to_string().into()).expect("it is a request");
    service.client().await.send(request).await.expect("it answers")
}

/// How many slots there are.
async fn slots(service: &Service) -> usize {
    let page = service.get("/slots?limit=200", None).await.json();
    page["slots"].as_array().map_or(0, Vec::len)
}

/// A service whose database can be made to lose its answers; none on a cluster of the tester's own.
async fn behind_proxy(redis: &RedisServer, database: &str) -> Option<(Service, Proxy)> {
    let uri = MongoServer::start().uri();
    let (_, port) = uri.trim_end_matches('/').rsplit_once(':').expect("it has a port");
    let proxy = Proxy::start(port.parse().ok()?);
    let through = format!("mongodb://127.0.0.1:{}/?directConnection=true", proxy.port());
    let arguments = ["--database", database];
    let service = Service::start(&arguments, &redis.url(), &through, Stdio::null()).await;
    Some((service, proxy))
}

/// Waits until the database answers again.
async fn ready(service: &Service, proxy: &Proxy) {
    // What has lost bytes stays silent, so it is cut.
    proxy.cut();
    proxy.pass();
    for _ in 0..3000 {
        if service.get("/readyz", None).await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the database does not come back");
}

/// Sends a request while the database does what it is told, and its answers are lost.
async fn lost(service: &Service, proxy: &Proxy, request: impl Future<Output = Answer>) -> Answer {
    ready(service, proxy).await;
    proxy.set(Direction::Replies, Fault::Swallow);
    let answer = request.await;
    ready(service, proxy).await;
    answer
}

/// What a problem with an open outcome advises.
fn advice(answer: &Answer) -> String {
    let problem = problem(answer, 503);
    assert_eq!(problem["type"], "/docs#outcome-open", "{problem}");
    problem["detail"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_is_done_once_if_its_advice_is_followed() {
    let redis = RedisServer::start();
    let database = database();
    let Some((service, proxy)) = behind_proxy(&redis, &database).await else { return };
    let organiser = token(Role::Organiser);
    let ann = credentials("ann@example.org", PASSWORD);
    let bob = credentials("bob@example.org", PASSWORD);

    let (yoga, piano) = (slot_in(24), slot_in(25));
    let slot = lost(&service, &proxy, keyed(&service, "/slots", Some(&organiser), "s-1", &yoga));
    assert!(advice(&slot.await).contains("the same `Idempotency-Key`"));
    let slot = lost(&service, &proxy, service.post("/slots", Some(&organiser), &piano));
    assert!(advice(&slot.await).contains("List the slots of its day"));
    let account = lost(&service, &proxy, keyed(&service, "/register", None, "a-1", &ann));
    assert!(advice(&account.await).contains("the same `Idempotency-Key`"));
    let account = lost(&service, &proxy, service.post("/register", None, &bob));
    assert!(advice(&account.await).contains("Log in"));

    assert_eq!(slots(&service).await, 2, "both were created");
    for _ in 0..2 {
        let again = keyed(&service, "/slots", Some(&organiser), "s-1", &yoga).await;
        assert_eq!(again.status, 201, "{again:?}");
    }
    assert_eq!(slots(&service).await, 2, "each once");
    let again = keyed(&service, "/register", None, "a-1", &ann).await;
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(service.post("/login", None, &bob).await.status, 200);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_creates_one_slot() {
    let service = Service::embedded(&[]).await;
    let [olga, otto] = [token(Role::Organiser), token(Role::Organiser)];
    let first = keyed(&service, "/slots", Some(&olga), "\"s-1\"", &slot_in(24)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let ann = token(Role::Guest);
    let id = first.json()["id"].as_str().expect("it has an id").to_owned();
    assert_eq!(service.book(&id, &ann).await.status, 201);

    let again = keyed(&service, "/slots", Some(&olga), "s-1", &slot_in(24)).await;
    assert_eq!(again.status, 201);
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.json()["booked"], true, "it is as it is now, and still ann's");
    assert_eq!(slots(&service).await, 1);

    let other = keyed(&service, "/slots", Some(&olga), "s-1", &slot_in(25)).await;
    assert_eq!(problem(&other, 422)["type"], "/docs#key-reused");
    let others = keyed(&service, "/slots", Some(&otto), "s-1", &slot_in(25)).await;
    assert_eq!(others.status, 201, "a key is its user's own");
    let new = keyed(&service, "/slots", Some(&olga), "s-2", &slot_in(24)).await;
    assert_eq!(new.status, 201);
    assert_eq!(slots(&service).await, 3);
    problem(&keyed(&service, "/slots", Some(&ann), "s-1", &slot_in(24)).await, 403);
    problem(&keyed(&service, "/slots", None, "s-1", &slot_in(24)).await, 401);
    for wrong in ["", "\"", "a b", "\"a\", \"b\"", &"x".repeat(129)] {
        let refused = keyed(&service, "/slots", Some(&olga), wrong, &slot_in(24)).await;
        assert_eq!(problem(&refused, 400)["type"], "/docs#malformed", "{wrong}");
    }
    let twice = Request::post("/slots")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {olga}"))
        .header("idempotency-key", "s-8")
        .header("idempotency-key", "s-9")
        .body(slot_in(24).to_string().into());
    let twice = service.client().await.send(twice.expect("a request")).await.expect("it answers");
    problem(&twice, 400);
    assert_eq!(slots(&service).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_at_the_same_time_creates_one_slot() {
    let redis = RedisServer::start();
    let database = database();
    let olga = token(Role::Organiser);
    let mut services = Vec::new();
    for _ in 0..2 {
        services.push(std::sync::Arc::new(Service::served(&redis.url(), &database, &[]).await));
    }
    let mut requests = JoinSet::new();
    for number in 0..20 {
        let (service, olga) = (services[number % 2].clone(), olga.clone());
        // Half of them say another time.
        let body = slot_in(if number < 10 { 24 } else { 25 });
        requests.spawn(async move { keyed(&service, "/slots", Some(&olga), "s-1", &body).await });
    }
    let all = requests.join_all().await;
    let created = all.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 10, "those of the first one's fields: {all:?}");
    for answer in all.iter().filter(|answer| answer.status != 201) {
        problem(answer, 422);
    }
    assert_eq!(slots(&services[0]).await, 1);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_opens_one_account_and_tells_nobody_elses_password() {
    let service = Service::embedded(&[]).await;
    let ann = credentials("ann@example.org", PASSWORD);
    let first = keyed(&service, "/register", None, "a-1", &ann).await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = keyed(&service, "/register", None, "a-1", &ann).await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));

    let other = credentials("ann@example.org", "another long password");
    let refused = keyed(&service, "/register", None, "a-1", &other).await;
    assert_eq!(problem(&refused, 422)["type"], "/docs#key-reused");
    for key in ["a-2", "a-3"] {
        let refused = keyed(&service, "/register", None, key, &ann).await;
        assert_eq!(problem(&refused, 409)["type"], "/docs#user-exists", "the right password, too");
    }
    let bob = credentials("bob@example.org", PASSWORD);
    assert_eq!(keyed(&service, "/register", None, "a-1", &bob).await.status, 201);
    assert_eq!(service.post("/login", None, &ann).await.status, 200);
    assert_eq!(service.post("/login", None, &other).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_at_a_key_is_counted_as_one_who_guesses_at_a_login() {
    let service = Service::embedded(&[]).await;
    let ann = credentials("ann@example.org", PASSWORD);
    assert_eq!(keyed(&service, "/register", None, "a-1", &ann).await.status, 201);
    let wrong = credentials("ann@example.org", "another long password");
    for _ in 0..5 {
        problem(&keyed(&service, "/register", None, "a-1", &wrong).await, 422);
    }
    problem(&keyed(&service, "/register", None, "a-1", &wrong).await, 429);
    problem(&service.post("/login", None, &wrong).await, 429);
    let body = json!({ "email": "bob@example.org", "password": PASSWORD });
    assert_eq!(service.post("/register", None, &body).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_repeated_after_its_slot_has_begun_is_answered_as_before() {
    let redis = RedisServer::start();
    let database = database();
    let service = Service::served(&redis.url(), &database, &[]).await;
    let olga = token(Role::Organiser);
    let body = slot_in(1);
    let first = keyed(&service, "/slots", Some(&olga), "s-1", &body).await;
    assert_eq!(first.status, 201);
    let arguments = ["--database", &database];
    let later = crate::service::now() + time::Duration::hours(49);
    let later = later.format(&time::format_description::well_known::Rfc3339).expect("a time");
    let uri = MongoServer::start().uri();
    let service = Service::start_at(&later, &arguments, &redis.url(), uri, Stdio::null()).await;
    let tokens = booking::auth::Tokens::new(
        &booking::auth::Secret::new(crate::service::SECRET).expect("it is strong"),
        Duration::from_secs(600),
        booking::clock::Clock::set_to(crate::service::now() + time::Duration::hours(49)),
    );
    let tokens = tokens.expect("it is a secret");
    let then = crate::service::tokens(Duration::from_secs(600));
    let user = then.verify(&olga).expect("it is valid").user;
    let olga = tokens.issue(user, Role::Organiser).expect("it signs").text;
    let again = keyed(&service, "/slots", Some(&olga), "s-1", &body).await;
    assert_eq!(
        (again.status, again.json()["id"].clone()),
        (first.status, first.json()["id"].clone())
    );
    let new = keyed(&service, "/slots", Some(&olga), "s-2", &body).await;
    problem(&new, 400);
    discard(&database).await;
}
