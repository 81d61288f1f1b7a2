#[cache_lock(prefix = "report", skip_if_locked)]
async fn refresh(#[lock_key] day: Date, #[lock_key(id)] shop: &Shop) -> Result<Option<Report>, Error> {
    Ok(Some(build(day, shop).await?))
}
