/// Puts a student into a room.
pub async fn reserve(
    db: &Database,
    room_id: &str,
    student: Student,
) -> Result<Receipt, ReserveError> {
    let guard;
    let outcome = {
        let key = ::cache_lock::private::KeyBuilder::new("room")
            .text(":")
            .value(&room_id, ":")
            .text(":")
            .value(&student.id, "")
            .finish();
        let options = &const {
            ::cache_lock::LockOptions::new()
                .timeout(::core::time::Duration::from_millis(2000))
                .expire(::core::time::Duration::from_millis(10000))
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
        let body = ::core::pin::pin!(body);
        ::cache_lock::private::hold(&guard, body).await
    };
    ::cache_lock::private::release(guard).await;
    match outcome {
        ::core::result::Result::Ok(value) => value,
        ::core::result::Result::Err(error) => {
            <Result<
                Receipt,
                ReserveError,
            > as ::cache_lock::private::ReportLockError>::report(error)
        }
    }
}
