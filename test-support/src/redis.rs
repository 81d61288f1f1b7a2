mod builder;
mod patterns;
mod tls;

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::builder::RedisBuilder;
pub use self::patterns::PatternSubscriber;
use crate::process::Process;
use crate::resp::{Connection, Reply};
use crate::temp_dir::TempDir;
use crate::wait::wait_until;

/// Names another server's program, such as valkey-server: `scripts/test-servers.sh` sets it.
const PROGRAM: &str = "REDIS_SERVER";

/// What [`RedisServer::restart`] brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// The data of a running server is saved first; else what an earlier process left on disk.
    Keep,
    /// The server comes back empty, as one without persistence does.
    Lose,
}

/// A private redis-server on a free port of 127.0.0.1, without persistence unless configured. The
/// variable `REDIS_SERVER` names another program, such as valkey-server.
///
/// All methods take `&self`, so that a test may kill a server that others are talking to.
#[derive(Debug)]
pub struct RedisServer {
    // Before `dir`: the process ends before its directory goes.
    process: Mutex<Option<Process>>,
    dir: TempDir,
    port: u16,
    tls_port: Option<u16>,
    password: Option<String>,
    users: Vec<(String, String)>,
}

impl RedisServer {
    /// A server with its defaults. It answers when this returns.
    ///
    /// # Panics
    /// When redis-server is missing or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with settings of your own.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    /// The TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://`, with the password if there is one.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_through(self.port)
    }

    /// [`url`](Self::url) with another port, such as that of a [`Proxy`](crate::Proxy) before it.
    #[must_use]
    pub fn url_through(&self, port: u16) -> String {
        let password = self.password.as_ref().map_or(String::new(), |text| format!(":{text}@"));
        format!("redis://{password}127.0.0.1:{port}/")
    }

    /// `redis://`, as a user given to [`RedisBuilder::user`].
    ///
    /// # Panics
    /// When there is no such user.
    #[must_use]
    pub fn url_of_user(&self, name: &str) -> String {
        let (_, password) = self
            .users
            .iter()
            .find(|(user, _)| user == name)
            .unwrap_or_else(|| panic!("no user {name:?} was configured"));
        format!("redis://{name}:{password}@127.0.0.1:{}/", self.port)
    }

    /// `redis+unix://`: every server listens on a unix socket too.
    #[must_use]
    pub fn unix_url(&self) -> String {
        let password = self.password.as_ref().map_or(String::new(), |text| format!("?pass={text}"));
        format!("redis+unix://{}{password}", self.dir.join("socket").display())
    }

    /// `rediss://`, with the certificate of [`ca_certificate`](Self::ca_certificate).
    ///
    /// # Panics
    /// When the server was built without [`tls`](RedisBuilder::tls).
    #[must_use]
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.expect("the server was built with tls()");
        self.url_through(port).replace("redis://", "rediss://")
    }

    /// The PEM file of the authority that signed the server's certificate, a fresh one per server.
    #[must_use]
    pub fn ca_certificate(&self) -> PathBuf {
        self.dir.join(tls::CA_CERTIFICATE)
    }

    /// Kills the server with SIGKILL. Nothing happens when it is down already.
    pub fn kill(&self) {
        *self.process() = None;
    }

    /// Freezes the server with SIGSTOP: connections stay open, and the kernel goes on to accept
    /// new ones, but nothing is answered. Returns once it is frozen.
    ///
    /// # Panics
    /// When it is down.
    pub fn stop(&self) {
        let process = self.process();
        let process = process.as_ref().expect("the server is running");
        process.signal("STOP");
        // The signal is only on its way when `kill` returns.
        let stat = format!("/proc/{}/stat", process.id());
        if fs::exists(&stat).unwrap_or(false) {
            wait_until("redis-server is stopped", || {
                fs::read_to_string(&stat).is_ok_and(|text| text.contains(") T "))
            });
        }
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When it is down.
    pub fn cont(&self) {
        self.process().as_ref().expect("the server is running").signal("CONT");
    }

    /// Kills the server if it runs, and starts it anew on the same port. It answers when this
    /// returns.
    ///
    /// # Panics
    /// When it does not start, or does not answer the `SAVE` of [`Data::Keep`].
    pub fn restart(&self, data: Data) {
        self.relaunch(data);
        self.wait_until_ready()
            .unwrap_or_else(|log| panic!("redis-server did not restart:\n{log}"));
    }

    /// As [`restart`](Self::restart) with [`Data::Keep`], but the server is still loading its data
    /// when this returns, and answers `LOADING` until [`finish_loading`](Self::finish_loading).
    ///
    /// # Panics
    /// As [`restart`](Self::restart).
    pub fn restart_loading(&self) {
        // The server looks at its clients after so many bytes that it loads: so after each of these
        // keys. Redis 6.2 does so after 2 MiB, cannot be told otherwise, and is done after 10 s.
        let interval = "loading-process-events-interval-bytes";
        let is_told = self.cli(&["CONFIG", "GET", interval]).starts_with(interval);
        let (keys, length) = if is_told { ("1000", 1100) } else { ("100", 2_100_000) };
        let fill = "for i = 1, ARGV[2] do redis.call('SET', 'filler:' .. i, ARGV[1]) end";
        self.cli(&["EVAL", fill, "0", &"x".repeat(length), keys]);
        self.cli(&["CONFIG", "SET", "rdbcompression", "no"]);
        self.cli(&["SAVE"]);
        self.kill();
        self.append_config("key-load-delay 100000\n");
        if is_told {
            self.append_config(&format!("{interval} 1024\n"));
        }
        self.relaunch(Data::Keep);
        wait_until(
            "redis-server is loading",
            || matches!(self.try_command(&["PING"]), Ok(Err(error)) if error.starts_with("LOADING")),
        );
    }

    /// Lets a server of [`restart_loading`](Self::restart_loading) come up.
    ///
    /// # Panics
    /// When it does not.
    pub fn finish_loading(&self) {
        self.append_config("key-load-delay 0\n");
        // Redis 6.2 refuses it, and is waited for.
        let _ = self.command(&["CONFIG", "SET", "key-load-delay", "0"]);
        self.wait_until_ready().unwrap_or_else(|log| panic!("redis-server did not load:\n{log}"));
    }

    /// Runs a command as the default user, and gives its reply as text.
    ///
    /// ```no_run
    /// let redis = test_support::RedisServer::start();
    /// assert_eq!(redis.cli(&["SET", "x", "1"]), "OK");
    /// assert_eq!(redis.cli(&["PTTL", "x"]), "-1");
    /// assert_eq!(redis.cli(&["GET", "y"]), "(nil)");
    /// ```
    ///
    /// # Panics
    /// When the server does not answer, or with an error.
    #[track_caller]
    pub fn cli(&self, command: &[&str]) -> String {
        match self.command(command) {
            Ok(reply) => reply.to_string(),
            Err(error) => panic!("{command:?} failed: {error}"),
        }
    }

    /// As [`cli`](Self::cli), but with the reply's type, and the server's error as `Err`.
    ///
    /// # Errors
    /// The server's error text.
    ///
    /// # Panics
    /// When the server does not answer.
    #[track_caller]
    pub fn command(&self, command: &[&str]) -> Result<Reply, String> {
        self.try_command(command)
            .unwrap_or_else(|error| panic!("{command:?} got no answer: {error}"))
    }

    /// How often the server has run a command since its start or `CONFIG RESETSTAT`, by its own
    /// statistics; calls by scripts count.
    ///
    /// # Panics
    /// When the server does not answer.
    #[track_caller]
    pub fn calls(&self, command: &str) -> u64 {
        let prefix = format!("cmdstat_{}:calls=", command.to_lowercase());
        let stats = self.cli(&["INFO", "commandstats"]);
        let calls = stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        calls.map_or(0, |text| text.parse().expect("calls is a number"))
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_command(&self, command: &[&str]) -> std::io::Result<Result<Reply, String>> {
        Connection::open(self.port, self.password.as_deref())?.command(command)
    }

    fn append_config(&self, lines: &str) {
        fs::OpenOptions::new()
            .append(true)
            .open(self.dir.join(builder::CONFIG))
            .and_then(|mut file| file.write_all(lines.as_bytes()))
            .expect("the configuration is writable");
    }

    fn launch(&self) {
        let program = env::var_os(PROGRAM).unwrap_or_else(|| "redis-server".into());
        let mut command = Command::new(program);
        command.arg(self.dir.join(builder::CONFIG));
        *self.process() = Some(Process::spawn(command, self.dir.path()));
    }

    fn relaunch(&self, data: Data) {
        if data == Data::Keep && self.process().is_some() {
            self.cli(&["SAVE"]);
        }
        self.kill();
        if data == Data::Lose {
            let directory = self.dir.join(builder::DATA);
            fs::remove_dir_all(&directory)
                .and_then(|()| fs::create_dir(&directory))
                .expect("the data can be removed");
        }
        self.launch();
    }

    /// Waits until our own process answers; the log if it ends instead.
    fn wait_until_ready(&self) -> Result<(), String> {
        let mut ended = false;
        wait_until("redis-server answers", || {
            let running = self.process().as_mut().and_then(|process| {
                let id = process.id();
                process.is_running().then_some(id)
            });
            ended = running.is_none();
            running.is_none_or(|id| self.answers(id))
        });
        if ended { Err(self.dir.log_tail("out.log")) } else { Ok(()) }
    }

    /// Whether the process `pid` answers on the port, and not one that took the port before it.
    fn answers(&self, pid: u32) -> bool {
        let Ok(Ok(Reply::Text(info))) = self.try_command(&["INFO", "server"]) else { return false };
        info.lines().any(|line| line == format!("process_id:{pid}"))
            && matches!(self.try_command(&["PING"]), Ok(Ok(_)))
    }
}
