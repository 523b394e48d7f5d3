//! The I/O threads that serve connections.
//!
//! # Shape
//! Each thread has a single-threaded runtime, and a connection stays on its thread: the one with the fewest
//! connections at accept. A multi-threaded runtime wakes a second thread whenever the first has found work,
//! to look for more; where a request takes microseconds, that costs more than the request, and on a small
//! machine it takes the processor that the client needs.
//! Their time slices are short, so that they preempt heavy requests when they wake up.
//! # Invariants
//! Long work is passed to other threads (`worker_threads`, blocking threads), so the connections of a thread
//! delay each other at most by the time limit of the fast path ([`Tier::FastPath`](crate::admission::Tier)).

use crate::worker_threads::shorten_time_slices;
use std::io;
use std::net::TcpStream as Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// The maximum number of threads: they pass all long work to others.
const IO_THREADS_MAX: usize = 8;

/// See the header of this file.
pub(crate) struct IoThreads {
    threads: Vec<IoThread>,
    /// Runs what concerns all connections: accepting, signals, shutdown. It waits for no connection.
    main: Runtime,
}

struct IoThread {
    runtime: Runtime,
    connections: Arc<AtomicUsize>,
}

impl IoThreads {
    /// Starts as many threads as the machine has processors, up to a limit. `blocking`: the maximum number of
    /// blocking threads of each; `stack`: their stack size in bytes.
    ///
    /// # Errors
    /// The system cannot create the threads.
    pub(crate) fn start(blocking: usize, stack: usize) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |_| {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(blocking)
                .thread_stack_size(stack)
                .thread_name("vervet-server")
                .enable_all()
                .build()?;
            // A task, since a callback of the builder would also concern the blocking threads.
            runtime.spawn(async { shorten_time_slices() });
            Ok(IoThread { runtime, connections: Arc::default() })
        };
        let threads = (0..cores.clamp(1, IO_THREADS_MAX)).map(start).collect::<io::Result<_>>()?;
        Ok(Self { threads, main: Builder::new_current_thread().enable_all().build()? })
    }

    /// Runs the work that concerns all connections, on the calling thread.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.main.block_on(future)
    }

    /// Gives a connection to the thread with the fewest. A connection that cannot be registered is dropped.
    pub(crate) fn spawn_connection<F, T>(&self, stream: Stream, serve: F)
    where
        F: FnOnce(TcpStream) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let connections = |thread: &&IoThread| thread.connections.load(Ordering::Relaxed);
        let Some(thread) = self.threads.iter().min_by_key(connections) else { return };
        let counted = ConnectionCount::new(&thread.connections);
        thread.runtime.spawn(async move {
            // Here, since a stream belongs to the runtime that creates it.
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(stream).await;
            }
            drop(counted);
        });
    }

    /// Ends the threads; those that have not ended within `timeout` are abandoned.
    pub(crate) fn end(self, timeout: Duration) {
        let until = Instant::now() + timeout;
        for thread in self.threads {
            thread.runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// Counts a connection of a thread during its lifetime.
struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    fn new(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(of))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
