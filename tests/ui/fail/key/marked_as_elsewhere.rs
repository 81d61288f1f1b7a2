use cache_lock::{LockError, cache_lock};

pub struct User {
    id: u64,
}

#[cache_lock(prefix = "orders", key = "#user.id")]
async fn save(user: &User) -> Result<(), LockError> {
    let _ = user.id;
    Ok(())
}

fn main() {}
