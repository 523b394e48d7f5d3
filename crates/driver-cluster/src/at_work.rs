//! What a running task needs besides its fragments: where rows come out, and tasks of other servers.

use crate::moved::{MovedRows, Terms};
use crate::output::Output;
use crate::running::Backoff;
use crate::servers::Servers;
use crate::task::{Answered, Job, Task};
use std::time::{Duration, Instant};
use vervet_kernel::plan::Sent;
use vervet_kernel::{Batch, Run};
use vervet_model::Result;
use vervet_partition::Answer;

/// Tasks that are awaited together at the end of a fragment.
const TOGETHER_MAX: usize = 4;

/// An answer is read within about this time, though rows wait: a server gives up a reader that is late.
const LATE: Duration = Duration::from_secs(5);

/// What a running task needs besides its fragments.
pub(crate) struct AtWork<'w, 'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) run: &'w Run<'a>,
    /// The number of the query, and the bytes of the job.
    number: u64,
    job: &'w [u8],
    terms: Terms<'a>,
    pub(crate) output: Output<'w, 'a>,
    /// Tasks that other servers work on.
    awaited: Vec<Awaited<'a>>,
    /// When the first of them was sent.
    since: Option<Instant>,
}

/// A task that was sent, and kept in case that the server is busy.
struct Awaited<'a> {
    server: usize,
    request: Vec<u8>,
    answer: Box<dyn Answer + 'a>,
}

impl<'w, 'a> AtWork<'w, 'a> {
    pub(crate) fn new(
        servers: &'a Servers,
        run: &'w Run<'a>,
        (job, task): (&Job, &Task<'w>),
        output: Output<'w, 'a>,
    ) -> Self {
        let terms = Terms::new(run.evaluator(), job.computed.len());
        let (number, job) = (task.number, task.job);
        Self { servers, run, number, job, terms, output, awaited: Vec::new(), since: None }
    }

    /// Sends rows as a task to another server.
    pub(crate) fn send(&mut self, fragment: usize, server: usize, rows: Batch) -> Result<()> {
        let terms = self.terms;
        terms.leave(rows, &mut |rows| self.send_moved(fragment, server, &rows))
    }

    fn send_moved(&mut self, fragment: usize, server: usize, rows: &MovedRows) -> Result<()> {
        let mut request = Vec::new();
        Task { number: self.number, job: self.job, fragment, partitions: &[], rows }.write(&mut request);
        self.run.control().grow(request.len() as u64)?;
        let sent = Sent { rows: rows.rows() as u64, bytes: request.len() as u64 };
        if let Some(of_fragment) = self.output.outcome.sent.get_mut(fragment) {
            of_fragment.add(sent);
        }
        self.run.control().leave();
        let servers = self.servers;
        let answer: Box<dyn Answer + 'a> = servers.remote(server)?.send(&request)?;
        self.awaited.push(Awaited { server, request, answer });
        self.since.get_or_insert_with(Instant::now);
        if self.awaited.len() >= TOGETHER_MAX { self.receive() } else { Ok(()) }
    }

    /// Waits for the tasks that were sent, if that was long ago.
    pub(crate) fn receive_late(&mut self) -> Result<()> {
        if self.since.is_some_and(|since| since.elapsed() > LATE) { self.receive() } else { Ok(()) }
    }

    /// Waits for the tasks that were sent.
    pub(crate) fn receive(&mut self) -> Result<()> {
        if self.awaited.is_empty() {
            return Ok(());
        }
        self.since = None;
        self.run.control().leave();
        let mut awaited = std::mem::take(&mut self.awaited);
        let mut backoff = Backoff::new();
        loop {
            let mut refused = Vec::new();
            for one in awaited {
                refused.extend(self.receive_one(one)?);
            }
            if refused.is_empty() {
                return Ok(());
            }
            backoff.wait()?;
            let again = refused.into_iter().map(|(server, request)| {
                let answer = self.servers.remote(server)?.send(&request)?;
                Ok(Awaited { server, request, answer })
            });
            awaited = again.collect::<Result<_>>()?;
        }
    }

    /// Reads an answer; where the server was busy, its number and the request.
    fn receive_one(&mut self, awaited: Awaited<'a>) -> Result<Option<(usize, Vec<u8>)>> {
        let Awaited { server, request, answer } = awaited;
        let outcome = match Answered::read(&answer.receive()?, self.run.variables())? {
            Answered::Outcome(outcome) => outcome,
            Answered::NotNeeded => return Err(self.output.not_needed()),
            Answered::Busy => return Ok(Some((server, request))),
        };
        self.run.control().shrink(request.len() as u64);
        self.output.outcome.count(&outcome);
        if outcome.rows.rows() > 0 {
            let rows = self.terms.arrive(&outcome.rows, self.run.control())?;
            self.output.add(&rows)?;
        }
        Ok(None)
    }
}
