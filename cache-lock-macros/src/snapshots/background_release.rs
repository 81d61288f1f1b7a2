#[cache_lock(prefix = "view", key = "{page}", release = "background", on_lost = "finish")]
async fn count(page: u64) -> Result<u64, Error> {
    Ok(views(page).await? + 1)
}
