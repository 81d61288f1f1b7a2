async fn refresh(day: Date, shop: &Shop) -> Result<Option<Report>, Error> {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new("report")
            .text(":")
            .value(&day, ":")
            .text(":")
            .value(&shop.id, "")
            .finish();
        let options = &const {
            ::cache_lock::LockOptions::new().timeout(::core::time::Duration::ZERO)
        };
        guard = match ::cache_lock::private::acquire(
                ::cache_lock::private::manager(),
                key,
                options,
            )
            .await
        {
            ::core::result::Result::Ok(guard) => guard,
            ::core::result::Result::Err(error) if error.is_contended() => {
                return <Result<
                    Option<Report>,
                    Error,
                > as ::cache_lock::private::SkipIfLocked>::skipped();
            }
            ::core::result::Result::Err(error) => {
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
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => {
            <Result<
                Option<Report>,
                Error,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
