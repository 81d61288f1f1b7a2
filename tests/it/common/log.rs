//! The log, by all threads of the test binary.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use cache_lock::LockKey;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::Interest,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Registry},
};

/// An event, or a span that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The span's name.
    pub(crate) span: Option<&'static str>,
    /// The event's spans, outermost first.
    pub(crate) within: Vec<&'static str>,
    pub(crate) level: Level,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// The thread that logged it. Each manager has a thread of its own.
    pub(crate) thread: ThreadId,
}

impl Record {
    fn new(span: Option<&'static str>, level: Level, fields: Fields) -> Self {
        let thread = thread::current().id();
        Self { span, within: Vec::new(), level, fields: fields.0, thread }
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(crate) fn message(&self) -> &str {
        self.field("message")
    }
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
/// The [`Log`]s that there are. Without one nothing is recorded.
static LOGS: AtomicUsize = AtomicUsize::new(0);

fn push(record: Record) {
    let mut records = lock();
    // A span may end after the last log.
    if LOGS.load(Ordering::SeqCst) > 0 {
        records.push(record);
    }
}

fn lock() -> MutexGuard<'static, Vec<Record>> {
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records of all tests from a point in time on.
///
/// The subscriber is a global one, since a manager logs on a thread of its own, where a subscriber
/// of the test's thread is not known. So a test tells its records by the key, by the server or by
/// the thread.
pub(crate) struct Log {
    start: usize,
}

impl Log {
    /// Records until it is dropped.
    pub(crate) fn record() -> Self {
        static SUBSCRIBED: OnceLock<()> = OnceLock::new();
        SUBSCRIBED.get_or_init(|| {
            let subscriber = Registry::default().with(Recorder);
            tracing::subscriber::set_global_default(subscriber).expect("there is no other");
        });
        let records = lock();
        LOGS.fetch_add(1, Ordering::SeqCst);
        Self { start: records.len() }
    }

    pub(crate) fn matching(&self, is_meant: impl Fn(&Record) -> bool) -> Vec<Record> {
        lock()[self.start..].iter().filter(|record| is_meant(record)).cloned().collect()
    }

    /// The records about a lock.
    pub(crate) fn about(&self, key: &LockKey) -> Vec<Record> {
        self.matching(|record| record.field("key") == key.as_str())
    }

    /// How many events about the server on a port contain this text.
    pub(crate) fn count(&self, port: u16, text: &str) -> usize {
        let port = format!(":{port}");
        let is_about = |record: &Record| record.field("server").contains(&port);
        self.matching(|record| is_about(record) && record.message().contains(text)).len()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut records = lock();
        if LOGS.fetch_sub(1, Ordering::SeqCst) == 1 {
            records.clear();
        }
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

struct Recorder;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        LOGS.load(Ordering::SeqCst) > 0
    }

    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).expect("it is new").extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("it is open");
        let mut extensions = span.extensions_mut();
        values.record(extensions.get_mut::<Fields>().expect("inserted above"));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context.event_scope(event).into_iter().flatten();
        let mut record = Record::new(None, *event.metadata().level(), fields);
        record.within = scope.map(|span| span.name()).collect();
        record.within.reverse();
        push(record);
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("it is closing");
        let fields = span.extensions_mut().remove::<Fields>().expect("inserted above");
        push(Record::new(Some(span.name()), *span.metadata().level(), fields));
    }
}
