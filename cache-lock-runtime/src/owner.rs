//! Owner tokens: the values of lock records, which name their holders.

use std::{
    collections::{HashMap, VecDeque},
    fmt::{self, Write as _},
    hash::{BuildHasher, Hash, RandomState},
    process,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use crate::mutex::Mutex;

/// What a token begins with whose manager hands the lock on. The scripts know it.
const TOLD: &str = "cl1";
/// The same for a manager that cannot.
const MUTE: &str = "cl0";
/// A map with room for so many more tokens than it holds is made smaller.
const ROOM: usize = 1024;

/// So many tokens that are over are known: a request that comes late may take a lock under one.
const OVER: usize = 1 << 16;

/// Makes the owner tokens of one manager.
#[derive(Debug)]
pub(crate) struct TokenSource {
    serial: AtomicU64,
    /// The manager cannot hand a lock on to other managers. Its tokens say so, and their waiters poll.
    mute: AtomicBool,
    /// Other managers use the store, so tokens are written.
    shared: bool,
    issued: Mutex<Issued>,
}

#[derive(Debug, Default)]
struct Issued {
    /// Drawn when it is first needed, by the process that asks: a process that forks before that has
    /// children that differ.
    identity: Option<Arc<Identity>>,
    /// The written tokens that something in this process refers to, by their serial numbers.
    alive: HashMap<u64, Weak<Written>>,
    /// The last tokens of this name that are over, by their serial numbers and random parts.
    over: VecDeque<(u64, u64)>,
    /// The connection that listened to the name has ended, and no other was begun.
    unheard: bool,
}

impl Issued {
    fn identity(&mut self) -> &Arc<Identity> {
        self.identity.get_or_insert_with(|| Arc::new(Identity::draw()))
    }

    /// Has another name drawn if no token is in use: its holder is told by the name that it has.
    fn leave_name(&mut self) {
        self.unheard = false;
        if self.alive.is_empty() {
            self.identity = None;
            self.over.clear();
        }
    }
}

#[derive(Debug)]
struct Identity {
    /// Names the manager, for an operator that reads a record: host, process, and a random
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
        let nonce = identity.fresh(&Drawn::new(), "manager");
        identity.manager = format!("{}.{}.{nonce:016x}", host(), process::id());
        identity
    }

    /// A number that cannot be guessed.
    fn fresh(&self, drawn: &Drawn, value: impl Hash) -> u64 {
        self.random.hash_one((self.seed, drawn, value))
    }
}

/// What a copy of the machine, with the same memory, draws differently: the random numbers of its kernel,
/// and the nanosecond of its wall clock where the kernel does not notice that it was copied.
#[derive(Hash)]
struct Drawn([u8; 16], SystemTime);

impl Drawn {
    fn new() -> Self {
        Self(random(), SystemTime::now())
    }
}

impl TokenSource {
    /// The tokens of a store that other managers use.
    #[cfg(any(test, feature = "redis"))]
    pub(crate) fn new() -> Self {
        Self { shared: true, ..Self::local() }
    }

    /// The tokens of a store in this process's memory.
    pub(crate) fn local() -> Self {
        let (serial, mute) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { serial, mute, shared: false, issued: Mutex::default() }
    }

    /// Tells managers of one process apart. It is no part of a token: nothing is drawn for those yet, as
    /// the process may fork.
    pub(crate) fn number() -> u64 {
        RandomState::new().hash_one("manager")
    }

    /// A token that no lease and no wait has had.
    pub(crate) fn next(self: &Arc<Self>) -> OwnerToken {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let written = self.shared.then(|| self.write(serial));
        OwnerToken { source: Arc::clone(self), serial, written }
    }

