//! Admission: which request runs where, and why.
//!
//! # The table
//! | tier | thread | at most there | which requests |
//! | --- | --- | --- | --- |
//! | [`Tier::FastPath`] | that of the connection | [`FAST_PATH_TIME_MAX`] | read-only, and short when they came last |
//! | [`Tier::Light`] | one of `threads`, at nice 10 once it is heavy | Gremlin: [`LIGHT_CPU`] | all others at first |
//! | [`Tier::Heavy`] | its own, at nice 10 | its limits | heavy by estimate, or too much for the others |
//!
//! * *FastPath*: two hand-overs between threads add 70 µs to the median of a light query, an answer on the spot
//!   11 µs (docs/benchmarks/server.md). Short is a fingerprint that was answered within [`SHORT_TIME_MAX`].
//! * *Light* takes a permit of [`crate::Limits::requests`]. What a traversal costs is not known before it
//!   runs, and a light one is not to wait for the permit of a heavy one. A query leaves once it is planned.
//! * *Heavy* takes a permit of [`crate::Limits::heavy_requests`]: plans of 1 ms and more by estimate, texts
//!   of more than [`TEXT_LIGHT_BYTES_MAX`], which take milliseconds to parse and to plan, and traversals with
//!   the fingerprint of one that was stopped, so that 5 ms of each are not spent in vain. A thread costs 30
//!   to 50 µs of a request of 1 ms and more.
//!
//! A request that is too much for its tier is stopped there and runs again in the heavy one; it has sent
//! nothing and changed nothing. Below all of them is the gate of the driver (`vervet-driver-local`,
//! `gate.rs`): whatever has used 2 ms passes it at every batch, in whatever tier and whatever it does
//! (queries, traversals, patterns of updates, results on their way out), so an estimate that was wrong does
//! not hurt either. `examples/hybrid.rs` measures tiers and gate together.
//!
//! A SPARQL query that turns out to be heavy stays in the light tier, and its thread steps back behind the
//! others. Stopping it as a traversal is stopped was tried: light queries that had to wait beside hostile
//! requests were taken for heavy, and waited seconds for a permit. Without the step back hostile requests
//! took the processors for milliseconds: 43 ms at the 99th percentile of light ones, with it 3 to 4
//! (2026-11-23, `examples/load`, siege).
//!
//! What was there and did not pay: threads that spin for more requests after a response
//! (`awake_microseconds`). It halved the latency of a single client on an idle machine (119 to 50 µs) and
//! doubled it on a busy one, so it was off by default and nothing turned it on.
//! # Invariants
//! 1. A thread of connections is kept for [`FAST_PATH_TIME_MAX`] at most, as closely as a query looks at its deadline.
//! 2. Only hashes of requests are remembered. A fingerprint that is lost, or one too many by equal hashes,
//!    costs time and nothing else.

mod fingerprints;

use crate::encoding::Encoding;
use crate::query::QueryRequest;
use fingerprints::Fingerprints;
use std::hash::Hash;
use std::time::Duration;

/// Fingerprints are short by what a request took from parsing to the last byte.
pub(crate) const SHORT_TIME_MAX: Duration = Duration::from_micros(250);

/// Short ones that take longer are short no more. Longer than [`SHORT_TIME_MAX`], as the thread may have been
/// interrupted.
pub(crate) const SHORT_EVICTED_ABOVE: Duration = Duration::from_millis(1);

/// The deadline of a request on a thread of connections.
pub(crate) const FAST_PATH_TIME_MAX: Duration = Duration::from_millis(2);

/// Longer texts are heavy.
pub(crate) const TEXT_LIGHT_BYTES_MAX: usize = 64 << 10;

/// What a light traversal may take of the processor.
pub(crate) const LIGHT_CPU: Duration = Duration::from_millis(5);

/// What it may take by the clock before its processor time is looked at.
pub(crate) const LIGHT_WALL: Duration = Duration::from_millis(10);

/// Heavy traversals that take less are heavy no more.
pub(crate) const HEAVY_EVICTED_BELOW: Duration = Duration::from_millis(1);

/// Longer texts are neither remembered nor read on a thread of connections.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 10;

/// Where a request runs; see the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    FastPath,
    Light,
    Heavy,
}

/// What is remembered of requests that came before.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    short: Fingerprints,
    heavy: Fingerprints,
}

impl Admission {
    /// The fingerprint of a request, or of its shape.
    pub(crate) fn fingerprint(&self, request: impl Hash) -> u64 {
        self.short.hash(request)
    }

    /// The fingerprint of a query; `None` if it never runs on a thread of connections: answers that are
    /// compressed, datasets that the request names, long texts.
    pub(crate) fn query_fingerprint(&self, request: &QueryRequest) -> Option<u64> {
        let is_usual = request.encoding == Encoding::Identity && request.options.dataset.is_none();
        (is_usual && request.text.len() <= TEXT_BYTES_MAX).then(|| self.fingerprint(&request.text))
    }

    /// Whether it was short when it came last.
    pub(crate) fn is_short(&self, fingerprint: u64) -> bool {
        self.short.has(fingerprint)
    }

    /// Whether it was heavy when it came last.
    pub(crate) fn is_heavy(&self, fingerprint: u64) -> bool {
        self.heavy.has(fingerprint)
    }

    /// Remembers what a request took that ran to its end in a tier.
    pub(crate) fn record_success(&self, fingerprint: u64, tier: Tier, time: Duration) {
        match tier {
            Tier::FastPath if time > SHORT_EVICTED_ABOVE => self.short.clear(fingerprint),
            Tier::Light if time <= SHORT_TIME_MAX => self.short.set(fingerprint),
            Tier::Heavy if time <= HEAVY_EVICTED_BELOW => self.heavy.clear(fingerprint),
            _ => {}
        }
    }

    /// Remembers that a request was too much for a tier.
    pub(crate) fn record_rejection(&self, fingerprint: u64, tier: Tier) {
        match tier {
            Tier::FastPath => self.short.clear(fingerprint),
            Tier::Light => self.heavy.set(fingerprint),
            Tier::Heavy => {}
        }
    }
}

/// Processor time of this thread; where the system does not tell, of the clock.
pub(crate) fn thread_cpu() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(not(unix))]
    {
        static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        BEGIN.get_or_init(std::time::Instant::now).elapsed()
    }
}
