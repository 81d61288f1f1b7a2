/// Puts a student into a room.
pub async fn reserve(
    db: &Database,
    room_id: &str,
    student: Student,
) -> Result<Receipt, ReserveError> {
    let guard;
    let outcome = {
        let key = {
            let mut key = ::cache_lock::private::KeyBuilder::new("room");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &room_id, ":");
            ::cache_lock::private::KeyBuilder::text(&mut key, ":");
            ::cache_lock::private::KeyBuilder::value(&mut key, &student.id, "");
            ::cache_lock::private::KeyBuilder::finish(&key)
        };
        let options = &const {
            ::cache_lock::LockOptions::new()
                .timeout(::cache_lock::private::millis(2000))
                .expire(::cache_lock::private::millis(10000))
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
                    Receipt,
                    ReserveError,
                > as ::cache_lock::private::ReportLockError>::report(error);
            }
        };
        let body = async move {
            #[allow(clippy::shadow_same)]
            let db = db;
            #[allow(clippy::shadow_same)]
            let room_id = room_id;
            let _ = &room_id;
            #[allow(clippy::shadow_same)]
            let student = student;
            let _ = &student;
            {
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    clippy::empty_loop
                )]
                if false {
                    let returned: Result<Receipt, ReserveError> = loop {};
                    return returned;
                }
                let room = db.room(room_id).await?;
                if room.is_full() {
                    return Err(ReserveError::Full);
                }
                db.put(room, student).await
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
                Receipt,
                ReserveError,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
