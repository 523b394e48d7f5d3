//! This server as a place where tasks run: the graph, the rows that arrive, what else runs.

use crate::inbox::Inboxes;
use crate::output::Deliver;
use crate::running::{Entered, Running};
use crate::servers::Servers;
use crate::task::{Answered, Job, Task};
use crate::threads::spawn;
use crate::wire::malformed;
use crate::worker::run_task;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use vervet_kernel::Gate;
use vervet_model::{Error, Result, ThreadLimits};
use vervet_snapshot::Snapshot;

/// See the header of this file.
pub(crate) struct Host {
    /// One for each build of the data that queries may still read, and for each place that partitions of it
    /// had, the newest first.
    servers: RwLock<Vec<Arc<Servers>>>,
    pub(crate) inboxes: Inboxes,
    pub(crate) running: Running,
    gate: Option<Arc<dyn Gate>>,
    next_number: AtomicU64,
    /// Lowers the priority of the calling thread.
    lower_priority: OnceLock<fn()>,
}

impl Host {
    /// `seed`: random bits for [`Host::new_number`].
    pub(crate) fn new(servers: Arc<Servers>, gate: Option<Arc<dyn Gate>>, seed: u64) -> Self {
        Self {
            servers: RwLock::new(vec![servers]),
            inboxes: Inboxes::default(),
            running: Running::default(),
            gate,
            next_number: AtomicU64::new(seed),
            lower_priority: OnceLock::new(),
        }
    }

    fn all(&self) -> Vec<Arc<Servers>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The servers of the newest data.
    ///
    /// # Errors
    /// Internal: there are none.
    pub(crate) fn newest(&self) -> Result<Arc<Servers>> {
        self.all().into_iter().next().ok_or_else(|| Error::internal("there are no servers"))
    }

    /// The servers of a base, by its number; `None`: queries over it run where they are asked.
    pub(crate) fn of_base(&self, number: u64) -> Option<Arc<Servers>> {
        self.all().into_iter().find(|servers| servers.base().base_number() == Some(number))
    }

    /// The servers of a job, with its assignment.
    ///
    /// # Errors
    /// Unavailable: this server does not have the data of the job, or the assignment is that of others.
    pub(crate) fn of_job(&self, job: &Job) -> Result<Arc<Servers>> {
        let all = self.all().into_iter();
        let mut failure = malformed("a job for data that this server does not have");
        if job.assignment.is_empty() {
            // Only of data that no others have replaced.
            return all.into_iter().find(|servers| !servers.has_assignments()).ok_or(failure);
        }
        for servers in all.filter(|servers| servers.base().build() == job.build) {
            // Those of before have partitions that this server has given away.
            match servers.with_assignment(&job.places, &job.assignment) {
                Ok(servers) => return Ok(Arc::new(servers)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Queries over the base of these servers run at them from now on.
    pub(crate) fn add(&self, servers: Arc<Servers>) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(0, servers);
    }

    /// Queries over the bases of all servers but the last ones run where they are asked from now on.
    pub(crate) fn keep_newest(&self) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).truncate(1);
    }

    /// The number of a round of a query, unlike all others.
    pub(crate) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on threads that run heavy tasks, and nothing else, call this first. The first call counts.
    pub(crate) fn set_lower_priority(&self, call: fn()) {
        let _ = self.lower_priority.set(call);
    }

    /// The calling thread runs a heavy task, and then ends.
    pub(crate) fn lower_priority(&self) {
        if let Some(call) = self.lower_priority.get() {
            call();
        }
    }

    /// Runs a task on the calling thread, with its limits. `servers`: those of the job.
    pub(crate) fn run(
        &self,
        servers: &Servers,
        job: &Job,
        task: &Task<'_>,
        entered: &Entered<'_>,
        deliver: &Deliver<'_>,
    ) -> Result<Answered> {
        run_task(servers, job, task, self.gate.clone(), entered.shared(), deliver)
    }

    /// Runs what a connection asks for: heavy work on a thread of its own with lower priority, since a thread
    /// cannot raise it again.
    pub(crate) fn with_priority<T: Send>(
        &self,
        is_heavy: bool,
        run: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        if !is_heavy || self.lower_priority.get().is_none() {
            return run();
        }
        let limits = ThreadLimits::current();
        std::thread::scope(|scope| {
            let thread = spawn(scope, move || {
                self.lower_priority();
                let _limits = limits.enter();
                run()
            })?;
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("servers", &self.all())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
