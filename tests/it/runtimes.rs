//! One manager and the runtimes of its callers: several, none, blocked ones, paused ones, and ones
//! that end.

mod blocked;
mod ended_managers;
mod ends;
mod several;
mod without_io;

use tokio::runtime::{Builder, Runtime};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Makes a test of each function, for each store: `fn(Fleet)`.
macro_rules! on_both_stores_outside_of_tokio {
    ($($test:ident),+ $(,)?) => {
        mod memory {
            $(#[test]
            fn $test() {
                super::$test(crate::common::fleet::Fleet::memory());
            })+
        }
        mod redis {
            $(#[test]
            fn $test() {
                super::$test(crate::common::fleet::Fleet::redis());
            })+
        }
    };
}
use on_both_stores_outside_of_tokio;
