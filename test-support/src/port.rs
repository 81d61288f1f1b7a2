use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

/// A port of 127.0.0.1 without a listener.
///
/// It lies below the ephemeral range, so that no outgoing connection takes it while a server that
/// owns it is down, and so that a client cannot connect to itself there.
pub(crate) fn free_port() -> u16 {
    let random = RandomState::new();
    (0_u32..)
        .map(|attempt| 10_000 + (random.hash_one(attempt) % 20_000) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("some port is free")
}
