//! Handlers of web frameworks.

use super::*;

struct Path<T>(T);
struct State<T>(T);

trait FromRequest: Sized {
    fn from_request(request: &str) -> Self;
}

impl FromRequest for Path<u64> {
    fn from_request(request: &str) -> Self {
        Self(request.parse().unwrap_or_default())
    }
}

impl FromRequest for State<Arc<str>> {
    fn from_request(_: &str) -> Self {
        Self("state".into())
    }
}

type Response = Pin<Box<dyn Future<Output = Result<String, u16>> + Send>>;

/// What web frameworks ask of a handler: a function of extractors whose future is `Send` and
/// `'static`.
trait Handler<Args>: Clone + Send + 'static {
    fn call(self, request: &str) -> Response;
}

impl<F, Fut, A, B> Handler<(A, B)> for F
where
    F: FnOnce(A, B) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<String, AppError>> + Send + 'static,
    A: FromRequest + Send,
    B: FromRequest + Send,
{
    fn call(self, request: &str) -> Response {
        let response = self(A::from_request(request), B::from_request(request));
        Box::pin(async move { response.await.map_err(|AppError(status)| status) })
    }
}

struct AppError(u16);

impl From<LockError> for AppError {
    fn from(error: LockError) -> Self {
        Self(if error.is_contended() { 423 } else { 503 })
    }
}

#[cache_lock(prefix = "slot", key = "{id}", timeout = 0)]
async fn book(Path(id): Path<u64>, State(state): State<Arc<str>>) -> Result<String, AppError> {
    tokio::task::yield_now().await;
    Ok(format!("{id} {state}"))
}

fn route<Args>(handler: impl Handler<Args>, request: &str) -> Response {
    handler.call(request)
}

#[tokio::test]
async fn handlers_of_web_frameworks_take_attribute() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(route(book, "7")).await, Ok("7 state".to_owned()));
    let _held = locks.acquire("slot:7", &LockOptions::new()).await.expect("free");
    assert_eq!(locks.scope(route(book, "7")).await, Err(423));
    assert_eq!(route(book, "7").await, Err(503));
}
