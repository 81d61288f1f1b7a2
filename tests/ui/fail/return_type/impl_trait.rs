use cache_lock::cache_lock;

#[cache_lock(prefix = "orders")]
async fn save() -> impl std::fmt::Display {
    "saved"
}

fn main() {}
