use cache_lock::cache_lock;

pub struct OrderError;

type Outcome<T> = Result<T, OrderError>;

#[cache_lock(prefix = "orders")]
async fn save() -> Outcome<u32> {
    Ok(1)
}

fn main() {}
