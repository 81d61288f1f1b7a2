//! A running service, and what tests ask it.

use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use booking::auth::{Secret, Tokens};
use booking::client::{Answer, Client};
use booking::clock::Clock;
use booking::domain::{Day, Role, UserId};
use booking::replica::Replica;
use booking::repository::MongoRepository;
use example_support::mongodb_at;
use hyper::Method;
use serde_json::{Value, json};
use test_support::{MongoServer, RedisServer};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, Time};

/// The secret of all services under test, so that tests can make tokens.
pub(crate) const SECRET: &str = "7f3a9c1e5b8d2046f1e0a4c87b6d93525ce8";

/// The password of all users.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// The time at which each service under test begins: the same on every run, unless this variable says
/// another. `scripts/test-hours.sh` does.
const TEST_NOW: &str = "BOOKING_TEST_NOW";
pub(crate) static NOW: LazyLock<String> =
    LazyLock::new(|| std::env::var(TEST_NOW).unwrap_or_else(|_| "2027-06-15T12:00:00Z".to_owned()));

/// When all services under test begin.
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::parse(&NOW, &Rfc3339).expect("it is a time")
}

/// A process of the service.
pub(crate) struct Service {
    pub(crate) replica: Replica,
}

impl Service {
    /// A service inside one process.
    pub(crate) async fn embedded(arguments: &[&str]) -> Self {
        Self::start(arguments, "", "", Stdio::null()).await
    }

    /// A service on servers, in a database of its own.
    pub(crate) async fn served(redis: &str, database: &str, arguments: &[&str]) -> Self {
        let arguments = [&["--database", database], arguments].concat();
        Self::start(&arguments, redis, MongoServer::start().uri(), Stdio::null()).await
    }

    pub(crate) async fn start(
        arguments: &[&str],
        redis: &str,
        mongodb: &str,
        stderr: Stdio,
    ) -> Self {
        Self::start_at(&NOW, arguments, redis, mongodb, stderr).await
    }

    /// A service that begins at another time than all others.
    pub(crate) async fn start_at(
        now: &str,
        arguments: &[&str],
        redis: &str,
        mongodb: &str,
        stderr: Stdio,
    ) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_booking"));
        let arguments = [&["--now", now], arguments].concat();
        let variables =
            [("REDIS_URL", redis), ("MONGODB_URI", mongodb), ("BOOKING_JWT_SECRET", SECRET)];
        let replica = Replica::start(program, &arguments, variables, stderr).await;
        Self { replica: replica.expect("the service starts") }
    }

    /// A new connection.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.replica.address()).await.expect("it listens")
    }

    /// Asks over a connection of its own.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Answer {
        let answer = self.client().await.call(method, path, token, body).await;
        answer.expect("it answers")
    }

    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> Answer {
        self.call(Method::GET, path, token, None).await
    }

    pub(crate) async fn post(&self, path: &str, token: Option<&str>, body: &Value) -> Answer {
        self.call(Method::POST, path, token, Some(body)).await
    }

    pub(crate) async fn book(&self, slot: &str, token: &str) -> Answer {
        self.call(Method::POST, &format!("/slots/{slot}/book"), Some(token), None).await
    }

    pub(crate) async fn cancel(&self, slot: &str, token: &str) -> Answer {
        self.call(Method::DELETE, &format!("/slots/{slot}/booking"), Some(token), None).await
    }

    /// Creates a slot that starts some hours after the next midnight, and returns its id.
    pub(crate) async fn slot(&self, hours: i64) -> String {
        let answer = self.post("/slots", Some(&token(Role::Organiser)), &slot_in(hours)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().expect("it has an id").to_owned()
    }

    /// The value of a line of `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics", None).await.body;
        let text = String::from_utf8(text.to_vec()).expect("it is text");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |number| number.parse().expect("it is a number"))
    }

    /// Waits until a metric is `at_least` so much.
    pub(crate) async fn wait_for_metric(&self, name: &str, at_least: f64) {
        for _ in 0..6000 {
            if self.metric(name).await >= at_least {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain for {name} to be {at_least}");
    }
}

/// A slot that starts some hours after the next midnight, as a request says it. Those of one day are
/// of one day at any hour.
pub(crate) fn slot_in(hours: i64) -> Value {
    let time = |hours| {
        let midnight = Day::of(now()).next().date().with_time(Time::MIDNIGHT).assume_utc();
        let time = midnight + time::Duration::hours(hours);
        time.format(&Rfc3339).expect("it is a time")
    };
    json!({ "title": "Yoga", "starts": time(hours), "ends": time(hours + 1) })
}

/// A token of a new user.
pub(crate) fn token(role: Role) -> String {
    let tokens = tokens(Duration::from_secs(600));
    tokens.issue(UserId::random(), role).expect("it signs").text
}

/// What makes tokens as the services do, for as long after [`now`].
pub(crate) fn tokens(lifetime: Duration) -> Tokens {
    let secret = Secret::new(SECRET).expect("it is strong");
    Tokens::new(&secret, lifetime, Clock::set_to(now())).expect("it is a secret")
}

pub(crate) fn credentials(email: &str, password: &str) -> Value {
    json!({ "email": email, "password": password })
}

/// A database that no other test uses.
pub(crate) fn database() -> String {
    format!("booking_test_{}", uuid::Uuid::new_v4().simple())
}

/// What the services on this database have.
pub(crate) async fn repository(database: &str) -> MongoRepository {
    let url = MongoServer::start().uri().to_owned().into();
    let mongodb = mongodb_at(&url).await.expect("it is reachable");
    MongoRepository::open(mongodb.database(database)).await.expect("it answers")
}

/// Removes a database.
pub(crate) async fn discard(database: &str) {
    repository(database).await.discard().await.expect("it goes");
}

/// What is in Redis besides fences, which stay for a day.
pub(crate) fn locks_in(redis: &RedisServer) -> Vec<String> {
    let keys = redis.cli(&["KEYS", "*"]);
    keys.lines().filter(|key| !key.ends_with(":fence")).map(str::to_owned).collect()
}

/// The problem that an answer tells: it must be one, with this status.
pub(crate) fn problem(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["status"], status, "{problem}");
    for member in ["type", "title", "detail"] {
        assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
    }
    problem
}

/// The fields that a 400 names.
pub(crate) fn fields(answer: &Answer) -> Vec<String> {
    let problem = problem(answer, 400);
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let field = |error: &Value| error["field"].as_str().unwrap_or_default().to_owned();
    errors.iter().map(field).collect()
}
