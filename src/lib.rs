//! cache-lock
