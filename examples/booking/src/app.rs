//! The service put together: its state, its routes, and what stands around them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use cache_lock::LockManager;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::auth::{HashError, Networks, Passwords, Secret, Tokens};
use crate::booking::Bookings;
use crate::clock::Clock;
use crate::domain::Window;
use crate::events::Days;
use crate::limits::{Limits, Rates};
use crate::metrics::Metrics;
use crate::repository::Repository;
use crate::{api, middleware, openapi, page};

/// What a service can be told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// So many slots of a day one user may have.
    pub per_day: u64,
    /// Time between reading a slot and booking it.
    pub think: Duration,
    /// How many days ahead a slot may start.
    pub horizon_days: u16,
    /// What tells the time of day.
    pub clock: Clock,
    /// How long a token lasts.
    pub token_lifetime: Duration,
    /// How often logins and registrations may be tried.
    pub rates: Rates,
    /// Whether a proxy of ours is in front, whose `X-Forwarded-For` tells the client's address.
    pub trust_proxy: bool,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// How long a request may take from its head to the head of its answer.
    pub request_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            per_day: 3,
            think: Duration::ZERO,
            horizon_days: 366,
            clock: Clock::system(),
            token_lifetime: Duration::from_secs(30 * 60),
            rates: Rates::default(),
            trust_proxy: false,
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// When a slot that is created now may start.
    #[must_use]
    pub fn window(&self) -> Window {
        Window::ahead_of(self.clock.now(), time::Duration::days(self.horizon_days.into()))
    }
}

/// What handlers work with. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

/// The parts of [`AppState`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Shared {
    /// Users and slots.
    pub repository: Arc<dyn Repository>,
    /// Books and cancels.
    pub bookings: Bookings,
    /// The slots of days, live.
    pub days: Days,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// Marks the networks from which users log in.
    pub networks: Networks,
    /// Makes and verifies tokens.
    pub tokens: Tokens,
    /// Counts attempts.
    pub limits: Limits,
    /// Counts everything else.
    pub metrics: Arc<Metrics>,
    /// Locks.
    pub locks: LockManager,
    /// Is cancelled when the service begins to end: streams are to end then.
    pub ended: CancellationToken,
    /// What it was told.
    pub settings: Settings,
}

impl std::ops::Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Why a service could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Passwords cannot be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// Networks cannot be marked.
    #[error("networks cannot be marked: {0}")]
    Network(#[from] hmac::digest::InvalidLength),
    /// Tokens cannot be signed.
    #[error("tokens cannot be signed: {0}")]
    Token(#[from] jsonwebtoken::errors::Error),
}

impl AppState {
    /// A service over this repository and these locks.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn new(
        repository: Arc<dyn Repository>,
        locks: LockManager,
        secret: &Secret,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::new());
        let ended = CancellationToken::new();
        let days = Days::new(repository.clone(), ended.clone(), &settings);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let passwords = Passwords::new(cores, metrics.passwords_hashed.clone()).await?;
        let bookings = Bookings::new(
            repository.clone(),
            locks.clone(),
            days.clone(),
            metrics.clone(),
            &settings,
        );
        Ok(Self(Arc::new(Shared {
            repository,
            bookings,
            days,
            passwords,
            networks: Networks::new(secret)?,
            tokens: Tokens::new(secret, settings.token_lifetime, settings.clock)?,
            limits: Limits::new(&settings.rates),
            metrics,
            locks,
            ended,
            settings,
        })))
    }
}

/// The address of the other end of a connection, as the server puts it into a request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// In a request's extensions: it came when all places were taken, and may ask how the service does.
#[derive(Debug, Clone, Copy)]
pub struct Reserved;

/// All routes of the service, with what stands around them.
pub fn router(state: AppState) -> Router {
    let (json, described) = api::routes().split_for_parts();
    Router::new()
        .merge(json)
        .merge(openapi::routes(described))
        .merge(page::routes())
        .fallback(middleware::not_found)
        .method_not_allowed_fallback(middleware::method_not_allowed)
        // The last is the outermost.
        .layer(from_fn_with_state(state.clone(), middleware::bound))
        .layer(from_fn(middleware::admit))
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(from_fn(middleware::secure))
        .layer(from_fn_with_state(state.clone(), middleware::observe))
        .with_state(state)
}
