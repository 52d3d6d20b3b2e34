//! Figures of the server itself, as Prometheus reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Which requests are counted together. The route is its pattern, so that ids do not become series.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asked {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Timed {
    route: String,
}

type Times = Family<Timed, Histogram, fn() -> Histogram>;

/// Figures of the server itself.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    times: Times,
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were refused because there were too many.
    pub refused: Counter,
    /// Live streams that are open.
    pub streams: Gauge,
    /// Events that live streams left out, because their client was too slow.
    pub missed: Counter,
    waiting: Arc<AtomicUsize>,
    gauge: Gauge<i64, AtomicI64>,
}

fn buckets() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
    ])
}

/// Somebody waits.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("quipu");
        let requests = Family::default();
        let times: Times = Family::new_with_constructor(buckets as fn() -> Histogram);
        let (connections, streams, gauge) = (Gauge::default(), Gauge::default(), Gauge::default());
        let (refused, missed) = (Counter::default(), Counter::default());
        registry.register(
            "http_requests",
            "Requests by route, method and status",
            requests.clone(),
        );
        registry.register(
            "http_request_seconds",
            "How long requests took",
            times.clone(),
        );
        registry.register(
            "connections",
            "Connections that are open",
            connections.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections that were refused because there were too many",
            refused.clone(),
        );
        registry.register("streams", "Live streams that are open", streams.clone());
        registry.register(
            "stream_events_missed",
            "Events that live streams left out because their client was too slow",
            missed.clone(),
        );
        registry.register(
            "waiting",
            "Requests that wait for the archive",
            gauge.clone(),
        );
        Self {
            registry,
            requests,
            times,
            connections,
            refused,
            streams,
            missed,
            waiting: Arc::default(),
            gauge,
        }
    }

    /// Counts a request that was answered.
    pub fn answered(&self, route: &str, method: &str, status: u16, took: Duration) {
        let of = Asked {
            route: route.to_owned(),
            method: method.to_owned(),
            status,
        };
        self.requests.get_or_create(&of).inc();
        let of = Timed {
            route: route.to_owned(),
        };
        self.times.get_or_create(&of).observe(took.as_secs_f64());
    }

    /// Somebody waits for the archive, unless so many do already.
    pub(crate) fn wait(&self, most: usize) -> Option<Waiting> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(Arc::clone(&self.waiting));
        (before < most).then_some(waiting)
    }

    /// All of it, as text.
    pub fn text(&self) -> String {
        let waiting = self.waiting.load(Ordering::Acquire);
        self.gauge.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a text does not fail.
            Err(_) => String::new(),
        }
    }
}
