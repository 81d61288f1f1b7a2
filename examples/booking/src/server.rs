//! Listening, and ending in order.

use std::io;
use std::sync::Arc;
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
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::app::{AppState, Peer, router};

/// The most bytes of a head.
const LARGEST_HEAD: usize = 16 * 1024;

/// File descriptors that are not for clients: the database, the locks, the log, and some to spare.
const RESERVED: u64 = 256;

/// What a server can be told.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// So many connections at once.
    pub connections: u32,
    /// A client has so long to send the head of a request; and an idle connection is kept so long.
    pub head: Duration,
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
    let places = Arc::new(Semaphore::new(places(limits.connections)));
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
                spawn(stream, place, app.clone(), limits.head, &graceful, state.metrics.connections.clone());
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
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            // Nobody closes it.
            std::future::pending::<()>().await;
            continue;
        };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
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
    place: OwnedSemaphorePermit,
    app: Router,
    head: Duration,
    graceful: &GracefulShutdown,
    open: Gauge,
) {
    // Or else the client is gone.
    let Ok(peer) = stream.peer_addr() else { return };
    let peer = Peer(peer.ip());
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        app.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        open.inc();
        // What goes wrong on a connection is the client's to know.
        let _ = connection.await;
        open.dec();
        drop(place);
    });
}

/// How many connections there is room for, once the limit of file descriptors is as high as it may
/// be.
fn places(wanted: u32) -> usize {
    let room = raise_file_limit();
    let places = u64::from(wanted).min(room.saturating_sub(RESERVED)).max(1);
    if places < u64::from(wanted) {
        tracing::warn!("room for {places} connections only: raise the limit of open files");
    }
    usize::try_from(places).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Raises this process's limit of open files as far as it may, and returns it.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    // No limit at all is told as `None`.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