    fn write(self: &Arc<Self>, serial: u64) -> Arc<Written> {
        let form = if self.mute.load(Ordering::Relaxed) { MUTE } else { TOLD };
        // A call of the system, so before others are kept waiting.
        let drawn = Drawn::new();
        let mut issued = self.issued.lock();
        if issued.unheard && issued.alive.is_empty() {
            issued.leave_name();
        }
        let identity = issued.identity();
        // The serial number makes it unique in this process, the rest among all.
        let random = identity.fresh(&drawn, serial);
        let mut text = String::with_capacity(form.len() + identity.manager.len() + 34);
        // A string takes all that is written to it.
        let _ = write!(text, "{form}:{}:{random:016x}{serial:x}", identity.manager);
        let written = Arc::new(Written { source: Arc::clone(self), serial, random, text });
        issued.alive.insert(serial, Arc::downgrade(&written));
        written
    }

    /// A connection is begun that will listen to the name, which is another one if no token is in use: a
    /// copy of this machine has to open a connection as well, and so gets a name of its own.
    #[cfg(feature = "redis")]
    pub(crate) fn begin_to_listen(&self) {
        self.issued.lock().leave_name();
    }

    /// The connection that listened to the name has ended, if `ended` says so. Other
    /// callers wait until it has said so.
    #[cfg(feature = "redis")]
    pub(crate) fn end_listening(&self, ended: impl FnOnce() -> bool) -> bool {
        let mut issued = self.issued.lock();
        let ended = ended();
        issued.unheard |= ended;
        ended
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
        format!("{TOLD}:{}", self.issued.lock().identity().manager)
    }

    /// Reads a token that this manager has made. A copy of this machine may listen to the same channel;
    /// its tokens are not read.
    pub(crate) fn read(self: &Arc<Self>, token: &str) -> Option<OwnerToken> {
        let (name, number) = token.rsplit_once(':')?;
        let (random, serial) = (number.get(..16)?, number.get(16..)?);
        let random = u64::from_str_radix(random, 16).ok()?;
        let serial = u64::from_str_radix(serial, 16).ok()?;
        let mut issued = self.issued.lock();
        let written = issued.alive.get(&serial).and_then(Weak::upgrade);
        let written = match written {
            Some(written) => written,
            None => {
                let is_name =
                    [TOLD, MUTE].map(|form| format!("{form}:{}", issued.identity().manager));
                let is_ours = is_name.iter().any(|ours| ours == name);
                if !is_ours || !issued.over.contains(&(serial, random)) {
                    return None;
                }
                let (source, text) = (Arc::clone(self), token.to_owned());
                let written = Arc::new(Written { source, serial, random, text });
                issued.alive.insert(serial, Arc::downgrade(&written));
                written
            }
        };
        // A token that ends takes the lock.
        drop(issued);
        let same = written.text == token;
        same.then(|| OwnerToken { source: Arc::clone(self), serial, written: Some(written) })
    }
}

/// The token of one lease: what its record in the store holds, and what every extension and
/// release must show.
#[derive(Clone)]
pub(crate) struct OwnerToken {
    source: Arc<TokenSource>,
    serial: u64,
    /// Not in a store of this process: there the number suffices.
    written: Option<Arc<Written>>,
}

struct Written {
    source: Arc<TokenSource>,
    serial: u64,
    random: u64,
    text: String,
}

impl Drop for Written {
    fn drop(&mut self) {
        let mut issued = self.source.issued.lock();
        // It may have been read again meanwhile.
        if issued.alive.get(&self.serial).is_some_and(|known| known.strong_count() == 0) {
            issued.alive.remove(&self.serial);
        }
        if issued.over.len() == OVER {
            issued.over.pop_front();
        }
        issued.over.push_back((self.serial, self.random));
        let (room, alive) = (issued.alive.capacity(), issued.alive.len());
        if room > ROOM && room / 8 > alive {
            issued.alive.shrink_to(alive * 2);
        }
    }
}

