#[cache_lock(prefix = "order", key = "{id}:{r#type}")]
async fn cancel(
    Path((id, mut attempts)): Path<(u64, u32)>,
    Query(Filter { r#type, .. }): Query<Filter>,
    _: Permit,
    #[cfg(feature = "audit")] audit: Audit,
) -> Result<impl IntoResponse, AppError> {
    attempts += 1;
    orders::cancel(id, attempts).await
}
