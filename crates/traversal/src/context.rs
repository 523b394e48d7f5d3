//! What the steps of one running traversal share.

use crate::Host;
use crate::graph::Names;
use crate::steps::group::Groups;
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
    /// What groups under a name are made of: all steps with that name put to the same.
    pub(crate) groups: FxHashMap<Arc<str>, Groups>,
    pub(crate) control: &'a Control<'a>,
    /// What random choices begin with; each step has its own.
    pub(crate) seed: u64,
    pub(crate) random: Option<Random>,
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
        self.names.renew(self.host.changes(), self.host.remembers_reads());
        let mut result = None;
        let names = &mut self.names;
        self.host.read(&mut |snapshot| {
            result = Some(read(snapshot, names)?);
            Ok(())
        })?;
        result.ok_or_else(|| vervet_model::Error::internal("a graph was not shown to who asked for it"))
    }

    /// Random numbers for who has no generator of its own.
    pub(crate) fn random(&mut self) -> &mut Random {
        let seed = self.seed;
        self.random.get_or_insert_with(|| Random::new(seed))
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

/// Random numbers of a step: a linear congruential generator with 48 bits of state, the same that Java's standard library
/// has, so that `SeedStrategy` means the same choices as elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const STATE: u64 = (1 << 48) - 1;

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self((seed ^ MULTIPLIER) & STATE)
    }

    /// The next `bits` (up to 32) bits.
    fn bits(&mut self, bits: u32) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & STATE;
        u32::try_from(self.0 >> (48 - bits)).unwrap_or(u32::MAX)
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        u64::from(self.bits(32)) << 32 | u64::from(self.bits(32))
    }

    /// Below `bound`, which is from 1 to 2^31.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return u32::try_from((u64::from(bound) * u64::from(self.bits(31))) >> 31).unwrap_or(0);
        }
        loop {
            let bits = self.bits(31);
            let value = bits % bound.max(1);
            // The last, incomplete block of numbers would favour the small ones.
            if u64::from(bits - value) + u64::from(bound - 1) < 1 << 31 {
                return value;
            }
        }
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        let bits = (u64::from(self.bits(26)) << 27) + u64::from(self.bits(27));
        bits as f64 / (1u64 << 53) as f64
    }
}
