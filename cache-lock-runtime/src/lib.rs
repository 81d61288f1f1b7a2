//! The runtime of cache-lock.
