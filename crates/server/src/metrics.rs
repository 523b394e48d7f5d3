//! What the server counts, and its text for Prometheus (text exposition format 0.0.4).
//!
//! Relaxed everywhere: counters carry no other data, and a reading is never exact while requests run.

use crate::state::State;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// What requests are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Query,
    Update,
    Store,
    Gremlin,
    Api,
    Page,
    Other,
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::Query, "query"),
    (Kind::Update, "update"),
    (Kind::Store, "store"),
    (Kind::Gremlin, "gremlin"),
    (Kind::Api, "api"),
    (Kind::Page, "page"),
    (Kind::Other, "other"),
];

/// Statuses that are counted by themselves, those of Gremlin among them; all others are the last one.
const STATUSES: [u16; 30] = [
    101, 200, 201, 204, 304, 400, 401, 403, 404, 405, 406, 407, 408, 409, 413, 415, 421, 497, 498, 499, 500,
    503, 504, 507, 595, 596, 597, 598, 599, 0,
];

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; STATUSES.len()]; KINDS.len()],
    seconds: [Histogram; KINDS.len()],
    pub(crate) running: AtomicI64,
    pub(crate) waiting: AtomicI64,
    pub(crate) connections: AtomicI64,
    pub(crate) heavy: AtomicI64,
    pub(crate) sessions: AtomicI64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) failed_logins: AtomicU64,
    pub(crate) rows_out: AtomicU64,
    pub(crate) broken: AtomicU64,
    bytes_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Metrics {
    /// Counts bytes of an answer.
    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counts one thing as long as it lives.
#[derive(Debug)]
pub(crate) struct Gauge(Arc<Metrics>, fn(&Metrics) -> &AtomicI64);

impl Gauge {
    pub(crate) fn new(metrics: &Arc<Metrics>, which: fn(&Metrics) -> &AtomicI64) -> Self {
        which(metrics).fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(metrics), which)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.1(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a request when its answer is over.
#[derive(Debug)]
pub(crate) struct Finish {
    metrics: Arc<Metrics>,
    kind: Kind,
    status: u16,
    begin: Instant,
}

impl Finish {
    pub(crate) fn new(metrics: &Arc<Metrics>, kind: Kind, status: u16, begin: Instant) -> Self {
        Self { metrics: Arc::clone(metrics), kind, status, begin }
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.metrics.sent(bytes);
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let at = KINDS.iter().position(|(kind, _)| *kind == self.kind).unwrap_or(KINDS.len() - 1);
        let status = STATUSES.iter().position(|status| *status == self.status).unwrap_or(STATUSES.len() - 1);
        self.metrics.requests[at][status].fetch_add(1, Ordering::Relaxed);
        let (histogram, time) = (&self.metrics.seconds[at], self.begin.elapsed());
        if let Some(bucket) = BUCKETS.iter().position(|bound| time.as_secs_f64() <= *bound) {
            histogram.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        histogram.count.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        histogram.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// The text for Prometheus.
pub(crate) fn text(state: &State) -> String {
    let metrics = &state.metrics;
    let mut out = String::with_capacity(8 << 10);
    head(
        &mut out,
        "vervet_requests_total",
        "counter",
        "Requests that have been answered, by kind and status.",
    );
    for ((_, kind), statuses) in KINDS.iter().zip(&metrics.requests) {
        for (status, count) in STATUSES.iter().zip(statuses) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
                let _ = writeln!(out, "vervet_requests_total{{kind=\"{kind}\",status=\"{status}\"}} {count}");
            }
        }
    }
    head(
        &mut out,
        "vervet_request_seconds",
        "histogram",
        "From the head of a request to the end of its answer.",
    );
    for ((_, kind), histogram) in KINDS.iter().zip(&metrics.seconds) {
        let count = histogram.count.load(Ordering::Relaxed);
        if count == 0 {
            continue;
        }
        let mut below = 0;
        for (bound, bucket) in BUCKETS.iter().zip(&histogram.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let _ = writeln!(out, "vervet_request_seconds_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {below}");
        }
        let sum = histogram.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        let _ = writeln!(out, "vervet_request_seconds_bucket{{kind=\"{kind}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "vervet_request_seconds_sum{{kind=\"{kind}\"}} {sum}");
        let _ = writeln!(out, "vervet_request_seconds_count{{kind=\"{kind}\"}} {count}");
    }
    let gauges = [
        ("vervet_requests_running", "Requests that work on the database.", &metrics.running),
        ("vervet_requests_waiting", "Requests that wait for their turn.", &metrics.waiting),
        ("vervet_connections", "Open connections.", &metrics.connections),
        ("vervet_heavy_requests_running", "Heavy requests that run.", &metrics.heavy),
        ("vervet_gremlin_sessions", "Sessions of Gremlin.", &metrics.sessions),
    ];
    for (name, help, value) in gauges {
        one(&mut out, name, "gauge", help, value.load(Ordering::Relaxed));
    }
    let transactions = state.database.transaction_counts();
    let statements = state.database.snapshot().statement_count();
    let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
    for (name, kind, help, value) in [
        (
            "vervet_connections_refused_total",
            "counter",
            "Connections above the limit.",
            load(&metrics.refused_connections),
        ),
        (
            "vervet_logins_failed_total",
            "counter",
            "Requests with a wrong name, password or token.",
            load(&metrics.failed_logins),
        ),
        ("vervet_rows_out_total", "counter", "Rows and triples of answers.", load(&metrics.rows_out)),
        (
            "vervet_answers_broken_total",
            "counter",
            "Answers that broke off after their beginning had left.",
            load(&metrics.broken),
        ),
        ("vervet_bytes_out_total", "counter", "Bytes of the bodies of answers.", load(&metrics.bytes_out)),
        ("vervet_bytes_in_total", "counter", "Bytes of the bodies of requests.", load(&metrics.bytes_in)),
        (
            "vervet_transactions_committed_total",
            "counter",
            "Transactions that were committed.",
            transactions.commits,
        ),
        (
            "vervet_transactions_refused_total",
            "counter",
            "Transactions that conflicted with others.",
            transactions.conflicts,
        ),
        ("vervet_statements", "gauge", "Statements of the graph.", statements),
    ] {
        one(&mut out, name, kind, help, value);
    }
    if let Some(bytes) = resident_bytes() {
        one(&mut out, "process_resident_memory_bytes", "gauge", "Memory of the process.", bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        one(&mut out, "process_cpu_seconds_total", "counter", "Processor time of the process.", seconds);
    }
    out
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    head(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

/// Memory of this process; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// Processor time of this process, of all its threads; `None` where the system does not say.
fn cpu_seconds() -> Option<f64> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }
    #[cfg(not(unix))]
    None
}
