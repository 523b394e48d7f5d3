//! Data that a server has opened, with the partitions of others where they are.

use crate::fetch::DataPlace;
use crate::generation::Generation;
use crate::map::ClusterMap;
use std::collections::{BTreeMap, BTreeSet};
use vervet::Start;

/// Address and partitions of the other servers, by name.
type Elsewhere = BTreeMap<String, (String, BTreeSet<usize>)>;

fn elsewhere(map: &ClusterMap) -> Elsewhere {
    let others = map.servers.iter().filter(|entry| entry.name != map.server);
    let of = others.map(|entry| {
        let partitions = entry.partitions.iter().copied().collect();
        (entry.name.clone(), (entry.address.clone(), partitions))
    });
    of.collect()
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) place: DataPlace,
    /// Of the base over them.
    pub(crate) number: u64,
    pub(crate) start: Start,
    pub(crate) statements: u64,
    /// The partitions whose files the base reads.
    pub(crate) here: BTreeSet<usize>,
    elsewhere: Elsewhere,
    /// Partitions are where they are as of this entry of the log, or a later one.
    pub(crate) index: u64,
}

impl Held {
    /// `start`: that of the data of `generation`. `here`: the partitions whose files its base reads. `map`:
    /// where it reads the others, as of the entry `index` of the log.
    pub(crate) fn new(
        generation: &Generation,
        start: Start,
        here: BTreeSet<usize>,
        (map, index): (&ClusterMap, u64),
    ) -> Self {
        Self {
            place: generation.place(),
            number: start.base.number(),
            start,
            statements: generation.files.statement_count(),
            here,
            elsewhere: elsewhere(map),
            index,
        }
    }

    /// Whether the base reads all partitions where they are by a map.
    pub(crate) fn is_of(&self, map: &ClusterMap) -> bool {
        let own = map.own().map(|own| own.partitions.as_slice()).unwrap_or_default();
        own.iter().all(|partition| self.here.contains(partition)) && self.elsewhere == elsewhere(map)
    }
}
