//! A provider as it is on a bad day.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Entry, Provider, ProviderError, Result};

/// How a provider behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mood {
    /// How likely a payment is to be declined.
    pub declines: f64,
    /// How likely a call is not to be answered: in one half of the cases it was not carried out, in the
    /// other it was.
    pub timeouts: f64,
    /// How long each call takes.
    pub latency: Duration,
}

/// A provider that declines, is slow, and loses requests and answers.
#[derive(Debug, Clone)]
pub struct MoodyProvider<P> {
    inner: P,
    mood: Mood,
    dice: Arc<Mutex<ChaCha8Rng>>,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Declined,
    RequestLost,
    AnswerLost,
}

impl<P: Provider> MoodyProvider<P> {
    /// Puts `inner` into a mood; the same seed rolls the same dice.
    #[must_use]
    pub fn new(inner: P, mood: Mood, seed: u64) -> Self {
        Self { inner, mood, dice: Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))) }
    }

    fn roll(&self) -> Fate {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let Mood { declines, timeouts, .. } = self.mood;
        let (declined, lost, before) =
            (dice.random::<f64>() < declines, dice.random::<f64>() < timeouts, dice.random());
        match (lost, before) {
            (true, true) => Fate::RequestLost,
            (true, false) => Fate::AnswerLost,
            _ if declined => Fate::Declined,
            _ => Fate::Done,
        }
    }

    async fn call(&self, fate: Fate, call: impl Future<Output = Result<()>>) -> Result<()> {
        if !self.mood.latency.is_zero() {
            tokio::time::sleep(self.mood.latency).await;
        }
        if fate == Fate::RequestLost {
            return Err(ProviderError::TimedOut);
        }
        let outcome = call.await;
        if fate == Fate::AnswerLost { Err(ProviderError::TimedOut) } else { outcome }
    }
}

impl<P: Provider> Provider for MoodyProvider<P> {
    async fn authorise(&self, key: &str, amount: i64) -> Result<()> {
        match self.roll() {
            Fate::Declined => Err(ProviderError::Declined),
            fate => self.call(fate, self.inner.authorise(key, amount)).await,
        }
    }

    async fn capture(&self, key: &str) -> Result<()> {
        self.call(self.roll(), self.inner.capture(key)).await
    }

    async fn refund(&self, key: &str) -> Result<()> {
        self.call(self.roll(), self.inner.refund(key)).await
    }

    async fn books(&self) -> Result<Vec<Entry>> {
        self.inner.books().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::LocalProvider;

    fn provider(declines: f64, timeouts: f64) -> MoodyProvider<LocalProvider> {
        let mood = Mood { declines, timeouts, latency: Duration::ZERO };
        MoodyProvider::new(LocalProvider::default(), mood, 1)
    }

    #[tokio::test]
    async fn of_calls_without_an_answer_some_were_carried_out() {
        let provider = provider(0.0, 1.0);
        for number in 0..100 {
            let answer = provider.authorise(&format!("key-{number}"), 900).await;
            assert!(matches!(answer, Err(ProviderError::TimedOut)), "{answer:?}");
        }
        let taken = provider.books().await.expect("they can be read").len();
        assert!((20..80).contains(&taken), "{taken} of 100");
    }

    #[tokio::test]
    async fn what_is_declined_is_not_in_the_books() {
        let provider = provider(1.0, 0.0);
        let answer = provider.authorise("key", 900).await;
        assert!(matches!(answer, Err(ProviderError::Declined)), "{answer:?}");
        assert!(provider.refund("other").await.is_ok(), "only payments are declined");
        assert_eq!(provider.books().await.expect("they can be read").len(), 1);
    }
}
