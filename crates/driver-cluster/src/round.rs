//! Rows of the server that asks through all servers, and back.
//!
//! # Shape
//! Few rows: the thread of the query sends one task to each server, works on its own, and then reads the
//! answers. Many: threads of this server (*lanes*) send the tasks of one server each, one after the other,
//! while the thread of the query runs the tail over what arrives. A round that was expected to be small and
//! is not begins again as a large one: until it ends, the tail has seen nothing of it.
//! # Invariants
//! Each round has a number of its own, so nothing that is late arrives in another one.

use crate::host::Host;
use crate::inbox::{Inbox, Message};
use crate::moved::{MovedRows, Terms};
use crate::rows::{append, rows_max};
use crate::running::{Backoff, Entered};
use crate::servers::Servers;
use crate::task::{Answered, Job, Outcome, Task};
use crate::threads::spawn;
use crate::wire::malformed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vervet_kernel::plan::Sent;
use vervet_kernel::{BATCH_ROWS, Batch, Control, Flow};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, cancelled_error};

/// Estimated rows up to which a round is small.
const SMALL_ROWS_MAX: f64 = 16_384.0;

/// A small round that takes longer is large, if the query has several times as long.
const SMALL_TIME_MAX: Duration = Duration::from_secs(10);

/// Estimated rows from which the scan of a server is cut into more tasks than it has threads.
const BALANCED_ROWS_MIN: f64 = 262_144.0;

/// Tasks of such a scan for each thread: partitions have different work.
const TASKS_PER_THREAD: usize = 4;

/// The limits of the query are checked at least this often while it waits for servers.
const WAIT: Duration = Duration::from_millis(20);

/// The tasks for one server, each taken once.
struct Lane {
    server: usize,
    tasks: Vec<(Vec<usize>, Arc<MovedRows>)>,
    next: AtomicUsize,
}

/// A query over all servers.
pub(crate) struct Query<'q> {
    pub(crate) host: &'q Host,
    /// As the query is assigned to them.
    pub(crate) servers: &'q Servers,
    pub(crate) job: &'q Job,
    pub(crate) job_bytes: &'q [u8],
    pub(crate) control: &'q Control<'q>,
    pub(crate) terms: Terms<'q>,
    /// Tasks at one server at a time; `None`: as many as this one has processors.
    pub(crate) threads: Option<usize>,
    /// The largest estimated number of rows after one of the steps of the job.
    pub(crate) rows_max: f64,
    /// Bytes of tables and rows of the query itself, which count as memory of its tasks here.
    pub(crate) held_bytes: u64,
}

/// A round: its number, where its rows arrive, what its own tasks count in.
struct Round<'r> {
    number: u64,
    inbox: &'r Inbox,
    entered: &'r Entered<'r>,
}

/// What receives the rows that come out.
type Tail<'t> = dyn FnMut(&mut Batch) -> Result<Flow> + 't;

