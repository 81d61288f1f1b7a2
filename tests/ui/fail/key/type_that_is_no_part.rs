use cache_lock::{LockError, cache_lock};

pub struct User {
    pub id: u64,
}

#[cache_lock(prefix = "orders", key = "{user}")]
async fn save(user: &User) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
