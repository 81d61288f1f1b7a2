//! What the examples share: the servers behind a run, their URLs, and being told to end.

#[cfg(feature = "mongodb")]
mod mongo;
mod redis_stats;
mod services;
mod signals;
mod url;

#[cfg(feature = "mongodb")]
pub use crate::mongo::{Mongo, mongodb_at, reason};
pub use crate::redis_stats::{Counted, RedisStats, SCRIPTS, SENT_FOR_LOCKS};
pub use crate::services::{Unusable, locks_on, unusable};
pub use crate::signals::{Signal, asked_to_end};
pub use crate::url::ServerUrl;
