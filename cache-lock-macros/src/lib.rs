//! The attribute of cache-lock.
