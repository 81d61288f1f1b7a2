//! The service, from its options to its end.

use std::env::{self, VarError};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use cache_lock::LockManager;
use example_support::{ServerUrl, Signal, Unusable, asked_to_end, locks_on, mongodb_at};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::app::{AppState, Settings, StartError};
use crate::auth::{HashError, Passwords, Secret, WeakSecret};
use crate::cli::Options;
use crate::clock::Clock;
use crate::domain::{Email, FieldError, Password, Role, User, UserId};
use crate::limits::{Rate, Rates};
use crate::repository::{LocalRepository, MongoRepository, Repository, RepositoryError};
use crate::{demo, server};

const SECRET: &str = "BOOKING_JWT_SECRET";
const ORGANISER_PASSWORD: &str = "BOOKING_ORGANISER_PASSWORD";

/// Why the command did not do what it was to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What it was told does not go together.
    #[error("{0}")]
    Usage(String),
    /// The secret is missing.
    #[error(
        "set {SECRET} to 32 random bytes or more, such as `openssl rand -hex 32` prints; --dev does without"
    )]
    NoSecret,
    /// The secret can be guessed.
    #[error("{SECRET} is weak: {0}; take what `openssl rand -hex 32` prints")]
    WeakSecret(#[from] WeakSecret),
    /// A server that was asked for cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The repository failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The service cannot be put together.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A password cannot be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// It cannot listen, or speak.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Ctrl-C or SIGTERM, where there was more to do.
    #[error(transparent)]
    Told(#[from] Signal),
}

/// Serves until it is told to end.
///
/// # Errors
/// See [`Error`].
pub async fn serve(options: &Options) -> Result<(), Error> {
    let secret = secret(options.dev)?;
    let (repository, locks) = connect(options).await?;
    let settings = settings(options);
    if options.dev {
        demo::seed(&*repository, settings.clock.now()).await?;
    }
    let state = AppState::new(repository, locks, &secret, settings).await?;
    let listener = TcpListener::bind(&options.listen).await.map_err(|error| {
        let text = format!(
            "cannot listen on {:?}: {error}; give an address or a name of this machine and a port, \
             such as 127.0.0.1:8080 or localhost:8080",
            options.listen
        );
        io::Error::new(error.kind(), text)
    })?;
    let mut out = io::stdout().lock();
    writeln!(out, "booking listens on http://{}", listener.local_addr()?)?;
    if options.dev {
        out.write_all(demo::NOTE.as_bytes())?;
    }
    out.flush()?;
    drop(out);
    if options.redis.is_none() || options.mongodb.is_none() {
        tracing::warn!("this is for one process: locks or data are in its memory");
    }
    let end = async {
        tokio::select! {
            _ = asked_to_end() => {}
            () = stdin_ended(), if options.end_with_stdin => {}
        }
    };
    server::serve(listener, state, options.limits(), end).await?;
    Ok(())
}

/// Waits until standard input ends, as a pipe does when whoever holds its other end is gone.
async fn stdin_ended() {
    let (end, ended) = oneshot::channel::<()>();
    // A thread of its own, not the runtime's: that would wait for the end of the input before it ends.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(end);
    });
    let _ = ended.await;
}

/// Opens an account that may create slots.
///
/// # Errors
/// See [`Error`].
pub async fn create_organiser(options: &Options, email: &str) -> Result<(), Error> {
    let Some(url) = &options.mongodb else {
        return Err(Error::Usage(
            "create-organiser needs a database that outlives it: also give --mongodb".to_owned(),
        ));
    };
    let wrong = |error: FieldError| Error::Usage(format!("{} {}", error.field, error.message));
    let email = Email::parse(email).map_err(wrong)?;
    let password = variable(ORGANISER_PASSWORD)?
        .ok_or_else(|| Error::Usage(format!("set {ORGANISER_PASSWORD}")))?;
    let password = Password::choose(password, Some(&email)).map_err(wrong)?;
    let repository = mongodb(url, &options.database).await?;
    let hash = Passwords::new(1, Default::default()).await?.hash(password).await?;
    let user = User {
        id: UserId::random(),
        email,
        password_hash: hash,
        role: Role::Organiser,
        networks: Vec::new(),
    };
    if repository.insert_user(&user).await? {
        Ok(())
    } else {
        Err(Error::Usage(format!("{} has an account already", user.email)))
    }
}

/// The repository and the locks that the options ask for. What was asked for and cannot be used is an
/// error; nothing falls back to memory.
pub(crate) async fn connect(
    options: &Options,
) -> Result<(Arc<dyn Repository>, LockManager), Error> {
    let locks = match &options.redis {
        Some(url) => locks_on(url).await?,
        None => LockManager::in_memory(),
    };
    let repository: Arc<dyn Repository> = match &options.mongodb {
        Some(url) => Arc::new(mongodb(url, &options.database).await?),
        None => Arc::new(LocalRepository::new()),
    };
    Ok((repository, locks))
}

pub(crate) async fn mongodb(url: &ServerUrl, database: &str) -> Result<MongoRepository, Error> {
    Ok(MongoRepository::open(mongodb_at(url).await?.database(database)).await?)
}

fn secret(dev: bool) -> Result<Secret, Error> {
    match variable(SECRET)? {
        Some(text) => Ok(Secret::new(&text)?),
        None if dev => Ok(Secret::random()),
        None => Err(Error::NoSecret),
    }
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Result<Option<String>, Error> {
    match env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Error::Usage(format!("{name} is not UTF-8"))),
    }
}

fn settings(options: &Options) -> Settings {
    let mut settings = Settings {
        per_day: options.per_day,
        horizon_days: options.horizon_days,
        think: Duration::from_millis(options.think_ms.unwrap_or(0)),
        clock: options.now.map_or_else(Clock::system, Clock::set_to),
        token_lifetime: Duration::from_secs(options.token_minutes * 60),
        trust_proxy: options.trust_proxy,
        body_timeout: Duration::from_secs(options.body_seconds),
        ..Settings::default()
    };
    if options.unlimited {
        let never = Rate::new(u32::MAX, Duration::from_secs(60));
        settings.rates = Rates::all(never);
    }
    settings
}
