//! Progress reports and cancellation of a long operation (a bulk load, a backup).

use crate::{Error, ErrorKind, Result};
use std::cmp::Ordering as CompareOrdering;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of steps that a [`Ticker`] counts before it checks the watch: about 0.1 ms of work.
const STEPS_AT_ONCE: u64 = 1 << 12;

/// Maximum number of items that [`Watch::sort`] sorts without a check: about 0.3 s.
const SORTED_AT_ONCE: usize = 1 << 22;

/// Reports the progress of one operation and cancels it. Threads share it by reference.
///
/// Progress is counted in steps: a step is about the time of one term or one statement in one pass.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use vervet_model::Watch;
///
/// let cancelled = AtomicBool::new(false);
/// let watch = Watch::new("load").cancelled_by(&cancelled);
/// watch.expect(2);
/// assert!(watch.advance(1).is_ok());
/// cancelled.store(true, Ordering::Relaxed);
/// assert_eq!(watch.advance(1).unwrap_err().message(), "the load was cancelled");
/// ```
pub struct Watch<'a> {
    /// Name of the operation in errors.
    operation: &'static str,
    cancelled: Option<&'a AtomicBool>,
    report: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    done: AtomicU64,
    expected: AtomicU64,
}

impl<'a> Watch<'a> {
    /// A watch that neither reports nor cancels. `operation` is its name in errors, such as `load`.
    #[must_use]
    pub const fn new(operation: &'static str) -> Self {
        Self {
            operation,
            cancelled: None,
            report: None,
            done: AtomicU64::new(0),
            expected: AtomicU64::new(0),
        }
    }

    /// The same watch, cancelled once `flag` is `true`.
    #[must_use]
    pub fn cancelled_by(mut self, flag: &'a AtomicBool) -> Self {
        self.cancelled = Some(flag);
        self
    }

    /// The same watch with a progress callback; `report` gets the steps done and the total of expected steps,
    /// from any thread.
    #[must_use]
    pub fn reporting_to(mut self, report: &'a (dyn Fn(u64, u64) + Sync)) -> Self {
        self.report = Some(report);
        self
    }

    /// Adds `steps` to the expected total.
    pub fn expect(&self, steps: u64) {
        // Relaxed here and below: the counters are informational and guard no other memory.
        self.expected.fetch_add(steps, Ordering::Relaxed);
    }

    /// Counts `steps` as done and reports them.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`].
    pub fn advance(&self, steps: u64) -> Result<()> {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        if let Some(report) = self.report {
            let expected = self.expected.load(Ordering::Relaxed);
            report(done.min(expected), expected);
        }
        self.check()
    }

    /// Checks whether the operation is cancelled.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`].
    pub fn check(&self) -> Result<()> {
        match self.cancelled {
            Some(flag) if flag.load(Ordering::Relaxed) => {
                Err(Error::new(ErrorKind::Cancelled, format!("the {} was cancelled", self.operation)))
            }
            _ => Ok(()),
        }
    }

    /// Sorts `items` unstably.
    ///
    /// # Cost
    /// That of the library's unstable sort; above 4 million items about a quarter more, for partitioning them
    /// first.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`]; the items are then in any order.
    pub fn sort<T>(&self, items: &mut [T], mut compare: impl FnMut(&T, &T) -> CompareOrdering) -> Result<()> {
        self.sort_by(items, &mut compare)
    }

    fn sort_by<T>(&self, items: &mut [T], compare: &mut impl FnMut(&T, &T) -> CompareOrdering) -> Result<()> {
        self.check()?;
        if items.len() <= SORTED_AT_ONCE {
            items.sort_unstable_by(compare);
            return Ok(());
        }
        let middle = items.len() / 2;
        items.select_nth_unstable_by(middle, &mut *compare);
        let (low, high) = items.split_at_mut(middle);
        self.sort_by(low, compare)?;
        self.sort_by(high, compare)
    }

    /// A step counter for one loop; see [`Ticker`].
    #[must_use]
    pub fn ticker(&self) -> Ticker<'_> {
        Ticker { watch: self, steps: 0 }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("operation", &self.operation)
            .field("done", &self.done)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

/// Counts the steps of a loop and passes them to its [`Watch`], 4,096 at a time.
#[derive(Debug)]
pub struct Ticker<'w> {
    watch: &'w Watch<'w>,
    steps: u64,
}

impl Ticker<'_> {
    /// Counts one step. Cost: an addition and a comparison.
    ///
    /// # Errors
    /// As [`Watch::advance`].
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps < STEPS_AT_ONCE {
            return Ok(());
        }
        self.watch.advance(std::mem::take(&mut self.steps))
    }
}

impl Drop for Ticker<'_> {
    fn drop(&mut self) {
        // Fewer steps than one report; an error would recur with the next one.
        let _ = self.watch.advance(self.steps);
    }
}
