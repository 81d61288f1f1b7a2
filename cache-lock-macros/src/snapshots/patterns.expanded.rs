async fn cancel(
    Path((id, attempts)): Path<(u64, u32)>,
    arg1: Query<Filter>,
    arg2: Permit,
    #[cfg(feature = "audit")]
    audit: Audit,
) -> Result<impl IntoResponse, AppError> {
    let guard;
    let outcome = {
        let arg1 = arg1;
        let Query(Filter { r#type, .. }) = arg1;
        let arg2 = arg2;
        let _ = arg2;
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("order");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &id, ":");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &r#type, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const { ::cache_lock::LockOptions::new() };
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
                    _,
                    AppError,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let id = id;
            let _ = &id;
            #[allow(clippy::shadow_same)]
            let mut attempts = attempts;
            #[allow(clippy::shadow_same)]
            let r#type = r#type;
            let _ = &r#type;
            #[cfg(feature = "audit")]
            #[allow(clippy::shadow_same)]
            let audit = audit;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<_, AppError> = loop {};
                    return returned;
                }
                attempts += 1;
                orders::cancel(id, attempts).await
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
                _,
                AppError,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
