//! The MongoDB that tests get is one that drivers talk to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use test_support::MongoServer;

/// `{isMaster: 1, $db: "admin"}`, the first command of a driver, as an OP_MSG of the wire protocol.
fn is_master() -> Vec<u8> {
    let document = b"\x10isMaster\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
    let document = [&(document.len() as u32 + 4).to_le_bytes()[..], document].concat();
    let body = [&[0; 4], &b"\0"[..], &document].concat();
    let header = [body.len() as u32 + 16, 1, 0, 2013].map(u32::to_le_bytes).concat();
    [header, body].concat()
}

#[test]
fn it_answers_with_a_wire_version_of_current_drivers() {
    let server = MongoServer::start();
    assert_eq!(MongoServer::start().uri(), server.uri(), "one for the process");
    let address = server.uri().strip_prefix("mongodb://").expect("a connection string");
    let address = address.split('/').next().expect("a host");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream.write_all(&is_master()).expect("it reads");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("it answers");
    let mut reply = vec![0; u32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut reply).expect("it answers in full");

    let name = b"maxWireVersion\0";
    let at =
        reply.windows(name.len()).position(|window| window == name).expect("a reply to isMaster");
    let value = &reply[at + name.len()..][..4];
    let version = u32::from_le_bytes(value.try_into().expect("four bytes"));
    assert!(version >= 9, "drivers refuse wire version {version}");
}
