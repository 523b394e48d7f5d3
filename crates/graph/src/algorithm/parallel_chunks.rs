//! Parallel loop over a range, with deterministic order of results.
//!
//! # Cost
//! Starting a thread takes some 20 µs, so short ranges run on the calling thread.

use super::ResourceLimits;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vervet_model::{Error, Result, lock};

/// Calls `work` with chunks of `0..length`, each of `size` numbers except the last; returns the results in
/// order.
///
/// # Errors
/// The first error of `work`, in the order of the chunks that have run. Limits, which are checked before each
/// chunk. [`vervet_model::ErrorKind::Internal`] if `work` panicked on a helper thread; a panic on the calling
/// thread is propagated.
pub(super) fn in_chunks<R: Send>(
    limits: &ResourceLimits<'_>,
    length: usize,
    size: usize,
    work: impl Fn(Range<usize>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let count = length.div_ceil(size.max(1));
    let chunk = |number: usize| {
        limits.control.check()?;
        work(number * size..length.min((number + 1) * size))
    };
    let helpers = limits.threads.min(count).saturating_sub(1);
    if helpers == 0 {
        return (0..count).map(chunk).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::with_capacity(count));
    let take = || {
        // Reads of other servers wait no longer than the query.
        let _limits = limits.control.enter();
        let mut own = Vec::new();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                break;
            }
            let result = chunk(number);
            if result.is_err() {
                // Later chunks are not needed.
                next.store(count, Relaxed);
            }
            own.push((number, result));
        }
        lock(&done).append(&mut own);
    };
    let has_panicked = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..helpers)
            .filter_map(|_| {
                let builder = std::thread::Builder::new().name("vervet-algorithm".to_owned());
                // Fewer helpers affect only the speed.
                builder.spawn_scoped(scope, take).ok()
            })
            .collect();
        take();
        // All are joined: the scope itself panics if a thread that was not joined has panicked.
        let panics = threads.into_iter().map(|thread| thread.join().is_err());
        panics.filter(|has_panicked| *has_panicked).count() > 0
    });
    if has_panicked {
        return Err(Error::internal("a helper thread of an algorithm panicked"));
    }
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    let mut all = Vec::with_capacity(count);
    for (_, result) in done {
        all.push(result?);
    }
    if all.len() < count {
        return Err(Error::internal("not all chunks of an algorithm have run"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_kernel::{Control, Limits};
    use vervet_model::ErrorKind;

    #[test]
    fn results_are_in_chunk_order_for_any_threads() {
        let control = Control::new(Limits::default());
        for threads in [0, 1, 2, 5] {
            let limits = ResourceLimits { control: &control, threads };
            for length in [0, 1, 9, 10, 11, 1000] {
                let chunks = in_chunks(&limits, length, 10, Ok).expect("nothing fails");
                let all: Vec<usize> = chunks.into_iter().flatten().collect();
                assert_eq!(all, (0..length).collect::<Vec<_>>());
            }
            let failed = in_chunks(&limits, 1000, 10, |chunk| match chunk.start {
                500 => Err(Error::new(ErrorKind::Input, "expected by this test")),
                _ => Ok(()),
            });
            assert_eq!(failed.expect_err("one chunk fails").kind(), ErrorKind::Input);
        }
    }

    #[test]
    fn a_panic_of_a_helper_thread_is_an_internal_error() {
        let control = Control::new(Limits::default());
        let limits = ResourceLimits { control: &control, threads: 4 };
        let caller = std::thread::current().id();
        let helper_ran = std::sync::atomic::AtomicBool::new(false);
        // The calling thread waits, so that a helper certainly gets a chunk.
        let failed = in_chunks(&limits, 1000, 10, |_| {
            if std::thread::current().id() != caller {
                helper_ran.store(true, Relaxed);
                panic!("expected by this test");
            }
            while !helper_ran.load(Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(failed.expect_err("a helper panicked").kind(), ErrorKind::Internal);
    }
}
