use std::fmt::Write;
use std::fs;
use std::sync::Mutex;

use super::{RedisServer, tls};
use crate::port::free_port;
use crate::temp_dir::TempDir;

/// The configuration file in the server's directory.
pub(super) const CONFIG: &str = "redis.conf";
/// The folder in it where the server keeps what it persists.
pub(super) const DATA: &str = "data";

/// Settings of a [`RedisServer`].
#[derive(Debug, Default)]
#[must_use = "nothing runs before `start`"]
pub struct RedisBuilder {
    config: String,
    password: Option<String>,
    users: Vec<(String, String)>,
    tls: bool,
}

impl RedisBuilder {
    /// A line of redis.conf, such as `("maxmemory", "10mb")`. Those given here come last and win.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        let _ = writeln!(self.config, "{name} {value}");
        self
    }

    /// The password of the default user.
    pub fn password(self, password: &str) -> Self {
        let mut this = self.config("requirepass", password);
        this.password = Some(password.to_owned());
        this
    }

    /// An ACL user with a password and rules, such as `"~room:* +set +eval"`. The default user
    /// stays, and may do everything.
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        let mut this = self.config("user", &format!("{name} reset on >{password} {rules}"));
        this.users.push((name.to_owned(), password.to_owned()));
        this
    }

    /// A TLS port beside the plain one, with a certificate for `localhost` and 127.0.0.1 that
    /// openssl generates.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A replica of another server, which has to outlive it or be killed on purpose.
    pub fn replica_of(mut self, primary: &RedisServer) -> Self {
        if let Some(password) = &primary.password {
            self = self.config("masterauth", password);
        }
        self.config("replicaof", &format!("127.0.0.1 {}", primary.port))
    }

    /// Starts the server. It answers when this returns.
    ///
    /// # Panics
    /// When redis-server (or openssl, for TLS) is missing, or does not accept a setting.
    #[must_use]
    pub fn start(self) -> RedisServer {
        loop {
            let server = self.server_on_free_ports();
            server.launch();
            match server.wait_until_ready() {
                Ok(()) => return server,
                // Another process was faster to take the port.
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("redis-server did not start:\n{log}"),
            }
        }
    }

    fn server_on_free_ports(&self) -> RedisServer {
        let dir = TempDir::new("redis");
        fs::create_dir(dir.join(DATA)).expect("the directory is writable");
        let port = free_port();
        let mut config = format!(
            "bind 127.0.0.1\nport {port}\nunixsocket {socket}\ndir {data}\nsave \"\"\n",
            socket = dir.join("socket").display(),
            data = dir.join(DATA).display(),
        );
        let mut tls_port = None;
        if self.tls {
            let port = free_port();
            config += &tls::configure(dir.path(), port);
            tls_port = Some(port);
        }
        config += &self.config;
        fs::write(dir.join(CONFIG), config).expect("the directory is writable");
        RedisServer {
            process: Mutex::new(None),
            dir,
            port,
            tls_port,
            password: self.password.clone(),
            users: self.users.clone(),
        }
    }
}
