//! The buyers of one process: all at the door, released at once.

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::{Barrier, mpsc, watch};
use tokio::task::JoinSet;

use crate::Error;
use crate::cli::Mode;
use crate::inventory::Inventory;
use crate::shop::{Pause, Purchase, PurchaseError, Shop};

/// The buyer who freezes under `--stall`.
pub const STALLED_BUYER: u32 = 0;

/// Some of a run's buyers, and what they are after.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Crowd {
    /// How they are guarded.
    pub mode: Mode,
    /// The items on sale, among which the buyers are spread by their number.
    pub items: Vec<String>,
    /// Their numbers.
    pub buyers: Range<u32>,
    /// Whether [`STALLED_BUYER`] freezes, if it is one of them.
    pub stall: bool,
}

impl Crowd {
    /// The item that `buyer` wants.
    #[must_use]
    pub fn item_for(&self, buyer: u32) -> &str {
        &self.items[buyer as usize % self.items.len()]
    }

    fn stalls(&self, buyer: u32) -> bool {
        self.stall && self.mode.takes_lock() && buyer == STALLED_BUYER
    }
}

/// What a buyer was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The buyer's number.
    pub buyer: u32,
    /// Microseconds from the opening of the doors to the answer.
    pub wait_us: u64,
    /// The answer.
    pub outcome: Outcome,
}

/// An answer, as it travels from a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The buyer has an order.
    Bought,
    /// Nothing was left.
    SoldOut,
    /// The fence refused the write of a holder that was late.
    Refused(String),
    /// Anything else, by [`PurchaseError::reason`].
    Failed(String),
}

impl From<Result<Purchase, PurchaseError>> for Outcome {
    fn from(result: Result<Purchase, PurchaseError>) -> Self {
        match result {
            Ok(Purchase::Bought) => Self::Bought,
            Ok(Purchase::SoldOut) => Self::SoldOut,
            Err(error @ PurchaseError::Refused { .. }) => Self::Refused(error.reason()),
            Err(error) => Self::Failed(error.reason()),
        }
    }
}

/// Lines the crowd up, opens the doors when `doors` is ready, and returns when the last buyer
/// has been served. `doors` is first polled when everybody is in place, a buyer who is to freeze
/// asleep in its critical section.
///
/// # Errors
/// That of `doors`: then nobody is let in.
pub async fn serve<I: Inventory>(
    shop: &Shop<I>,
    crowd: &Crowd,
    doors: impl Future<Output = Result<(), Error>>,
    answers: mpsc::UnboundedSender<Answer>,
) -> Result<(), Error> {
    let shop = Arc::new(shop.clone());
    let opening = Arc::new(OnceLock::new());
    let stalled = crowd.buyers.clone().find(|&buyer| crowd.stalls(buyer));
    let in_line = crowd.buyers.len() - usize::from(stalled.is_some());
    let barrier = Arc::new(Barrier::new(in_line + 1));
    let mut at_work = JoinSet::new();

    let mut join = |buyer: u32, pause: Pause, barrier: Option<Arc<Barrier>>| {
        let (mode, item) = (crowd.mode, crowd.item_for(buyer).to_owned());
        let (shop, opening, answers) = (shop.clone(), opening.clone(), answers.clone());
        at_work.spawn(async move {
            if let Some(barrier) = barrier {
                barrier.wait().await;
            }
            let outcome = shop.buy(mode, &item, buyer, pause).await.into();
            // The wait counts from the opening, not from when the scheduler came round to
            // this buyer.
            let opened: &Instant = opening.get_or_init(Instant::now);
            let wait_us = opened.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
            // Nobody listens any more when the run is being given up.
            let _ = answers.send(Answer { buyer, wait_us, outcome });
        });
    };

    for buyer in crowd.buyers.clone().filter(|&buyer| Some(buyer) != stalled) {
        join(buyer, Pause::Think, Some(barrier.clone()));
    }
    if let Some(buyer) = stalled {
        let (asleep, mut falls_asleep) = watch::channel(false);
        join(buyer, Pause::Freeze { asleep }, None);
        // An error means that the buyer is through without having frozen; its answer tells.
        let _ = falls_asleep.wait_for(|asleep| *asleep).await;
    }
    doors.await?;
    opening.get_or_init(Instant::now);
    barrier.wait().await;
    while at_work.join_next().await.is_some() {}
    Ok(())
}
