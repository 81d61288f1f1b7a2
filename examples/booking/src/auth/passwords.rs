use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash;
use prometheus_client::metrics::counter::Counter;
use rand::RngCore;
use tokio::sync::Semaphore;

use super::hasher::Hasher;
use crate::domain::Password;

/// Whoever has waited for so long for a turn is told to come again.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most hashes at once, however many cores there are: each has a buffer of 19 MiB, which is kept.
const MOST_AT_ONCE: usize = 16;

/// Hashes passwords on tokio's blocking threads.
///
/// A hash takes tens of milliseconds of one core on purpose, so no more run at once than there are
/// cores: a flood of logins must not take the memory, nor the time of other requests.
#[derive(Debug, Clone)]
pub struct Passwords {
    turns: Arc<Semaphore>,
    hasher: Arc<Hasher>,
    /// What is compared with where there is no such user, so that it takes as long.
    nobody: Arc<str>,
    hashed: Counter,
}

/// Why a password was neither right nor wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// Too many others are waiting.
    #[error("too many passwords are to be hashed")]
    Busy,
    /// The hash that is kept cannot be read, or hashing failed.
    #[error("hashing failed: {0}")]
    Hash(#[from] password_hash::Error),
    /// The thread that did it panicked, or the program ends.
    #[error("hashing ended early: {0}")]
    Ended(#[from] tokio::task::JoinError),
}

impl Passwords {
    /// Hashes so many passwords at once at most, and never more than 16. `hashed` counts them.
    ///
    /// # Errors
    /// [`HashError`], in theory.
    pub async fn new(at_once: usize, hashed: Counter) -> Result<Self, HashError> {
        let mut nobody = [0; 32];
        rand::rng().fill_bytes(&mut nobody);
        let hasher = Arc::new(Hasher::default());
        let first = hasher.clone();
        let nobody = tokio::task::spawn_blocking(move || first.hash(&nobody)).await??;
        let turns = Arc::new(Semaphore::new(at_once.clamp(1, MOST_AT_ONCE)));
        Ok(Self { turns, hasher, nobody: nobody.into(), hashed })
    }

    /// The hash to be kept of a password, with its salt and parameters, in PHC format.
    ///
    /// # Errors
    /// [`HashError::Busy`] after 5 s.
    ///
    /// # Cancel safety
    /// A hash that has begun is finished by its thread, and thrown away.
    pub async fn hash(&self, password: Password) -> Result<String, HashError> {
        self.in_turn(move |hasher| hasher.hash(password.as_bytes())).await
    }

    /// Whether the password is the one that `hash` was made of. Without a hash it takes as long,
    /// and is not.
    ///
    /// # Errors
    /// [`HashError::Busy`] after 5 s.
    ///
    /// # Cancel safety
    /// That of [`hash`](Self::hash).
    pub async fn verify(
        &self,
        password: Password,
        hash: Option<String>,
    ) -> Result<bool, HashError> {
        let known = hash.is_some();
        let hash: Arc<str> = hash.map_or_else(|| self.nobody.clone(), Arc::from);
        let right = self.in_turn(move |hasher| hasher.verify(password.as_bytes(), &hash));
        Ok(right.await? && known)
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hasher) -> Result<T, password_hash::Error> + Send + 'static,
    ) -> Result<T, HashError> {
        let turn = tokio::time::timeout(PATIENCE, self.turns.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(HashError::Busy) };
        self.hashed.inc();
        // The turn is the thread's: it ends with the work, not with whoever waits for it.
        let hasher = self.hasher.clone();
        let work = move || {
            let _turn = turn;
            work(&hasher)
        };
        Ok(tokio::task::spawn_blocking(work).await??)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Password, Passwords};

    fn attempt(text: &str) -> Password {
        Password::attempt(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_is_told_from_others_and_a_stranger_costs_the_same() {
        let hashed = Counter::default();
        let passwords = Passwords::new(1, hashed.clone()).await.expect("it hashes");
        let hash = passwords.hash(attempt("correct horse")).await.expect("it hashes");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let verify = async |text, hash| passwords.verify(attempt(text), hash).await.ok();
        assert_eq!(verify("correct horse", Some(hash.clone())).await, Some(true));
        assert_eq!(verify("correct hors", Some(hash)).await, Some(false));
        assert_eq!(hashed.get(), 3);
        assert_eq!(verify("correct horse", None).await, Some(false));
        assert_eq!(hashed.get(), 4, "there is a hash to compare with for nobody, too");
    }
}
