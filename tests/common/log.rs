//! What is logged, by all threads of the test binary.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Registry},
};

/// An event, or a span that has ended.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "not every test looks at all of it")]
pub(crate) struct Record {
    /// The span's name.
    pub(crate) span: Option<&'static str>,
    /// The event's spans, outermost first.
    pub(crate) within: Vec<&'static str>,
    pub(crate) level: Level,
    pub(crate) fields: BTreeMap<&'static str, String>,
}

impl Record {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(crate) fn message(&self) -> &str {
        self.field("message")
    }
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<Record>> {
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records everything from the first call on. Tests tell theirs by the key.
pub(crate) fn record() {
    static SUBSCRIBED: OnceLock<()> = OnceLock::new();
    SUBSCRIBED.get_or_init(|| {
        let subscriber = Registry::default().with(Recorder);
        tracing::subscriber::set_global_default(subscriber).expect("there is no other");
    });
}

pub(crate) fn records() -> Vec<Record> {
    lock().clone()
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
        let mut within: Vec<_> = scope.map(|span| span.name()).collect();
        within.reverse();
        let level = *event.metadata().level();
        lock().push(Record { span: None, within, level, fields: fields.0 });
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("it is closing");
        let fields = span.extensions_mut().remove::<Fields>().expect("inserted above");
        let (name, level) = (span.name(), *span.metadata().level());
        let record = Record { span: Some(name), within: Vec::new(), level, fields: fields.0 };
        lock().push(record);
    }
}
