//! The tasks that run at this server: how many, and the memory of each query.
//!
//! # Shape
//! A task waits for tasks of later fragments at other servers, each on a thread of its own there. So the
//! number of tasks is limited, of all queries and of each one, and the limits are lower for a task with more
//! fragments behind it. Whatever runs, a task of the last fragment finds room as soon as others of its kind
//! end: it waits for no task, but only for the thread of its query to take its rows. By induction all do. A
//! task without room is answered *busy*, and is sent again.
//!
//! All tasks of a query at this server count their bytes together, with what the query itself held when they
//! began, if it was asked here. They also share their frontiers, so what one has expanded no other expands
//! again. A frontier may forget, so none is kept while no task of the query runs.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet_kernel::SharedFrontiers;
use vervet_model::{Result, ThreadLimits, lock};

/// Maximum number of tasks of other servers, half of the connections.
const TASKS_MAX: usize = 512;

/// Tasks with one more fragment behind them leave room for this many others.
const TASKS_RESERVED: usize = 8;

/// The same for the tasks of one query: one whose client reads slowly leaves room for others.
const QUERY_TASKS_MAX: usize = 256;
const QUERY_TASKS_RESERVED: usize = 4;

/// Maximum number of fragments of a job: the first one still has room.
pub(crate) const FRAGMENTS_MAX: usize = TASKS_MAX / TASKS_RESERVED;

/// The longest time between two tries of a server that is busy.
const BACKOFF_MAX: Duration = Duration::from_millis(50);

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Tasks of other servers.
    tasks: usize,
    /// By server that asked and number: what the tasks share, and how many they are.
    jobs: FxHashMap<(usize, u64), (Arc<SharedFrontiers>, usize)>,
}

/// A task that runs.
#[derive(Debug)]
pub(crate) struct Entered<'r> {
    running: &'r Running,
    job: (usize, u64),
    shared: Arc<SharedFrontiers>,
    is_limited: bool,
}

impl Running {
    /// A task of another server with `behind` fragments behind its own begins; `None`: there are too many.
    pub(crate) fn enter(&self, job: (usize, u64), behind: usize) -> Option<Entered<'_>> {
        let mut state = lock(&self.0);
        let of_query = state.jobs.get(&job).map_or(0, |(_, tasks)| *tasks);
        if state.tasks + behind * TASKS_RESERVED >= TASKS_MAX
            || of_query + behind * QUERY_TASKS_RESERVED >= QUERY_TASKS_MAX
        {
            return None;
        }
        state.tasks += 1;
        Some(self.add(&mut state, job, true))
    }

    /// A task of this server for a query that was asked here begins.
    pub(crate) fn enter_own(&self, job: (usize, u64)) -> Entered<'_> {
        self.add(&mut lock(&self.0), job, false)
    }

    fn add(&self, state: &mut State, job: (usize, u64), is_limited: bool) -> Entered<'_> {
        let (shared, tasks) = state.jobs.entry(job).or_default();
        *tasks += 1;
        Entered { running: self, job, shared: Arc::clone(shared), is_limited }
    }
}

impl Entered<'_> {
    /// The memory counter and the frontiers of all tasks of the query at this server.
    pub(crate) fn shared(&self) -> &SharedFrontiers {
        &self.shared
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.running.0);
        if self.is_limited {
            state.tasks -= 1;
        }
        if let Entry::Occupied(mut entry) = state.jobs.entry(self.job) {
            entry.get_mut().1 -= 1;
            if entry.get().1 == 0 {
                entry.remove();
            }
        }
    }
}

/// Waits between tries of a server that is busy, twice as long each time.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(Duration::from_millis(1))
    }

    /// # Errors
    /// Limits of the calling thread.
    pub(crate) fn wait(&mut self) -> Result<()> {
        ThreadLimits::check()?;
        std::thread::sleep(ThreadLimits::remaining().map_or(self.0, |left| left.min(self.0)));
        self.0 = (2 * self.0).min(BACKOFF_MAX);
        ThreadLimits::check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many tasks with fragments behind them run, those behind them find room.
    #[test]
    fn later_fragments_find_room() {
        let running = Running::default();
        let mut entered = Vec::new();
        for behind in (0..FRAGMENTS_MAX).rev() {
            for query in [7, 8] {
                let before = entered.len();
                while let Some(task) = running.enter((1, query), behind) {
                    entered.push(task);
                }
                assert!(entered.len() >= before + QUERY_TASKS_RESERVED, "{behind} fragments behind");
            }
        }
        assert!(entered.len() == TASKS_MAX && running.enter((1, 9), 0).is_none());
        let own = running.enter_own((1, 7));
        assert!(
            Arc::ptr_eq(own.shared().memory(), entered[0].shared().memory()),
            "one counter for each query"
        );
        drop((own, entered));
        let state = lock(&running.0);
        assert!(state.tasks == 0 && state.jobs.is_empty());
    }
}