impl Query<'_> {
    /// Runs rows of the head at all servers, and passes the resulting rows to `tail`. [`Flow::Done`]: `tail`
    /// needs no more rows.
    ///
    /// # Errors
    /// Limits; what servers answer, or that one does not; those of `tail`.
    pub(crate) fn round(&self, rows: &Batch, tail: &mut Tail<'_>) -> Result<(Flow, Outcome)> {
        if self.rows_max <= SMALL_ROWS_MAX
            && let Some(ended) = self.small_round(rows, tail)?
        {
            return Ok(ended);
        }
        self.large_round(rows, tail)
    }

    /// Begins a round.
    fn open<T>(&self, is_listed: bool, run: impl FnOnce(&Round<'_>) -> Result<T>) -> Result<T> {
        let Host { inboxes, running, .. } = self.host;
        let number = self.host.new_number();
        let entered = running.enter_own(self.servers.own(), (self.job.query, number));
        let (memory, limit) = (Arc::clone(entered.shared().memory()), self.job.memory_bytes);
        let _held = memory.hold(self.held_bytes, limit)?;
        let inbox = inboxes.open(number, Inbox::new(self.job.variables, is_listed, memory, limit));
        run(&Round { number, inbox: &inbox, entered: &entered })
    }

    /// A round without other threads. `None`: there is more to do than expected.
    fn small_round(&self, rows: &Batch, tail: &mut Tail<'_>) -> Result<Option<(Flow, Outcome)>> {
        let ended = self.open(true, |round| {
            let outcomes = {
                let _limits = small_limits().enter();
                self.small_outcomes(rows, round)
            };
            match outcomes {
                Err(error) if error.kind() == ErrorKind::Deadline => {
                    self.control.check()?;
                    Ok(None)
                }
                Err(error) => Err(error),
                Ok(None) => Ok(None),
                Ok(Some(outcomes)) => {
                    let mut batches = Vec::new();
                    while let Some(message) = round.inbox.take(Duration::ZERO) {
                        if let Message::Delivered(rows) = message {
                            batches.push(rows);
                        }
                    }
                    Ok(Some((outcomes, batches)))
                }
            }
        })?;
        let Some((outcomes, batches)) = ended else { return Ok(None) };
        let mut sum = Outcome::default();
        outcomes.iter().for_each(|outcome| sum.count(outcome));
        check_delivered(batches.iter().map(|batch| batch.rows() as u64).sum(), &sum)?;
        for rows in batches.into_iter().chain(outcomes.into_iter().map(|outcome| outcome.rows)) {
            if self.push_all(&rows, tail)? == Flow::Done {
                return Ok(Some((Flow::Done, sum)));
            }
        }
        Ok(Some((Flow::More, sum)))
    }

    /// What all servers answer to one task each. Those of other servers are sent before the own one begins.
    /// `None`: one has no room for it, or sends more rows than expected.
    fn small_outcomes(&self, rows: &Batch, round: &Round<'_>) -> Result<Option<Vec<Outcome>>> {
        let servers = self.servers;
        let lanes = self.lanes(rows, 1)?;
        let mut request = Vec::new();
        self.control.leave();
        let (mut answers, mut own) = (Vec::new(), Vec::new());
        for (server, (partitions, rows)) in
            lanes.iter().flat_map(|lane| lane.tasks.iter().map(|task| (lane.server, task)))
        {
            let task = self.task(round, partitions, rows);
            if server == servers.own() {
                own.push(task);
                continue;
            }
            request.clear();
            task.write(&mut request);
            answers.push((servers.remote(server)?.send(&request)?, rows.rows(), request.len()));
        }
        let mut outcomes = Vec::new();
        for task in &own {
            match self.run_own(task, round)? {
                Answered::Outcome(outcome) => outcomes.push(outcome),
                Answered::Busy | Answered::NotNeeded => return Ok(None),
            }
        }
        for (answer, rows, bytes) in answers {
            self.control.leave();
            match Answered::read(&answer.receive()?, self.job.variables)? {
                Answered::Outcome(mut outcome) => {
                    outcome.add_sent(rows, bytes);
                    outcomes.push(outcome);
                }
                Answered::Busy | Answered::NotNeeded => return Ok(None),
            }
        }
        Ok((!round.inbox.is_full()).then_some(outcomes))
    }

    fn task<'t>(&'t self, round: &Round<'_>, partitions: &'t [usize], rows: &'t MovedRows) -> Task<'t> {
        Task { number: round.number, job: self.job_bytes, fragment: 0, partitions, rows }
    }

    /// Runs a task of this server.
    fn run_own(&self, task: &Task<'_>, round: &Round<'_>) -> Result<Answered> {
        let deliver = |rows| {
            let is_taken = round.inbox.put(Message::Delivered(rows))?;
            Ok(is_taken.then(Sent::default))
        };
        self.host.run(self.servers, self.job, task, round.entered, &deliver)
    }

    /// A round with a thread for each task at a time, here and elsewhere.
    fn large_round(&self, rows: &Batch, tail: &mut Tail<'_>) -> Result<(Flow, Outcome)> {
        let here = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(here).max(1);
        let lanes =
            self.lanes(rows, threads * if self.rows_max > BALANCED_ROWS_MIN { TASKS_PER_THREAD } else { 1 })?;
        let stop = Arc::new(AtomicBool::new(false));
        let own = ThreadLimits::current();
        self.open(false, |round| {
            std::thread::scope(|scope| {
                // Whatever ends this thread ends the others.
                let _stop = StopOnDrop { flag: &stop, inbox: round.inbox };
                let mut started = 0;
                for lane in &lanes {
                    for copy in 0..threads.clamp(1, lane.tasks.len()) {
                        let limits = ThreadLimits { cancelled: Some(Arc::clone(&stop)), ..own.clone() };
                        let thread = spawn(scope, move || {
                            let _limits = limits.enter();
                            let run = || self.run_lane(lane, round);
                            let ended = catch_unwind(AssertUnwindSafe(run));
                            let panicked = |_| Err(Error::internal("a thread of the query panicked"));
                            // A query that has ended reads no more.
                            let _ = round.inbox.put(Message::LaneEnded(ended.unwrap_or_else(panicked)));
                        });
                        match thread {
                            Ok(_) => started += 1,
                            Err(error) if copy == 0 => return Err(error),
                            // Fewer threads do the same tasks.
                            Err(_) => break,
                        }
                    }
                }
                self.collect(round.inbox, started, tail)
            })
        })
    }

    /// The tasks of each server that has some. `scans`: into how many tasks the scan of a server is cut.
    fn lanes(&self, rows: &Batch, scans: usize) -> Result<Vec<Lane>> {
        let servers = self.servers;
        let mut lanes: Vec<Lane> = (0..servers.count())
            .map(|server| Lane { server, tasks: Vec::new(), next: AtomicUsize::new(0) })
            .collect();
        match self.job.fragments.first().and_then(|fragment| fragment.key) {
            None => {
                for start in (0..rows.rows).step_by(rows_max(rows)) {
                    let mut part = Batch::new(rows.columns.len());
                    part.copy_rows(rows, start..rows.rows.min(start + rows_max(rows)));
                    self.terms.leave(part, &mut |part| {
                        let part = Arc::new(part);
                        for lane in &mut lanes {
                            let partitions = servers.partitions_of(lane.server);
                            let some = partitions.len().div_ceil(scans).max(1);
                            let cut = partitions.chunks(some).map(|some| (some.to_vec(), Arc::clone(&part)));
                            lane.tasks.extend(cut);
                        }
                        Ok(())
                    })?;
                }
            }
            Some(key) => {
                let mut dealt = vec![Vec::new(); servers.count()];
                for (row, number) in (0..rows.rows).zip(0_u32..) {
                    let id = rows.value(key, row);
                    let server = if id.is_bound() { servers.of_key(id) } else { servers.own() };
                    dealt[server].push(number);
                }
                for (lane, numbers) in lanes.iter_mut().zip(&dealt) {
                    for some in numbers.chunks(rows_max(rows)) {
                        let mut part = Batch::new(rows.columns.len());
                        append(&mut part, rows, some);
                        self.terms.leave(part, &mut |part| {
                            lane.tasks.push((Vec::new(), Arc::new(part)));
                            Ok(())
                        })?;
                    }
                }
            }
        }
        lanes.retain(|lane| !lane.tasks.is_empty());
        Ok(lanes)
    }

    /// Runs tasks of a server one after the other.
    fn run_lane(&self, lane: &Lane, round: &Round<'_>) -> Result<()> {
        let servers = self.servers;
        if lane.server == servers.own() && self.job.is_heavy {
            self.host.lower_priority();
        }
        let mut request = Vec::new();
        while let Some((partitions, rows)) = lane.tasks.get(lane.next.fetch_add(1, Ordering::Relaxed)) {
            ThreadLimits::check()?;
            let task = self.task(round, partitions, rows);
            let mut backoff = Backoff::new();
            let outcome = loop {
                let answered = if lane.server == servers.own() {
                    self.run_own(&task, round)?
                } else {
                    request.clear();
                    task.write(&mut request);
                    let answer = servers.remote(lane.server)?.send(&request)?.receive()?;
                    Answered::read(&answer, self.job.variables)?
                };
                match answered {
                    Answered::Outcome(mut outcome) => {
                        if lane.server != servers.own() {
                            outcome.add_sent(rows.rows(), request.len());
                        }
                        break outcome;
                    }
                    Answered::Busy => backoff.wait()?,
                    Answered::NotNeeded if round.inbox.is_open() => {
                        return Err(malformed("an answer that says that no rows are needed"));
                    }
                    Answered::NotNeeded => return Err(cancelled_error()),
                }
            };
            if !round.inbox.put(Message::Ended(outcome))? {
                return Err(cancelled_error());
            }
        }
        Ok(())
    }

    /// Passes rows on in batches.
    fn push_all(&self, rows: &MovedRows, tail: &mut Tail<'_>) -> Result<Flow> {
        let rows = self.terms.arrive(rows, self.control)?;
        let mut part = Batch::new(rows.columns.len());
        for start in (0..rows.rows).step_by(BATCH_ROWS) {
            part.columns.resize(rows.columns.len(), Vec::new());
            part.copy_rows(&rows, start..rows.rows.min(start + BATCH_ROWS));
            if tail(&mut part)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Receives what the lanes and other servers send, until all lanes have ended or no more is needed.
    fn collect(&self, inbox: &Inbox, lanes: usize, tail: &mut Tail<'_>) -> Result<(Flow, Outcome)> {
        let mut sum = Outcome::default();
        let (mut delivered, mut ended) = (0_u64, 0);
        while ended < lanes {
            let message = inbox.take(Duration::ZERO).or_else(|| {
                self.control.leave();
                inbox.take(WAIT)
            });
            self.control.check()?;
            let rows = match message {
                Some(Message::Delivered(rows)) => {
                    delivered += rows.rows() as u64;
                    rows
                }
                Some(Message::Ended(outcome)) => {
                    sum.count(&outcome);
                    outcome.rows
                }
                Some(Message::LaneEnded(result)) => {
                    result?;
                    ended += 1;
                    continue;
                }
                None => continue,
            };
            if self.push_all(&rows, tail)? == Flow::Done {
                return Ok((Flow::Done, sum));
            }
        }
        check_delivered(delivered, &sum)?;
        Ok((Flow::More, sum))
    }
}

/// The limits of the calling thread, and those of a small round.
fn small_limits() -> ThreadLimits {
    let limits = ThreadLimits::current();
    if ThreadLimits::remaining().is_some_and(|left| left < 4 * SMALL_TIME_MAX) {
        return limits;
    }
    ThreadLimits { deadline: Some((Instant::now() + SMALL_TIME_MAX, SMALL_TIME_MAX)), ..limits }
}

/// Fails if rows have not arrived that were delivered.
fn check_delivered(arrived: u64, sum: &Outcome) -> Result<()> {
    if arrived == sum.delivered {
        return Ok(());
    }
    let message = format!("servers delivered {} rows, of which {arrived} arrived", sum.delivered);
    Err(Error::internal(message))
}

/// Stops the lanes of a query.
struct StopOnDrop<'s> {
    flag: &'s AtomicBool,
    inbox: &'s Inbox,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.flag.store(true, Ordering::Relaxed);
        self.inbox.close();
    }
}
