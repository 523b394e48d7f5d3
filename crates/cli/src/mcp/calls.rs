//! The calls that are running, by the ids of their requests.

use super::message::{Fault, INVALID_REQUEST, TOO_MANY_CALLS};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vervet::CancelToken;

/// Keys are the JSON texts of ids: `1` and `"1"` differ.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<String, CancelToken>>);

impl Calls {
    /// Cancels the call of a request. A call that has ended, or that there is not, stays as it is.
    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(token) = self.running().remove(&id.to_string()) {
            token.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, CancelToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is running, until it ends or is dropped.
pub(crate) struct Call {
    calls: Arc<Calls>,
    key: String,
    token: CancelToken,
}

impl Call {
    /// # Errors
    /// A call with this id is running; `calls_max` calls are running. A call that the client has cancelled
    /// counts no longer, although it may run for some more milliseconds.
    pub(crate) fn begin(calls: &Arc<Calls>, id: &Value, calls_max: usize) -> Result<Self, Fault> {
        let (key, token) = (id.to_string(), CancelToken::new());
        let mut running = calls.running();
        if running.contains_key(&key) {
            return Err(Fault::new(INVALID_REQUEST, "a request with this id is running"));
        }
        if running.len() >= calls_max {
            let text = format!("{calls_max} calls are running, which is the maximum; try again later");
            return Err(Fault::new(TOO_MANY_CALLS, text));
        }
        running.insert(key.clone(), token.clone());
        drop(running);
        Ok(Self { calls: Arc::clone(calls), key, token })
    }

    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Ends the call; `false`: the client has cancelled it.
    pub(crate) fn end(&self) -> bool {
        let mut running = self.calls.running();
        // After a cancellation a new call may have the same id.
        let is_own = !self.token.is_cancelled();
        if is_own {
            running.remove(&self.key);
        }
        is_own
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cancelled_call_frees_its_id_and_its_slot() {
        let calls = Arc::new(Calls::default());
        let first = Call::begin(&calls, &json!(1), 2).expect("the first");
        let second = Call::begin(&calls, &json!("1"), 2).expect("another id");
        assert_eq!(Call::begin(&calls, &json!(1), 3).err().map(|fault| fault.code), Some(INVALID_REQUEST));
        assert_eq!(Call::begin(&calls, &json!(2), 2).err().map(|fault| fault.code), Some(TOO_MANY_CALLS));
        calls.cancel(&json!(1));
        calls.cancel(&Value::Null);
        assert!(first.token().is_cancelled() && !second.token().is_cancelled());
        let again = Call::begin(&calls, &json!(1), 2).expect("the id is free");
        assert!(!first.end(), "no answer");
        drop(first);
        assert!(again.end(), "the end of the first call is not that of the new one");
        drop(second);
        assert!(calls.running().is_empty());
    }
}
