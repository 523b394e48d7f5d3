//! The list of transactions that this server executes for clients of other servers of the cluster.
//!
//! # Not here
//! The transactions themselves (`forwarded`), which refer to the state of the server, of which the list is a
//! part.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet_model::lock;

/// A transaction in the list.
pub(super) trait Listed: Send + Sync + 'static {
    /// Cancels what runs, and rolls back.
    fn end(&self);

    /// Whether it has ended, or no request has used it for longer than this.
    fn is_over(&self, idle_max: Duration) -> bool;
}

struct Entry {
    transaction: Arc<dyn Listed>,
    /// The same.
    as_any: Arc<dyn Any + Send + Sync>,
}

/// See the header of this file. By name.
#[derive(Default)]
pub(crate) struct ForwardedTransactions(Mutex<HashMap<String, Entry>>);

impl std::fmt::Debug for ForwardedTransactions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ForwardedTransactions").field(&lock(&self.0).len()).finish()
    }
}

impl ForwardedTransactions {
    pub(super) fn get<T: Listed>(&self, name: &str) -> Option<Arc<T>> {
        let found = lock(&self.0).get(name).map(|entry| Arc::clone(&entry.as_any))?;
        found.downcast().ok()
    }

    /// Ends one, if it is there.
    pub(super) fn end(&self, name: &str) -> Option<()> {
        let ended = lock(&self.0).remove(name)?;
        ended.transaction.end();
        Some(())
    }

    /// Adds one. A name occurs once: it ends an earlier one with this name.
    pub(super) fn add<T: Listed>(&self, name: &str, transaction: Arc<T>) {
        let entry = Entry { transaction: Arc::clone(&transaction) as _, as_any: transaction };
        let before = lock(&self.0).insert(name.to_owned(), entry);
        before.iter().for_each(|one| one.transaction.end());
    }

    /// Ends those that are over ([`Listed::is_over`]).
    pub(super) fn end_over(&self, idle_max: Duration) {
        let is_over = |_: &String, one: &mut Entry| one.transaction.is_over(idle_max);
        let over: Vec<Entry> = lock(&self.0).extract_if(is_over).map(|(_, one)| one).collect();
        over.iter().for_each(|one| one.transaction.end());
    }

    /// Ends all, at the end of the server.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        all.values().for_each(|one| one.transaction.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Counted {
        ends: AtomicU32,
        is_over: bool,
    }

    impl Listed for Counted {
        fn end(&self) {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }

        fn is_over(&self, idle_max: Duration) -> bool {
            self.is_over && idle_max.is_zero()
        }
    }

    #[test]
    fn transactions_end_once() {
        let all = ForwardedTransactions::default();
        let add = |name: &str, is_over| {
            let one = Arc::new(Counted { is_over, ..Counted::default() });
            all.add(name, Arc::clone(&one));
            one
        };
        let ends = |one: &Counted| one.ends.load(Ordering::Relaxed);
        let (over, one) = (add("over", true), add("one", false));
        assert_eq!((ends(&over), ends(&one)), (0, 0));
        all.end_over(Duration::MAX);
        assert_eq!((ends(&over), ends(&one)), (0, 0));
        all.end_over(Duration::ZERO);
        assert_eq!((ends(&over), ends(&one)), (1, 0));
        assert!(all.get::<Counted>("one").is_some() && all.get::<Counted>("over").is_none());
        let same = add("one", false);
        assert_eq!((ends(&one), ends(&same)), (1, 0));
        assert_eq!((all.end("one"), all.end("one")), (Some(()), None));
        let last = add("last", false);
        all.end_all();
        assert_eq!((ends(&same), ends(&last)), (1, 1));
        assert_eq!(format!("{all:?}"), "ForwardedTransactions(0)");
    }
}
