use cache_lock::cache_lock;

#[test]
#[cache_lock(prefix = "orders")]
fn saves() {}

fn main() {}
