//! Metrics for Prometheus (OpenMetrics text, version 1.0.0).
//!
//! # Shape
//! Counters of requests change as requests happen; those of the database and of the process are read at each
//! scrape (`DatabaseCollector`).
//! # Cost
//! Of a request: two lookups in a table by labels, 100 ns. Of a scrape: reading the sizes of the database
//! files.

use crate::operations::peer_metrics::PeerCollector;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use vervet::{Database, StorageStatus};
use vervet_cluster::Cluster;
use vervet_env::cpu_time_of_this_process;

/// The content type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RequestKind {
    Query,
    Update,
    Store,
    Changes,
    Gremlin,
    Api,
    Page,
    Other,
}

impl RequestKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Update => "update",
            Self::Store => "store",
            Self::Changes => "changes",
            Self::Gremlin => "gremlin",
            Self::Api => "api",
            Self::Page => "page",
            Self::Other => "other",
        }
    }
}

impl EncodeLabelValue for RequestKind {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.name().encode(encoder)
    }
}

/// Statuses with a counter of their own, those of Gremlin included. All others share one, so that clients
/// cannot create many series.
const STATUSES: [u16; 30] = [
    101, 200, 201, 204, 304, 400, 401, 403, 404, 405, 406, 407, 408, 409, 410, 413, 415, 421, 497, 498, 499,
    500, 503, 504, 507, 595, 596, 597, 598, 599,
];

/// One of [`STATUSES`], or 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct StatusLabel(u16);

impl EncodeLabelValue for StatusLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self.0 {
            0 => "other".encode(encoder),
            status => status.encode(encoder),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    kind: RequestKind,
    status: StatusLabel,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct KindLabels {
    kind: RequestKind,
}

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// All request counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    pub(crate) running: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) heavy: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) refused_connections: Counter,
    pub(crate) failed_logins: Counter,
    pub(crate) rows_out: Counter,
    pub(crate) broken: Counter,
    bytes_out: Counter,
    pub(crate) bytes_in: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            registry: Mutex::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            running: Gauge::default(),
            waiting: Gauge::default(),
            connections: Gauge::default(),
            heavy: Gauge::default(),
            sessions: Gauge::default(),
            refused_connections: Counter::default(),
            failed_logins: Counter::default(),
            rows_out: Counter::default(),
            broken: Counter::default(),
            bytes_out: Counter::default(),
            bytes_in: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register(
            "vervet_build",
            "The program",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register("vervet_requests", "Answered requests, by kind and status", self.requests.clone());
        registry.register(
            "vervet_request_seconds",
            "From the head of a request to the end of its answer",
            self.seconds.clone(),
        );
        for (name, help, gauge) in [
            ("vervet_requests_running", "Requests running on the database", &self.running),
            ("vervet_requests_waiting", "Requests waiting for a permit", &self.waiting),
            ("vervet_connections", "Open connections", &self.connections),
            ("vervet_heavy_requests_running", "Heavy requests running", &self.heavy),
            ("vervet_gremlin_sessions", "Gremlin sessions", &self.sessions),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, counter) in [
            ("vervet_connections_refused", "Connections above the limit", &self.refused_connections),
            ("vervet_logins_failed", "Wrong names, passwords and tokens", &self.failed_logins),
            ("vervet_rows_out", "Rows and triples of answers", &self.rows_out),
            ("vervet_answers_broken", "Answers aborted after their beginning was sent", &self.broken),
            ("vervet_bytes_out", "Bytes of response bodies", &self.bytes_out),
            ("vervet_bytes_in", "Bytes of request bodies", &self.bytes_in),
        ] {
            registry.register(name, help, counter.clone());
        }
    }

    /// Also exports the figures of a database, whose files and log are those of a server of a cluster if it
    /// has one.
    pub(crate) fn register_database(&self, database: &Database, cluster: Option<&Arc<Cluster>>) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let collector = DatabaseCollector { database: database.clone(), cluster: cluster.map(Arc::clone) };
        registry.register_collector(Box::new(collector));
    }

    /// Also exports the figures of the other servers of a cluster.
    pub(crate) fn register_cluster(&self, cluster: &Arc<Cluster>) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(PeerCollector::new(cluster)));
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::with_capacity(16 << 10);
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut out, &registry);
        out
    }

    /// Counts response bytes.
    pub(crate) fn add_bytes_out(&self, bytes: usize) {
        self.bytes_out.inc_by(bytes as u64);
    }
}

/// Counts one thing during its lifetime.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts a request when its response ends.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    metrics: Arc<Metrics>,
    kind: RequestKind,
    status: u16,
    begin: Instant,
}

impl RequestTimer {
    pub(crate) fn new(metrics: &Arc<Metrics>, kind: RequestKind, status: u16, begin: Instant) -> Self {
        Self { metrics: Arc::clone(metrics), kind, status, begin }
    }

    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.metrics.add_bytes_out(bytes);
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        let (kind, status) =
            (self.kind, StatusLabel(if STATUSES.contains(&self.status) { self.status } else { 0 }));
        self.metrics.requests.get_or_create(&RequestLabels { kind, status }).inc();
        let time = self.begin.elapsed().as_secs_f64();
        self.metrics.seconds.get_or_create(&KindLabels { kind }).observe(time);
    }
}

/// Values that are read at each scrape.
#[derive(Debug)]
struct DatabaseCollector {
    database: Database,
    cluster: Option<Arc<Cluster>>,
}

