use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use super::commands::CommandCounter;
use super::{Direction, Fault, Shared};

/// A client's connection and the one to the server behind it.
#[derive(Debug)]
pub(super) struct Connection {
    client: TcpStream,
    server: TcpStream,
    closed: AtomicBool,
}

impl Connection {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Self {
        for stream in [&client, &server] {
            // Best effort: it is about speed alone.
            let _ = stream.set_nodelay(true);
        }
        Self { client, server, closed: AtomicBool::new(false) }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn ends(&self, direction: Direction) -> (&TcpStream, &TcpStream) {
        match direction {
            Direction::Requests => (&self.client, &self.server),
            Direction::Replies => (&self.server, &self.client),
        }
    }
}

impl Shared {
    /// Moves the bytes of one direction of a connection until one side closes it.
    pub(super) fn pump(&self, connection: &Arc<Connection>, direction: Direction) {
        let (mut from, mut to) = connection.ends(direction);
        let mut counter = CommandCounter::default();
        let mut buffer = vec![0; 16 * 1024];
        let mut dead = false;
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            dead |= !self.may_forward(connection, direction);
            if dead && read > 0 {
                continue;
            }
            if dead && !connection.closed.load(Ordering::SeqCst) {
                // The other side must not learn of the end, so its direction goes on without us.
                return;
            }
            if read == 0 {
                break;
            }
            // Before the bytes go out: a test that has seen their effect finds them counted.
            self.bytes(direction).fetch_add(read as u64, Ordering::SeqCst);
            if direction == Direction::Requests {
                self.commands.fetch_add(counter.count(&buffer[..read]), Ordering::SeqCst);
            }
            let fault = *self.faults().of(direction);
            let piece = match fault {
                Fault::Answer(text) => text.as_bytes(),
                _ => &buffer[..read],
            };
            if to.write_all(piece).is_err() {
                break;
            }
        }
        connection.close();
        self.connections().retain(|other| !Arc::ptr_eq(other, connection));
        self.changed.notify_all();
    }

    /// Waits as long as the fault asks for; false when what was read is lost.
    fn may_forward(&self, connection: &Connection, direction: Direction) -> bool {
        let mut faults = self.faults();
        loop {
            if connection.closed.load(Ordering::SeqCst) {
                return false;
            }
            match *faults.of(direction) {
                Fault::Pass | Fault::Answer(_) => return true,
                Fault::Swallow => return false,
                Fault::Delay(delay) => {
                    drop(faults);
                    std::thread::sleep(delay);
                    return true;
                }
                Fault::Hold => {
                    faults = self.changed.wait(faults).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
