//! Rows that servers deliver to a query, on their way to its thread.
//!
//! # Shape
//! Threads of connections and of lanes put messages in, the thread of the query takes them out. An inbox
//! holds a limited number of bytes; who puts more waits, and its server with it. All bytes in it, and those
//! that wait, count as memory of the tasks of the query here. An inbox without a thread that takes
//! (`is_listed`) is full at that limit: the query begins again with one.
//! # Invariants
//! A thread that waits for an inbox ends its wait when the inbox is closed, and within its own limits.

use crate::moved::MovedRows;
use crate::task::Outcome;
use crate::wire::malformed;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vervet_kernel::{HeldMemory, SharedMemory};
use vervet_model::{Id, Result, ThreadLimits, lock};

/// Bytes of messages from which on those who put more wait.
const BYTES_MAX: u64 = 4 << 20;

/// The limits of a thread are checked at least this often while it waits.
const WAIT: Duration = Duration::from_millis(20);

/// What the thread of a query receives.
pub(crate) enum Message {
    /// Rows that were too many for an outcome.
    Delivered(MovedRows),
    Ended(Outcome),
    /// A lane has no more tasks, or has failed.
    LaneEnded(Result<()>),
}

/// See the header of this file.
pub(crate) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
    /// Number of columns of the rows.
    variables: usize,
    is_listed: bool,
    memory: Arc<SharedMemory>,
    memory_bytes_max: Option<u64>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<(Message, u64, HeldMemory)>,
    /// Those of the messages, as [`Inbox::size_of`] counts them.
    bytes: u64,
    is_closed: bool,
    is_full: bool,
}

impl Inbox {
    /// `variables`: number of columns. `memory`: what counts the bytes, at most `memory_bytes_max`.
    pub(crate) fn new(
        variables: usize,
        is_listed: bool,
        memory: Arc<SharedMemory>,
        memory_bytes_max: Option<u64>,
    ) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { state, changed, variables, is_listed, memory, memory_bytes_max }
    }

    /// Puts a message in; `false`: the query needs no more, or begins again.
    ///
    /// # Errors
    /// Limits of the calling thread; the memory cap of the query; rows with other columns.
    pub(crate) fn put(&self, message: Message) -> Result<bool> {
        if let Message::Delivered(rows) = &message
            && rows.columns() != self.variables
        {
            return Err(malformed("rows with other columns"));
        }
        let bytes = self.size_of(&message);
        let held = self.memory.hold(bytes, self.memory_bytes_max)?;
        let mut state = lock(&self.state);
        while !state.is_closed && state.bytes > 0 && bytes > 0 && state.bytes + bytes > BYTES_MAX {
            if self.is_listed {
                state.is_full = true;
                return Ok(false);
            }
            state = self.wait(state, WAIT);
            ThreadLimits::check()?;
        }
        if state.is_closed || state.is_full {
            return Ok(false);
        }
        state.bytes += bytes;
        state.messages.push_back((message, bytes, held));
        drop(state);
        self.changed.notify_all();
        Ok(true)
    }

    /// The next message; waits for it for at most `time`.
    pub(crate) fn take(&self, time: Duration) -> Option<Message> {
        let mut state = lock(&self.state);
        if state.messages.is_empty() && !time.is_zero() {
            state = self.wait(state, time);
        }
        let (message, bytes, _held) = state.messages.pop_front()?;
        state.bytes -= bytes;
        drop(state);
        self.changed.notify_all();
        Some(message)
    }

    /// Bytes of a message: rows without values take some, too. The word of a lane takes none, so it never
    /// waits.
    fn size_of(&self, message: &Message) -> u64 {
        let rows = match message {
            Message::Delivered(rows) | Message::Ended(Outcome { rows, .. }) => rows,
            Message::LaneEnded(_) => return 0,
        };
        (size_of::<Message>() + rows.columns() * size_of::<Vec<Id>>()) as u64 + rows.size_bytes()
    }

    /// Whether messages may still be put in.
    pub(crate) fn is_open(&self) -> bool {
        !lock(&self.state).is_closed
    }

    /// Whether a message found no room in an inbox without a thread that takes.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.state).is_full
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends all waits; drops the messages, and those to come.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.messages.clear();
        drop(state);
        self.changed.notify_all();
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("variables", &self.variables).finish_non_exhaustive()
    }
}

/// The inboxes of the queries that were asked here, by number.
#[derive(Debug, Default)]
pub(crate) struct Inboxes(Mutex<FxHashMap<u64, Arc<Inbox>>>);

