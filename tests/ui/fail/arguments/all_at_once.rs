use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "", key = "{idd}:{}", timeout = "2 sec", expire = "5ms", on_lost = "finis", bind = lock)]
async fn save(id: u64) -> Result<(), LockError> {
    let _ = (id, lock.token());
    Ok(())
}

fn main() {}
