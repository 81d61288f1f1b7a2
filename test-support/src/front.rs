use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What a [`Front`] does with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Forwards it.
    Pass,
    /// Answers it with this error, such as `ERR unknown command`.
    Refuse(&'static str),
    /// Forwards another command in its stead.
    Instead(Vec<String>),
    /// Writes this, which may be nothing, and closes the connection.
    Close(&'static str),
}

/// A proxy before a Redis server on 127.0.0.1 that reads the commands and judges each, as the
/// servers and proxies do that know some commands alone.
#[derive(Debug)]
pub struct Front {
    port: u16,
    closing: Arc<AtomicBool>,
    accepted: Arc<AtomicU64>,
    acceptor: Option<JoinHandle<()>>,
}

impl Front {
    /// A front on a free port before `127.0.0.1:target`. The rule is given each command, its name in
    /// capitals first, and whether its connection has sent SUBSCRIBE. With no command at all it
    /// judges a connection that was just accepted.
    ///
    /// # Panics
    /// When no port can be bound.
    #[must_use]
    pub fn start(
        target: u16,
        rule: impl Fn(&[String], bool) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (closing, accepted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let acceptor = std::thread::spawn({
            let (closing, accepted) = (Arc::clone(&closing), Arc::clone(&accepted));
            let rule = Arc::new(rule);
            move || {
                for client in listener.incoming() {
                    if closing.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(client) = client else { continue };
                    accepted.fetch_add(1, Ordering::SeqCst);
                    let rule = Arc::clone(&rule);
                    // An error is the end of the connection, which the client sees.
                    std::thread::spawn(move || drop(serve(&client, target, &*rule)));
                }
            }
        });
        Self { port, closing, accepted, acceptor: Some(acceptor) }
    }

    /// The port that clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn serve(
    client: &TcpStream,
    target: u16,
    rule: &(dyn Fn(&[String], bool) -> Verdict + Send + Sync),
) -> io::Result<()> {
    let mut writer = client;
    if let Verdict::Close(text) = rule(&[], false) {
        writer.write_all(text.as_bytes())?;
        return client.shutdown(Shutdown::Both);
    }
    client.set_nodelay(true)?;
    let server = TcpStream::connect(("127.0.0.1", target))?;
    server.set_nodelay(true)?;
    let replies = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let (mut from, mut to) = (&replies.0, &replies.1);
        let _ = io::copy(&mut from, &mut to);
        let _ = replies.1.shutdown(Shutdown::Both);
    });
    let judged = judge(client, &server, rule);
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
    judged
}

fn judge(
    mut client: &TcpStream,
    mut server: &TcpStream,
    rule: &(dyn Fn(&[String], bool) -> Verdict + Send + Sync),
) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut subscribed = false;
    loop {
        let command = read_command(&mut reader)?;
        match rule(&command, subscribed) {
            Verdict::Pass => {
                subscribed |= command.first().is_some_and(|name| name == "SUBSCRIBE");
                server.write_all(&packed(&command))?;
            }
            // The server says it, so that answers come in the order of the commands.
            Verdict::Refuse(error) => {
                let says = ["EVAL", "return redis.error_reply(ARGV[1])", "0", error];
                server.write_all(&packed(&says.map(str::to_owned)))?;
            }
            Verdict::Instead(other) => server.write_all(&packed(&other))?,
            Verdict::Close(text) => return client.write_all(text.as_bytes()),
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let parts = read_number(reader, '*')?;
    let mut command = Vec::with_capacity(parts);
    for _ in 0..parts {
        let mut part = vec![0; read_number(reader, '$')? + 2];
        reader.read_exact(&mut part)?;
        part.truncate(part.len() - 2);
        command.push(String::from_utf8_lossy(&part).into_owned());
    }
    if let Some(name) = command.first_mut() {
        name.make_ascii_uppercase();
    }
    Ok(command)
}

fn read_number(reader: &mut impl BufRead, kind: char) -> io::Result<usize> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let number = line.trim_end().strip_prefix(kind).and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn packed(command: &[String]) -> Vec<u8> {
    let mut packed = format!("*{}\r\n", command.len());
    for part in command {
        packed.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    packed.into_bytes()
}
