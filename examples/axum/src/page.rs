//! docs/axum.md shows what is built and run here, and what it says is so.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header::RETRY_AFTER},
    response::Response,
};
use cache_lock::{LockError, LockManager, cache_lock};
use test_support::{Data, RedisServer, wait_until};
use tower::ServiceExt;

use super::router;

async fn send(router: &Router, request: axum::http::request::Builder) -> Response {
    let request = request.body(Body::empty()).expect("a path");
    router.clone().oneshot(request).await.expect("a router never fails")
}

#[test]
fn the_listings_are_the_program_and_its_tests() {
    let page = include_str!("../../../docs/axum.md");
    let (program, tests) = include_str!("main.rs")
        .split_once("#[cfg(test)]\nmod tests {")
        .expect("the program, then its tests");
    let (_, program) = program.split_once("\n\n").expect("a description, then the program");
    let (tests, _) = tests.split_once("\n#[cfg(test)]\nmod page;").expect("the page is last");
    for listing in [program.trim_end(), &format!("#[cfg(test)]\nmod tests {{{}", tests.trim_end())]
    {
        assert!(page.contains(&format!("```rust\n{listing}\n```")), "write it there:\n{listing}");
    }
}

/// The service starts first, and serves as soon as its server is up.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_starts_before_redis_says_when_to_ask_again() {
    let server = RedisServer::start();
    server.kill();
    let locks = LockManager::builder().connect_lazy(&server.url()).expect("the URL is one");
    let router = router(locks);
    for request in [Request::post("/rooms/42/ann"), Request::get("/healthz")] {
        let response = send(&router, request).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key(RETRY_AFTER));
    }
    server.restart(Data::Lose);
    wait_until("the server is up", || server.command(&["PING"]).is_ok());
    let reserved = async {
        while send(&router, Request::post("/rooms/42/ann")).await.status() != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reserved).await.expect("it serves");
    assert_eq!(send(&router, Request::get("/healthz")).await.status(), StatusCode::OK);
}

#[cache_lock(prefix = "job")]
async fn in_scope() -> Result<(), LockError> {
    Ok(())
}

/// A server spawns a task for each request, and a scope does not reach it.
#[tokio::test]
async fn a_scope_around_a_server_reaches_no_request() {
    let spawned = async { tokio::spawn(in_scope()).await.expect("no panic") };
    let error = LockManager::in_memory().scope(spawned).await.expect_err("there is no manager");
    assert!(error.to_string().contains("does not reach spawned tasks"), "{error}");
}
