//! What a running task needs besides its fragments: where rows come out, and tasks of other servers.

use crate::output::Output;
use crate::servers::Servers;
use crate::task::{Outcome, Task};
use vervet_kernel::plan::Sent;
use vervet_kernel::{Batch, Run};
use vervet_model::Result;
use vervet_partition::Answer;

/// Tasks that are awaited together at the end of a fragment.
const TOGETHER_MAX: usize = 4;

/// What a running task needs besides its fragments.
pub(crate) struct AtWork<'w, 'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) run: &'w Run<'a>,
    /// The bytes of the job.
    job: &'w [u8],
    pub(crate) output: Output<'w, 'a>,
    /// Tasks that other servers work on.
    awaited: Vec<Box<dyn Answer + 'a>>,
}

impl<'w, 'a> AtWork<'w, 'a> {
    /// `job`: its bytes.
    pub(crate) fn new(servers: &'a Servers, run: &'w Run<'a>, job: &'w [u8], output: Output<'w, 'a>) -> Self {
        Self { servers, run, job, output, awaited: Vec::new() }
    }

    /// Sends rows as a task to another server.
    pub(crate) fn send(&mut self, fragment: usize, server: usize, rows: &Batch) -> Result<()> {
        let mut request = Vec::new();
        Task { job: self.job, fragment, partitions: &[], rows }.write(&mut request);
        let sent = Sent { rows: rows.rows as u64, bytes: request.len() as u64 };
        if let Some(of_fragment) = self.output.outcome.sent.get_mut(fragment) {
            of_fragment.add(sent);
        }
        self.run.control().leave();
        let servers = self.servers;
        let answer: Box<dyn Answer + 'a> = servers.remote(server)?.send(&request)?;
        self.awaited.push(answer);
        if self.awaited.len() >= TOGETHER_MAX { self.receive() } else { Ok(()) }
    }

    /// Waits for the tasks that were sent.
    pub(crate) fn receive(&mut self) -> Result<()> {
        if self.awaited.is_empty() {
            return Ok(());
        }
        self.run.control().leave();
        for answer in std::mem::take(&mut self.awaited) {
            let outcome = Outcome::read(&answer.receive()?, self.run.variables())?;
            self.output.outcome.count(&outcome);
            if outcome.rows.rows > 0 {
                self.output.add(&outcome.rows)?;
            }
        }
        Ok(())
    }
}
