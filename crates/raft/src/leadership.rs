//! What a leader appends: group commit over the replicated log.
//!
//! # Shape
//! Records enter a queue. One task takes the whole queue as one batch, up to [`BATCH_BYTES`], and proposes it
//! as one entry; up to [`IN_FLIGHT_MAX`] entries are under way. A second task awaits their results in order,
//! runs the callbacks of their records, and wakes the threads that wait for them. So the cost of an entry,
//! a sync and a message to each voter, is shared by all records that came during the one before.
//! # Why it is right
//! 1. An entry is reported as applied once a majority of the voters has synced it, so no later leader is
//!    without it.
//! 2. Records are published in the order of the queue, which is that of the log: there is one task for each
//!    of the two steps, and a batch with a result other than success ends the queue.
//! 3. The entries of this queue follow each other in the log without others in between, from the first entry
//!    of the term on: a batch that is proposed in a later term is void (`batch.rs`).
//! # The end
//! A queue ends when its server is no leader of its term any more. Records that were never proposed are
//! refused with an error that says so. Records of proposed entries without a result may or may not be in the
//! log of the next leader: their error says that the outcome is unknown. The same error is returned for a
//! wait of more than [`WAIT_MAX`], when no majority answers; such a record may be published later.

use crate::batch::{self, RECORD_HEAD_BYTES};
use crate::types::{Applied, Types};
use bytes::{Bytes, BytesMut};
use openraft::Raft;
use openraft::raft::ClientWriteResponse;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use vervet_model::{Error, ErrorKind, Result, lock};

/// Entries that are proposed and not yet applied.
pub const IN_FLIGHT_MAX: usize = 3;

/// Bytes from which a batch takes no further records.
pub const BATCH_BYTES: usize = 1 << 20;

/// Largest record, so that an entry fits into one message.
pub const RECORD_BYTES_MAX: usize = 12 << 20;

/// Bytes in the queue from which appends are refused.
const QUEUE_BYTES_MAX: usize = 256 << 20;

/// Longest wait for a majority.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// Runs when the record before it, and all earlier ones, are committed. It must not call the log.
pub type Publish = Box<dyn FnOnce() + Send>;

/// Position of an append among those of one leadership; the first one is 1.
pub type Sequence = u64;

/// One leadership of this server. Clones share it.
#[derive(Clone)]
pub struct Leadership {
    queue: Arc<Queue>,
}

struct Queue {
    term: u64,
    state: Mutex<State>,
    /// A batch waits, or the queue has ended.
    changed: Notify,
}

struct State {
    batches: VecDeque<Batch>,
    queued_bytes: usize,
    /// The last append.
    last: Sequence,
    /// The last append of which a record was proposed.
    proposed: Sequence,
    /// The last append that was published.
    published: Sequence,
    waiters: Vec<(Sequence, Thread)>,
    ended: bool,
}

struct Batch {
    bytes: BytesMut,
    /// The last append that it completes.
    last: Sequence,
    /// The last append of which it has a record.
    begun: Sequence,
    publish: Vec<Publish>,
}

/// A proposed batch.
struct Proposal {
    answer:
        <openraft::impls::OneshotResponder<Types> as openraft::raft::responder::Responder<Types>>::Receiver,
    last: Sequence,
    publish: Vec<Publish>,
    _permit: OwnedSemaphorePermit,
}

fn unknown_outcome() -> Error {
    let what = "the outcome of this commit is unknown: the leader has changed before a majority had it";
    Error::new(ErrorKind::Unavailable, what)
        .with_hint("it may have taken effect: look before you repeat it at the new leader")
}

fn no_majority() -> Error {
    let what = "the outcome of this commit is unknown: no majority of the voters has it yet";
    Error::new(ErrorKind::Unavailable, what)
        .with_hint("it may still take effect; look before you repeat it when more voters are up")
}

fn not_leader() -> Error {
    Error::new(ErrorKind::Unavailable, "this server does not lead any more; nothing was changed")
        .with_hint("repeat it at the new leader")
}

