use cache_lock::{LockError, cache_lock};

mod users {
    pub struct User {
        id: u64,
    }

    impl User {
        pub fn id(&self) -> u64 {
            self.id
        }
    }
}

pub fn id(user: &users::User) -> u64 {
    user.id()
}

#[cache_lock(prefix = "orders", key = "{user.id}")]
async fn save(user: &users::User) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
