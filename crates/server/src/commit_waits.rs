//! Waits for commits to be durable: one thread for all of them.
//!
//! # Shape
//! A commit waits for the disk or for other servers, and needs no processor meanwhile. The thread that made
//! it hands it over and takes the next request. If no thread waits yet, it waits itself, for its own commit
//! and for those that others hand over meanwhile, in this order; it finishes their requests, and returns when
//! there are none left.
//! # Why
//! A thread for each waiting commit is woken up for each commit. Those of one sync are finished here by one
//! thread, one after the other, so many clients cost a few switches between threads for each sync.
//! # Limits
//! The limit of a wait counts from the commit, so those behind one that has waited in vain end with it.

use crate::worker_threads::has_lowered_priority;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use vervet::PendingCommit;
use vervet_model::{Result, lock};

/// Called with the result of the wait.
type Finish = Box<dyn FnOnce(Result<()>) + Send>;

/// See the header of this file.
#[derive(Default)]
pub(crate) struct CommitWaits {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    commits: VecDeque<(PendingCommit, Finish)>,
    /// Whether a thread waits.
    has_waiter: bool,
}

impl CommitWaits {
    /// Has `finish` called when the commit is durable, or cannot become so. May call it and those of other
    /// commits before it returns.
    pub(crate) fn wait(&self, commit: PendingCommit, finish: Finish) {
        if has_lowered_priority() {
            // Others would wait for this thread.
            return finish(commit.wait().map(drop));
        }
        {
            let mut queue = lock(&self.queue);
            queue.commits.push_back((commit, finish));
            if std::mem::replace(&mut queue.has_waiter, true) {
                return;
            }
        }
        while let Some((commit, finish)) = self.next() {
            // A panic drops the sender of this request alone.
            _ = catch_unwind(AssertUnwindSafe(|| finish(commit.wait().map(drop))));
        }
    }

    /// The next commit to wait for. `None`: the calling thread is the waiter no more.
    fn next(&self) -> Option<(PendingCommit, Finish)> {
        let mut queue = lock(&self.queue);
        let next = queue.commits.pop_front();
        queue.has_waiter = next.is_some();
        next
    }
}

impl fmt::Debug for CommitWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitWaits").field("commits", &lock(&self.queue).commits.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use vervet::Database;
    use vervet::update::UpdateOptions;

    fn pending(database: &Database, text: &str) -> PendingCommit {
        database.update_pending(text, &mut UpdateOptions::default()).expect("a commit").1
    }

    /// Commits that are handed over while a thread waits are finished by it, in their order.
    #[test]
    fn one_thread_finishes_all() {
        let (database, waits) = (Database::in_memory(), Arc::new(CommitWaits::default()));
        let (finished, order) = channel();
        let first = {
            let (database, waits, finished) = (database.clone(), Arc::clone(&waits), finished.clone());
            move |result: Result<()>| {
                for number in 1..4 {
                    let finished = finished.clone();
                    let commit = pending(&database, &format!("INSERT DATA {{ <a:> <b:> {number} }}"));
                    waits.wait(
                        commit,
                        Box::new(move |result| {
                            let thread = std::thread::current().id();
                            finished.send((number, thread, result.is_ok())).expect("a receiver");
                        }),
                    );
                }
                finished.send((0, std::thread::current().id(), result.is_ok())).expect("a receiver");
            }
        };
        waits.wait(pending(&database, "INSERT DATA { <a:> <b:> 0 }"), Box::new(first));
        let own = std::thread::current().id();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3].map(|number| (number, own, true)));
        assert_eq!(format!("{waits:?}"), "CommitWaits { commits: 0 }");
    }

    #[test]
    fn a_panic_ends_no_other_wait() {
        let (database, waits) = (Database::in_memory(), CommitWaits::default());
        let (finished, results) = channel();
        let finishes: [Finish; 2] = [
            Box::new(|_| panic!("a mistake")),
            Box::new(move |result| finished.send(result).expect("a receiver")),
        ];
        for finish in finishes {
            waits.wait(pending(&database, "INSERT DATA { <a:> <b:> 1 }"), finish);
        }
        assert!(results.recv().is_ok_and(|result| result.is_ok()));
    }
}
