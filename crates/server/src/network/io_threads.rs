//! The I/O threads that serve connections.
//!
//! # Shape
//! Each thread has a single-threaded runtime, and a connection stays on its thread: the one with the fewest
//! connections at accept. A multi-threaded runtime wakes a second thread whenever the first has found work,
//! to look for more; where a request takes microseconds, that costs more than the request, and on a small
//! machine it takes the processor that the client needs.
//! Their time slices are short, so that they preempt heavy requests when they wake up.
//! Sessions of clients of other servers of a cluster are tasks on these threads, too ([`TaskSpawner`]).
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
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// The maximum number of threads: they pass all long work to others.
const IO_THREADS_MAX: usize = 8;

/// See the header of this file.
pub(crate) struct IoThreads {
    threads: Vec<Runtime>,
    spawner: TaskSpawner,
    /// Runs what concerns all connections: accepting, signals, shutdown. It waits for no connection.
    main: Runtime,
}

/// Spawns tasks on the I/O threads. Clones share the threads.
#[derive(Clone, Debug)]
pub(crate) struct TaskSpawner(Arc<[IoThread]>);

#[derive(Debug)]
struct IoThread {
    runtime: Handle,
    /// Connections, and tasks like them.
    connections: Arc<AtomicUsize>,
}

impl TaskSpawner {
    /// Gives a task to the thread with the fewest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let connections = |thread: &&IoThread| thread.connections.load(Ordering::Relaxed);
        let thread = self.0.iter().min_by_key(connections).expect("there is one at least");
        let counted = ConnectionCount::new(&thread.connections);
        let task = async move {
            task.await;
            drop(counted);
        };
        thread.runtime.spawn(task)
    }
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
            Ok(runtime)
        };
        let threads = (0..cores.clamp(1, IO_THREADS_MAX)).map(start).collect::<io::Result<Vec<_>>>()?;
        let thread =
            |runtime: &Runtime| IoThread { runtime: runtime.handle().clone(), connections: Arc::default() };
        let spawner = TaskSpawner(threads.iter().map(thread).collect());
        Ok(Self { threads, spawner, main: Builder::new_current_thread().enable_all().build()? })
    }

    pub(crate) fn spawner(&self) -> TaskSpawner {
        self.spawner.clone()
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
        drop(self.spawner.spawn(async move {
            // Here, since a stream belongs to the runtime that creates it.
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(stream).await;
            }
        }));
    }

    /// Ends the threads; those that have not ended within `timeout` are abandoned.
    pub(crate) fn end(self, timeout: Duration) {
        let until = Instant::now() + timeout;
        for thread in self.threads {
            thread.shutdown_timeout(until.saturating_duration_since(Instant::now()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The main runtime is on the thread of the test, which waits.
    #[test]
    fn tasks_run_on_io_threads() {
        let io_threads = IoThreads::start(1, 1 << 20).expect("threads");
        let (sender, names) = mpsc::channel();
        let spawner = io_threads.spawner();
        let connections = || {
            let each = spawner.0.iter().map(|thread| thread.connections.load(Ordering::Relaxed));
            each.sum::<usize>()
        };
        let waiting = spawner.spawn(std::future::pending());
        assert_eq!(connections(), 1);
        io_threads.block_on(async {
            let name = move || sender.send(std::thread::current().name().map(str::to_owned));
            let task = spawner.spawn(async move { name().expect("the test waits") });
            assert_eq!(names.recv().expect("it runs").as_deref(), Some("vervet-server"));
            task.await.expect("no panic");
            waiting.abort();
            waiting.await.expect_err("it was aborted");
        });
        assert_eq!(connections(), 0);
        io_threads.end(Duration::ZERO);
    }
}
