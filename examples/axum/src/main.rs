//! The smallest service in axum whose handler is a critical section; docs/axum.md explains it.

use std::{collections::HashMap, env, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cache_lock::{LockError, LockManager, cache_lock};
use tokio::{net::TcpListener, sync::Mutex};

/// What each handler has: the manager, and the data.
#[derive(Clone)]
struct App {
    locks: LockManager,
    rooms: Arc<Mutex<HashMap<u64, String>>>,
}

/// At most one of these for each room, in the whole fleet.
#[cache_lock(prefix = "room", key = "{room}", timeout = "500ms", expire = "10s", with = app.locks)]
async fn reserve(
    State(app): State<App>,
    Path((room, student)): Path<(u64, String)>,
) -> Result<String, Refusal> {
    // Two steps, as with a database: a read that decides, and a write.
    if app.rooms.lock().await.contains_key(&room) {
        return Err(Refusal::Taken);
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    app.rooms.lock().await.insert(room, student.clone());
    Ok(format!("{student} has room {room}\n"))
}

async fn health(State(app): State<App>) -> Result<&'static str, Refusal> {
    app.locks.ping().await?;
    Ok("ok\n")
}

enum Refusal {
    Taken,
    Lock(LockError),
}

impl From<LockError> for Refusal {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let again = [(RETRY_AFTER, "1")];
        match self {
            Self::Taken => (StatusCode::CONFLICT, "the room is taken\n").into_response(),
            Self::Lock(error) if error.is_contended() => {
                (StatusCode::CONFLICT, again, "another customer reserves this room\n")
                    .into_response()
            }
            // The handler had begun, and may have written.
            Self::Lock(error) if error.is_lost() => {
                eprintln!("{error}");
                let text = "look whether you have the room before you ask again\n";
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
            // It had not begun. The error names servers, so it goes to the log and not to the client.
            Self::Lock(error) => {
                eprintln!("{error}");
                let text = "no reservations at the moment\n";
                match error.is_retryable() {
                    true => (StatusCode::SERVICE_UNAVAILABLE, again, text).into_response(),
                    false => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
                }
            }
        }
    }
}

fn router(locks: LockManager) -> Router {
    Router::new()
        .route("/rooms/{room}/{student}", post(reserve))
        .route("/healthz", get(health))
        .with_state(App { locks, rooms: Arc::default() })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let locks = match env::var("REDIS_URL") {
        // Starts without its server, too: the first request connects.
        Ok(url) => LockManager::builder().connect_lazy(&url)?,
        Err(_) => LockManager::in_memory(),
    };
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    let ended = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, router(locks.clone())).with_graceful_shutdown(ended).await?;
    locks.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use cache_lock::{LockKey, LockOptions};
    use tower::ServiceExt;

    use super::*;

    async fn post(router: &Router, path: &str) -> Response {
        let request = Request::post(path).body(Body::empty()).expect("a path");
        router.clone().oneshot(request).await.expect("a router never fails")
    }

    #[tokio::test]
    async fn one_of_two_has_the_room() {
        let router = router(LockManager::in_memory());
        let both = tokio::join!(post(&router, "/rooms/42/ann"), post(&router, "/rooms/42/bob"));
        assert_eq!((both.0.status(), both.1.status()), (StatusCode::OK, StatusCode::CONFLICT));
    }

    #[tokio::test]
    async fn a_busy_room_is_a_conflict_that_passes() {
        let locks = LockManager::in_memory();
        let router = router(locks.clone());
        let room = LockKey::new("room").part(42);
        let _held = locks.acquire(room, &LockOptions::new()).await.expect("it is free");
        let response = post(&router, "/rooms/42/ann").await;
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert!(response.headers().contains_key(RETRY_AFTER));
        assert_eq!(post(&router, "/rooms/43/ann").await.status(), StatusCode::OK);
    }
}

#[cfg(test)]
mod page;
