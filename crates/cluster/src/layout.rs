//! Which servers have which partitions, and which of them are asked.
//!
//! # Shape
//! Partitions that the same other servers have are one part of the graph: a request for keys in them goes to
//! one of these servers ([`Replicas`]). Partition `p` of `n` servers with `r` replicas is at the servers `p`,
//! `p + 1`, …, `p + r - 1` modulo `n`, so a server has at most as many other parts as there are servers.

use crate::map::{ClusterMap, ServerEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vervet_partition::{Remote, RemotePart, Replicas};

/// The partitions of server `number` of `servers`, which have `replicas` of each together.
pub(crate) fn partitions_of(
    number: usize,
    servers: usize,
    partitions: usize,
    replicas: usize,
) -> impl Iterator<Item = usize> {
    (0..partitions).filter(move |partition| (0..replicas).any(|next| (partition + next) % servers == number))
}

/// The partitions that the server of the map lacks, as parts of the graph. `is_named`: requests say their
/// build and their partitions, also to servers that have no others. `remote`: another server.
pub(crate) fn remote_parts(
    map: &ClusterMap,
    build: u64,
    is_named: bool,
    remote: &dyn Fn(&ServerEntry) -> Option<Arc<dyn Remote>>,
) -> Vec<RemotePart> {
    let own_number = map.servers.iter().position(|entry| entry.name == map.server).unwrap_or_default();
    let own: BTreeSet<usize> =
        map.servers.get(own_number).iter().flat_map(|own| own.partitions.iter().copied()).collect();
    // By the servers that have them, which are asked in turns: those behind this one first.
    let mut parts: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    let count = map.servers.len();
    for partition in map.partitions().into_iter().filter(|partition| !own.contains(partition)) {
        let behind = (1..count).map(|step| (own_number + step) % count);
        let servers = behind.filter(|server| map.servers[*server].partitions.contains(&partition));
        parts.entry(servers.collect()).or_default().push(partition);
    }
    let part = |(servers, partitions): (Vec<usize>, Vec<usize>)| -> Option<RemotePart> {
        let entries: Vec<&ServerEntry> = servers.iter().map(|server| &map.servers[*server]).collect();
        if let [only] = entries.as_slice()
            && !is_named
            && only.partitions.len() == partitions.len()
        {
            return Some((remote(only)?, partitions));
        }
        let servers = entries.into_iter().filter_map(remote).collect();
        Some((Arc::new(Replicas::new(servers, build, &partitions)) as Arc<dyn Remote>, partitions))
    };
    parts.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_is_at_as_many_servers() {
        for (servers, partitions, replicas) in [(3, 16, 2), (5, 64, 3), (4, 4, 1), (3, 1, 3), (7, 8, 6)] {
            let mut counts = vec![0; partitions];
            let mut sizes = Vec::new();
            for number in 0..servers {
                let own: Vec<usize> = partitions_of(number, servers, partitions, replicas).collect();
                sizes.push(own.len());
                own.into_iter().for_each(|partition| counts[partition] += 1);
            }
            assert!(counts.iter().all(|count| *count == replicas), "{servers} {partitions}: {counts:?}");
            let (most, least) = (sizes.iter().max(), sizes.iter().min());
            assert!(most <= least.map(|least| least + replicas).as_ref(), "{servers}: {sizes:?}");
        }
    }
}
