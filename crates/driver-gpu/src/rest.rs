//! What a table has still to run through: the rest of its pipeline, and what follows that.

use crate::lower::DeviceStep;
use vervet_algebra::Variable;
use vervet_device::Address;

/// The steps that a table has still to run through.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'r, 'a> {
    pub(crate) steps: &'r [DeviceStep<'a>],
    pub(crate) end: End<'r, 'a>,
}

/// What happens to rows behind the last step of a pipeline.
#[derive(Clone, Copy)]
pub(crate) enum End<'r, 'a> {
    /// They are results of the strip.
    Result,
    /// They mark the positions of their outer rows.
    Matched(&'r Matched<'r, 'a>),
    /// They are rows of a union: its step, and the steps behind it.
    Union(&'r DeviceStep<'a>, &'r Rest<'r, 'a>),
}

/// The outer rows of a nested pipeline.
pub(crate) struct Matched<'r, 'a> {
    /// The column with their positions.
    pub(crate) row: Variable,
    /// Their marks.
    pub(crate) marks: Address,
    /// For an optional part: its step, and the steps behind it.
    pub(crate) then: Option<(&'r DeviceStep<'a>, Rest<'r, 'a>)>,
}

impl<'a> Rest<'_, 'a> {
    /// Without its first `count` steps.
    pub(crate) fn after(self, count: usize) -> Self {
        Self { steps: self.steps.get(count..).unwrap_or_default(), end: self.end }
    }

    /// Number of steps whose tables may exist at the same time.
    pub(crate) fn depth(self) -> usize {
        self.steps.len()
            + match self.end {
                End::Result => 1,
                End::Matched(Matched { then: Some((_, rest)), .. }) => rest.depth(),
                End::Matched(Matched { then: None, .. }) => 0,
                End::Union(_, rest) => rest.depth(),
            }
    }
}
