//! Admission control: assigns each request to a tier, which determines its thread and its limits.
//!
//! # The table
//! | tier | thread | limit of the tier | requests |
//! | --- | --- | --- | --- |
//! | [`Tier::FastPath`] | the I/O thread | [`FAST_PATH_TIME_MAX`] | read-only, with a short fingerprint |
//! | [`Tier::Light`] | a pool thread; nice 10 once heavy | Gremlin: [`LIGHT_CPU`] | all others at first |
//! | [`Tier::Heavy`] | its own, at nice 10 | that of the request | heavy by estimate or by an exceeded limit |
//!
//! * *FastPath*: two hand-overs between threads add 70 µs to the median of a light query, a response from the
//!   I/O thread 11 µs (docs/benchmarks/server.md). A fingerprint is short if its request took at most
//!   [`SHORT_TIME_MAX`].
//! * *Light* takes a permit of [`crate::Limits::requests`]. The cost of a traversal is unknown before it
//!   runs, and a light traversal must not wait for a heavy permit. A query leaves this tier once planning has
//!   estimated it as heavy.
//! * *Heavy* takes a permit of [`crate::Limits::heavy_requests`]: plans with an estimate of 1 ms or more;
//!   texts of more than [`TEXT_LIGHT_BYTES_MAX`], which take milliseconds to parse and to plan; traversals
//!   with the fingerprint of one that exceeded the light tier, which would otherwise waste 5 ms each. A new
//!   thread adds 30 to 50 µs to a request of 1 ms or more.
//!
//! A traversal that exceeds the limits of its tier is stopped and runs again in the heavy tier; it has sent
//! no response and has no side effects. Below the tiers is the gate of the driver (`vervet-driver-local`,
//! `gate.rs`): work that has used 2 ms passes it at every batch, in every tier and in every phase (queries,
//! traversals, patterns of updates, output of results), so wrong estimates do little harm.
//! `examples/hybrid.rs` measures tiers and gate together.
//!
//! A SPARQL query that turns out to be heavy stays in the light tier, and its thread lowers its priority.
//! Stopping such queries like traversals was tried: light queries that were slow only because of hostile
//! requests were classified as heavy, and waited seconds for a permit. Without the lower priority, hostile
//! requests occupied the processors for milliseconds: the 99th percentile of light requests was 43 ms, and is
//! 3 to 4 ms with it (2026-11-23, `examples/load`, siege).
//!
//! Tried and removed: threads that busy-poll for further requests after a response (`awake_microseconds`).
//! This halved the latency of a single client on an idle machine (119 to 50 µs) and doubled it on a busy one.
//! # Invariants
//! 1. A request occupies an I/O thread for [`FAST_PATH_TIME_MAX`] at most, within the precision of deadline
//!    checks.
//! 2. Only hashes of requests are stored. A lost fingerprint or a hash collision costs time and has no other
//!    effect.

mod fingerprints;

use fingerprints::Fingerprints;
use std::hash::Hash;
use std::time::Duration;

/// The maximum time of a short request, from parsing to the last byte.
pub(crate) const SHORT_TIME_MAX: Duration = Duration::from_micros(250);

/// A short fingerprint whose request takes longer is cleared. Longer than [`SHORT_TIME_MAX`], since the
/// thread may have been preempted.
pub(crate) const SHORT_EVICTED_ABOVE: Duration = Duration::from_millis(1);

/// The time limit of a request on an I/O thread.
pub(crate) const FAST_PATH_TIME_MAX: Duration = Duration::from_millis(2);

/// The maximum length of a light text.
pub(crate) const TEXT_LIGHT_BYTES_MAX: usize = 64 << 10;

/// The maximum processor time of a light traversal.
pub(crate) const LIGHT_CPU: Duration = Duration::from_millis(5);

/// The wall time after which its processor time is checked.
pub(crate) const LIGHT_WALL: Duration = Duration::from_millis(10);

/// A heavy fingerprint whose traversal takes less is cleared.
pub(crate) const HEAVY_EVICTED_BELOW: Duration = Duration::from_millis(1);

/// The maximum length of a text that has a fingerprint, and that an I/O thread parses.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 10;

/// See the table in the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    FastPath,
    Light,
    Heavy,
}

/// Fingerprints of earlier requests.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    short: Fingerprints,
    heavy: Fingerprints,
    /// Whether no request is on the fast path.
    without_fast_path: bool,
}

impl Admission {
    /// Without the fast path: for a part of a cluster, where any read may wait for another server, and I/O
    /// threads must not wait.
    pub(crate) fn without_fast_path() -> Self {
        Self { without_fast_path: true, ..Self::default() }
    }

    /// The fingerprint of a request.
    pub(crate) fn fingerprint(&self, request: impl Hash) -> u64 {
        self.short.hash(request)
    }

    /// Whether the last request with this fingerprint was short.
    pub(crate) fn is_short(&self, fingerprint: u64) -> bool {
        !self.without_fast_path && self.short.has(fingerprint)
    }

    /// Whether the last request with this fingerprint was heavy.
    pub(crate) fn is_heavy(&self, fingerprint: u64) -> bool {
        self.heavy.has(fingerprint)
    }

    /// Records the time of a request that finished in `tier`.
    pub(crate) fn record_success(&self, fingerprint: u64, tier: Tier, time: Duration) {
        match tier {
            Tier::FastPath if time > SHORT_EVICTED_ABOVE => self.short.clear(fingerprint),
            Tier::Light if time <= SHORT_TIME_MAX => self.short.set(fingerprint),
            Tier::Heavy if time <= HEAVY_EVICTED_BELOW => self.heavy.clear(fingerprint),
            _ => {}
        }
    }

    /// Records that a request exceeded the limits of `tier`.
    pub(crate) fn record_rejection(&self, fingerprint: u64, tier: Tier) {
        match tier {
            Tier::FastPath => self.short.clear(fingerprint),
            Tier::Light => self.heavy.set(fingerprint),
            Tier::Heavy => {}
        }
    }
}
