//! Solutions of an update as rows of ids.

use vervet_algebra::Variable;
use vervet_expression::ComputedTerms;
use vervet_model::{Error, Id, Result};

/// Statements added at a time, and keys expanded at a time.
pub(super) const CHUNK: usize = 1 << 14;

/// Solutions as rows of ids.
pub(super) struct SolutionRows {
    pub(super) columns: Vec<Variable>,
    pub(super) ids: Vec<Id>,
    pub(super) count: usize,
    pub(super) computed: ComputedTerms,
    /// Bytes of `ids` charged to the memory cap.
    pub(super) counted: u64,
}

impl SolutionRows {
    /// The one empty solution.
    pub(super) fn unit() -> Self {
        Self { columns: Vec::new(), ids: Vec::new(), count: 1, computed: ComputedTerms::new(), counted: 0 }
    }

    pub(super) fn row(&self, row: usize) -> &[Id] {
        let width = self.columns.len();
        &self.ids[row * width..(row + 1) * width]
    }

    /// The column of a variable.
    pub(super) fn column(&self, variable: Variable) -> Result<usize> {
        self.columns
            .iter()
            .position(|column| *column == variable)
            .ok_or_else(|| Error::internal("a template mentions a variable that its pattern does not give"))
    }
}
