//! Who holds a lock.

use std::{
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// What a token begins with whose manager hands the lock on. The scripts know it.
const TOLD: &str = "cl1";
/// The same for a manager that cannot.
const MUTE: &str = "cl0";

/// Makes the owner tokens of one manager.
#[derive(Debug)]
pub(crate) struct Owners {
    /// Drawn when it is first needed, by the process that asks: a process that forks before that has
    /// children that differ.
    identity: OnceLock<Identity>,
    serial: AtomicU64,
    /// The manager cannot hand a lock on to those who wait for it elsewhere. Its tokens say so: who
    /// waits for them is not told, and has to ask again and again.
    mute: AtomicBool,
}

#[derive(Debug)]
struct Identity {
    /// Names the manager, for an operator who looks at a record: host, process, and a random
    /// number that tells apart managers of one process and processes of one number.
    manager: String,
    random: RandomState,
    /// The system's random numbers. The keys of the hash do not suffice: a thread draws them once, and
    /// its copy in a forked process goes on with the same.
    seed: [u8; 16],
}

impl Identity {
    fn draw() -> Self {
        let mut identity =
            Self { manager: String::new(), random: RandomState::new(), seed: seed() };
        let nonce = identity.hash("manager");
        identity.manager = format!("{}.{}.{nonce:016x}", host(), process::id());
        identity
    }

    fn hash(&self, value: impl Hash) -> u64 {
        self.random.hash_one((self.seed, value))
    }
}

impl Owners {
    pub(crate) fn new() -> Self {
        let (identity, serial) = (OnceLock::new(), AtomicU64::new(0));
        Self { identity, serial, mute: AtomicBool::new(false) }
    }

    /// Tells managers of one process apart. It is no part of a token: nothing is drawn for those yet, as
    /// the process may fork.
    pub(crate) fn number() -> u64 {
        RandomState::new().hash_one("manager")
    }

    fn identity(&self) -> &Identity {
        self.identity.get_or_init(Identity::draw)
    }

    /// A token that no lease and no wait has had.
    pub(crate) fn next(self: &Arc<Self>) -> OwnerToken {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let mute = self.mute.load(Ordering::Relaxed);
        OwnerToken { owners: Arc::clone(self), serial, mute }
    }

    /// Says of all tokens from now on whether the manager cannot hand a lock on.
    #[cfg(feature = "redis")]
    pub(crate) fn set_mute(&self, mute: bool) {
        self.mute.store(mute, Ordering::Relaxed);
    }

    #[cfg(feature = "redis")]
    pub(crate) fn is_mute(&self) -> bool {
        self.mute.load(Ordering::Relaxed)
    }

    /// The channel by which a script reaches the manager that a token names: what stands before the
    /// token's last `:`.
    #[cfg(feature = "redis")]
    pub(crate) fn channel(&self) -> String {
        format!("{TOLD}:{}", self.identity().manager)
    }

    /// Reads a token of this manager.
    pub(crate) fn read(self: &Arc<Self>, token: &str) -> Option<OwnerToken> {
        let serial = token.rsplit(':').next()?.get(16..)?;
        let serial = u64::from_str_radix(serial, 16).ok()?;
        let mute = token.starts_with(MUTE);
        let read = OwnerToken { owners: Arc::clone(self), serial, mute };
        (read.to_string() == token).then_some(read)
    }
}

/// The token of one lease: what its record in the store holds, and what every extension and
/// release must show.
#[derive(Clone)]
pub(crate) struct OwnerToken {
    owners: Arc<Owners>,
    serial: u64,
    mute: bool,
}

impl PartialEq for OwnerToken {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial && Arc::ptr_eq(&self.owners, &other.owners)
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owners, serial, mute } = self;
        let form = if *mute { MUTE } else { TOLD };
        // The hash cannot be guessed, and the serial number makes it unique.
        let identity = owners.identity();
        write!(f, "{form}:{}:{:016x}{serial:x}", identity.manager, identity.hash(*serial))
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({self})")
    }
}

#[cfg(target_os = "linux")]
fn seed() -> [u8; 16] {
    use rustix::rand::{GetRandomFlags, getrandom};

    let mut seed = [0; 16];
    match getrandom(&mut seed, GetRandomFlags::empty()) {
        Ok(16) => seed,
        _ => seed_of_a_thread(),
    }
}

#[cfg(not(target_os = "linux"))]
fn seed() -> [u8; 16] {
    seed_of_a_thread()
}

/// A new thread draws keys of its own.
fn seed_of_a_thread() -> [u8; 16] {
    let draw = || {
        let random = RandomState::new();
        u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1))
    };
    let drawn = std::thread::Builder::new().spawn(draw).ok().and_then(|thread| thread.join().ok());
    drawn.unwrap_or_else(draw).to_ne_bytes()
}

/// The host's name, in characters that cannot be taken for a part of the token's form.
fn host() -> String {
    let name = host_name();
    let readable = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name: String = name.chars().take(40).map(readable).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

#[cfg(target_os = "linux")]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(target_os = "linux"))]
fn host_name() -> String {
    std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_across_managers() {
        let (first, second) = (Arc::new(Owners::new()), Arc::new(Owners::new()));
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(first.next().to_string()));
            assert!(seen.insert(second.next().to_string()));
        }
        assert_ne!(first.next(), second.next());
        let token = first.next();
        assert_eq!(token, token.clone());
        assert!(token.to_string().starts_with(&format!("cl1:{}:", first.identity().manager)));
        assert_eq!(token.to_string().split(':').count(), 3);
        assert_eq!(first.read(&token.to_string()), Some(token.clone()));
        assert_eq!(second.read(&token.to_string()), None);
        first.mute.store(true, Ordering::Relaxed);
        let mute = first.next();
        assert!(mute.to_string().starts_with(&format!("cl0:{}:", first.identity().manager)));
        assert_eq!(first.read(&mute.to_string()), Some(mute));
        assert_eq!(first.read(&token.to_string()), Some(token.clone()), "it stays what it was");
        for text in ["", "cl1:", "cl1:x:", &format!("{token}0"), &token.to_string()[1..]] {
            assert_eq!(first.read(text), None, "{text}");
        }
    }
}
