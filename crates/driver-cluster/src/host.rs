//! This server as a place where tasks run: the graph, the rows that arrive, what else runs.

use crate::inbox::Inboxes;
use crate::output::Deliver;
use crate::running::{Entered, Running};
use crate::servers::Servers;
use crate::task::{Answered, Job, Task};
use crate::threads::spawn;
use crate::worker::run_task;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use vervet_kernel::Gate;
use vervet_model::{Result, ThreadLimits};

/// See the header of this file.
pub(crate) struct Host {
    pub(crate) servers: Arc<Servers>,
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
            servers,
            inboxes: Inboxes::default(),
            running: Running::default(),
            gate,
            next_number: AtomicU64::new(seed),
            lower_priority: OnceLock::new(),
        }
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

    /// Runs a task on the calling thread, with its limits.
    pub(crate) fn run(
        &self,
        job: &Job,
        task: &Task<'_>,
        entered: &Entered<'_>,
        deliver: &Deliver<'_>,
    ) -> Result<Answered> {
        let assigned;
        let servers = match job.assignment.as_slice() {
            [] => &*self.servers,
            server_of => {
                assigned = self.servers.with_assignment(server_of)?;
                &assigned
            }
        };
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
            .field("servers", &self.servers)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
