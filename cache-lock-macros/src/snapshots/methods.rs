impl Shop {
    #[cache_lock(prefix = "stock", key = "{self.tenant}/{item}", with = self.locks)]
    async fn take(&self, item: u64, mut amount: u32) -> Result<u32, Error> {
        amount -= self.stock.take(item, amount).await?;
        Ok(amount)
    }

    #[cache_lock(prefix = "shop", key = "{self.tenant}")]
    async fn close(self: Arc<Self>, _reason: String) -> Result<(), Error> {
        self.stock.clear().await
    }
}
