use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", or_else = |error| Err(error.to_string()))]
async fn count() -> Result<u32, String> {
    Ok(1)
}

fn main() {}
