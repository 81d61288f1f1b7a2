//! The values of single flights, in memory.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use super::MemoryStore;
use crate::{
    clock::Instant,
    owner::OwnerToken,
    store::values::{StoredValue, ValueName},
};

/// The values of single flights. Values that are over are removed when the next one is read, and each is read before it is
/// recorded.
#[derive(Default)]
pub(super) struct Values {
    by_name: HashMap<ValueName, (Instant, Arc<str>)>,
    /// When they end.
    ends: BTreeSet<(Instant, ValueName)>,
}

impl MemoryStore {
    pub(in crate::store) fn recorded(&self, name: &ValueName) -> Option<StoredValue> {
        let now = Instant::now();
        let mut records = self.records.lock();
        records.values.remove_ended(now);
        let (ends, text) = records.values.by_name.get(name)?;
        Some(StoredValue { text: text.as_bytes().to_vec(), remaining: *ends - now })
    }

    pub(in crate::store) fn record(
        &self,
        name: &ValueName,
        token: &OwnerToken,
        text: &str,
        lasts: Duration,
    ) -> bool {
        let now = Instant::now();
        let mut records = self.records.lock();
        let held = records.by_key.get(&name.key);
        let held = held.is_some_and(|record| record.token == *token && now < record.ends);
        if held {
            records.values.insert(name, now + lasts, text.into());
        }
        held
    }

    /// The number of values that single flights have recorded and that are not removed. For tests
    /// of this project.
    #[doc(hidden)]
    #[must_use]
    pub fn results(&self) -> usize {
        self.records.lock().values.by_name.len()
    }
}

impl Values {
    fn insert(&mut self, name: &ValueName, ends: Instant, text: Arc<str>) {
        if let Some((earlier, _)) = self.by_name.insert(name.clone(), (ends, text)) {
            self.ends.remove(&(earlier, name.clone()));
        }
        self.ends.insert((ends, name.clone()));
    }

    fn remove_ended(&mut self, now: Instant) {
        while self.ends.first().is_some_and(|(ends, _)| *ends <= now)
            && let Some((_, name)) = self.ends.pop_first()
        {
            self.by_name.remove(&name);
        }
    }
}
