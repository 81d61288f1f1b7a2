use cache_lock::{LockError, cache_lock};

#[cache_lock(prefix = "orders", or_else = give_up)]
async fn serve() -> ! {
    loop {}
}

fn give_up(_: LockError) -> ! {
    panic!()
}

fn main() {}
