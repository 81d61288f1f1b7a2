#[cache_lock(
    prefix = "pay",
    key = "{account}",
    max_hold = "1m",
    or_else = |error| Err(PayError::Busy { account, error })
)]
async fn pay(account: u64, amount: Money) -> Result<Receipt, PayError> {
    bank::pay(account, amount).await
}