impl Leadership {
    /// Begins the queue of a leader of `term`.
    pub(crate) fn start(term: u64, raft: Raft<Types>, runtime: &Handle) -> Self {
        let state = State {
            batches: VecDeque::new(),
            queued_bytes: 0,
            last: 0,
            proposed: 0,
            published: 0,
            waiters: Vec::new(),
            ended: false,
        };
        let queue = Arc::new(Queue { term, state: Mutex::new(state), changed: Notify::new() });
        let (proposals, results) = mpsc::unbounded_channel();
        runtime.spawn(propose(Arc::clone(&queue), raft, proposals));
        runtime.spawn(publish(Arc::clone(&queue), results));
        Self { queue }
    }

    /// The term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.queue.term
    }

    /// Appends records of one kind, in this order, or none of them. `publish` runs when all are committed.
    /// Returns the position of the last one. If the leadership ends, the next leader may have the first few.
    ///
    /// # Errors
    /// Input: one is larger than [`RECORD_BYTES_MAX`]. Unavailable: the leadership has ended, or too much
    /// waits for a majority. Nothing was appended.
    pub fn append(&self, kind: u8, payloads: &[&[u8]], publish: Option<Publish>) -> Result<Sequence> {
        let (mut lengths, mut bytes) = (Vec::with_capacity(payloads.len()), 0);
        for payload in payloads {
            let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= RECORD_BYTES_MAX);
            let Some(length) = length else {
                let what = format!("a record of {} bytes exceeds {RECORD_BYTES_MAX}", payload.len());
                return Err(Error::new(ErrorKind::Input, what).with_hint("split the transaction"));
            };
            lengths.push(length);
            bytes += RECORD_HEAD_BYTES + payload.len();
        }
        let last = {
            let mut state = lock(&self.queue.state);
            if state.ended {
                return Err(not_leader());
            }
            if state.queued_bytes > 0 && state.queued_bytes + bytes > QUEUE_BYTES_MAX {
                let what = "too many changes wait for a majority of the voters; nothing was changed";
                return Err(Error::new(ErrorKind::Unavailable, what));
            }
            state.queued_bytes += bytes;
            for (payload, length) in payloads.iter().zip(lengths) {
                let batch = state.batch_for(self.queue.term, payload.len());
                batch.begun = batch.last + 1;
                batch::push(&mut batch.bytes, kind, payload, length);
            }
            state.last += 1;
            let last = state.last;
            let batch = state.batch_for(self.queue.term, 0);
            (batch.last, batch.begun) = (last, last);
            batch.publish.extend(publish);
            last
        };
        self.queue.changed.notify_one();
        Ok(last)
    }

    /// Returns once everything up to `sequence` is committed and published.
    ///
    /// # Errors
    /// Unavailable: the leadership has ended, or no majority answers. The message says whether the outcome is
    /// unknown.
    pub fn wait(&self, sequence: Sequence) -> Result<()> {
        self.wait_since(sequence, Instant::now())
    }

    /// [`Leadership::wait`] whose limit, [`WAIT_MAX`], counts from `since`: for waits one after the other.
    ///
    /// # Errors
    /// As [`Leadership::wait`].
    pub fn wait_since(&self, sequence: Sequence, since: Instant) -> Result<()> {
        self.wait_until(sequence, since + WAIT_MAX)
    }

    /// Returns once everything is published that was proposed before the call: entries that are committed
    /// are published a little later.
    ///
    /// # Errors
    /// As [`Leadership::wait`], after `time_max`.
    pub fn wait_for_proposed(&self, time_max: Duration) -> Result<()> {
        let proposed = lock(&self.queue.state).proposed;
        self.wait_until(proposed, Instant::now() + time_max)
    }

    fn wait_until(&self, sequence: Sequence, end: Instant) -> Result<()> {
        loop {
            {
                let mut state = lock(&self.queue.state);
                if state.published >= sequence {
                    return Ok(());
                }
                if state.ended {
                    return Err(if sequence > state.proposed { not_leader() } else { unknown_outcome() });
                }
                if Instant::now() >= end {
                    return Err(no_majority());
                }
                state.waiters.push((sequence, std::thread::current()));
            }
            std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
        }
    }

    /// Checks that the leadership has not ended.
    ///
    /// # Errors
    /// Unavailable.
    pub fn check(&self) -> Result<()> {
        if lock(&self.queue.state).ended { Err(not_leader()) } else { Ok(()) }
    }

    /// Position of the last record that was published.
    #[must_use]
    pub fn published(&self) -> Sequence {
        lock(&self.queue.state).published
    }

    /// Position of the last record that was appended.
    #[must_use]
    pub fn last(&self) -> Sequence {
        lock(&self.queue.state).last
    }

    /// Ends the queue. Nothing is published afterwards but what is being published.
    pub fn end(&self) {
        self.queue.end();
    }
}

