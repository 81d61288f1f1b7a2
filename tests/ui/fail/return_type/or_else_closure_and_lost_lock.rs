use cache_lock::cache_lock;

#[derive(Debug)]
pub struct Busy;

#[cache_lock(prefix = "orders", or_else = |_| Err(Busy))]
async fn count() -> Result<u32, Busy> {
    Ok(1)
}

fn main() {}
