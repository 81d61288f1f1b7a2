use cache_lock::{LockError, cache_lock};

pub struct Item {
    price: f64,
}

#[cache_lock(prefix = "orders", key = "{item.price}")]
async fn save(item: &Item) -> Result<(), LockError> {
    let _ = item.price;
    Ok(())
}

fn main() {}
