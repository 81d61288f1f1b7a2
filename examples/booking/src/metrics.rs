//! What the service counts, for `/metrics`.

use std::fmt;
use std::time::Duration;

use cache_lock::{LockManager, LockStats};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text::encode};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds: from a lookup in memory to a request that ran into its bound.
const BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The service's numbers.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    /// Outcomes of booking and cancelling.
    bookings: Family<BookingLabels, Counter>,
    /// How long bookings waited for the lock of their slot.
    lock_waits: Histogram,
    /// Passwords that were hashed or compared.
    pub passwords_hashed: Counter,
    /// Connections that are open.
    pub connections: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BookingLabels {
    outcome: Outcome,
}

/// How a booking or a cancellation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Outcome {
    /// 201.
    Booked,
    /// 200.
    HadAlready,
    /// 409: somebody else has it.
    TakenByOther,
    /// Any other 409, and 404.
    Refused,
    /// 423.
    Locked,
    /// 503, since this replica has more to do than it can: another one helps, and looking at the
    /// servers does not.
    Overloaded,
    /// Any other 503.
    Failed,
    /// A booking was given back.
    Cancelled,
}

impl Metrics {
    /// All at zero. `locks` is asked for its own numbers when somebody reads.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("booking");
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(histogram),
            bookings: Family::default(),
            lock_waits: Histogram::new(BUCKETS),
            passwords_hashed: Counter::default(),
            connections: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "From the request's head to the head of its answer",
            metrics.durations.clone(),
        );
        registry.register("bookings", "Bookings and cancellations", metrics.bookings.clone());
        registry.register(
            "lock_wait_seconds",
            "How long bookings waited for their slot's lock, if they got it",
            metrics.lock_waits.clone(),
        );
        registry.register(
            "passwords_hashed",
            "Passwords hashed or compared",
            metrics.passwords_hashed.clone(),
        );
        registry.register("connections", "Open connections", metrics.connections.clone());
        Self { registry, ..metrics }
    }

    /// Counts a request. `route` is the pattern, so that nobody makes new ones.
    pub fn request(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let labels = Request { method, route: route.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
        let labels = Route { route: route.to_owned() };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a booking or a cancellation.
    pub fn booking(&self, outcome: Outcome) {
        self.bookings.get_or_create(&BookingLabels { outcome }).inc();
    }

    /// Notes how long a booking waited for its lock.
    pub fn lock_wait(&self, waited: Duration) {
        self.lock_waits.observe(waited.as_secs_f64());
    }

    /// All of it in the text format of OpenMetrics, which Prometheus reads.
    ///
    /// # Errors
    /// None: it writes to memory.
    pub fn text(&self, locks: &LockManager) -> Result<String, fmt::Error> {
        let mut now = Registry::with_prefix("booking");
        let LockStats { acquired, contended, failed, lost, handed_over, .. } = locks.stats();
        for (name, help, count) in [
            ("locks_acquired", "Locks acquired", acquired),
            ("locks_contended", "Callers who gave up since somebody else had the lock", contended),
            ("locks_failed", "Callers who got no lock since the server could not be asked", failed),
            ("locks_lost", "Leases that ended before their holders were done", lost),
            ("locks_handed_over", "Locks had from the same process", handed_over),
        ] {
            now.register(name, help, ConstCounter::new(count));
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode_registry(&mut text, &self.registry)?;
        encode(&mut text, &now)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
