async fn nightly() {
    let guard;
    let outcome = {
        let key = {
            let key = ::cache_lock::private::KeyBuilder::new("cron");
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
            ::cache_lock::private::Err(error) => return report(error),
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
        let body = ::cache_lock::private::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::cache_lock::private::Ok(value) => value,
        ::cache_lock::private::Err(error) => return report(error),
    }
}