impl PartialEq for OwnerToken {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial && Arc::ptr_eq(&self.source, &other.source)
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Some(written) => f.write_str(&written.text),
            None => write!(f, "memory:{:x}", self.serial),
        }
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({self})")
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The kernel's random numbers; nothing where they are not at hand.
#[cfg(target_os = "linux")]
fn random() -> [u8; 16] {
    use rustix::rand::{GetRandomFlags, getrandom};

    let mut random = [0; 16];
    // It fails where the system call is forbidden. The seed and the clock are there then.
    let _ = getrandom(&mut random, GetRandomFlags::empty());
    random
}

#[cfg(not(target_os = "linux"))]
fn random() -> [u8; 16] {
    [0; 16]
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
        let (first, second) = (Arc::new(TokenSource::new()), Arc::new(TokenSource::new()));
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(first.next().to_string()));
            assert!(seen.insert(second.next().to_string()));
        }
        assert_ne!(first.next(), second.next());
        let token = first.next();
        let manager = first.issued.lock().identity().manager.clone();
        assert_eq!(token, token.clone());
        assert!(token.to_string().starts_with(&format!("cl1:{manager}:")));
        assert_eq!(token.to_string().split(':').count(), 3);
        assert_eq!(first.read(&token.to_string()), Some(token.clone()));
        assert_eq!(second.read(&token.to_string()), None);
        first.mute.store(true, Ordering::Relaxed);
        let mute = first.next();
        assert!(mute.to_string().starts_with(&format!("cl0:{manager}:")));
        assert_eq!(first.read(&mute.to_string()), Some(mute));
        assert_eq!(first.read(&token.to_string()), Some(token.clone()), "it stays what it was");
        for text in ["", "cl1:", "cl1:x:", &format!("{token}0"), &token.to_string()[1..]] {
            assert_eq!(first.read(text), None, "{text}");
        }
    }

    #[test]
    fn copies_of_an_idle_manager_make_different_tokens() {
        let tokens = Arc::new(TokenSource::new());
        drop(tokens.next());
        let copy = || {
            let copy = TokenSource::new();
            copy.serial.store(tokens.serial.load(Ordering::Relaxed), Ordering::Relaxed);
            copy.issued.lock().identity.clone_from(&tokens.issued.lock().identity);
            Arc::new(copy)
        };
        let (first, second) = (copy(), copy());
        for _ in 0..100 {
            let (here, there) = (first.next(), second.next());
            assert_eq!(here.serial, there.serial);
            assert_ne!(here.to_string(), there.to_string());
            // They have one channel until one of them has opened a connection.
            assert_eq!(first.read(&there.to_string()), None);
            assert_eq!(second.read(&here.to_string()), None);
        }
    }

    #[test]
    fn a_token_that_is_over_is_read() {
        let tokens = Arc::new(TokenSource::new());
        let (token, copy) = (tokens.next(), tokens.next());
        let text = token.to_string();
        drop(copy.clone());
        assert_eq!(tokens.read(&copy.to_string()), Some(copy));
        drop(token);
        assert_eq!(tokens.read(&text).map(|token| token.to_string()), Some(text));
        assert!(tokens.issued.lock().alive.is_empty());
    }

    #[cfg(feature = "redis")]
    #[test]
    fn the_name_is_drawn_anew_while_no_token_is_in_use() {
        let tokens = Arc::new(TokenSource::new());
        let name = tokens.channel();
        let token = tokens.next();
        tokens.begin_to_listen();
        assert_eq!(tokens.channel(), name, "its holder is told by that name");
        assert!(tokens.end_listening(|| true));
        drop(tokens.next());
        assert_eq!(tokens.channel(), name, "another token is in use");
        drop(token);
        let token = tokens.next();
        assert_ne!(tokens.channel(), name);
        let name = tokens.channel();
        assert!(token.to_string().starts_with(&name));
        drop(tokens.next());
        tokens.begin_to_listen();
        drop(token);
        assert_eq!(tokens.channel(), name, "it is listened to");
        tokens.begin_to_listen();
        assert_ne!(tokens.channel(), name);
    }
}
