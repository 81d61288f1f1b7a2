//! How many streams an address has open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client_address::network;
use crate::error::ApiError;

/// So many streams of one network at most: as many as an office has open pages. A page that finds no
/// place goes on without changes, and asks again after a while.
const MOST_STREAMS: usize = 256;

/// When to ask again.
const PAUSE: Duration = Duration::from_secs(30);

/// Counts streams by network.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of one stream. Dropped, it is free.
#[derive(Debug)]
pub(super) struct StreamPlace {
    streams: Streams,
    network: IpAddr,
}

impl Streams {
    /// A place for one more stream of this address.
    ///
    /// # Errors
    /// [`ApiError::TooMany`].
    pub(super) fn enter(&self, address: IpAddr) -> Result<StreamPlace, ApiError> {
        let network = network(address);
        let mut open = self.open();
        let count = open.entry(network).or_default();
        if *count >= MOST_STREAMS {
            return Err(ApiError::TooMany(PAUSE));
        }
        *count += 1;
        drop(open);
        Ok(StreamPlace { streams: self.clone(), network })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.open();
        let Some(count) = open.get_mut(&self.network) else { return };
        *count -= 1;
        if *count == 0 {
            open.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IpAddr, MOST_STREAMS, Streams};

    #[test]
    fn a_network_has_so_many_streams_and_keeps_no_other_one_out() {
        let streams = Streams::default();
        let [here, neighbour, there] = ["2001:db8::1", "2001:db8::2", "10.0.0.1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        let mut places = Vec::new();
        for _ in 0..MOST_STREAMS {
            places.push(streams.enter(here).expect("there is a place"));
        }
        assert!(streams.enter(here).is_err());
        assert!(streams.enter(neighbour).is_err(), "one line");
        assert!(streams.enter(there).is_ok());
        places.pop();
        assert!(streams.enter(neighbour).is_ok(), "one has gone");
        places.clear();
        assert!(streams.open().is_empty());
    }
}
