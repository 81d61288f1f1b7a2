//! Reserving a bed, giving it back, moving: what there is to see.
//!
//! Three documents and the books of another service change together, and there is no transaction over
//! them. So one document decides. **The student's document says where the student has a bed and which
//! payment is for it**; the room and the payment follow, and until they have, the payment is *open*.
//! Whoever holds the student's lock next settles what is open ([`settle`](Hostel::settle)), and a call
//! that goes well ends in just the same way.

use cache_lock::{LockManager, cache_lock};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::error::HostelError;
use crate::model::{Bed, Payment, PaymentState, Student};
use crate::provider::Provider;
use crate::store::{Claim, Store};

/// Shorthand for the outcome of a call.
pub type Result<T> = std::result::Result<T, HostelError>;

/// The rooms, the students and the till.
#[derive(Debug, Clone)]
pub struct Hostel<S, P> {
    /// A part of its locks' keys: hostels that share a Redis server need different names.
    pub name: String,
    /// Its locks.
    pub locks: LockManager,
    /// Its documents.
    pub store: S,
    /// Where payments are made.
    pub provider: P,
    /// Each call reports its steps here, and waits to be told to go on. For tests, and for crashes that
    /// happen where one wants them.
    pub steps: Option<mpsc::UnboundedSender<Reached>>,
}

/// A step that a call has done.
#[derive(Debug)]
pub struct Reached {
    /// The step.
    pub step: Step,
    /// On whose behalf.
    pub student: String,
    /// The call waits until this is used or dropped.
    pub go_on: oneshot::Sender<()>,
}

/// What a call does, in this order. After each step a process may be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
pub enum Step {
    /// The student's fence is raised.
    Claimed,
    /// The payment for the bed that is to be left is open again.
    Reopened,
    /// The payment is written down.
    Requested,
    /// The provider holds the money.
    Authorised,
    /// The payment says so.
    MarkedAuthorised,
    /// The room's fence is raised, to take a bed or to free one.
    RoomClaimed,
    /// The student's document still carries the token of this hold.
    Confirmed,
    /// The room has the student among its occupants.
    BedTaken,
    /// The student's document says so: **this is the decision**. Before it a call is undone, from here on
    /// it is completed.
    Assigned,
    /// The student's document names no bed any more: the decision of a cancellation.
    Unassigned,
    /// The provider has taken the money.
    Captured,
    /// The student is not among the room's occupants.
    BedFreed,
    /// The provider has given the money back.
    Refunded,
    /// The payment says what became of it, and is not open any more.
    Closed,
}

/// A bed that a student has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its room.
    pub room: u32,
    /// What it costs, in cents.
    pub price: i64,
    /// Whether all is done. The bed is the student's either way; if not, the money is still to be taken,
    /// or an earlier bed to be given back, which the next holder or a recovery does.
    pub settled: bool,
}

/// The hold of a student's lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold<'a> {
    pub(crate) student: &'a str,
    pub(crate) token: i64,
}

impl Hold<'_> {
    pub(crate) fn stale(&self) -> HostelError {
        HostelError::Stale { what: format!("student {:?}", self.student), token: self.token }
    }
}

