async fn sell(item_id: u64) -> Result<(), SaleError> {
    let lock_ends_with_the_body;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("item");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &item_id, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new()
                .renew(false)
                .on_lost(::cache_lock::OnLost::Finish)
        };
        lock_ends_with_the_body = match ::cache_lock::private::acquire(
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
                    SaleError,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let lock = &lock_ends_with_the_body;
        let body = async move {
            #[allow(clippy::shadow_same)]
            let item_id = item_id;
            let _ = &item_id;
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
                write(item_id, lock.token()).await
            }
        };
        let body = ::cache_lock::private::pin!(body);
        ::cache_lock::private::hold_to_end(&lock_ends_with_the_body, body).await
    };
    ::cache_lock::private::release(lock_ends_with_the_body).await;
    outcome
}
