//! Requests that find no room on their connection.

use test_support::{Direction, Fault, Proxy, RedisServer};

use super::{window::Permit, *};
use crate::protocol::messages::{AcquireRequest, Progress, RequestKind};

const EXPIRE: Duration = Duration::from_secs(60);

struct Setup {
    store: RedisStore,
    tokens: Arc<TokenSource>,
    connection: Arc<Connection>,
    /// All the room that the connection has.
    permits: Vec<Permit>,
    _inbox: Inbox,
}

impl Setup {
    async fn new(url: &str) -> Self {
        let (driver, tokens) = (Arc::new(Driver::new()), Arc::new(TokenSource::new()));
        driver.start(std::future::pending).expect("a thread");
        let attempt = Duration::from_secs(1);
        let new = RedisStore::new(url, None, driver, Arc::clone(&tokens), attempt);
        let (store, _inbox) = new.expect("a URL");
        let connection = store.connection(soon()).await.expect("the server runs");
        let mut permits = Vec::new();
        while let Room::Now(permit) = connection.window.enter(Lane::Acquires) {
            permits.push(permit);
        }
        Self { store, tokens, connection, permits, _inbox }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.store.inner.driver.stop();
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

#[tokio::test]
async fn request_that_moves_to_a_connection_with_room_is_noted_as_sent() {
    let server = RedisServer::start();
    let Setup { store, tokens, connection, .. } = &Setup::new(&server.url()).await;
    let request = AcquireRequest {
        key: LockKey::from("room"),
        token: tokens.next(),
        kind: RequestKind::New,
        expire: EXPIRE,
        block: 1,
        wait: false,
    };
    let (sender, noted) = std::sync::mpsc::channel();
    let progress = {
        let (store, connection) = (store.clone(), Arc::clone(connection));
        move |progress| {
            if progress == Progress::Delayed {
                // The connection is replaced while the request waits.
                settle(&store.inner.connections, &connection, &closed(), store.inner.attempt);
            }
            sender.send(progress).expect("the test waits");
        }
    };
    let response = store.acquire(&request, Handle::try_current().ok().as_ref(), &progress).await;
    assert!(response.is_ok(), "{response:?}");
    assert_eq!(noted.try_iter().collect::<Vec<_>>(), [Progress::Delayed, Progress::Sent]);
}

fn closed() -> Result<Value, Failure> {
    let message = "the test closed it";
    Err(Failure::Closed(BackendError::new(BackendErrorKind::Unreachable, message)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_request_that_was_not_sent_fails_as_overloaded() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let mut setup = Setup::new(&server.url_through(proxy.port())).await;
    proxy.set(Direction::Replies, Fault::Hold);
    let ended = ReleaseRequest::new(setup.tokens.next(), EXPIRE, soon());
    let release = async |store: &RedisStore| {
        let give_up = Instant::now() + Duration::from_millis(300);
        let released = store.release(&LockKey::from("room"), &ended, give_up).await;
        released.expect_err("there is no answer").kind()
    };
    assert_eq!(release(&setup.store).await, BackendErrorKind::Overloaded);
    let permits = std::mem::take(&mut setup.permits);
    let room = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(permits);
    });
    assert_eq!(release(&setup.store).await, BackendErrorKind::Timeout);
    room.join().expect("it ends");
    proxy.pass();
}
