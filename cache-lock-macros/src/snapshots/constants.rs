#[cache_lock(prefix = names::ORDERS, key = "{id}", timeout = WAIT, expire = Self::LEASE)]
async fn check<T: Check>(id: &T) -> Result<(), Error> {
    id.check().await
}
