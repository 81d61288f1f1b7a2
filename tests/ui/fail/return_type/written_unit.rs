use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
async fn save() -> () {}

fn main() {}
