//! Clients: threads that run transactions in a loop for some time, and their results.

use crate::measure::process_cpu;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// The duration and number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads.
    pub clients: usize,
    /// After this time no client begins another transaction.
    pub time: Duration,
    /// Unmeasured warm-up runs of each client.
    pub warm_up: u64,
}

/// The results of the clients.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Transactions that committed, or reads that finished.
    pub done: u64,
    /// Attempts that failed with a conflict.
    pub conflicts: u64,
    /// By the wall clock.
    pub seconds: f64,
    /// CPU time of the process.
    pub cpu_seconds: f64,
    /// Times of attempts, ascending, in nanoseconds.
    times: Vec<u64>,
}

impl Outcome {
    /// The throughput per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    /// The share of attempts that failed with a conflict.
    #[must_use]
    pub fn abort_share(&self) -> f64 {
        self.conflicts as f64 / (self.done + self.conflicts).max(1) as f64
    }

    /// A quantile of the times of attempts, in microseconds.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length")]
        let at = (last as f64 * share) as usize;
        self.times.get(at).map_or(0.0, |time| *time as f64 / 1e3)
    }
}

/// Runs `attempt` in every client in a loop, with the numbers of client and attempt. A conflict is counted
/// and not retried: the next attempt is a new one.
///
/// # Errors
/// Any other error of `attempt`, of the first client with one.
pub(crate) fn run(load: Load, attempt: impl Fn(usize, u64) -> Result<()> + Sync) -> Result<Outcome> {
    let (start, stop) = (Barrier::new(load.clients + 1), AtomicBool::new(false));
    let client = |client: usize| -> Result<(u64, u64, Vec<u64>)> {
        let warmed = (0..load.warm_up).try_for_each(|number| match attempt(client, number) {
            Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
            _ => Ok(()),
        });
        start.wait();
        warmed?;
        let (mut done, mut conflicts, mut times) = (0, 0, Vec::with_capacity(1 << 16));
        for number in load.warm_up.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let begin = Instant::now();
            let ended = attempt(client, number);
            times.push(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
            match ended {
                Ok(()) => done += 1,
                Err(error) if error.kind() == ErrorKind::Conflict => conflicts += 1,
                Err(error) => return Err(error),
            }
        }
        Ok((done, conflicts, times))
    };
    std::thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..load.clients).map(|number| scope.spawn(move || client(number))).collect();
        start.wait();
        let (begin, cpu) = (Instant::now(), process_cpu());
        while begin.elapsed() < load.time && !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(1).min(load.time));
        }
        stop.store(true, Ordering::Relaxed);
        let mut outcome = Outcome::default();
        for thread in threads {
            let ended = thread.join().map_err(|_| Error::internal("a client of the benchmark panicked"))?;
            let (done, conflicts, times) = ended?;
            outcome.done += done;
            outcome.conflicts += conflicts;
            outcome.times.extend(times);
        }
        outcome.seconds = begin.elapsed().as_secs_f64();
        outcome.cpu_seconds = process_cpu().saturating_sub(cpu).as_secs_f64();
        outcome.times.sort_unstable();
        Ok(outcome)
    })
}
