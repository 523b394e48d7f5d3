//! Which servers have the files of which data, where servers have different partitions.
//!
//! # Why
//! New data are at one server at first. Where it leaves, or loses its disk, before the others have copied
//! their shares, the others have data that will never be whole: these are *lost*, and those before are not.

use crate::fetch::{self, DataPlace};
use crate::generation::Generation;
use crate::members::Members;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use vervet::Environment;
use vervet_model::{Result, ThreadLimits};

/// How long to wait for the list of another server.
const LIST_TIME: Duration = Duration::from_secs(5);

/// Data, and the partitions of them whose files a server has.
type List = BTreeMap<DataPlace, BTreeSet<usize>>;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Holdings {
    /// Number of partitions.
    count: usize,
    /// Of each server, by name; `None`: it has not told.
    lists: BTreeMap<String, Option<List>>,
}

impl Holdings {
    /// Asks all servers of the cluster, but for the one in `directory`, which looks itself.
    ///
    /// # Errors
    /// Io: its files cannot be listed.
    pub(crate) fn ask(environment: &Environment, directory: &Path, members: &Members) -> Result<Self> {
        let map = members.map();
        let count = map.partitions().len();
        let all = (0..count).collect();
        let own = Generation::all(environment, directory)?;
        let own = own.iter().map(|generation| (generation.place(), generation.present(environment, &all)));
        let mut lists: BTreeMap<String, Option<List>> =
            map.servers.iter().map(|entry| (entry.name.clone(), None)).collect();
        lists.insert(map.server.clone(), Some(own.collect()));
        for other in members.others() {
            let list = match other.reachability.reason() {
                Some(_) => None,
                None => {
                    let deadline = Some((Instant::now() + LIST_TIME, LIST_TIME));
                    let _limits = ThreadLimits { deadline, ..ThreadLimits::current() }.enter();
                    let listed = fetch::list(&other.part).ok();
                    listed.map(|all| all.iter().map(|one| (one.place, one.partitions(count))).collect())
                }
            };
            lists.insert(other.part.peer().name().to_owned(), list);
        }
        Ok(Self { count, lists })
    }

    /// The lists of all servers but those for which `is_without` holds.
    fn told<'s>(&'s self, is_without: impl Fn(&str) -> bool + 's) -> impl Iterator<Item = &'s List> {
        self.lists.iter().filter(move |(name, _)| !is_without(name)).filter_map(|(_, list)| list.as_ref())
    }

    fn partitions(&self, place: DataPlace, is_without: impl Fn(&str) -> bool) -> BTreeSet<usize> {
        self.told(is_without).filter_map(|list| list.get(&place)).flatten().copied().collect()
    }

    /// Whether a server that has told has these partitions of some data.
    pub(crate) fn has(&self, server: &str, place: DataPlace, partitions: &[usize]) -> bool {
        let list = self.lists.get(server).and_then(Option::as_ref).and_then(|list| list.get(&place));
        list.is_some_and(|has| partitions.iter().all(|partition| has.contains(partition)))
    }

    /// The latest data that the servers without one of them have all partitions of, up to a place.
    pub(crate) fn latest_whole(&self, until: Option<DataPlace>, without: Option<&str>) -> Option<DataPlace> {
        let is_without = |name: &str| without == Some(name);
        let places: BTreeSet<DataPlace> = self.told(is_without).flat_map(BTreeMap::keys).copied().collect();
        let is_whole = |place: &DataPlace| self.partitions(*place, is_without).len() == self.count;
        let is_due = |place: &DataPlace| until.is_none_or(|until| *place < until);
        places.into_iter().rev().filter(is_due).find(is_whole)
    }

    /// Whether all servers but one have told.
    pub(crate) fn have_told(&self, without: &str) -> bool {
        self.lists.iter().all(|(name, list)| name == without || list.is_some())
    }

    /// A partition of some data that no server has, if all servers have told.
    pub(crate) fn lost(&self, place: DataPlace) -> Option<usize> {
        if self.lists.values().any(Option::is_none) {
            return None;
        }
        let has = self.partitions(place, |_| false);
        (0..self.count).find(|partition| !has.contains(partition))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: DataPlace = (5, 9);
    const NEW: DataPlace = (7, 1);

    type Told<'t> = &'t [(DataPlace, &'t [usize])];

    fn holdings(lists: &[(&str, Option<Told<'_>>)]) -> Holdings {
        let list = |list: Told<'_>| {
            list.iter().map(|(place, partitions)| (*place, partitions.iter().copied().collect())).collect()
        };
        let lists = lists.iter().map(|(name, told)| ((*name).to_owned(), told.map(list)));
        Holdings { count: 3, lists: lists.collect() }
    }

    #[test]
    fn data_of_a_server_that_has_left_are_lost() {
        let (a, b): (Told<'_>, Told<'_>) =
            (&[(OLD, &[0, 1]), (NEW, &[0, 1, 2])], &[(OLD, &[2]), (NEW, &[2])]);
        let with = holdings(&[("a", Some(a)), ("b", Some(b))]);
        assert_eq!(with.latest_whole(None, None), Some(NEW));
        assert_eq!(with.latest_whole(Some(NEW), None), Some(OLD));
        assert_eq!((with.lost(NEW), with.lost(OLD)), (None, None));
        assert_eq!(with.latest_whole(None, Some("a")), None, "a alone has 0 and 1");
        assert_eq!(with.latest_whole(None, Some("b")), Some(NEW));
        assert!(with.have_told("a"));
        assert!(with.has("b", NEW, &[2]) && !with.has("b", NEW, &[1, 2]) && !with.has("c", NEW, &[]));
        let c: Told<'_> = &[(OLD, &[0, 1])];
        let without = holdings(&[("b", Some(b)), ("c", Some(c))]);
        assert_eq!(without.lost(NEW), Some(0));
        assert_eq!(without.latest_whole(None, None), Some(OLD));
        let silent = holdings(&[("a", None), ("b", Some(b)), ("c", Some(c))]);
        assert_eq!(silent.lost(NEW), None, "a may have them");
        assert!(silent.have_told("a") && !silent.have_told("b"));
    }
}
