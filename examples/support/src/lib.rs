//! What the examples share: the servers behind a run, their URLs, and being told to end.

mod redis_stats;
mod services;
mod signals;
mod url;

pub use crate::redis_stats::{Counted, RedisStats, SCRIPTS, SENT_FOR_LOCKS};
pub use crate::services::{Mongo, Unusable, locks_on, mongodb_at, reason};
pub use crate::signals::{Signal, asked_to_end};
pub use crate::url::ServerUrl;
