async fn restock(item_id: u64, amount: u32) -> Result<(), SaleError> {
    let lock_ends_with_the_body;
    let outcome = {
        let enabled: ::cache_lock::private::bool = amount > 0;
        lock_ends_with_the_body = if enabled {
            let key = {
                let mut key = ::cache_lock::private::KeyBuilder::new("item");
                ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                ::cache_lock::private::KeyBuilder::value(&mut key, &item_id, "");
                ::cache_lock::private::KeyBuilder::finish(&key)
            };
            let options = &const { ::cache_lock::LockOptions::new() };
            match ::cache_lock::private::acquire(
                    ::cache_lock::private::manager(),
                    key,
                    options,
                )
                .await
            {
                ::cache_lock::private::Ok(guard) => ::cache_lock::private::Some(guard),
                ::cache_lock::private::Err(error) => {
                    return <Result<
                        (),
                        SaleError,
                    > as ::cache_lock::private::ReportLockError>::report(error);
                }
            }
        } else {
            ::cache_lock::private::None
        };
        let lock = ::cache_lock::private::lend(&lock_ends_with_the_body);
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
        let body = ::cache_lock::private::pin!(body);
        match &lock_ends_with_the_body {
            ::cache_lock::private::Some(guard) => {
                ::cache_lock::private::hold(guard, body).await
            }
            ::cache_lock::private::None => ::cache_lock::private::Ok(body.await),
        }
    };
    let released = lock_ends_with_the_body;
    if let ::cache_lock::private::Some(lock_ends_with_the_body) = released {
        ::cache_lock::private::release(lock_ends_with_the_body).await;
    }
    match outcome {
        ::cache_lock::private::Ok(value) => value,
        ::cache_lock::private::Err(error) => {
            <Result<
                (),
                SaleError,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
