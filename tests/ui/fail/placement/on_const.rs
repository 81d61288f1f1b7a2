use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
pub const ORDERS: u32 = 1;

fn main() {}
