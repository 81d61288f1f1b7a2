use cache_lock::{LockError, LockKey, LockManager, cache_lock};

pub struct User {
    name: (String, u8),
}

#[cache_lock(prefix = "p", bind = lock)]
async fn several(
    #[lock_key] room: u64,
    #[lock_key(name.0)] user: &User,
    other: u64,
    #[lock_key] (day,): (&str,),
) -> Result<String, LockError> {
    assert_eq!((other, user.name.1), (7, 1));
    Ok(format!("{} {room} {day}", lock.key()))
}

async fn check() {
    let user = User { name: ("a:b".to_owned(), 1) };
    let key = several(3, &user, 7, ("mon",)).await.unwrap();
    assert_eq!(key, "p:3:a%3Ab:mon 3 mon");
    assert_eq!(LockKey::new("p").part(3).part("a:b").part("mon").as_str(), "p:3:a%3Ab:mon");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
