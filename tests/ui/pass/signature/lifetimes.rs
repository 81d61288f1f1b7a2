use cache_lock::{LockError, LockManager, cache_lock};

#[cache_lock(prefix = "lifetimes", key = "{a}:{b}")]
async fn longest<'a>(a: &'a str, b: &'a str) -> Result<&'a str, LockError> {
    Ok(if a.len() < b.len() { b } else { a })
}

#[cache_lock(prefix = "elided", key = "{word}")]
async fn first(word: &str, count: usize) -> Result<&str, LockError> {
    Ok(&word[..count])
}

#[cache_lock(prefix = "exclusive", key = "{by}")]
async fn add(total: &mut u64, by: u64) -> Result<&mut u64, LockError> {
    *total += by;
    Ok(total)
}

pub struct Words<'a>(&'a [&'a str]);

#[cache_lock(prefix = "wrapped", key = "{index}")]
async fn pick<'a>(words: &Words<'a>, index: usize) -> Result<&'a str, LockError> {
    Ok(words.0[index])
}

async fn check() {
    assert_eq!(longest("a", "bc").await.unwrap(), "bc");
    assert_eq!(first("abc", 2).await.unwrap(), "ab");
    let mut total = 1;
    *add(&mut total, 2).await.unwrap() += 10;
    assert_eq!(total, 13);
    assert_eq!(pick(&Words(&["x", "y"]), 1).await.unwrap(), "y");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
