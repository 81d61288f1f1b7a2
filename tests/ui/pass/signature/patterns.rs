use cache_lock::{LockError, LockManager, cache_lock};

pub struct Path<T>(pub T);

pub struct Point {
    pub x: i64,
    pub y: i64,
}

#[derive(Clone, Copy)]
pub struct Marker;

#[cache_lock(prefix = "path", key = "{id}")]
async fn extract(Path(id): Path<u64>) -> Result<u64, LockError> {
    Ok(id)
}

#[cache_lock(prefix = "point", key = "{x}:{b}")]
async fn nested(
    Point { x, y: mut height }: Point,
    (Path(a), mut b): (Path<u64>, u64),
) -> Result<(i64, u64), LockError> {
    height += x;
    b += a;
    Ok((height, b))
}

#[cache_lock(prefix = "part", key = "{x}:{first}:{last}")]
async fn leftovers(
    Point { x, .. }: Point,
    [first, .., last]: [u8; 4],
    _: String,
    (kept, _): (Vec<u8>, Vec<u8>),
    Marker: Marker,
) -> Result<usize, LockError> {
    Ok(usize::try_from(x).unwrap() + usize::from(first + last) + kept.len())
}

#[cache_lock(prefix = "reference", key = "{a}:{c}")]
async fn references((a, b): &(u64, u64), &c: &u64, Path(d): &Path<u64>) -> Result<u64, LockError> {
    Ok(a + b + c + d)
}

#[cache_lock(prefix = "whole", key = "{all.0}")]
#[allow(clippy::toplevel_ref_arg)]
async fn bindings(all @ (_, _): (u64, u64), ref mut text: String) -> Result<String, LockError> {
    text.push('!');
    Ok(format!("{}{text}", all.1))
}

async fn check() {
    assert_eq!(extract(Path(3)).await.unwrap(), 3);
    assert_eq!(nested(Point { x: 1, y: 2 }, (Path(3), 4)).await.unwrap(), (3, 7));
    let point = Point { x: 1, y: 2 };
    let sum = leftovers(point, [1, 0, 0, 2], String::new(), (vec![0], vec![]), Marker).await;
    assert_eq!(sum.unwrap(), 5);
    assert_eq!(references(&(1, 2), &3, &Path(4)).await.unwrap(), 10);
    assert_eq!(bindings((1, 2), String::from("x")).await.unwrap(), "2x!");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    LockManager::in_memory().scope(check()).await;
}
