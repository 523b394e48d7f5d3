//! What the steps of one running traversal share.

use crate::Host;
use crate::graph::Names;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_gremlin::{Operator, Value};
use vervet_kernel::Control;
use vervet_model::Result;
use vervet_snapshot::Snapshot;

/// See the header of this file.
pub(crate) struct Context<'a> {
    pub(crate) host: &'a mut dyn Host,
    pub(crate) names: Names,
    pub(crate) side_effects: FxHashMap<Arc<str>, SideEffect>,
    pub(crate) control: &'a Control<'a>,
    pub(crate) random: Random,
    /// What a sack does when its traverser splits; with the operator of `withSack`.
    pub(crate) settings: Arc<Settings>,
}

/// What the source of the traversal says for all of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Whether whole paths are kept.
    pub(crate) paths: bool,
    /// Whether labelled objects are kept.
    pub(crate) labels: bool,
    /// `withSack`: the first value.
    pub(crate) sack: Option<Value>,
    /// `withSack(…, Operator.sum)`: how sacks of merged traversers become one; `None`: they stay apart.
    pub(crate) sack_merge: Option<Operator>,
    /// `withBulk(false)`.
    pub(crate) no_bulk: bool,
    /// `ProductiveByStrategy`: a `by` that gives nothing gives null.
    pub(crate) productive: bool,
}

/// A value beside the traversers.
#[derive(Clone, Debug)]
pub(crate) struct SideEffect {
    pub(crate) value: Value,
    /// How a further value is put to it.
    pub(crate) operator: Option<Operator>,
}

impl Context<'_> {
    /// Calls `read` with the graph as it is now, and the names known of it.
    pub(crate) fn read<T>(
        &mut self,
        mut read: impl FnMut(&dyn Snapshot, &mut Names) -> Result<T>,
    ) -> Result<T> {
        self.names.renew(self.host.changes());
        let mut result = None;
        let names = &mut self.names;
        self.host.read(&mut |snapshot| {
            result = Some(read(snapshot, names)?);
            Ok(())
        })?;
        result.ok_or_else(|| vervet_model::Error::internal("a graph was not shown to who asked for it"))
    }

    /// Counts work done, and stops a traversal that has met a limit.
    #[inline]
    pub(crate) fn tick(&self) -> Result<()> {
        self.control.work(64)
    }

    /// Counts values that a step holds until its input ends.
    pub(crate) fn hold(&self, values: usize) -> Result<()> {
        self.control.grow(values as u64 * HELD_BYTES)
    }
}

/// What a value that a step holds counts as, in bytes.
const HELD_BYTES: u64 = 128;

/// Random numbers of a traversal: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
