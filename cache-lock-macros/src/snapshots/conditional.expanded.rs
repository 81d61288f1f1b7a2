async fn restock(item_id: u64, amount: u32) -> Result<(), SaleError> {
    let guard;
    let outcome = {
        let enabled: ::core::primitive::bool = amount > 0;
        guard = if enabled {
            let key = ::cache_lock::private::KeyBuilder::new("item")
                .text(":")
                .value(&item_id, "")
                .finish();
            let options = &const { ::cache_lock::LockOptions::new() };
            match ::cache_lock::private::acquire(
                    ::cache_lock::private::manager(),
                    key,
                    options,
                )
                .await
            {
                ::core::result::Result::Ok(guard) => ::core::option::Option::Some(guard),
                ::core::result::Result::Err(error) => {
                    return <Result<
                        (),
                        SaleError,
                    > as ::cache_lock::private::ReportLockError>::report(error);
                }
            }
        } else {
            ::core::option::Option::None
        };
        let lock = ::core::option::Option::as_ref(&guard);
        let body = async move {
            #[allow(clippy::shadow_same)]
            let item_id = item_id;
            let _ = &item_id;
            #[allow(clippy::shadow_same)]
            let amount = amount;
            let _ = &amount;
            let lock = lock;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<(), SaleError> = loop {};
                    return returned;
                }
                write(item_id, amount, lock.map(LockGuard::token)).await
            }
        };
        let body = ::core::pin::pin!(body);
        match &guard {
            ::core::option::Option::Some(guard) => {
                ::cache_lock::private::hold(guard, body).await
            }
            ::core::option::Option::None => ::core::result::Result::Ok(body.await),
        }
    };
    if let ::core::option::Option::Some(guard) = guard {
        ::cache_lock::private::release(guard).await;
    }
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => {
            <Result<
                (),
                SaleError,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
