//! Work that is cut into tasks, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};
use vervet::{Error, Result};
use vervet_model::lock;

/// Number of processors that this process may use.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The results of `work` for the numbers below `tasks`, in their order. Without threads for one task, and
/// with fewer where the system has no more.
///
/// # Errors
/// The first that a task has failed with; tasks that have not begun are left out. Internal: `work` panicked.
pub(crate) fn in_parallel<T: Send>(
    tasks: usize,
    work: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let threads = processors().min(tasks);
    if threads < 2 {
        return (0..tasks).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..tasks).map(|_| None).collect());
    let run = || -> Result<()> {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return Ok(());
            }
            let result = work(task).inspect_err(|_| next.store(tasks, Ordering::Relaxed))?;
            if let Some(slot) = lock(&done).get_mut(task) {
                *slot = Some(result);
            }
        }
    };
    scope(|scope| {
        let start = |_| Builder::new().name("vervet-frame".to_owned()).spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let own = run();
        let panicked =
            |_| Err(Error::new(vervet::ErrorKind::Internal, "a thread that built a frame panicked"));
        others.into_iter().fold(own, |all, one| all.and(one.join().unwrap_or_else(panicked)))
    })?;
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(done.into_iter().flatten().collect())
}
