//! Listening, and ending in order.

mod places;

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

pub use self::places::raise_file_limit;
use self::places::{Place, Places};
use crate::app::{AppState, Peer, Reserved, router};

/// The most bytes of a head.
const LARGEST_HEAD: usize = 16 * 1024;

/// A connection in the reserve has so long to send the head of its request, and so long in all.
const RESERVE_HEAD: Duration = Duration::from_secs(2);
const RESERVE_LIFE: Duration = Duration::from_secs(10);

/// What a server can be told.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// So many connections at once.
    pub connections: u32,
    /// A client has so long to send the head of a request; and an idle connection is kept so long.
    pub head: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write: Duration,
    /// How long requests under way have to end when it ends.
    pub drain: Duration,
}

/// Serves until `end` is ready, then answers what is under way, and gives back all locks.
///
/// # Errors
/// Those of the listener, before the first connection.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    limits: Limits,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let app = router(state.clone());
    let places = Places::new(limits.connections);
    let graceful = GracefulShutdown::new();
    let mut end = std::pin::pin!(end);
    let mut tidying = tokio::time::interval(Duration::from_secs(60));
    loop {
        tokio::select! {
            // The end is listened for before the first connection: a SIGTERM that came between would
            // kill the process in the middle of a request.
            biased;
            () = &mut end => break,
            _ = tidying.tick() => state.limits.tidy(),
            (stream, place) = accept(&listener, &places) => {
                spawn(stream, place, app.clone(), limits, &graceful, state.metrics.connections.clone());
            }
        }
    }
    drop(listener);
    tracing::info!("ending: no new connections; requests under way are answered");
    state.ended.cancel();
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not answered within {:?}", limits.drain);
    }
    state.locks.shutdown().await;
    tracing::info!("ended");
    Ok(())
}

/// The next connection, once there is a place for it.
async fn accept(listener: &TcpListener, places: &Places) -> (TcpStream, Place) {
    loop {
        let reserve = places.ready().await;
        match listener.accept().await {
            Ok((stream, _)) => return (stream, places.take(reserve)),
            // A client that is gone already, or no file descriptor: neither ends the service, and
            // the second would be met again at once.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves a connection on a task of its own.
fn spawn(
    stream: TcpStream,
    place: Place,
    app: Router,
    limits: Limits,
    graceful: &GracefulShutdown,
    open: Gauge,
) {
    // Or else the client is gone.
    let Ok(peer) = stream.peer_addr() else { return };
    let peer = Peer(peer.ip());
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    // Or a client that never reads would keep its place for ever.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write));
    let reserved = place.reserved;
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        if reserved {
            request.extensions_mut().insert(Reserved);
        }
        app.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(if reserved { limits.head.min(RESERVE_HEAD) } else { limits.head })
        .keep_alive(!reserved)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        open.inc();
        // What goes wrong on a connection is the client's to know.
        if reserved {
            let _ = tokio::time::timeout(RESERVE_LIFE, connection).await;
        } else {
            let _ = connection.await;
        }
        open.dec();
        drop(place);
    });
}
