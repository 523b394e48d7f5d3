//! Which servers have which partitions, which of them are asked, and how partitions move when servers join
//! and leave.
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

/// The partitions of one server each.
pub(crate) type Shares = Vec<BTreeSet<usize>>;

/// Shares of all partitions of `now` for the servers for which `stays` holds: each partition at `replicas` of
/// them, or at all if they are fewer, and each server with as many as the others, but for one. As few
/// partitions as possible move, and they move to servers that have others together, about. The others get
/// none.
///
/// # Cost
/// Partitions times servers for each one that moves.
pub(crate) fn spread(now: &[BTreeSet<usize>], stays: &dyn Fn(usize) -> bool, replicas: usize) -> Shares {
    let all: BTreeSet<usize> = now.iter().flatten().copied().collect();
    let staying: Vec<usize> = (0..now.len()).filter(|server| stays(*server)).collect();
    let keep = |(server, share): (usize, &BTreeSet<usize>)| match stays(server) {
        true => share.clone(),
        false => BTreeSet::new(),
    };
    let mut shares: Shares = now.iter().enumerate().map(keep).collect();
    let holders = |shares: &Shares, partition: usize| -> Vec<usize> {
        staying.iter().copied().filter(|server| shares[*server].contains(&partition)).collect()
    };
    let wanted = replicas.clamp(1, staying.len().max(1));
    for &partition in &all {
        let mut with = holders(&shares, partition);
        while with.len() > wanted {
            let fullest = (0..with.len()).max_by_key(|at| shares[with[*at]].len()).unwrap_or_default();
            shares[with.swap_remove(fullest)].remove(&partition);
        }
    }
    for &partition in &all {
        while holders(&shares, partition).len() < wanted {
            let lacking = staying.iter().copied().filter(|server| !shares[*server].contains(&partition));
            let Some(emptiest) = lacking.min_by_key(|server| shares[*server].len()) else { break };
            shares[emptiest].insert(partition);
        }
    }
    loop {
        let by_load = |server: &usize| shares[*server].len();
        let fullest = staying.iter().copied().max_by_key(by_load);
        let (Some(from), Some(to)) = (fullest, staying.iter().copied().min_by_key(by_load)) else { break };
        if shares[from].len() <= shares[to].len() + 1 {
            break;
        }
        // Best one whose servers then have another partition together, too: they are one part to ask.
        let sets: BTreeSet<Vec<usize>> = all.iter().map(|partition| holders(&shares, *partition)).collect();
        let moved = |partition: usize| {
            let with = holders(&shares, partition).into_iter().filter(|server| *server != from);
            let mut with: Vec<usize> = with.chain([to]).collect();
            with.sort_unstable();
            with
        };
        let movable: Vec<usize> = shares[from].difference(&shares[to]).copied().collect();
        let best = movable.iter().copied().find(|partition| sets.contains(&moved(*partition)));
        let Some(partition) = best.or(movable.first().copied()) else { break };
        shares[from].remove(&partition);
        shares[to].insert(partition);
    }
    shares
}

/// The partitions that the server of the map lacks, as parts of the graph. `own`: those that it has.
/// `is_named`: requests say their build and their partitions, also to servers that have no others. `remote`:
/// another server.
pub(crate) fn remote_parts(
    map: &ClusterMap,
    own: &BTreeSet<usize>,
    build: u64,
    is_named: bool,
    remote: &dyn Fn(&ServerEntry) -> Option<Arc<dyn Remote>>,
) -> Vec<RemotePart> {
    let own_number = map.servers.iter().position(|entry| entry.name == map.server).unwrap_or_default();
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

    /// Checks shares, and returns how many partitions servers get that they do not have.
    fn check_shares(now: &[BTreeSet<usize>], gone: Option<usize>, replicas: usize) -> (Shares, usize) {
        let shares = spread(now, &|server| Some(server) != gone, replicas);
        let all: BTreeSet<usize> = now.iter().flatten().copied().collect();
        let staying = now.len() - usize::from(gone.is_some());
        for partition in &all {
            let holders = shares.iter().filter(|share| share.contains(partition)).count();
            assert_eq!(holders, replicas.min(staying), "partition {partition} of {now:?}: {shares:?}");
        }
        let loads = (0..now.len()).filter(|server| Some(*server) != gone).map(|server| shares[server].len());
        let (least, most) = (loads.clone().min().unwrap_or(0), loads.max().unwrap_or(0));
        assert!(most <= least + 1, "{now:?}: {shares:?}");
        assert!(gone.is_none_or(|gone| shares[gone].is_empty()));
        let gained = shares.iter().zip(now).map(|(share, now)| share.difference(now).count());
        let gained = gained.sum();
        (shares, gained)
    }

    #[test]
    fn few_partitions_move() {
        for (servers, partitions, replicas) in [(3, 16, 1), (3, 16, 2), (5, 64, 3), (2, 16, 2), (6, 8, 1)] {
            let all = 0..servers;
            let mut shares: Shares =
                all.map(|one| partitions_of(one, servers, partitions, replicas).collect()).collect();
            let (balanced, gained) = check_shares(&shares, None, replicas);
            let uneven =
                shares.iter().map(BTreeSet::len).max() > shares.iter().map(|one| one.len() + 1).min();
            assert!(!uneven || gained > 0, "{shares:?}");
            shares = balanced;
            assert_eq!(check_shares(&shares, None, replicas), (shares.clone(), 0), "it is even");
            // One joins, and then another one leaves.
            shares.push(BTreeSet::new());
            let (joined, gained) = check_shares(&shares, None, replicas);
            assert!(
                gained <= (partitions * replicas).div_ceil(servers + 1),
                "{gained}: {shares:?} {joined:?}"
            );
            let lost = joined[0].len();
            let (_, gained) = check_shares(&joined, Some(0), replicas);
            assert!(gained <= lost + servers, "{gained} for {lost}: {joined:?}");
        }
        // Replicas more and less.
        let shares: Shares = (0..4).map(|one| partitions_of(one, 4, 16, 2).collect()).collect();
        assert!(check_shares(&shares, None, 3).1 <= 18);
        assert!(check_shares(&shares, None, 1).1 <= 2);
        assert!(spread(&[], &|_| true, 2).is_empty());
    }

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
