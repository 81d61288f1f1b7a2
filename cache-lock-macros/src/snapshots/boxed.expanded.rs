impl Store for Postgres {
    fn put<'life0, 'life1, 'async_trait>(
        &'life0 self,
        __arg1: Row,
        key: &'life1 str,
        mut amount: u32,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<
                Output = Result<(), Error>,
            > + ::core::marker::Send + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                Result<(), Error>,
            > {
                #[allow(unreachable_code)] return __ret;
            }
            let guard;
            let outcome = {
                let __self = self;
                let Row { id, .. } = {
                    let __arg1 = __arg1;
                    __arg1
                };
                let amount = amount;
                let key = {
                    let mut key = ::cache_lock::private::KeyBuilder::new("row");
                    ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                    ::cache_lock::private::KeyBuilder::value(
                        &mut key,
                        &__self.table,
                        ":",
                    );
                    ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                    ::cache_lock::private::KeyBuilder::value(&mut key, &id, ":");
                    ::cache_lock::private::KeyBuilder::text(&mut key, ":");
                    ::cache_lock::private::KeyBuilder::value(&mut key, &key, "");
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
                            (),
                            Error,
                        > as ::cache_lock::private::ReportLockError>::report(error);
                    }
                };
                let body = async move {
                    #[allow(
                        clippy::shadow_same,
                        clippy::used_underscore_binding,
                        clippy::no_effect_underscore_binding
                    )]
                    let __self = __self;
                    let _ = &__self;
                    #[allow(clippy::shadow_same)]
                    let id = id;
                    let _ = &id;
                    #[allow(clippy::shadow_same)]
                    let mut amount = amount;
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
                        let __ret: Result<(), Error> = {
                            amount += 1;
                            __self.write(id, key, amount).await
                        };
                        #[allow(unreachable_code)] __ret
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
                        (),
                        Error,
                    > as ::cache_lock::private::ReportLockError>::report(error)
                }
            }
        })
    }
}
