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
//! began, if it was asked here. Those of one round also share their frontiers, so what one has expanded no
//! other expands again. A frontier may forget, so none is kept while no task of the round runs.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet_kernel::{SharedFrontiers, SharedMemory};
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
    /// By server that asked and number of the query: what counts their bytes, and how many they are.
    queries: FxHashMap<(usize, u64), (Arc<SharedMemory>, usize)>,
    /// By server that asked and number of the round: the frontiers of the tasks, and how many they are.
    rounds: FxHashMap<(usize, u64), (Arc<SharedFrontiers>, usize)>,
}

/// A task that runs.
#[derive(Debug)]
pub(crate) struct Entered<'r> {
    running: &'r Running,
    origin: usize,
    /// The numbers of the query and of the round.
    query: u64,
    round: u64,
    shared: Arc<SharedFrontiers>,
    is_limited: bool,
}

impl Running {
    /// A task of the server `origin` with `behind` fragments behind its own begins, for a query and a round
    /// of it; `None`: there are too many.
    pub(crate) fn enter(
        &self,
        origin: usize,
        (query, round): (u64, u64),
        behind: usize,
    ) -> Option<Entered<'_>> {
        let mut state = lock(&self.0);
        let of_query = state.queries.get(&(origin, query)).map_or(0, |(_, tasks)| *tasks);
        if state.tasks + behind * TASKS_RESERVED >= TASKS_MAX
            || of_query + behind * QUERY_TASKS_RESERVED >= QUERY_TASKS_MAX
        {
            return None;
        }
        state.tasks += 1;
        Some(self.add(&mut state, origin, (query, round), true))
    }

    /// A round of a query that was asked at this server, `own`, begins.
    pub(crate) fn enter_own(&self, own: usize, (query, round): (u64, u64)) -> Entered<'_> {
        self.add(&mut lock(&self.0), own, (query, round), false)
    }

    fn add(
        &self,
        state: &mut State,
        origin: usize,
        (query, round): (u64, u64),
        is_limited: bool,
    ) -> Entered<'_> {
        let (memory, tasks) = state.queries.entry((origin, query)).or_default();
        *tasks += 1;
        let new = || (Arc::new(SharedFrontiers::new(memory)), 0);
        let (shared, tasks) = state.rounds.entry((origin, round)).or_insert_with(new);
        *tasks += 1;
        Entered { running: self, origin, query, round, shared: Arc::clone(shared), is_limited }
    }
}

impl Entered<'_> {
    /// The memory counter of all tasks of the query at this server, and the frontiers of those of the round.
    pub(crate) fn shared(&self) -> &Arc<SharedFrontiers> {
        &self.shared
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.running.0);
        if self.is_limited {
            state.tasks -= 1;
        }
        leave(state.queries.entry((self.origin, self.query)));
        leave(state.rounds.entry((self.origin, self.round)));
    }
}

/// One of those that share this has ended; the last one removes it.
fn leave<T>(entry: Entry<'_, (usize, u64), (Arc<T>, usize)>) {
    if let Entry::Occupied(mut entry) = entry {
        entry.get_mut().1 -= 1;
        if entry.get().1 == 0 {
            entry.remove();
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
                while let Some(task) = running.enter(1, (query, query), behind) {
                    entered.push(task);
                }
                assert!(entered.len() >= before + QUERY_TASKS_RESERVED, "{behind} fragments behind");
            }
        }
        assert!(entered.len() == TASKS_MAX && running.enter(1, (9, 9), 0).is_none());
        let (own, other) = (running.enter_own(1, (7, 7)), running.enter_own(1, (7, 10)));
        let first = entered[0].shared();
        assert!(Arc::ptr_eq(own.shared(), first) && !Arc::ptr_eq(other.shared(), first));
        assert!(Arc::ptr_eq(other.shared().memory(), first.memory()), "one counter for each query");
        drop((own, other, entered));
        let state = lock(&running.0);
        assert!(state.tasks == 0 && state.queries.is_empty() && state.rounds.is_empty());
    }
}
