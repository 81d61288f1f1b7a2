use cache_lock::cache_lock;

#[cache_lock(prefix = "orders", or_else = busy)]
async fn count() -> u32 {
    1
}

fn busy(_: std::io::Error) -> u32 {
    0
}

fn main() {}
