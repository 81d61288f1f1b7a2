async fn refresh(day: Date, shop: &Shop) -> Result<Option<Report>, Error> {
    let guard;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("report");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &day, ":");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &shop.id, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new().timeout(::cache_lock::private::millis(0))
        };
        guard = match ::cache_lock::private::acquire(
                ::cache_lock::private::manager(),
                key,
                options,
            )
            .await
        {
            ::cache_lock::private::Ok(guard) => guard,
            ::cache_lock::private::Err(
                error,
            ) if ::cache_lock::private::is_contended(&error) => {
                return <Result<
                    Option<Report>,
                    Error,
                > as ::cache_lock::private::SkipIfLocked>::skipped();
            }
            ::cache_lock::private::Err(error) => {
                return <Result<
                    Option<Report>,
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let day = day;
            let _ = &day;
            #[allow(clippy::shadow_same)]
            let shop = shop;
            let _ = &shop;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<Option<Report>, Error> = loop {};
                    return returned;
                }
                Ok(Some(build(day, shop).await?))
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
                Option<Report>,
                Error,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
