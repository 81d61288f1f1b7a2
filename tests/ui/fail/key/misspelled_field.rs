use cache_lock::{LockError, cache_lock};

pub struct User {
    name: String,
}

#[cache_lock(prefix = "orders", key = "{user.nmae}")]
async fn save(user: &User) -> Result<(), LockError> {
    let _ = &user.name;
    Ok(())
}

fn main() {}
