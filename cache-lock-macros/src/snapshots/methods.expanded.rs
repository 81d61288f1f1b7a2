impl Shop {
    async fn take(&self, item: u64, amount: u32) -> Result<u32, Error> {
        let guard;
        let outcome = {
            let key = {
                let mut key = ::cache_lock::private::KeyBuilder::new("stock");
                ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                ::cache_lock::private::KeyBuilder::value(&mut key, &self.tenant, "/");
                ::cache_lock::private::KeyBuilder::text(&mut key, "/");
                ::cache_lock::private::KeyBuilder::value(&mut key, &item, "");
                ::cache_lock::private::KeyBuilder::finish(&key)
            };
            let options = &const { ::cache_lock::LockOptions::new() };
            guard = match ::cache_lock::private::acquire(
                    ::cache_lock::private::cloned(&self.locks),
                    key,
                    options,
                )
                .await
            {
                ::cache_lock::private::Ok(guard) => guard,
                ::cache_lock::private::Err(error) => {
                    return <Result<
                        u32,
                        Error,
                    > as ::cache_lock::private::ReportLockError>::report(error);
                }
            };
            let body = async move {
                #[allow(clippy::shadow_same)]
                let item = item;
                let _ = &item;
                #[allow(clippy::shadow_same)]
                let mut amount = amount;
                {
                    #[allow(
                        unreachable_code,
                        clippy::diverging_sub_expression,
                        clippy::empty_loop
                    )]
                    if false {
                        let returned: Result<u32, Error> = loop {};
                        return returned;
                    }
                    amount -= self.stock.take(item, amount).await?;
                    Ok(amount)
                }
            };
            let body = ::cache_lock::private::pin!(body);
            ::cache_lock::private::hold(&guard, body).await
        };
        ::cache_lock::private::release(guard).await;
        match outcome {
            ::cache_lock::private::Ok(value) => value,
            ::cache_lock::private::Err(error) => {
                <Result<
                    u32,
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error)
            }
        }
    }
    async fn close(self: Arc<Self>, _reason: String) -> Result<(), Error> {
        let guard;
        let outcome = {
            let key = {
                let mut key = ::cache_lock::private::KeyBuilder::new("shop");
                ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                ::cache_lock::private::KeyBuilder::value(&mut key, &self.tenant, "");
                ::cache_lock::private::KeyBuilder::finish(&key)
            };
            let options = &const { ::cache_lock::LockOptions::new() };
            guard = match ::cache_lock::private::acquire(
                    ::cache_lock::private::manager(),
                    key,
                    options,
                )
                .await
            {
                ::cache_lock::private::Ok(guard) => guard,
                ::cache_lock::private::Err(error) => {
                    return <Result<
                        (),
                        Error,
                    > as ::cache_lock::private::ReportLockError>::report(error);
                }
            };
            let body = async move {
                let _ = &self;
                #[allow(
                    clippy::shadow_same,
                    clippy::used_underscore_binding,
                    clippy::no_effect_underscore_binding
                )]
                let _reason = _reason;
                {
                    #[allow(
                        unreachable_code,
                        clippy::diverging_sub_expression,
                        clippy::empty_loop
                    )]
                    if false {
                        let returned: Result<(), Error> = loop {};
                        return returned;
                    }
                    self.stock.clear().await
                }
            };
            let body = ::cache_lock::private::pin!(body);
            ::cache_lock::private::hold(&guard, body).await
        };
        ::cache_lock::private::release(guard).await;
        match outcome {
            ::cache_lock::private::Ok(value) => value,
            ::cache_lock::private::Err(error) => {
                <Result<
                    (),
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error)
            }
        }
    }
}
