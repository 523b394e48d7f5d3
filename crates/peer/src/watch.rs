//! The connections of a server, and a thread that looks at those whose handlers take long.
//!
//! For a handler at work it sends a frame each second, so that the client can tell it from a server that
//! hangs; and it cancels the request when the client has gone away.

use crate::frame::FrameKind;
use crate::stream::{FrameStream, Silence};
use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind};

/// How often the thread looks; a handler that ends sooner is never looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How often a client hears of a handler at work: well below the time after which it gives up.
const WORKING_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of connections that have not said hello. A hello takes milliseconds: with one more, the
/// oldest of them ends, so silent connections keep neither memory nor others out.
pub(crate) const GREETINGS_MAX: usize = 256;

/// One connection. The lock of the stream is free while the handler works.
pub(crate) struct Connection {
    pub(crate) stream: Mutex<FrameStream>,
    pub(crate) socket: Arc<TcpStream>,
    /// Cancels the request that is being answered.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// Milliseconds since the start of the server, from 1; 0: no handler is at work.
    answering_since: AtomicU64,
    /// When the client heard of this one last, in the same unit.
    told_at: AtomicU64,
}

impl Connection {
    pub(crate) fn new(stream: FrameStream, socket: Arc<TcpStream>) -> Self {
        Self {
            stream: Mutex::new(stream),
            socket,
            cancelled: Arc::default(),
            answering_since: AtomicU64::new(0),
            told_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn stream(&self) -> MutexGuard<'_, FrameStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the request and the connection.
    fn end(&self) {
        // Relaxed: the flag carries no data.
        self.cancelled.store(true, Ordering::Relaxed);
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

pub(crate) struct Connections {
    start: Instant,
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, Arc<Connection>>,
    /// Those without a hello, the oldest first.
    greeting: VecDeque<u64>,
    next: u64,
    is_stopped: bool,
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), state: Mutex::default(), stopped: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection: its number, and how many there are with it. `None`: the server is shut down.
    pub(crate) fn add(&self, connection: Arc<Connection>) -> Option<(u64, usize)> {
        let mut state = self.lock();
        if state.is_stopped {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.open.insert(number, connection);
        state.greeting.push_back(number);
        if state.greeting.len() > GREETINGS_MAX
            && let Some(oldest) = state.greeting.pop_front().and_then(|oldest| state.open.get(&oldest))
        {
            oldest.end();
        }
        Some((number, state.open.len()))
    }

    /// The connection has said hello.
    pub(crate) fn greeted(&self, number: u64) {
        self.lock().greeting.retain(|greeting| *greeting != number);
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut state = self.lock();
        state.open.remove(&number);
        state.greeting.retain(|greeting| *greeting != number);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().open.len()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Ends all connections, and those to come.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        for connection in state.open.values() {
            connection.end();
        }
        self.stopped.notify_all();
    }

    /// The handler begins.
    pub(crate) fn begin(&self, connection: &Connection) {
        let now = self.now();
        connection.told_at.store(now, Ordering::Relaxed);
        connection.answering_since.store(now, Ordering::Release);
    }

    /// The handler has ended.
    pub(crate) fn end(connection: &Connection) {
        connection.answering_since.store(0, Ordering::Release);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Until the server is shut down.
    pub(crate) fn watch(&self) {
        let mut state = self.lock();
        while !state.is_stopped {
            state = self.stopped.wait_timeout(state, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            let now = self.now();
            let is_long = |connection: &&Arc<Connection>| {
                let since = connection.answering_since.load(Ordering::Acquire);
                since > 0 && now.saturating_sub(since) >= millis(LOOK_INTERVAL)
            };
            let long: Vec<Arc<Connection>> = state.open.values().filter(is_long).map(Arc::clone).collect();
            drop(state);
            for connection in long {
                look(&connection, now);
            }
            state = self.lock();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn look(connection: &Connection, now: u64) {
    // The thread of the connection has the lock: the handler has ended.
    let Ok(mut stream) = connection.stream.try_lock() else { return };
    if connection.answering_since.load(Ordering::Acquire) == 0 {
        return;
    }
    if stream.has_ended() {
        connection.end();
        return;
    }
    if now.saturating_sub(connection.told_at.load(Ordering::Relaxed)) < millis(WORKING_INTERVAL) {
        return;
    }
    connection.told_at.store(now, Ordering::Relaxed);
    // So few bytes find room in the socket, unless the client has not read for hours.
    let mut wait = |silence: &Silence| {
        if silence.lasted.is_zero() {
            Ok(Duration::from_millis(100))
        } else {
            Err(Error::new(ErrorKind::Unavailable, "the client does not read"))
        }
    };
    if stream.write_frame(FrameKind::Working, [&[], &[]], &mut wait).is_err() {
        connection.end();
    }
}
