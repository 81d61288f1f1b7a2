//! The proxy's faults look to a client as those of a network do.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use test_support::{Direction, Fault, Proxy, RedisServer, wait_until};

fn setup() -> (RedisServer, Proxy) {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.port());
    (redis, proxy)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).expect("the proxy accepts");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream
}

fn send(mut stream: &TcpStream, command: &[&str]) {
    let parts = command.iter().map(|part| format!("${}\r\n{part}\r\n", part.len()));
    let request = format!("*{}\r\n{}", command.len(), parts.collect::<String>());
    stream.write_all(request.as_bytes()).expect("the proxy takes it");
}

fn expect_reply(mut stream: &TcpStream, reply: &str) {
    let mut bytes = vec![0; reply.len()];
    stream.read_exact(&mut bytes).expect("a reply");
    assert_eq!(String::from_utf8_lossy(&bytes), reply);
}

/// Neither a byte nor an end comes, for a moment at least.
fn expect_silence(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
    let error = stream.read(&mut [0]).expect_err("the connection is silent");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
}

fn expect_end(mut stream: &TcpStream) {
    match stream.read(&mut [0]) {
        Ok(length) => assert_eq!(length, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn traffic_passes_and_is_counted() {
    let (redis, proxy) = setup();
    let client = connect(&proxy);
    send(&client, &["SET", "k", "v"]);
    expect_reply(&client, "+OK\r\n");
    send(&client, &["GET", "k"]);
    expect_reply(&client, "$1\r\nv\r\n");
    assert_eq!(redis.cli(&["GET", "k"]), "v");
    assert_eq!((proxy.accepted(), proxy.open(), proxy.commands()), (1, 1, 2));
    assert_eq!(proxy.bytes(Direction::Requests), 27 + 20);
    drop(client);
    wait_until("the connection is gone", || proxy.open() == 0);
}

#[test]
fn a_lost_reply_is_that_of_an_executed_command() {
    let (redis, proxy) = setup();
    let client = connect(&proxy);
    proxy.set(Direction::Replies, Fault::Swallow);
    send(&client, &["SET", "k", "v"]);
    wait_until("the command has run", || redis.cli(&["GET", "k"]) == "v");
    expect_silence(&client);

    proxy.pass();
    send(&client, &["GET", "k"]);
    expect_silence(&client);
    let fresh = connect(&proxy);
    send(&fresh, &["GET", "k"]);
    expect_reply(&fresh, "$1\r\nv\r\n");
}

#[test]
fn a_silent_network_hides_that_the_server_has_died() {
    let (redis, proxy) = setup();
    let client = connect(&proxy);
    send(&client, &["PING"]);
    expect_reply(&client, "+PONG\r\n");
    proxy.swallow();
    redis.kill();
    expect_silence(&client);
    assert_eq!(proxy.open(), 1);
}

#[test]
fn held_requests_arrive_later_in_order() {
    let (redis, proxy) = setup();
    let client = connect(&proxy);
    proxy.set(Direction::Requests, Fault::Hold);
    for value in ["1", "2", "3"] {
        send(&client, &["APPEND", "k", value]);
    }
    expect_silence(&client);
    assert_eq!(redis.cli(&["GET", "k"]), "(nil)");
    proxy.set(Direction::Requests, Fault::Delay(Duration::from_millis(1)));
    wait_until("all have run", || redis.cli(&["GET", "k"]) == "123");
}

#[test]
fn cut_ends_what_is_open_and_refuse_what_comes_too() {
    let (_redis, proxy) = setup();
    let client = connect(&proxy);
    send(&client, &["PING"]);
    expect_reply(&client, "+PONG\r\n");
    proxy.set(Direction::Requests, Fault::Hold);
    send(&client, &["PING"]);
    proxy.cut();
    expect_end(&client);

    proxy.refuse();
    expect_end(&connect(&proxy));
    proxy.pass();
    let fresh = connect(&proxy);
    send(&fresh, &["PING"]);
    expect_reply(&fresh, "+PONG\r\n");
    drop(proxy);
    expect_end(&fresh);
}

#[test]
fn a_server_that_is_down_ends_the_connection() {
    let (redis, proxy) = setup();
    redis.kill();
    expect_end(&connect(&proxy));
}