impl State {
    /// The batch to which a record of `bytes` is added.
    fn batch_for(&mut self, term: u64, bytes: usize) -> &mut Batch {
        let has_room = |batch: &Batch| {
            batch.bytes.len() + bytes <= BATCH_BYTES || batch.bytes.len() <= batch::HEAD_BYTES || bytes == 0
        };
        if !self.batches.back().is_some_and(has_room) {
            let (bytes, last) = (batch::begin(term), self.last);
            self.batches.push_back(Batch { bytes, last, begun: last, publish: Vec::new() });
        }
        let at = self.batches.len() - 1;
        &mut self.batches[at]
    }
}

impl Queue {
    fn end(&self) {
        let (waiters, batches) = {
            let mut state = lock(&self.state);
            state.ended = true;
            state.queued_bytes = 0;
            (std::mem::take(&mut state.waiters), std::mem::take(&mut state.batches))
        };
        drop(batches);
        self.changed.notify_one();
        waiters.into_iter().for_each(|(_, thread)| thread.unpark());
    }

    /// The next batch; `None`: the queue has ended.
    async fn next(&self) -> Option<Batch> {
        loop {
            {
                let mut state = lock(&self.state);
                if state.ended {
                    return None;
                }
                if let Some(batch) = state.batches.pop_front() {
                    state.proposed = batch.begun;
                    return Some(batch);
                }
            }
            self.changed.notified().await;
        }
    }

    /// Publishes a committed batch; `false`: the queue has ended.
    fn publish(&self, last: Sequence, bytes: usize, publish: Vec<Publish>) -> bool {
        if lock(&self.state).ended {
            return false;
        }
        publish.into_iter().for_each(|publish| publish());
        let due: Vec<Thread> = {
            let mut state = lock(&self.state);
            state.published = last;
            state.queued_bytes = state.queued_bytes.saturating_sub(bytes);
            state
                .waiters
                .extract_if(.., |(sequence, _)| *sequence <= last)
                .map(|(_, thread)| thread)
                .collect()
        };
        due.into_iter().for_each(|thread| thread.unpark());
        true
    }
}

/// Proposes batches until the queue ends.
async fn propose(queue: Arc<Queue>, raft: Raft<Types>, proposals: mpsc::UnboundedSender<(Proposal, usize)>) {
    let permits = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let Some(Batch { bytes, last, publish, .. }) = queue.next().await else { return };
        let length = bytes.len();
        let Ok(answer) = raft.client_write_ff(Bytes::from(bytes)).await else { break };
        let proposal = Proposal { answer, last, publish, _permit: permit };
        if proposals.send((proposal, length)).is_err() {
            break;
        }
    }
    queue.end();
}

/// Publishes batches in order until one of them is not committed as proposed.
async fn publish(queue: Arc<Queue>, mut results: mpsc::UnboundedReceiver<(Proposal, usize)>) {
    while let Some((Proposal { answer, last, publish, _permit }, bytes)) = results.recv().await {
        let is_committed =
            matches!(answer.await, Ok(Ok(ClientWriteResponse { data: Applied { is_void: false }, .. })));
        if !is_committed || !queue.publish(last, bytes, publish) {
            break;
        }
    }
    queue.end();
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.queue.state);
        f.debug_struct("Leadership")
            .field("term", &self.queue.term)
            .field("last", &state.last)
            .field("proposed", &state.proposed)
            .field("published", &state.published)
            .field("ended", &state.ended)
            .finish()
    }
}
