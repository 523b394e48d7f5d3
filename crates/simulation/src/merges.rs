//! Merges of changes in an episode whose servers have different partitions: how often there were some, and
//! whether reads have used them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use vervet_model::lock;

/// What a read was made from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Source {
    /// Position of the data of the server.
    pub(crate) merged: u64,
    /// The read has used partitions of other servers.
    pub(crate) is_remote: bool,
}

/// The counts of an episode, in the order of [`COUNTS`].
pub(crate) type Counts = [u64; COUNTS.len()];

pub(crate) const COUNTS: [&str; 4] =
    ["merges", "times that a server went over", "reads of other servers' partitions", "of them merged"];

/// See the header of this file.
#[derive(Default)]
pub(crate) struct Merges(Mutex<(Counts, BTreeSet<(usize, u64)>)>);

impl Merges {
    pub(crate) fn note_merge(&self) {
        lock(&self.0).0[0] += 1;
    }

    /// Takes note of a read at a server.
    pub(crate) fn note_read(&self, server: usize, source: Source) {
        let (counts, seen) = &mut *lock(&self.0);
        let Source { merged, is_remote } = source;
        if merged > 0 && seen.insert((server, merged)) {
            counts[1] += 1;
        }
        counts[2] += u64::from(is_remote);
        counts[3] += u64::from(is_remote && merged > 0);
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.0).0
    }
}
