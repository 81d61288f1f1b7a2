//! One attribute turns an async function into a critical section that is exclusive across every
//! process of a fleet, through Redis.

pub use cache_lock_macros::cache_lock_facade as cache_lock;
pub use cache_lock_runtime::*;
#[doc(hidden)]
pub use cache_lock_runtime::private;
