async fn nightly() {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new("cron").finish();
        let options = &const { ::cache_lock::LockOptions::new() };
        guard = match ::cache_lock::private::acquire(
                ::cache_lock::private::manager(),
                key,
                options,
            )
            .await
        {
            ::core::result::Result::Ok(guard) => guard,
            ::core::result::Result::Err(error) => return report(error),
        };
        let body = async move {
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: () = loop {};
                    return returned;
                }
                tidy_up().await;
            }
        };
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => return report(error),
    }
}
