//! Running requests on the database: their list, how to stop them, and the slow-query log.
//!
//! # Shape
//! [`crate::state::State::acquire_permit`] registers a request when it has a permit; dropping its
//! [`RunningRequest`](crate::state::RunningRequest) removes it. Requests on an I/O thread
//! ([`crate::admission::Tier::FastPath`]) take 2 ms at most and are not listed. Requests that another server
//! of the cluster executes for a client of this one have no permit here, and are in the lists of both
//! servers; stopping one here cancels it there.
//! # Invariants
//! Texts are truncated to [`TEXT_BYTES`], so the size of the list is bounded: that times
//! [`crate::Limits::requests`] and [`crate::Limits::heavy_requests`], and of requests at another server at
//! most the bytes of their messages, of which the texts are copies ([`crate::Limits::bodies_bytes`]).

use crate::operations::metrics::RequestKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vervet::{CancelToken, RowCounter};
use vervet_model::hex;

/// The maximum bytes of a text in the list and in the log.
const TEXT_BYTES: usize = 2 << 10;

/// The message of a request that was stopped through the API.
pub(crate) const STOPPED: &str = "the request was stopped by DELETE /api/queries";

/// The text of a request, and its sender.
#[derive(Clone, Debug)]
pub(crate) struct RequestDescription {
    pub(crate) kind: RequestKind,
    /// `None`: anonymous.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) text: String,
}

impl RequestDescription {
    pub(crate) fn new(kind: RequestKind, user: Option<Arc<str>>, text: &str) -> Self {
        let mut end = text.len().min(TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut text = text[..end].to_owned() + if end < text.len() { "…" } else { "" };
        text.shrink_to_fit();
        Self { kind, user, text }
    }
}

/// One request.
#[derive(Debug)]
pub(crate) struct RegistryEntry {
    pub(crate) number: u64,
    pub(crate) description: RequestDescription,
    pub(crate) token: CancelToken,
    /// Solutions found so far.
    pub(crate) progress: RowCounter,
    begun: Instant,
    begun_at: SystemTime,
    is_heavy: AtomicBool,
    /// Set once a stop was requested.
    is_stopped: AtomicBool,
    /// 0: unknown.
    plan_hash: AtomicU64,
}

impl RegistryEntry {
    /// Marks the request as heavy: it now has a permit for heavy requests.
    pub(crate) fn set_heavy(&self) {
        self.is_heavy.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_plan_hash(&self, hash: u64) {
        self.plan_hash.store(hash, Ordering::Relaxed);
    }

    pub(crate) fn time(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether a stop request ended it, rather than its client or the server.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.token.cancel();
    }

    fn json(&self) -> Value {
        let since = self.begun_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        json!({
            "id": self.number,
            "kind": self.description.kind.name(),
            "user": self.description.user.as_deref(),
            "text": self.description.text,
            "since": since.as_secs_f64(),
            "seconds": self.time().as_secs_f64(),
            "rows": self.progress.rows(),
            "heavy": self.is_heavy.load(Ordering::Relaxed),
            "stopped": self.is_stopped() || self.token.is_cancelled(),
        })
    }

    /// Whether the request took `slow` or longer. `/cluster`, the one of kind `other`, takes the time of
    /// servers that do not answer.
    fn is_slow(&self, time: Duration, slow: Duration) -> bool {
        time >= slow && self.description.kind != RequestKind::Other
    }

    /// Writes the log entry of a slow request.
    fn log(&self, slow: Duration) {
        let time = self.time();
        if !self.is_slow(time, slow) {
            return;
        }
        let plan = match self.plan_hash.load(Ordering::Relaxed) {
            0 => String::new(),
            hash => hex(&hash.to_be_bytes()),
        };
        tracing::warn!(
            kind = self.description.kind.name(),
            seconds = time.as_secs_f64(),
            rows = self.progress.rows(),
            plan,
            user = self.description.user.as_deref().unwrap_or_default(),
            cancelled = self.token.is_cancelled(),
            text = self.description.text.as_str(),
            "slow request"
        );
    }
}

/// The registry of running requests.
#[derive(Debug, Default)]
pub(crate) struct RequestRegistry {
    entries: Mutex<BTreeMap<u64, Arc<RegistryEntry>>>,
    numbers: AtomicU64,
}

impl RequestRegistry {
    pub(crate) fn add(&self, description: RequestDescription) -> Arc<RegistryEntry> {
        let entry = Arc::new(RegistryEntry {
            number: self.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            description,
            token: CancelToken::new(),
            progress: RowCounter::default(),
            begun: Instant::now(),
            begun_at: SystemTime::now(),
            is_heavy: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            plan_hash: AtomicU64::new(0),
        });
        self.lock().insert(entry.number, Arc::clone(&entry));
        entry
    }

