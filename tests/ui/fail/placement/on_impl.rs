use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
impl Orders {}

pub struct Orders;

fn main() {}
