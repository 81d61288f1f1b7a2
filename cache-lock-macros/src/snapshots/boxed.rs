impl Store for Postgres {
    #[cache_lock(prefix = "row", key = "{self.table}:{id}:{key}")]
    fn put<'life0, 'life1, 'async_trait>(
        &'life0 self,
        __arg1: Row,
        key: &'life1 str,
        mut amount: u32,
    ) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<(), Error>> + ::core::marker::Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<(), Error>> {
                #[allow(unreachable_code)]
                return __ret;
            }
            let __self = self;
            let Row { id, .. } = {
                let __arg1 = __arg1;
                __arg1
            };
            let mut amount = amount;
            let __ret: Result<(), Error> = {
                amount += 1;
                __self.write(id, key, amount).await
            };
            #[allow(unreachable_code)]
            __ret
        })
    }
}
