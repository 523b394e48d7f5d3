//! Binding tables on the device: columns of ids, and multiplicities.

use vervet_algebra::Variable;
use vervet_device::Address;

/// A binding table on the device. Columns by variable; [`Address::NONE`]: not carried.
#[derive(Clone, Debug)]
pub(crate) struct DeviceTable {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Address>,
    /// Bounds of the values of each column, both included.
    pub(crate) bounds: Vec<(u64, u64)>,
    /// Multiplicities; none: 1 for all rows.
    pub(crate) times: Address,
}

impl DeviceTable {
    /// A table without columns.
    pub(crate) fn new(rows: u64, variables: usize) -> Self {
        Self {
            rows,
            columns: vec![Address::NONE; variables],
            bounds: vec![(0, u64::MAX); variables],
            times: Address::NONE,
        }
    }

    /// The columns that it carries.
    pub(crate) fn carried(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|column| self.columns[*column] != Address::NONE).collect()
    }

    /// Drops all columns but these.
    pub(crate) fn keep(&mut self, keep: &[Variable]) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            if !keep.iter().any(|variable| variable.index() == at) {
                *column = Address::NONE;
            }
        }
    }

    /// The rows from `start` on, at most `count`.
    pub(crate) fn slice(&self, start: u64, count: u64) -> Self {
        let shift = |at: &Address| if *at == Address::NONE { *at } else { at.plus_words(start) };
        Self {
            rows: count.min(self.rows - start),
            columns: self.columns.iter().map(shift).collect(),
            bounds: self.bounds.clone(),
            times: shift(&self.times),
        }
    }
}
