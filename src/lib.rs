//! One attribute turns an async function into a critical section that is exclusive across every
//! process of a fleet, through Redis.

#[doc(inline)]
pub use cache_lock_macros::cache_lock_facade as cache_lock;
#[doc(hidden)]
pub use cache_lock_runtime::private;
pub use cache_lock_runtime::*;
