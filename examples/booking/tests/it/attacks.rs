//! What strangers try.

use std::io::{Read, Seek};
use std::process::Stdio;

use booking::domain::{Role, UserId};
use hyper::{Method, Request};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{
    PASSWORD, SECRET, Service, credentials, fields, now, problem, slot_in, token, tokens,
};

/// Base64 for URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            let index = number >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[index as usize]));
        }
    }
    text
}

fn claims(role: &str, expires: i64) -> Value {
    let now = now().unix_timestamp();
    json!({
        "sub": Uuid::new_v4(), "role": role, "iss": "booking", "aud": "booking",
        "iat": now - 7200, "exp": now + expires,
    })
}

/// A token that is signed as ours are.
fn signed(header: &Value, claims: &Value, secret: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let text = format!(
        "{}.{}",
        base64(header.to_string().as_bytes()),
        base64(claims.to_string().as_bytes())
    );
    let mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("any length will do");
    let signature = mac.chain_update(text.as_bytes()).finalize().into_bytes();
    format!("{text}.{}", base64(&signature))
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_ours_or_not_any_more_are_refused() {
    let service = Service::embedded(&[]).await;
    let hs256 = json!({ "alg": "HS256", "typ": "JWT" });
    let ours = signed(&hs256, &claims("guest", 600), SECRET);
    let accepted = service.get("/me/bookings", Some(&ours)).await;
    assert_eq!(accepted.status, 200, "this test signs as the service does: {accepted:?}");

    let (head, signature) = ours.rsplit_once('.').expect("it has three parts");
    let organiser = base64(claims("organiser", 600).to_string().as_bytes());
    let none = |name: &str| {
        let header = base64(json!({ "alg": name, "typ": "JWT" }).to_string().as_bytes());
        format!("{header}.{organiser}.")
    };
    let mut without_expiry = claims("guest", 600);
    without_expiry.as_object_mut().expect("it is an object").remove("exp");
    let mut for_others = claims("guest", 600);
    for_others["aud"] = json!("billing");
    let mut from_others = claims("guest", 600);
    from_others["iss"] = json!("billing");
    let header = ours.split('.').next().unwrap_or_default();
    for (what, forged) in [
        (
            "another secret",
            signed(&hs256, &claims("guest", 600), "another secret of 32 bytes, no less"),
        ),
        ("expired", signed(&hs256, &claims("guest", -60), SECRET)),
        ("no expiry", signed(&hs256, &without_expiry, SECRET)),
        ("another audience", signed(&hs256, &for_others, SECRET)),
        ("another issuer", signed(&hs256, &from_others, SECRET)),
        ("an unknown role", signed(&hs256, &claims("admin", 600), SECRET)),
        ("alg none", none("none")),
        ("alg None", none("None")),
        ("alg none, signed", signed(&json!({ "alg": "none" }), &claims("guest", 600), SECRET)),
        ("alg HS512", signed(&json!({ "alg": "HS512" }), &claims("guest", 600), SECRET)),
        ("alg RS256", signed(&json!({ "alg": "RS256" }), &claims("guest", 600), SECRET)),
        ("other claims", format!("{header}.{organiser}.{signature}")),
        ("no signature", format!("{head}.")),
        ("half a signature", format!("{head}.{}", &signature[..20])),
        ("long", format!("{ours}{}", "A".repeat(5000))),
        ("nothing", String::new()),
        ("no token", "a.b.c".to_owned()),
    ] {
        let refused = service.get("/me/bookings", Some(&forged)).await;
        assert_eq!(problem(&refused, 401)["type"], "/docs#unauthenticated", "{what}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{what}");
        let slot = service.post("/slots", Some(&forged), &slot_in(24)).await;
        assert_eq!(slot.status, 401, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_no_way_into_the_api() {
    let service = Service::embedded(&[]).await;
    let token = token(Role::Guest);
    for (name, value) in [
        ("cookie", format!("__Host-session={token}; token={token}")),
        ("authorization", format!("Basic {token}")),
        ("authorization", token.clone()),
    ] {
        let request = Request::get("/me/bookings").header(name, value).body(Default::default());
        let answer = service.client().await.send(request.expect("a request")).await;
        problem(&answer.expect("it answers"), 401);
    }
    let twice = Request::get("/me/bookings")
        .header("authorization", format!("Bearer {token}"))
        .header("authorization", "Bearer x")
        .body(Default::default());
    let answer = service.client().await.send(twice.expect("a request")).await;
    problem(&answer.expect("it answers"), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_of_a_database_are_no_strings() {
    let service = Service::embedded(&["--dev"]).await;
    let organiser = token(Role::Organiser);
    for operator in
        [json!({ "$gt": "" }), json!({ "$ne": null }), json!(["a"]), json!({ "$where": "1" })]
    {
        for route in ["/login", "/register"] {
            let body = json!({ "email": operator, "password": operator });
            assert_eq!(fields(&service.post(route, None, &body).await), ["email", "password"]);
        }
        let body = json!({ "title": operator, "starts": operator, "ends": operator });
        let refused = service.post("/slots", Some(&organiser), &body).await;
        assert_eq!(fields(&refused), ["title", "starts", "ends"]);
    }
    // As text they are text.
    let text = credentials("ann@example.org", "{\"$gt\": \"\"}");
    problem(&service.post("/login", None, &text).await, 401);
    for path in ["/slots?day[$gt]=", "/slots?day=%7B%22$gt%22:%22%22%7D", "/slots?after[$ne]=x"] {
        problem(&service.get(path, None).await, 400);
    }
    for id in ["%7B%22$gt%22:%22%22%7D", "..%2F..%2Fusers", "%00", "[$ne]=1"] {
        problem(&service.book(id, &organiser).await, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_or_not_json_are_refused() {
    let service = Service::embedded(&[]).await;
    let send = async |kind: &str, body: &str| {
        let request = Request::post("/register").header("content-type", kind);
        let request = request.body(body.to_owned().into()).expect("a request");
        service.client().await.send(request).await.expect("it answers")
    };
    let json = "application/json";
    let large = format!("{{\"email\": \"{}\"}}", "a".repeat(20 * 1024));
    problem(&send(json, &large).await, 413);
    let deep = "[".repeat(8000);
    for body in ["", "{", "nonsense", "[]", "null", "\"text\"", "{\"email\": \"\u{1}\"}", &deep] {
        let refused = send(json, body).await;
        assert_eq!(problem(&refused, 400)["type"], "/docs#malformed", "{body:.20}");
    }
    let secret = send(json, "{\"password\": \"hunter2 hunter2\" oops").await;
    assert!(!format!("{secret:?}").contains("hunter2"), "an error repeats nothing: {secret:?}");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"] {
        problem(&send(kind, "{}").await, 415);
    }
    assert_eq!(fields(&send("application/json; charset=utf-8", "{}").await).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_does_not_tell_whether_there_is_an_account() {
    let service = Service::embedded(&["--dev"]).await;
    let hashed = "booking_passwords_hashed_total";
    let mut answers = Vec::new();
    for email in ["ann@example.org", "nobody@example.org"] {
        let before = service.metric(hashed).await;
        let answer = service.post("/login", None, &credentials(email, "a wrong password")).await;
        problem(&answer, 401);
        let work = service.metric(hashed).await - before;
        let mut headers: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        headers.sort();
        answers.push((answer.status, headers, answer.body, work));
    }
    assert_eq!(answers[0], answers[1], "the same text, and the same work");
    assert_eq!(answers[0].3, 1.0, "one password is hashed");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_passwords_and_opening_accounts_ends_soon() {
    let service = Service::embedded(&["--dev"]).await;
    let guess = credentials("ann@example.org", "a wrong password");
    let mut wrong = 0;
    let limited = loop {
        let answer = service.post("/login", None, &guess).await;
        if answer.status != 401 {
            break answer;
        }
        wrong += 1;
        assert!(wrong < 20, "nobody stops it");
    };
    assert_eq!(problem(&limited, 429)["type"], "/docs#too-many");
    let wait = limited.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(wait.is_some_and(|seconds| seconds >= 1), "{limited:?}");
    let right = service.post("/login", None, &credentials("ann@example.org", PASSWORD)).await;
    assert_eq!(right.status, 429, "the right one is not let through either");
    let other = service.post("/login", None, &credentials("bob@example.org", PASSWORD)).await;
    assert_eq!(other.status, 200, "other accounts are not concerned");

    // A client that says that it is somebody else is not believed.
    let mut opened = 0;
    let limited = loop {
        let body = credentials(&format!("user{opened}@example.org"), PASSWORD).to_string();
        let request = Request::post("/register")
            .header("content-type", "application/json")
            .header("x-forwarded-for", format!("10.0.0.{opened}"))
            .body(body.into());
        let answer = service.client().await.send(request.expect("a request")).await;
        let answer = answer.expect("it answers");
        if answer.status != 201 {
            break answer;
        }
        opened += 1;
        assert!(opened < 20, "nobody stops it");
    };
    problem(&limited, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_is_trusted_tells_clients_apart() {
    let service = Service::embedded(&["--dev", "--trust-proxy"]).await;
    for number in 0..30 {
        let body = credentials(&format!("user{number}@example.org"), PASSWORD).to_string();
        let request = Request::post("/register")
            .header("content-type", "application/json")
            .header("x-forwarded-for", format!("1.2.3.4, 10.0.0.{number}"))
            .body(body.into());
        let answer = service.client().await.send(request.expect("a request")).await;
        assert_eq!(answer.expect("it answers").status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_client_sends_makes_a_line_of_the_log_or_a_header() {
    let path = std::env::temp_dir().join(format!("booking-log-{}", Uuid::new_v4()));
    let mut file = std::fs::File::options().create_new(true).read(true).write(true).open(&path);
    let file = file.as_mut().expect("there is room");
    // It has no name any more, so it goes with whoever has it open.
    std::fs::remove_file(&path).expect("it was there");
    let stderr = Stdio::from(file.try_clone().expect("it can be shared"));
    let mut service = Service::start(&[], "", "", stderr).await;
    let organiser = token(Role::Organiser);
    let evil = "x\r\nset-cookie: a=b\r\n{\"level\":\"ERROR\"}\u{1b}[31m";
    service.get("/%0d%0aset-cookie:%20a=b%0d%0a%7B%22level%22", None).await;
    let mut slot = slot_in(24);
    slot["title"] = json!(evil);
    assert_eq!(fields(&service.post("/slots", Some(&organiser), &slot).await), ["title"]);
    problem(&service.post("/login", None, &credentials(evil, evil)).await, 401);
    let request =
        Request::get("/healthz").header("x-request-id", "mine").header("user-agent", "evil");
    let answer = service.client().await.send(request.body(Default::default()).expect("one")).await;
    let answer = answer.expect("it answers");
    let id = answer.header("x-request-id").expect("it has a name").to_owned();
    assert!(Uuid::try_parse(&id).is_ok(), "the service's own, not the client's: {id}");
    assert!(answer.header("set-cookie").is_none());
    service.replica.terminate().expect("it runs");
    service.replica.wait().await.expect("it ends");

    let mut log = String::new();
    file.rewind().expect("it is a file");
    file.read_to_string(&mut log).expect("it is text");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("each line is an object of ours");
        assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
    }
    assert!(log.contains(&id), "requests are found by their name: {log}");
    for secret in [organiser.as_str(), PASSWORD, SECRET, "set-cookie: a=b\r\n"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_told_what_they_may_do() {
    let service = Service::embedded(&[]).await;
    for path in ["/healthz", "/slots", "/nothing", "/openapi.json", "/docs"] {
        let answer = service.get(path, None).await;
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe-inline"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("access-control-allow-origin").is_none(), "{path}");
        assert!(answer.header("server").is_none(), "{path}");
    }
    let preflight = service.call(Method::OPTIONS, "/slots", None, None).await;
    assert!(preflight.header("access-control-allow-origin").is_none(), "{preflight:?}");
}

#[test]
fn a_token_of_the_service_is_what_this_test_takes_it_for() {
    let tokens = tokens(std::time::Duration::from_secs(600));
    let ours = signed(&json!({ "alg": "HS256" }), &claims("organiser", 600), SECRET);
    let identity = tokens.verify(&ours).expect("it is valid");
    assert_eq!(identity.role, Role::Organiser);
    let issued = tokens.issue(UserId::random(), Role::Guest).expect("it signs");
    assert!(tokens.verify(&issued.text).is_ok());
}
