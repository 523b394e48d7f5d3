//! Measures times and memory: warm-up, as many repeats as fit into a budget, median and 95th percentile.
//!
//! # Shape
//! Every run is timed individually, by the wall clock and by the CPU clock of its thread. On a machine with
//! other load the CPU time is the more stable; on a quiet machine they agree for one thread.
//! # Cost
//! About 0.6 µs a run for reading the clocks, of which 30 ns are inside the timed section.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::{Duration, Instant};
use vervet_env::cpu_time_of_process;
use vervet_model::{Error, Result};

/// The duration and number of measurements.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Stop after this time, given enough repeats.
    pub time: Duration,
    /// The minimum number of repeats, unless they take five times as long as `time`.
    pub repeats_min: usize,
    /// The maximum number of repeats.
    pub repeats_max: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { time: Duration::from_secs(2), repeats_min: 5, repeats_max: 2_000 }
    }
}

/// The times of a series of equal runs, in milliseconds.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct Timing {
    /// The number of timed runs.
    pub repeats: usize,
    /// Median by the wall clock.
    pub median_ms: f64,
    /// 95th percentile by the wall clock.
    pub p95_ms: f64,
    /// Median CPU time, of the calling thread or of the process of the engine: see [`CpuClock`].
    pub cpu_median_ms: f64,
}

/// A clock of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuClock {
    /// Of the calling thread.
    Thread,
    /// Of all threads of another process, by its id.
    Process(u32),
}

impl CpuClock {
    /// The CPU time until now; zero if the process does not exist.
    #[must_use]
    pub fn read(self) -> Duration {
        match self {
            Self::Thread => thread_cpu(),
            Self::Process(id) => cpu_time_of_process(id).unwrap_or_default(),
        }
    }
}

/// Runs `run` a few times to warm up, then repeatedly within `budget`.
///
/// # Errors
/// The first error of `run`.
pub fn measure<T>(budget: &Budget, run: impl FnMut() -> Result<T>) -> Result<Timing> {
    measure_with(CpuClock::Thread, budget, run)
}

/// [`measure`] with the CPU time of `clock`.
///
/// # Errors
/// The first error of `run`.
pub fn measure_with<T>(
    clock: CpuClock,
    budget: &Budget,
    mut run: impl FnMut() -> Result<T>,
) -> Result<Timing> {
    let warm_up = Instant::now();
    for _ in 0..3 {
        std::hint::black_box(run()?);
        if warm_up.elapsed() > budget.time / 4 {
            break;
        }
    }
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    let enough = |repeats: usize| {
        let elapsed = begin.elapsed();
        repeats >= budget.repeats_max
            || (repeats >= budget.repeats_min && elapsed >= budget.time)
            || elapsed >= budget.time * 5
    };
    while wall.is_empty() || !enough(wall.len()) {
        let cpu_begin = clock.read();
        let wall_begin = Instant::now();
        std::hint::black_box(run()?);
        wall.push(wall_begin.elapsed());
        cpu.push(clock.read().saturating_sub(cpu_begin));
    }
    Ok(summary(wall, cpu))
}

/// Median and 95th percentile of individually timed runs, by the wall clock and the CPU clock; `None` for no
/// runs.
#[must_use]
pub fn median(wall: Vec<Duration>, cpu: Vec<Duration>) -> Option<Timing> {
    (!wall.is_empty()).then(|| summary(wall, cpu))
}

fn summary(mut wall: Vec<Duration>, mut cpu: Vec<Duration>) -> Timing {
    Timing {
        repeats: wall.len(),
        median_ms: quantile_ms(&mut wall, 0.5),
        p95_ms: quantile_ms(&mut wall, 0.95),
        cpu_median_ms: quantile_ms(&mut cpu, 0.5),
    }
}

impl Budget {
    /// Whether a run was so long that it is its own measurement, without repeats.
    #[must_use]
    pub fn is_exceeded_by(&self, once: &Timing) -> bool {
        once.median_ms > self.time.as_secs_f64() * 4e3
    }
}

/// Runs `run` once; also returns its result.
///
/// # Errors
/// The error of `run`.
pub fn once<T>(run: impl FnOnce() -> Result<T>) -> Result<(T, Timing)> {
    once_with(CpuClock::Thread, run)
}

/// [`once`] with the CPU time of `clock`.
///
/// # Errors
/// The error of `run`.
pub fn once_with<T>(clock: CpuClock, run: impl FnOnce() -> Result<T>) -> Result<(T, Timing)> {
    let (cpu, begin) = (clock.read(), Instant::now());
    let result = run()?;
    let (wall, cpu) = (begin.elapsed(), clock.read().saturating_sub(cpu));
    let wall_ms = wall.as_secs_f64() * 1e3;
    let timing =
        Timing { repeats: 1, median_ms: wall_ms, p95_ms: wall_ms, cpu_median_ms: cpu.as_secs_f64() * 1e3 };
    Ok((result, timing))
}

/// CPU time of the calling thread.
#[must_use]
pub fn thread_cpu() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process.
#[must_use]
pub fn process_cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// Resident memory of this process, in bytes; pages of mapped files included.
///
/// # Errors
/// The system has no `/proc/self/statm`.
pub fn resident_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")
        .map_err(|error| Error::io("read /proc/self/statm", &error))?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| Error::internal(format!("/proc/self/statm reads {text:?}")))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Memory that programs can still allocate, in bytes; 0 if the system does not report it.
#[must_use]
pub fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    number.unwrap_or_default() * 1024
}

/// The `share` quantile: the smallest value `v` such that at least `share` of all values are at most `v`; 0
/// for none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(rank(sorted.len(), share)).copied().unwrap_or(0.0)
}

/// The geometric mean; `None` for no values.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// The `share` quantile of some times, in milliseconds; sorts them.
fn quantile_ms(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    times.get(rank(times.len(), share)).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The index of a quantile in `count` sorted values.
fn rank(count: usize, share: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is below the length"
    )]
    let rank = (count as f64 * share).ceil() as usize;
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut times: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        assert!((quantile_ms(&mut times, 0.5) - 50.0).abs() < 1e-9);
        assert!((quantile_ms(&mut times, 0.95) - 95.0).abs() < 1e-9);
        assert!((quantile_ms(&mut times[..1], 0.95) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn repeats_keep_to_the_budget() {
        let budget = Budget { time: Duration::from_secs(1), repeats_min: 4, repeats_max: 4 };
        let mut runs = 0;
        let timing = measure(&budget, || {
            runs += 1;
            Ok(())
        });
        assert_eq!(timing.unwrap().repeats, 4);
        assert!(runs > 4);
        assert!(measure(&budget, || Err::<(), _>(Error::internal("no"))).is_err());
        // The clock of a process has the time of its threads.
        let own = CpuClock::Process(std::process::id());
        let (_, timing) = once_with(own, || measure(&budget, || Ok(available_bytes()))).unwrap();
        assert!(timing.cpu_median_ms > 0.0);
        assert_eq!(CpuClock::Process(u32::MAX).read(), Duration::ZERO);
        assert!(resident_bytes().unwrap() > 100_000);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-9);
        assert!(geometric_mean(&[]).is_none());
    }
}
