use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
pub trait Orders {}

fn main() {}
