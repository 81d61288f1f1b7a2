use cache_lock::cache_lock;

#[derive(Debug)]
pub struct OrderError;

#[cache_lock(prefix = "orders")]
async fn save() -> Result<(), OrderError> {
    Ok(())
}

fn main() {}
