async fn count(page: u64) -> Result<u64, Error> {
    let guard;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("view");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &page, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new()
                .on_lost(::cache_lock::OnLost::Finish)
                .background_release(true)
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
                return <Result<
                    u64,
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let page = page;
            let _ = &page;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<u64, Error> = loop {};
                    return returned;
                }
                Ok(views(page).await? + 1)
            }
        };
        let body = ::cache_lock::private::pin!(body);
        ::cache_lock::private::hold_to_end(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    outcome
}
