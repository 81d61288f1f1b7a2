/// Puts a student into a room.
#[cache_lock(prefix = "room", key = "{room_id}:{student.id}", timeout = "2s", expire = "10s")]
pub async fn reserve(db: &Database, room_id: &str, student: Student) -> Result<Receipt, ReserveError> {
    let room = db.room(room_id).await?;
    if room.is_full() {
        return Err(ReserveError::Full);
    }
    db.put(room, student).await
}
