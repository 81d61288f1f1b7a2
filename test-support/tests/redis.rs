//! The Redis servers are what their documentation says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use test_support::{Data, RedisServer, Reply, wait_until};

/// Sends `PING` as text; `None` when nothing comes back.
fn ping(mut stream: TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket");
    stream.write_all(b"PING\r\n").expect("the kernel takes it");
    let mut reply = [0; 64];
    let length = stream.read(&mut reply).ok()?;
    Some(String::from_utf8_lossy(&reply[..length]).into_owned())
}

fn connect(redis: &RedisServer) -> std::io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", redis.port()))
}

#[test]
fn replies_are_typed_and_print_as_text() {
    let redis = RedisServer::start();
    assert_eq!(redis.cli(&["SET", "k", "a b\r\nc"]), "OK");
    assert_eq!(redis.cli(&["GET", "k"]), "a b\r\nc");
    assert_eq!(redis.cli(&["GET", "none"]), "(nil)");
    assert_eq!(redis.command(&["PTTL", "k"]), Ok(Reply::Integer(-1)));
    assert_eq!(redis.cli(&["MGET", "k", "none"]), "a b\r\nc\n(nil)");
    assert!(redis.command(&["LPUSH", "k", "x"]).is_err_and(|error| error.starts_with("WRONGTYPE")));
    assert_eq!((redis.calls("set"), redis.calls("getdel")), (1, 0));
}

#[test]
fn passwords_users_and_settings_apply() {
    let redis = RedisServer::builder()
        .password("secret")
        .user("app", "word", "~room:* +get")
        .config("maxmemory", "12mb")
        .start();
    assert!(ping(connect(&redis).expect("it listens")).expect("a reply").starts_with("-NOAUTH"));
    assert_eq!(redis.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n12582912");
    let mut stream = connect(&redis).expect("it listens");
    stream.write_all(b"AUTH app word\r\nGET room:1\r\nGET other\r\n").expect("the kernel takes it");
    let replies: Vec<_> = BufReader::new(stream).lines().take(3).map_while(Result::ok).collect();
    assert_eq!(replies[..2], ["+OK", "$-1"]);
    assert!(replies[2].starts_with("-NOPERM"), "{replies:?}");
    assert_eq!(redis.url(), format!("redis://:secret@127.0.0.1:{}/", redis.port()));
    assert_eq!(redis.url_of_user("app"), format!("redis://app:word@127.0.0.1:{}/", redis.port()));
}

#[test]
fn a_stopped_server_is_silent_and_goes_on() {
    let redis = RedisServer::start();
    redis.stop();
    assert_eq!(ping(connect(&redis).expect("the kernel accepts")), None);
    redis.cont();
    assert_eq!(redis.cli(&["PING"]), "PONG");
}

#[test]
fn a_restart_keeps_or_loses_the_data() {
    let redis = RedisServer::start();
    redis.cli(&["SET", "k", "1"]);
    redis.restart(Data::Keep);
    assert_eq!(redis.cli(&["GET", "k"]), "1");
    redis.kill();
    assert!(connect(&redis).is_err(), "a killed server is gone");
    redis.restart(Data::Lose);
    assert_eq!(redis.cli(&["GET", "k"]), "(nil)");
}

#[test]
fn a_loading_server_says_so_until_it_is_let_go() {
    let redis = RedisServer::start();
    redis.cli(&["SET", "k", "1"]);
    redis.restart_loading();
    assert!(redis.command(&["GET", "k"]).is_err_and(|error| error.starts_with("LOADING")));
    redis.finish_loading();
    assert_eq!(redis.cli(&["GET", "k"]), "1");
}

#[test]
fn a_replica_follows_its_primary() {
    let primary = RedisServer::builder().password("secret").start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    primary.cli(&["SET", "k", "1"]);
    wait_until("the replica has the key", || replica.cli(&["GET", "k"]) == "1");
    assert!(replica.command(&["SET", "k", "2"]).is_err_and(|error| error.starts_with("READONLY")));
}

#[test]
fn tls_is_served_with_a_certificate_of_the_authority() {
    let redis = RedisServer::builder().tls().start();
    let address = redis.tls_url().replace("rediss://", "").replace('/', "");
    let output = Command::new("openssl")
        .args(["s_client", "-verify_return_error", "-verify_ip", "127.0.0.1"])
        .args(["-connect", &address, "-CAfile"])
        .arg(redis.ca_certificate())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_unix_socket_is_there_and_goes_with_the_server() {
    let redis = RedisServer::start();
    let url = redis.unix_url();
    let path = url.strip_prefix("redis+unix://").expect("a unix URL");
    assert!(UnixStream::connect(path).is_ok());
    let dir = Path::new(path).parent().expect("a directory").to_owned();
    drop(redis);
    assert!(!dir.exists());
}

#[test]
fn a_panicking_test_leaves_no_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let redis = RedisServer::start();
        sender.send(redis.port()).expect("the receiver waits");
        panic!("as a failed test does");
    });
    let port = receiver.recv().expect("the server started");
    assert!(test.join().is_err());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// Not a test of its own: the child of the one below, which kills it.
#[test]
#[ignore = "run by a_killed_test_process_leaves_no_server"]
fn child_with_a_frozen_server() {
    let redis = RedisServer::start();
    redis.stop();
    std::fs::write(std::env::var("CHILD_REPORT").expect("a path"), redis.unix_url())
        .expect("the path is writable");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_test_process_leaves_no_server() {
    let report = std::env::temp_dir().join(format!("test-support-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--ignored", "--exact", "child_with_a_frozen_server"])
        .env("CHILD_REPORT", &report)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it ran once");
    let mut url = String::new();
    wait_until("the child's server runs", || {
        url = std::fs::read_to_string(&report).unwrap_or_default();
        url.ends_with("socket")
    });
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let socket = Path::new(url.strip_prefix("redis+unix://").expect("a unix URL")).to_owned();
    wait_until("server and directory are gone", || {
        UnixStream::connect(&socket).is_err() && !socket.parent().expect("a directory").exists()
    });
    std::fs::remove_file(report).expect("it is ours");
}