impl<S: Store, P: Provider> Hostel<S, P> {
    /// Pays for a bed in `room` and reserves it. `payment` is a key of the caller's choice, one for each
    /// wish to pay: with the same key a call that was not answered may be made again, and costs nothing
    /// more.
    ///
    /// # Errors
    /// See [`HostelError`]. What was paid is refunded then.
    ///
    /// # Cancel safety
    /// A call that is dropped may have happened, in part or in full: the next holder of the student's lock
    /// completes or undoes it, or [`recover`](Self::recover) does.
    #[cache_lock(
        prefix = "hostel:student",
        key = "{self.name}:{student}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    pub async fn reserve(&self, student: &str, room: u32, payment: &str) -> Result<Receipt> {
        let hold = Hold { student, token: lock.token().as_i64() };
        let found = self.begin(&hold).await?;
        if let Some(receipt) = self.replay(&hold, found.as_ref(), room, payment).await? {
            return Ok(receipt);
        }
        match found.as_ref().map(Student::bed) {
            Some(Some(bed)) => Err(HostelError::HasBed { room: bed.room }),
            // A student who is missing is not found by the till either: the payment comes first.
            Some(None) | None => self.take(&hold, room, payment, None).await,
        }
    }

    /// Pays for a bed in `room`, takes it, and only then gives the present bed and its payment back.
    /// `payment` is as for [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// See [`HostelError`]. The student keeps the present bed then.
    ///
    /// # Cancel safety
    /// As for [`reserve`](Self::reserve).
    #[cache_lock(
        prefix = "hostel:student",
        key = "{self.name}:{student}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    pub async fn move_room(&self, student: &str, room: u32, payment: &str) -> Result<Receipt> {
        let hold = Hold { student, token: lock.token().as_i64() };
        let found = self.begin(&hold).await?;
        if let Some(receipt) = self.replay(&hold, found.as_ref(), room, payment).await? {
            return Ok(receipt);
        }
        let found = found.ok_or_else(|| HostelError::NoSuchStudent(student.to_owned()))?;
        let bed = found.bed().ok_or(HostelError::NoBed)?;
        if bed.room == room {
            return Err(HostelError::HasBed { room });
        }
        self.take(&hold, room, payment, Some(bed)).await
    }

    /// Gives the student's bed back, and the student the money. Returns the room.
    ///
    /// # Errors
    /// See [`HostelError`].
    ///
    /// # Cancel safety
    /// As for [`reserve`](Self::reserve).
    #[cache_lock(
        prefix = "hostel:student",
        key = "{self.name}:{student}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    pub async fn cancel(&self, student: &str) -> Result<u32> {
        let hold = Hold { student, token: lock.token().as_i64() };
        let found = self.begin(&hold).await?;
        let found = found.ok_or_else(|| HostelError::NoSuchStudent(student.to_owned()))?;
        let bed = found.bed().ok_or(HostelError::NoBed)?;
        self.reopen(&hold, bed.payment).await?;
        if !self.store.assign(student, hold.token, None).await? {
            return Err(hold.stale());
        }
        self.reached(&hold, Step::Unassigned).await;
        // It is decided. What cannot be done now stays open, and is done by whoever comes next.
        let _ = self.settle_open(&hold).await;
        Ok(bed.room)
    }

    /// The first write of a hold: from here on every older holder is refused. Then what earlier ones have
    /// left half done is settled. `None` if there is no such student.
    pub(crate) async fn begin(&self, hold: &Hold<'_>) -> Result<Option<Student>> {
        let claimed = self.store.claim_student(hold.student, hold.token).await?;
        let found = match claimed {
            Claim::Held(student) => Some(student),
            Claim::Missing => None,
            Claim::Stale => return Err(hold.stale()),
        };
        self.reached(hold, Step::Claimed).await;
        self.settle_open(hold).await?;
        Ok(found)
    }

    /// The student, if no later holder has been there. `None` if there is no such student.
    pub(crate) async fn confirm(&self, hold: &Hold<'_>) -> Result<Option<Student>> {
        match self.store.confirm_student(hold.student, hold.token).await? {
            Claim::Held(student) => Ok(Some(student)),
            Claim::Missing => Ok(None),
            Claim::Stale => Err(hold.stale()),
        }
    }

    /// The answer to a call that was made before, with the same key. After [`begin`](Self::begin) no
    /// payment of this student is open, so each is either for the bed that the student has, or refunded.
    async fn replay(
        &self,
        hold: &Hold<'_>,
        found: Option<&Student>,
        room: u32,
        key: &str,
    ) -> Result<Option<Receipt>> {
        let Some(earlier) = self.store.payment(key).await? else { return Ok(None) };
        if earlier.student != hold.student || earlier.room != room {
            return Err(HostelError::KeyUsed(key.to_owned()));
        }
        match found.and_then(Student::bed) {
            Some(bed) if bed.payment == key => {
                Ok(Some(Receipt { room, price: earlier.price, settled: true }))
            }
            _ => Err(HostelError::Refunded(key.to_owned())),
        }
    }

    /// Pays for a bed and takes it, in place of `old` if that is given.
    async fn take(
        &self,
        hold: &Hold<'_>,
        room: u32,
        key: &str,
        old: Option<Bed<'_>>,
    ) -> Result<Receipt> {
        // Nobody pays for a room that is full already. Whether it still has a bed is found out later.
        let price = match self.store.room(room).await? {
            None => return Err(HostelError::NoSuchRoom(room)),
            Some(found) if found.is_full() => return Err(HostelError::RoomFull(room)),
            Some(found) => found.price,
        };
        if let Some(old) = old {
            self.reopen(hold, old.payment).await?;
        }
        let payment = Payment {
            key: key.to_owned(),
            student: hold.student.to_owned(),
            room,
            price,
            state: PaymentState::Requested,
            open: true,
            fence: hold.token,
        };
        if !self.store.add_payment(&payment).await? {
            return Err(HostelError::KeyUsed(key.to_owned()));
        }
        self.reached(hold, Step::Requested).await;

        let taken = self.pay_and_take(hold, &payment).await;
        // From here on a call that went well and one that failed do the same, and so does whoever comes
        // after a crash. What cannot be settled now stays open.
        let settled = self.settle_open(hold).await.is_ok();
        taken.map(|()| Receipt { room, price, settled })
    }

    async fn pay_and_take(&self, hold: &Hold<'_>, payment: &Payment) -> Result<()> {
        let Payment { key, room, price, .. } = payment;
        self.provider.authorise(key, *price).await?;
        self.reached(hold, Step::Authorised).await;
        let authorised = PaymentState::Authorised;
        if !self.store.set_payment(key, hold.token, authorised, true).await? {
            return Err(hold.stale());
        }
        self.reached(hold, Step::MarkedAuthorised).await;
        self.take_bed(hold, *room).await?;
        self.reached(hold, Step::BedTaken).await;
        let bed = Bed { room: *room, payment: key };
        if !self.store.assign(hold.student, hold.token, Some(bed)).await? {
            // Who is stale hears that from `confirm`; who is not has been expelled meanwhile.
            self.confirm(hold).await?;
            return Err(HostelError::NoSuchStudent(hold.student.to_owned()));
        }
        self.reached(hold, Step::Assigned).await;
        Ok(())
    }

    /// Opens the payment of a bed that is going to be left, so that it is settled if this call dies.
    async fn reopen(&self, hold: &Hold<'_>, key: &str) -> Result<()> {
        let Claim::Held(payment) = self.store.claim_payment(key, hold.token).await? else {
            return Err(hold.stale());
        };
        if !self.store.set_payment(key, hold.token, payment.state, true).await? {
            return Err(hold.stale());
        }
        self.reached(hold, Step::Reopened).await;
        Ok(())
    }

    /// Adds the student to the room's occupants.
    ///
    /// It is written under two locks, and the room's fence knows nothing of the student's. So the order
    /// matters: raise the fence of the inner lock, *then* show the token of the outer one again, *then*
    /// write. Whoever comes after a student's holder that is late raises the student's fence, and then the
    /// room's, whatever it finds there ([`free_bed`](Self::free_bed)). If the late one raises the room's
    /// after that, it fails to confirm; if it did so before, its token is not the room's any more, so its
    /// write is refused, or was early enough to be undone.
    #[cache_lock(
        prefix = "hostel:room",
        key = "{self.name}:{room}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    async fn take_bed(&self, hold: &Hold<'_>, room: u32) -> Result<()> {
        let token = lock.token().as_i64();
        let found = match self.store.claim_room(room, token).await? {
            Claim::Held(found) => found,
            Claim::Missing => return Err(HostelError::NoSuchRoom(room)),
            Claim::Stale => return Err(stale_room(room, token)),
        };
        self.reached(hold, Step::RoomClaimed).await;
        if self.confirm(hold).await?.is_none() {
            return Err(HostelError::NoSuchStudent(hold.student.to_owned()));
        }
        self.reached(hold, Step::Confirmed).await;
        if found.is_full() {
            return Err(HostelError::RoomFull(room));
        }
        if !self.store.add_occupant(room, token, hold.student).await? {
            return Err(stale_room(room, token));
        }
        Ok(())
    }

    /// Removes the student from the room's occupants, unless the student's document says that the bed is
    /// the student's. The room's fence is raised even if there is nothing to remove: see
    /// [`take_bed`](Self::take_bed).
    #[cache_lock(
        prefix = "hostel:room",
        key = "{self.name}:{room}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    pub(crate) async fn free_bed(&self, hold: &Hold<'_>, room: u32) -> Result<()> {
        let token = lock.token().as_i64();
        let found = match self.store.claim_room(room, token).await? {
            Claim::Held(found) => found,
            Claim::Missing => return Ok(()),
            Claim::Stale => return Err(stale_room(room, token)),
        };
        self.reached(hold, Step::RoomClaimed).await;
        let student = self.confirm(hold).await?;
        self.reached(hold, Step::Confirmed).await;
        let has_bed_here = student.is_some_and(|student| student.room == Some(room));
        if has_bed_here || !found.occupants.iter().any(|occupant| occupant == hold.student) {
            return Ok(());
        }
        if !self.store.remove_occupant(room, token, hold.student).await? {
            return Err(stale_room(room, token));
        }
        Ok(())
    }

    pub(crate) async fn reached(&self, hold: &Hold<'_>, step: Step) {
        if let Some(steps) = &self.steps {
            let (go_on, wait) = oneshot::channel();
            if steps.send(Reached { step, student: hold.student.to_owned(), go_on }).is_ok() {
                let _ = wait.await;
            }
        }
    }
}

fn stale_room(room: u32, token: i64) -> HostelError {
    HostelError::Stale { what: format!("room {room}"), token }
}
