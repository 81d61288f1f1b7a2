//! The calls of scripts that a Redis server gets, by MONITOR.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use test_support::{RedisServer, wait_until};

/// A script call that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The client's address.
    pub(crate) client: String,
    /// Two of an acquisition, one of an extension or a release.
    pub(crate) keys: usize,
    pub(crate) owner: String,
    arguments: usize,
}

impl Call {
    pub(crate) fn is_acquire(&self) -> bool {
        self.keys == 3
    }

    pub(crate) fn is_release(&self) -> bool {
        self.keys == 2
    }

    /// Reads a line of MONITOR: `+1700000000.1 [0 127.0.0.1:50000] "evalsha" "hash" "1" "key" ..`.
    fn parse(line: &str) -> Option<Self> {
        let (head, command) = line.split_once("] ")?;
        let client = head.rsplit(' ').next()?.to_owned();
        // A script's source has quotes of its own, escaped; the arguments here have none.
        let words: Vec<_> = command.trim().trim_matches('"').split("\" \"").collect();
        if !words[0].eq_ignore_ascii_case("evalsha") && !words[0].eq_ignore_ascii_case("eval") {
            return None;
        }
        let keys: usize = words.get(2)?.parse().ok()?;
        let arguments = words.get(3 + keys..)?;
        let owner = (*arguments.first()?).to_owned();
        Some(Self { client, keys, owner, arguments: arguments.len() })
    }
}

pub(crate) struct Monitor {
    stream: TcpStream,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Monitor {
    /// Sees every call from now on.
    pub(crate) fn of(server: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it runs");
        stream.write_all(b"MONITOR\r\n").expect("it reads");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
        assert_eq!(line, "+OK\r\n");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                seen.lock().expect("no panic").push(line);
            }
        });
        Self { stream, lines }
    }

    /// All calls that the server has got by now, in order.
    pub(crate) fn calls(&self, server: &RedisServer) -> Vec<Call> {
        let lines = || self.lines.lock().expect("no panic");
        let mark = format!("mark {}", lines().len());
        server.cli(&["ECHO", &mark]);
        wait_until("the monitor has caught up", || {
            lines().iter().rev().any(|line| line.contains(&mark))
        });
        lines().iter().filter_map(|line| Call::parse(line)).collect()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Ends the thread.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
