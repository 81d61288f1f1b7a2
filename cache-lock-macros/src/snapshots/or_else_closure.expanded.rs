async fn pay(account: u64, amount: Money) -> Result<Receipt, PayError> {
    let guard;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("pay");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &account, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new()
                .max_hold(::cache_lock::private::millis(60000))
        };
        guard = match ::cache_lock::private::acquire(
                ::cache_lock::private::manager(),
                key,
                options,
            )
            .await
        {
            ::cache_lock::private::Ok(guard) => guard,
            ::cache_lock::private::Err(error) => {
                return ::cache_lock::private::or_else::<
                    Result<Receipt, PayError>,
                    _,
                >(error, |error| Err(PayError::Busy { account, error }));
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let account = account;
            let _ = &account;
            #[allow(clippy::shadow_same)]
            let amount = amount;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<Receipt, PayError> = loop {};
                    return returned;
                }
                bank::pay(account, amount).await
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
                Receipt,
                PayError,
            > as ::cache_lock::private::ReportLostLock>::report(error)
        }
    }
}
