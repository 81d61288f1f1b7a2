use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};

use super::RedisServer;

/// A client that subscribes to every channel, as monitoring tools do. It reads what it is sent until it is
/// dropped.
#[derive(Debug)]
pub struct PatternSubscriber {
    stream: TcpStream,
}

impl PatternSubscriber {
    /// Subscribed when this returns.
    ///
    /// # Panics
    /// When the server does not let it.
    #[must_use]
    pub fn of(server: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it runs");
        stream.write_all(b"PSUBSCRIBE *\r\n").expect("it reads");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
        assert_eq!(line, "*3\r\n");
        std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        Self { stream }
    }
}

impl Drop for PatternSubscriber {
    fn drop(&mut self) {
        // Ends the thread.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
