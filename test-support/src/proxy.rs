mod commands;
mod connection;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::connection::Connection;

/// A direction of traffic through a [`Proxy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// What a [`Proxy`] does to the traffic of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Forwards at once.
    #[default]
    Pass,
    /// Takes the bytes, forwards nothing, and says nothing, not even that a side has closed. A
    /// connection that has lost bytes stays dead in that direction, as TCP never goes on after a
    /// gap; later connections are not affected.
    Swallow,
    /// Keeps the bytes, and forwards them in order once the fault is changed.
    Hold,
    /// Forwards each piece this much later.
    Delay(Duration),
    /// Drops each piece, and sends this text in its stead, as a proxy does that gives up on a slow
    /// server.
    Answer(&'static str),
}

/// A TCP proxy before a server on 127.0.0.1, with faults that a test switches on and off.
///
/// The faults apply to all connections, those that are open and those to come. Bytes are counted
/// as they are forwarded.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    target: u16,
    faults: Mutex<Faults>,
    changed: Condvar,
    connections: Mutex<Vec<Arc<Connection>>>,
    closing: AtomicBool,
    refusing: AtomicBool,
    accepted: AtomicU64,
    commands: AtomicU64,
    request_bytes: AtomicU64,
    reply_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Faults {
    requests: Fault,
    replies: Fault,
}

impl Proxy {
    /// A proxy on a free port before `127.0.0.1:target`. The server need not run yet.
    ///
    /// # Panics
    /// When no port can be bound.
    #[must_use]
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            target,
            faults: Mutex::default(),
            changed: Condvar::new(),
            connections: Mutex::default(),
            closing: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            request_bytes: AtomicU64::new(0),
            reply_bytes: AtomicU64::new(0),
        });
        let acceptor = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept_all(&listener)
        });
        Self { port, shared, acceptor: Some(acceptor) }
    }

    /// The port that clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the fault of one direction.
    pub fn set(&self, direction: Direction, fault: Fault) {
        *self.shared.faults().of(direction) = fault;
        self.shared.changed.notify_all();
    }

    /// Sets the fault of both directions at once.
    pub fn set_both(&self, fault: Fault) {
        *self.shared.faults() = Faults { requests: fault, replies: fault };
        self.shared.changed.notify_all();
    }

    /// Forwards both directions, and accepts connections: the end of all faults.
    pub fn pass(&self) {
        self.shared.refusing.store(false, Ordering::SeqCst);
        self.set_both(Fault::Pass);
    }

    /// A silent network: [`Fault::Swallow`] in both directions.
    pub fn swallow(&self) {
        self.set_both(Fault::Swallow);
    }

    /// Closes every open connection, held bytes included; new ones are accepted.
    pub fn cut(&self) {
        for connection in self.shared.connections().drain(..) {
            connection.close();
        }
        self.shared.changed.notify_all();
    }

    /// As [`cut`](Self::cut), and closes every new connection at once, until
    /// [`pass`](Self::pass).
    pub fn refuse(&self) {
        self.shared.refusing.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// How many connections were accepted so far, refused ones included.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.connections().len()
    }

    /// How many Redis commands were forwarded, those that clients send on their own (`HELLO`,
    /// `CLIENT SETINFO`) included.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.shared.commands.load(Ordering::SeqCst)
    }

    /// How many bytes of a direction were forwarded.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.shared.bytes(direction).load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.refuse();
        // Wakes the acceptor.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Faults {
    fn of(&mut self, direction: Direction) -> &mut Fault {
        match direction {
            Direction::Requests => &mut self.requests,
            Direction::Replies => &mut self.replies,
        }
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Requests => &self.request_bytes,
            Direction::Replies => &self.reply_bytes,
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            self.accepted.fetch_add(1, Ordering::SeqCst);
            let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else {
                let _ = client.shutdown(Shutdown::Both);
                continue;
            };
            let connection = Arc::new(Connection::new(client, server));
            {
                // Under the lock, or a connection could slip in behind a `refuse`.
                let mut connections = self.connections();
                if self.refusing.load(Ordering::SeqCst) {
                    connection.close();
                    continue;
                }
                connections.push(Arc::clone(&connection));
            }
            for direction in [Direction::Requests, Direction::Replies] {
                let (shared, connection) = (Arc::clone(self), Arc::clone(&connection));
                std::thread::spawn(move || shared.pump(&connection, direction));
            }
        }
    }
}
