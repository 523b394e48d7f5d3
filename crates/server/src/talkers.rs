//! The threads that talk to connections.
//!
//! # Shape
//! Each has a runtime of its own, and a connection stays with the one that it was given to: that with the
//! fewest. A runtime of several threads wakes a second one whenever the first has found something to do, to
//! look for more; where a request takes microseconds, that costs more than the request, and on a small
//! machine it takes the processor that the client needs.
//! # Invariants
//! What takes time is handed to other threads (`threads`, blocking ones), so connections of a thread wait for
//! each other for as long as what runs on the spot may take ([`Tier::Here`](crate::admission::Tier)), and no
//! longer.

use std::io;
use std::net::TcpStream as Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Threads, at most: they hand everything that takes time to others.
const TALKERS_MAX: usize = 8;

/// See the header of this file.
pub(crate) struct Talkers {
    all: Vec<Talker>,
    /// What is about all connections: who comes in, signals, the end. It waits for none of them.
    main: Runtime,
}

struct Talker {
    runtime: Runtime,
    connections: Arc<AtomicUsize>,
}

impl Talkers {
    /// As many threads as the machine has processors, up to a limit. `blocking`: threads that each may have
    /// for what takes time, at most; `stack`: bytes of their stacks.
    ///
    /// # Errors
    /// The system gives no threads.
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
            Ok(Talker { runtime, connections: Arc::default() })
        };
        let all = (0..cores.clamp(1, TALKERS_MAX)).map(start).collect::<io::Result<_>>()?;
        Ok(Self { all, main: Builder::new_current_thread().enable_all().build()? })
    }

    /// Runs what is about all connections, on the calling thread.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.main.block_on(future)
    }

    /// Gives a connection to the thread that has the fewest. One that the system does not want to tell about
    /// is dropped.
    pub(crate) fn talk<F, T>(&self, stream: Stream, talk: F)
    where
        F: FnOnce(TcpStream) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let connections = |talker: &&Talker| talker.connections.load(Ordering::Relaxed);
        let Some(talker) = self.all.iter().min_by_key(connections) else { return };
        let counted = Counted::new(&talker.connections);
        talker.runtime.spawn(async move {
            // Here, since a stream belongs to the runtime in which it is made.
            if let Ok(stream) = TcpStream::from_std(stream) {
                talk(stream).await;
            }
            drop(counted);
        });
    }

    /// Ends the threads; those that have not ended in this time are left alone.
    pub(crate) fn end(self, patience: Duration) {
        let until = Instant::now() + patience;
        for talker in self.all {
            talker.runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// A connection of a thread, for as long as it lasts.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(of))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
