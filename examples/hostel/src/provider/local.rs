//! A provider inside this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Entry, Held, Provider, ProviderError, Result};

/// A provider whose books end with this process.
#[derive(Debug, Clone, Default)]
pub struct LocalProvider {
    books: Arc<Mutex<BTreeMap<String, Entry>>>,
}

impl LocalProvider {
    async fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        // As with a call over the network, others run meanwhile.
        tokio::task::yield_now().await;
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for LocalProvider {
    async fn authorise(&self, key: &str, amount: i64) -> Result<()> {
        let mut books = self.lock().await;
        let entry = books.entry(key.to_owned()).or_insert_with(|| Entry {
            key: key.to_owned(),
            amount,
            state: Held::Authorised,
        });
        match entry.state {
            Held::Authorised | Held::Captured => Ok(()),
            Held::Refunded => Err(ProviderError::Closed),
        }
    }

    async fn capture(&self, key: &str) -> Result<()> {
        match self.lock().await.get_mut(key) {
            Some(entry) if entry.state != Held::Refunded => {
                entry.state = Held::Captured;
                Ok(())
            }
            _ => Err(ProviderError::Closed),
        }
    }

    async fn refund(&self, key: &str) -> Result<()> {
        let unknown = || Entry { key: key.to_owned(), amount: 0, state: Held::Refunded };
        self.lock().await.entry(key.to_owned()).or_insert_with(unknown).state = Held::Refunded;
        Ok(())
    }

    async fn books(&self) -> Result<Vec<Entry>> {
        Ok(self.lock().await.values().cloned().collect())
    }
}