impl Collector for DatabaseCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let database = &self.database;
        let (mut files, plans) = (database.file_bytes(), database.plan_cache_counts());
        let transactions = database.transaction_counts();
        let (statements, mut status) = (database.snapshot().statement_count(), database.storage_status());
        if let Some(storage) = self.cluster.as_ref().map(|cluster| cluster.storage()) {
            files = storage.files;
            if let Some(log) = storage.log {
                (status.log_bytes, status.log_files) = (log.bytes, log.files);
                (status.log_syncs, status.log_sync_time) = (log.syncs, log.sync_time);
            }
        }
        let out = &mut encoder;
        for (name, help, value) in [
            ("vervet_transactions_committed", "Committed transactions.", transactions.commits),
            (
                "vervet_transactions_refused",
                "Transactions that conflicted with others.",
                transactions.conflicts,
            ),
        ] {
            counter(out, name, help, value)?;
        }
        for (name, help, value) in [
            ("vervet_statements", "Statements of the graph.", statements),
            (
                "vervet_writable",
                "1: writes are accepted; 0: they are refused.",
                u64::from(status.is_writable()),
            ),
            ("vervet_disk_bytes", "Bytes of the files of the database.", files.all),
            ("vervet_log_bytes", "Bytes of the files of the log.", files.log),
        ] {
            gauge(out, name, help, integer(value))?;
        }
        storage(out, &status)?;
        counter(out, "vervet_plan_cache_hits", "Queries found in the plan cache.", plans.hits)?;
        counter(out, "vervet_plan_cache_misses", "Queries not found in the plan cache.", plans.misses)?;
        if let Some(bytes) = resident_bytes() {
            gauge(out, "process_resident_memory_bytes", "Memory of the process.", integer(bytes))?;
        }
        if let Some(seconds) = cpu_time_of_this_process().map(|time| time.as_secs_f64()) {
            let metric = ConstCounter::new(seconds);
            let encoder = out.encode_descriptor(
                "process_cpu_seconds",
                "Processor time of the process.",
                None,
                metric.metric_type(),
            )?;
            metric.encode(encoder)?;
        }
        Ok(())
    }
}

/// Log, delta, checkpoints, conflicts.
fn storage(out: &mut DescriptorEncoder<'_>, status: &StorageStatus) -> fmt::Result {
    let StorageStatus { checkpoints, conflicts, .. } = status;
    for (name, help, value) in [
        ("vervet_log_files", "Files of the log.", status.log_files),
        ("vervet_recovery_bytes", "Bytes of the log that opening would read.", status.log_bytes),
        ("vervet_delta_cells", "Statements that differ from the base.", status.delta_cells),
        ("vervet_delta_bytes", "Memory of the statements that differ from the base.", status.delta_bytes),
        ("vervet_terms", "Vertices and literals in the dictionary.", status.terms),
        ("vervet_transactions_active", "Active transactions.", status.active_transactions),
        ("vervet_checkpoint_running", "1: a checkpoint is running.", u64::from(checkpoints.running)),
        (
            "vervet_checkpoint_failed_in_row",
            "Consecutive failed checkpoints.",
            u64::from(checkpoints.failed_in_row),
        ),
    ] {
        gauge(out, name, help, integer(value))?;
    }
    for (name, help, value) in [
        ("vervet_log_syncs", "Syncs of the log.", status.log_syncs),
        ("vervet_checkpoints", "Completed checkpoints.", checkpoints.completed),
        ("vervet_checkpoints_failed", "Failed checkpoints.", checkpoints.failed),
        ("vervet_commits_slowed", "Commits that waited for checkpoints.", status.slowed_commits),
    ] {
        counter(out, name, help, value)?;
    }
    let oldest = status.oldest_transaction.unwrap_or_default();
    for (name, help, time) in [
        ("vervet_checkpoint_age_seconds", "Time since the last checkpoint or the start.", checkpoints.age),
        ("vervet_checkpoint_seconds", "Duration of the last checkpoint.", checkpoints.took),
        ("vervet_transaction_age_seconds", "Age of the oldest active transaction.", oldest),
    ] {
        let metric = ConstGauge::new(time.as_secs_f64());
        metric.encode(out.encode_descriptor(name, help, None, metric.metric_type())?)?;
    }
    for (name, help, time) in [
        ("vervet_log_sync_seconds", "Time of all syncs of the log.", status.log_sync_time),
        ("vervet_commits_slowed_seconds", "Time that commits waited for checkpoints.", status.slowed_time),
    ] {
        let metric = ConstCounter::new(time.as_secs_f64());
        metric.encode(out.encode_descriptor(name, help, None, metric.metric_type())?)?;
    }
    let help = "Conflicted transactions, by cause.";
    let mut family = out.encode_descriptor("vervet_conflicts", help, None, MetricType::Counter)?;
    for (cause, value) in [
        ("changes", conflicts.changes),
        ("load", conflicts.loads),
        ("too_old", conflicts.too_old),
        ("constraints", conflicts.constraints),
    ] {
        ConstCounter::new(value).encode(family.encode_family(&[("cause", cause)])?)?;
    }
    Ok(())
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let metric = ConstCounter::new(value);
    metric.encode(out.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: i64) -> fmt::Result {
    let metric = ConstGauge::new(value);
    metric.encode(out.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// Gauges are signed.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Memory of this process; `None` where the system does not report it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes << 10)
}
