use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What a Redis server answers to a command, unless it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// A number.
    Integer(i64),
    /// A status or a string.
    Text(String),
    /// Several replies.
    Array(Vec<Reply>),
}

/// Reads as redis-cli prints it into a pipe, but for `(nil)`: one line for each element.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("(nil)"),
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Array(replies) => {
                for (index, reply) in replies.iter().enumerate() {
                    if index > 0 {
                        f.write_str("\n")?;
                    }
                    reply.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

/// A RESP2 connection of its own, so that a test looks at the server through other code than that
/// under test.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Every read and write has this bound: a server may be stopped on purpose.
    const IO_TIMEOUT: Duration = Duration::from_secs(10);

    pub(crate) fn open(port: u16, password: Option<&str>) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Self::IO_TIMEOUT))?;
        stream.set_write_timeout(Some(Self::IO_TIMEOUT))?;
        let mut connection = Self(BufReader::new(stream));
        if let Some(password) = password {
            connection.command(&["AUTH", password])?.map_err(io::Error::other)?;
        }
        Ok(connection)
    }

    /// The reply, or the server's error text.
    pub(crate) fn command(&mut self, parts: &[&str]) -> io::Result<Result<Reply, String>> {
        let mut request = format!("*{}\r\n", parts.len());
        for part in parts {
            request.push_str(&format!("${}\r\n{part}\r\n", part.len()));
        }
        self.0.get_mut().write_all(request.as_bytes())?;
        self.read_reply()
    }

    fn read_reply(&mut self) -> io::Result<Result<Reply, String>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, format!("not RESP2: {line:?}"));
        let (kind, rest) = line.split_at_checked(1).ok_or_else(invalid)?;
        let number = || rest.parse::<i64>().map_err(|_| invalid());
        Ok(Ok(match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => return Ok(Err(rest.to_owned())),
            ":" => Reply::Integer(number()?),
            "$" | "*" if number()? < 0 => Reply::Nil,
            "$" => {
                let mut text = vec![0; number()? as usize + 2];
                self.0.read_exact(&mut text)?;
                text.truncate(text.len() - 2);
                Reply::Text(String::from_utf8_lossy(&text).into_owned())
            }
            "*" => {
                let mut replies = Vec::new();
                for _ in 0..number()? {
                    // An error inside an array (of EXEC) is text like any other.
                    replies.push(self.read_reply()?.unwrap_or_else(Reply::Text));
                }
                Reply::Array(replies)
            }
            _ => return Err(invalid()),
        }))
    }
}
