async fn check<T: Check>(id: &T) -> Result<(), Error> {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new({
                const __PREFIX: &str = ::cache_lock::private::check_prefix(
                    names::ORDERS,
                );
                __PREFIX
            })
            .text(":")
            .value(&id, "")
            .finish();
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
            ::core::result::Result::Ok(guard) => guard,
            ::core::result::Result::Err(error) => {
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
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => {
            <Result<(), Error> as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
