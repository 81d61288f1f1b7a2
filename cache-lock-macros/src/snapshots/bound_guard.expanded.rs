async fn sell(item_id: u64) -> Result<(), SaleError> {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new("item")
            .text(":")
            .value(&item_id, "")
            .finish();
        let options = &const {
            ::cache_lock::LockOptions::new()
                .renew(false)
                .on_lost(::cache_lock::OnLost::Finish)
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
                return <Result<
                    (),
                    SaleError,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let lock = &guard;
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
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold_to_end(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    outcome
}
