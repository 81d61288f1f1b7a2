#[cache_lock(prefix = "cron", or_else = report)]
async fn nightly() {
    tidy_up().await;
}
