impl Shop {
    async fn take(&self, item: u64, amount: u32) -> Result<u32, Error> {
        let guard;
        let outcome = {
            let key = ::cache_lock::private::KeyBuilder::new("stock")
                .text(":")
                .value(&self.tenant, "/")
                .text("/")
                .value(&item, "")
                .finish();
            let options = &const { ::cache_lock::LockOptions::new() };
            guard = match ::cache_lock::private::acquire(
                    ::core::result::Result::Ok(
                        <::cache_lock::LockManager as ::core::clone::Clone>::clone(
                            &self.locks,
                        ),
                    ),
                    key,
                    options,
                )
                .await
            {
                ::core::result::Result::Ok(guard) => guard,
                ::core::result::Result::Err(error) => {
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
            let body = ::core::pin::pin!(body);
            ::cache_lock::private::hold(&guard, body).await
        };
        ::cache_lock::private::release(guard).await;
        match outcome {
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(error) => {
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
            let key = ::cache_lock::private::KeyBuilder::new("shop")
                .text(":")
                .value(&self.tenant, "")
                .finish();
            let options = &const { ::cache_lock::LockOptions::new() };
            guard = match ::cache_lock::private::acquire(
                    ::cache_lock::private::manager(),
                    key,
                    options,
                )
                .await
            {
                ::core::result::Result::Ok(guard) => guard,
                ::core::result::Result::Err(error) => {
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
            let body = ::core::pin::pin!(body);
            ::cache_lock::private::hold(&guard, body).await
        };
        ::cache_lock::private::release(guard).await;
        match outcome {
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(error) => {
                <Result<
                    (),
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error)
            }
        }
    }
}
