async fn check<T: Check>(id: &T) -> Result<(), Error> {
    let guard;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new({
                const __PREFIX: &::cache_lock::private::str = ::cache_lock::private::check_prefix(
                    names::ORDERS,
                );
                __PREFIX
            });
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &id, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new()
                .timeout(WAIT)
                .expire(::cache_lock::private::check_expire(Self::LEASE))
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
                    (),
                    Error,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let id = id;
            let _ = &id;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<(), Error> = loop {};
                    return returned;
                }
                id.check().await
            }
        };
        let body = ::cache_lock::private::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::cache_lock::private::Ok(value) => value,
        ::cache_lock::private::Err(error) => {
            <Result<(), Error> as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
