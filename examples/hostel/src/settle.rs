//! Completing or undoing what was left half done.

use std::collections::{BTreeMap, BTreeSet};

use cache_lock::cache_lock;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::hostel::{Hold, Hostel, Result, Step};
use crate::model::{Payment, PaymentState, Student};
use crate::provider::{Provider, ProviderError};
use crate::store::{Claim, Store};

/// Students that a recovery settles at the same time: a lock whose holder has died is waited for.
const AT_ONCE: usize = 64;

/// How often the provider is asked, if it does not answer.
const TRIES: u32 = 3;

/// What became of open payments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Settled {
    /// Payments for a bed that the student has.
    pub captured: u64,
    /// Payments for a bed that the student has not.
    pub refunded: u64,
}

/// What a recovery has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// What is settled.
    pub settled: Settled,
    /// Students that could not be settled, and why.
    pub left: BTreeMap<String, String>,
}

impl std::ops::AddAssign for Settled {
    fn add_assign(&mut self, more: Self) {
        self.captured += more.captured;
        self.refunded += more.refunded;
    }
}

impl<S: Store, P: Provider> Hostel<S, P> {
    /// Settles what a crash left: every payment that is open now ends captured with a bed, or refunded
    /// without one.
    ///
    /// Others may be at work meanwhile, other recoveries too: each student is settled under its lock, so
    /// one who is at work, or whose process has died, is waited for, ten seconds at most.
    ///
    /// # Errors
    /// When it cannot be read what is open. Students that cannot be settled are in [`Recovery::left`].
    ///
    /// # Cancel safety
    /// It can be dropped and called again.
    pub async fn recover(&self) -> Result<Recovery> {
        let open = self.store.open_payments(None).await?;
        let students: BTreeSet<String> = open.into_iter().map(|payment| payment.student).collect();
        let mut students = students.into_iter();
        let mut recovery = Recovery::default();
        let mut at_work = JoinSet::new();
        loop {
            while at_work.len() < AT_ONCE {
                let Some(student) = students.next() else { break };
                let hostel = self.clone();
                at_work.spawn(async move {
                    let settled = hostel.settle(&student).await;
                    (student, settled)
                });
            }
            match at_work.join_next().await {
                None => return Ok(recovery),
                Some(Ok((_, Ok(settled)))) => recovery.settled += settled,
                Some(Ok((student, Err(error)))) => {
                    recovery.left.insert(student, error.label());
                }
                Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
    }

    /// Settles what is open of one student.
    ///
    /// # Errors
    /// See [`HostelError`](crate::error::HostelError). What is not settled stays open.
    #[cache_lock(
        prefix = "hostel:student",
        key = "{self.name}:{student}",
        timeout = "10s",
        expire = "2s",
        bind = lock,
        with = self.locks
    )]
    pub async fn settle(&self, student: &str) -> Result<Settled> {
        let hold = Hold { student, token: lock.token().as_i64() };
        if self.store.claim_student(student, hold.token).await? == Claim::Stale {
            return Err(hold.stale());
        }
        self.reached(&hold, Step::Claimed).await;
        self.settle_open(&hold).await
    }

    /// Makes rooms, payments and the provider agree with the student's document.
    pub(crate) async fn settle_open(&self, hold: &Hold<'_>) -> Result<Settled> {
        let mut settled = Settled::default();
        let open = self.store.open_payments(Some(hold.student)).await?;
        if open.is_empty() {
            return Ok(settled);
        }
        let student = self.confirm(hold).await?;
        for payment in open {
            // The holder before may still be inside; this is what it writes to.
            let Claim::Held(payment) = self.store.claim_payment(&payment.key, hold.token).await?
            else {
                return Err(hold.stale());
            };
            match self.settle_payment(hold, student.as_ref(), &payment).await? {
                PaymentState::Captured => settled.captured += 1,
                _ => settled.refunded += 1,
            }
        }
        Ok(settled)
    }

    /// Each step may be done twice, by whoever gets there.
    async fn settle_payment(
        &self,
        hold: &Hold<'_>,
        student: Option<&Student>,
        payment: &Payment,
    ) -> Result<PaymentState> {
        let key = payment.key.as_str();
        let is_for_the_bed = student.is_some_and(|student| student.payment.as_deref() == Some(key));
        let state = if is_for_the_bed {
            self.ask(key, PaymentState::Captured).await?;
            self.reached(hold, Step::Captured).await;
            PaymentState::Captured
        } else {
            // Who has not marked its payment as authorised has not been to the room, and will not get
            // there: that mark is refused from now on.
            if payment.state != PaymentState::Requested {
                self.free_bed(hold, payment.room).await?;
                self.reached(hold, Step::BedFreed).await;
            }
            self.ask(key, PaymentState::Refunded).await?;
            self.reached(hold, Step::Refunded).await;
            PaymentState::Refunded
        };
        if !self.store.set_payment(key, hold.token, state, false).await? {
            return Err(hold.stale());
        }
        self.reached(hold, Step::Closed).await;
        Ok(state)
    }
    /// Has the provider capture or refund a payment, and asks again if it does not answer.
    async fn ask(&self, key: &str, state: PaymentState) -> Result<()> {
        let mut tries = 1;
        loop {
            let outcome = match state {
                PaymentState::Captured => self.provider.capture(key).await,
                _ => self.provider.refund(key).await,
            };
            match outcome {
                Err(ProviderError::TimedOut) if tries < TRIES => tries += 1,
                outcome => return Ok(outcome?),
            }
        }
    }
}
