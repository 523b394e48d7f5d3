//! Going on over another base, into which changes have been merged, while transactions run.

use crate::applied::Applied;
use crate::base::change_count;
use crate::transactions::Transactions;
use std::sync::Arc;
use vervet_model::Result;
use vervet_store::Base;

impl Transactions {
    /// Number of changed statements and new terms of the newest version over its base.
    #[must_use]
    pub fn change_count(&self) -> u64 {
        change_count(&self.head().newest().version)
    }

    /// Goes on over `base`, which has the graph of `applied`: the first records of the log of these
    /// transactions, over the base that they have at present. Commits go on meanwhile; transactions that have
    /// begun stay as they are.
    ///
    /// # Errors
    /// Internal: it is another graph, or over another base. Unavailable: the log is not written by this
    /// process any more. All stays as it was.
    /// # Cost
    /// The later changes are applied again; the lock of the head is held for few of them.
    pub fn move_to(&self, base: Arc<dyn Base>, applied: &Applied) -> Result<()> {
        let log = self.writer().log()?;
        let mut merged = applied.version.rebase_empty(base)?;
        let first = self.head().newest();
        merged.apply_difference(&applied.version, &first.version)?;
        let head = self.head();
        let reached = head
            .catch_up(&first, |reached, newest| merged.apply_difference(&reached.version, &newest.version))?;
        if let Some(log) = log {
            log.sync()?;
        }
        let mut head = head.lock();
        if let Some(log) = log {
            log.sync()?;
        }
        merged.apply_difference(&reached.version, &head.published().version)?;
        let [vertices, literals] = applied.ends;
        let terms = head.published().version.terms().seal_and_succeed(vertices, literals);
        let moved = head.published().with(merged.with_terms(terms), head.published().timestamp);
        head.replace(Arc::new(moved));
        Ok(())
    }
}
