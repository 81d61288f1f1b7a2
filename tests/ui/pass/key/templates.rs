use cache_lock::{LockError, LockManager, cache_lock};

pub struct User {
    id: u64,
    address: (String, Vec<u8>),
}

macro_rules! keys {
    ($($name:ident($($arg:ident: $type:ty),*) $key:literal)*) => {$(
        #[allow(clippy::many_single_char_names)]
        #[cache_lock(prefix = "k", key = $key, bind = lock)]
        async fn $name($($arg: $type),*) -> Result<String, LockError> {
            let _ = ($(&$arg,)*);
            Ok(lock.key().to_string())
        }
    )*};
}

keys! {
    constant() "all"
    nothing() ""
    field(user: &User) "{user.id}"
    tuple(user: &User) "{user.address.0}"
    pair(pair: (u64, (u8, char))) "{pair.0}-{pair.1.0}{{x}}{pair.1.1}"
    raw(r#type: &str) "{type}"
    raw_too(r#type: &str) "{r#type}"
    text(a: &str, b: String) "a#b%c {a}:{b}"
    kinds(a: bool, b: char, c: i128, d: &&str, e: Box<u8>, f: std::sync::Arc<str>) "{a}:{b}:{c}:{d}:{e}:{f}"
}

async fn check() {
    let user = User { id: 1, address: ("x".to_owned(), vec![]) };
    assert!(user.address.1.is_empty());
    assert_eq!(constant().await.unwrap(), "k:all");
    assert_eq!(nothing().await.unwrap(), "k");
    assert_eq!(field(&user).await.unwrap(), "k:1");
    assert_eq!(tuple(&user).await.unwrap(), "k:x");
    assert_eq!(pair((1, (2, 'c'))).await.unwrap(), "k:1-2{x}c");
    assert_eq!(raw("t").await.unwrap(), "k:t");
    assert_eq!(raw_too("t").await.unwrap(), "k:t");
    assert_eq!(text("a:b", String::from("%")).await.unwrap(), "k:a#b%c a%3Ab:%25");
    let all = kinds(true, 'x', -1, &"s", Box::new(3), "f".into()).await.unwrap();
    assert_eq!(all, "k:true:x:-1:s:3:f");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
