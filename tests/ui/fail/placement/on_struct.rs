use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
pub struct Orders;

fn main() {}
