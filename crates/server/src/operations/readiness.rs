//! Readiness events: the log has a line for each change between two probes of `/ready`, not for each probe.

use std::sync::{Mutex, PoisonError};

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<State>>);

/// The state as of the last probe.
#[derive(PartialEq, Eq, Debug)]
enum State {
    Ready,
    /// With the reason, without its figures, which may change with each probe.
    NotReady(String),
}

impl Readiness {
    /// Takes note of the result of a probe, and logs it if it differs from the one before. `reason`: why the
    /// server is not ready.
    pub(crate) fn note(&self, reason: Option<&str>) {
        match (self.replace(reason), reason) {
            (false, _) => {}
            (true, Some(reason)) => tracing::warn!(reason, "not ready"),
            (true, None) => tracing::info!("ready"),
        }
    }

    /// `true`: the result differs from the one before.
    fn replace(&self, reason: Option<&str>) -> bool {
        let state = match reason {
            Some(reason) => State::NotReady(reason.chars().filter(|one| !one.is_ascii_digit()).collect()),
            None => State::Ready,
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(state) != *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_logged() {
        let readiness = Readiness::default();
        let probes = [None, None, Some("b"), Some("b"), Some("c"), None, Some("9 bytes"), Some("10 bytes")];
        let logged: Vec<bool> = probes.into_iter().map(|reason| readiness.replace(reason)).collect();
        assert_eq!(logged, [true, false, true, false, true, true, true, false]);
    }
}
