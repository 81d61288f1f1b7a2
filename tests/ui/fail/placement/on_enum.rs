use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
pub enum Orders {
    None,
}

fn main() {}