/// An inbox with its number; closed when this value is dropped.
pub(crate) struct OpenInbox<'i> {
    inboxes: &'i Inboxes,
    number: u64,
    inbox: Arc<Inbox>,
}

impl Inboxes {
    pub(crate) fn open(&self, number: u64, inbox: Inbox) -> OpenInbox<'_> {
        let inbox = Arc::new(inbox);
        lock(&self.0).insert(number, Arc::clone(&inbox));
        OpenInbox { inboxes: self, number, inbox }
    }

    /// Passes rows on to a query; `false`: it needs no more.
    ///
    /// # Errors
    /// As [`Inbox::put`].
    pub(crate) fn deliver(&self, number: u64, rows: MovedRows) -> Result<bool> {
        let inbox = lock(&self.0).get(&number).cloned();
        inbox.map_or(Ok(false), |inbox| inbox.put(Message::Delivered(rows)))
    }
}

impl std::ops::Deref for OpenInbox<'_> {
    type Target = Inbox;

    fn deref(&self) -> &Inbox {
        &self.inbox
    }
}

impl Drop for OpenInbox<'_> {
    fn drop(&mut self) {
        lock(&self.inboxes.0).remove(&self.number);
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use vervet_kernel::Batch;
    use vervet_model::ErrorKind;

    fn rows(count: usize) -> MovedRows {
        let mut rows = Batch::new(1);
        rows.columns[0] = vec![Id::vertex(1); count];
        rows.rows = count;
        MovedRows::plain(rows)
    }

    fn inbox(is_listed: bool, memory_bytes_max: Option<u64>) -> Inbox {
        Inbox::new(1, is_listed, Arc::default(), memory_bytes_max)
    }

    #[test]
    fn who_puts_too_much_waits_for_room_and_not_for_ever() {
        let inboxes = Inboxes::default();
        let open = inboxes.open(5, inbox(false, None));
        let large = rows(400_000);
        assert!(inboxes.deliver(5, large.clone()).expect("room"));
        // Full: the thread waits until its own deadline, until there is room, until the inbox is closed.
        let deadline = Instant::now().checked_add(Duration::from_millis(30));
        let limits = deadline.map(|end| (end, Duration::from_millis(30)));
        let entered = ThreadLimits { deadline: limits, ..ThreadLimits::default() }.enter();
        let refused = inboxes.deliver(5, large.clone());
        assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::Deadline));
        drop(entered);
        std::thread::scope(|scope| {
            let (inboxes, large) = (&inboxes, &large);
            let waiting = scope.spawn(move || inboxes.deliver(5, large.clone()));
            assert!(matches!(open.take(WAIT), Some(Message::Delivered(_))));
            assert!(waiting.join().expect("no panic").expect("room"));
            let waiting = scope.spawn(move || inboxes.deliver(5, large.clone()));
            drop(open);
            assert!(!waiting.join().expect("no panic").expect("closed"));
        });
        assert!(!inboxes.deliver(5, rows(1)).expect("no inbox"));
    }

    #[test]
    fn a_list_is_full_and_memory_is_counted() {
        let inboxes = Inboxes::default();
        let open = inboxes.open(1, inbox(true, None));
        assert!(open.put(Message::Delivered(rows(400_000))).expect("room") && !open.is_full());
        assert!(!open.put(Message::Delivered(rows(400_000))).expect("full") && open.is_full());
        let open = inboxes.open(2, inbox(false, Some(3_000_000)));
        let refused = open.put(Message::Delivered(rows(400_000))).map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::MemoryLimit));
        assert!(open.put(Message::Delivered(rows(300_000))).expect("room"));
        assert!(open.take(WAIT).is_some());
        assert!(open.put(Message::Delivered(rows(300_000))).expect("what was taken is not counted"));
        for columns in [2, 0] {
            let other = MovedRows::plain(Batch::new(columns));
            let refused = open.put(Message::Delivered(other)).map_err(|error| error.kind());
            assert_eq!(refused, Err(ErrorKind::Unavailable));
        }
        // Rows without values are some bytes each, and an end to them.
        let open = inboxes.open(3, inbox(true, None));
        let empty = MovedRows::plain(Batch { rows: 10_000, ..Batch::new(1) });
        let puts = (0..100_000).take_while(|_| open.put(Message::Delivered(empty.clone())).expect("a list"));
        assert!(puts.count() < 60_000 && open.is_full());
    }
}
