//! The rows that frontiers have output: of one run, or of several that do not know of each other.

use crate::pipeline::batch::{BATCH_ROWS, Batch};
use crate::pipeline::control::{Control, HeldMemory, SharedMemory};
use crate::pipeline::nodes::NodeSet;
use crate::pipeline::row_table::RowTable;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use vervet_algebra::Variable;
use vervet_model::{Result, lock};

/// Rows of the first trial of a frontier.
const FRONTIER_TRIAL_ROWS: usize = 8 * BATCH_ROWS;

/// After a trial in which deduplication did not pay, this multiple of its rows passes untested.
const FRONTIER_PAUSE: usize = 16;

/// Which rows of a frontier are the first of their kind.
///
/// # Shape
/// Periods of deduplication and pauses. A trial ends after some batches; if more than seven eighths of its
/// rows were new, the set is dropped and the rows of a pause pass untested. The next trial is twice as long,
/// since duplicates of a large set show only in a large sample.
/// # Cost
/// A bit test for each row of one column, a look-up in a hash table (20 to 40 ns) for each row of several.
/// Where rows are distinct, a seventeenth of that.
pub(crate) struct FirstRows {
    seen: SeenRows,
    /// Rows of a trial.
    trial_rows: usize,
    /// Rows in and out of the current period of deduplication.
    rows_in: usize,
    rows_out: usize,
    /// Remaining rows of the current pause.
    pause_rows: usize,
}

/// The rows that a frontier has output.
enum SeenRows {
    One(Variable, NodeSet),
    Several(RowTable),
}

impl SeenRows {
    fn new(variables: &[Variable]) -> Self {
        match variables {
            [variable] => Self::One(*variable, NodeSet::default()),
            _ => Self::Several(RowTable::new(variables.to_vec())),
        }
    }

    /// The same columns without rows.
    fn emptied(&self) -> Self {
        match self {
            Self::One(variable, _) => Self::One(*variable, NodeSet::default()),
            Self::Several(table) => Self::Several(RowTable::new(table.variables.clone())),
        }
    }

    /// Inserts the rows of a batch; `new` receives the numbers of the new ones.
    fn insert_all(&mut self, batch: &Batch, vertices: u64, new: &mut Vec<u32>) -> Result<()> {
        new.clear();
        for (row, number) in (0..batch.rows).zip(0_u32..) {
            let is_new = match self {
                Self::One(variable, set) => set.insert(batch.value(*variable, row), vertices),
                Self::Several(table) => table.insert(batch, row)?.1,
            };
            if is_new {
                new.push(number);
            }
        }
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        match self {
            Self::One(_, set) => set.size_bytes(),
            Self::Several(table) => table.size_bytes(),
        }
    }
}

impl FirstRows {
    pub(crate) fn new(variables: &[Variable]) -> Self {
        Self {
            seen: SeenRows::new(variables),
            trial_rows: FRONTIER_TRIAL_ROWS,
            rows_in: 0,
            rows_out: 0,
            pause_rows: 0,
        }
    }

    /// Receives the numbers of the rows of a batch that go on; `false`: all do.
    pub(crate) fn select(&mut self, batch: &Batch, vertices: u64, first: &mut Vec<u32>) -> Result<bool> {
        if self.pause_rows > 0 {
            self.pause_rows = self.pause_rows.saturating_sub(batch.rows);
            return Ok(false);
        }
        self.rows_in += batch.rows;
        self.seen.insert_all(batch, vertices, first)?;
        self.rows_out += first.len();
        Ok(true)
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.seen.size_bytes()
    }

    /// Drops the set and begins a pause, if nearly all rows of a trial were new.
    pub(crate) fn end_trial(&mut self) {
        if self.rows_in < self.trial_rows || self.rows_out < self.rows_in / 8 * 7 {
            return;
        }
        self.seen = self.seen.emptied();
        self.pause_rows = self.trial_rows.saturating_mul(FRONTIER_PAUSE);
        self.trial_rows = self.trial_rows.saturating_mul(2);
        (self.rows_in, self.rows_out) = (0, 0);
    }
}

/// The rows that one step has output in all runs.
pub(crate) type FirstRowsOfStep = Arc<Mutex<SharedFirstRows>>;

/// The frontiers of runs of one pipeline that do not know of each other: the tasks of a query at a server.
/// What one of them has output, none outputs again.
#[derive(Default)]
pub struct SharedFrontiers {
    memory: Arc<SharedMemory>,
    /// By number and variables of the step.
    of_steps: Mutex<FxHashMap<(usize, Vec<Variable>), FirstRowsOfStep>>,
}

/// The rows of one step, and their bytes, which belong to none of the runs.
pub(crate) struct SharedFirstRows {
    first: FirstRows,
    memory: Arc<SharedMemory>,
    held: Option<HeldMemory>,
}

impl SharedFrontiers {
    /// `memory` counts their bytes.
    #[must_use]
    pub fn new(memory: &Arc<SharedMemory>) -> Self {
        Self { memory: Arc::clone(memory), of_steps: Mutex::default() }
    }

    /// What counts their bytes.
    #[must_use]
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    pub(crate) fn of_step(&self, number: usize, variables: &[Variable]) -> FirstRowsOfStep {
        let rows = || SharedFirstRows {
            first: FirstRows::new(variables),
            memory: Arc::clone(&self.memory),
            held: None,
        };
        let key = (number, variables.to_vec());
        Arc::clone(lock(&self.of_steps).entry(key).or_insert_with(|| Arc::new(Mutex::new(rows()))))
    }
}

impl fmt::Debug for SharedFrontiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFrontiers").finish_non_exhaustive()
    }
}

impl SharedFirstRows {
    pub(crate) fn select(
        &mut self,
        batch: &Batch,
        vertices: u64,
        first: &mut Vec<u32>,
        control: &Control<'_>,
    ) -> Result<bool> {
        let is_selected = self.first.select(batch, vertices, first)?;
        self.first.end_trial();
        // Taken back first: only the difference is new.
        self.held = None;
        self.held = Some(self.memory.hold(self.first.seen.size_bytes(), control.memory_limit())?);
        Ok(is_selected)
    }
}