    /// Removes a finished request.
    pub(crate) fn remove(&self, entry: &RegistryEntry, slow: Option<Duration>) {
        self.lock().remove(&entry.number);
        if let Some(slow) = slow {
            entry.log(slow);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().values().for_each(|entry| entry.token.cancel());
    }

    /// The requests that `may_see` accepts, the oldest first.
    pub(crate) fn list(&self, may_see: impl Fn(&RegistryEntry) -> bool) -> Value {
        let entries: Vec<_> = self.lock().values().filter(|entry| may_see(entry)).cloned().collect();
        json!({ "queries": entries.iter().map(|entry| entry.json()).collect::<Vec<_>>() })
    }

    /// Stops a request that `may_see` accepts; `false`: no such request.
    pub(crate) fn stop(&self, number: u64, may_see: impl Fn(&RegistryEntry) -> bool) -> bool {
        let entry = self.lock().get(&number).filter(|entry| may_see(entry)).cloned();
        entry.as_ref().inspect(|entry| entry.stop()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<RegistryEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_in_order_and_stopped_by_their_numbers() {
        let registry = RequestRegistry::default();
        let describe = |user: &str| RequestDescription::new(RequestKind::Query, Some(user.into()), "ASK {}");
        let (ann, bob) = (registry.add(describe("ann")), registry.add(describe("bob")));
        bob.progress.add(7);
        let list = registry.list(|_| true);
        assert_eq!(list["queries"][1]["rows"], 7);
        assert_eq!(list["queries"][0]["user"], "ann");
        let is_bobs = |entry: &RegistryEntry| entry.description.user.as_deref() == Some("bob");
        assert_eq!(registry.list(is_bobs)["queries"].as_array().map(Vec::len), Some(1));
        assert!(!registry.stop(ann.number, is_bobs), "it is another's");
        assert!(registry.stop(bob.number, is_bobs) && bob.token.is_cancelled() && bob.is_stopped());
        registry.remove(&bob, None);
        assert!(!registry.stop(bob.number, is_bobs));
        assert!(!ann.token.is_cancelled());
    }

    #[test]
    fn requests_that_wait_for_other_servers_are_not_slow() {
        let registry = RequestRegistry::default();
        let is_slow = |kind, time| {
            let entry = registry.add(RequestDescription::new(kind, None, "text"));
            entry.is_slow(Duration::from_secs(time), Duration::from_secs(1))
        };
        assert!(is_slow(RequestKind::Query, 1) && !is_slow(RequestKind::Query, 0));
        assert!(!is_slow(RequestKind::Other, 2));
    }

    #[test]
    fn long_texts_are_truncated_at_characters() {
        let text = "ä".repeat(TEXT_BYTES);
        let kept = RequestDescription::new(RequestKind::Query, None, &text).text;
        assert!(kept.len() <= TEXT_BYTES + 3 && kept.ends_with("ä…"));
        assert_eq!(RequestDescription::new(RequestKind::Query, None, "short").text, "short");
    }
}
