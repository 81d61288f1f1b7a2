//! Real servers, and faults between them and their clients, for the tests of this workspace.
//!
//! Everything here ends with its owner: a server is killed and its directory removed when the value
//! is dropped, by a panicking test too, and by a watcher process when the test process itself is
//! killed. A failure to set something up is a panic, as it is the test's failure.

#[cfg(feature = "clap")]
mod command_line;
mod front;
mod mongo;
mod port;
mod process;
mod proxy;
mod redis;
mod resp;
mod temp_dir;
mod wait;

#[cfg(feature = "clap")]
pub use crate::command_line::unbounded_numbers;
pub use crate::front::{Front, Verdict};
pub use crate::mongo::MongoServer;
pub use crate::proxy::{Direction, Fault, Proxy};
pub use crate::redis::{Data, PatternSubscriber, RedisBuilder, RedisServer};
pub use crate::resp::Reply;
pub use crate::wait::wait_until;
