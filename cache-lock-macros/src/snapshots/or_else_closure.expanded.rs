async fn pay(account: u64, amount: Money) -> Result<Receipt, PayError> {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new("pay")
            .text(":")
            .value(&account, "")
            .finish();
        let options = &const {
            ::cache_lock::LockOptions::new()
                .max_hold(::core::time::Duration::from_millis(60000))
        };
        guard = match ::cache_lock::private::acquire(
                ::cache_lock::private::manager(),
                key,
                options,
            )
            .await
        {
            ::core::result::Result::Ok(guard) => guard,
            ::core::result::Result::Err(error) => {
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
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => {
            <Result<
                Receipt,
                PayError,
            > as ::cache_lock::private::ReportLostLock>::report(error)
        }
    }
}
