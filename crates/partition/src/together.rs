//! The entries of keys in several segments, with one request to each server for all of them.
//!
//! # Shape
//! In most segments each key is at its owner, which gets its keys; in split ones, each part gets all keys,
//! and their entries are merged. Requests to other servers are sent first, as in `gather`.
//! # Cost
//! Two requests to a server if there are segments of both kinds. Keys and entries beyond the limits below are
//! left out of the result, which may end at any key.

use crate::bytes;
use crate::call::{ENTRIES_MAX, EntriesRequest, LOOKUPS_MAX, ROWS_MAX, another_kind};
use crate::counted;
use crate::remote::{Answer, Remote};
use crate::routes::Routes;
use std::sync::Arc;
use vervet_model::{Direction, Id, Result, ThreadLimits};
use vervet_snapshot::KeyEntries;
use vervet_store::Store;

/// The parts of a graph.
pub(crate) struct Parts<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) stores: &'a [(usize, Arc<Store>)],
    pub(crate) remotes: &'a [Arc<dyn Remote>],
}

/// What a part is asked, and its answer.
struct Asked<'a> {
    part: usize,
    request: EntriesRequest,
    awaited: Option<Box<dyn Answer + 'a>>,
    found: Vec<KeyEntries>,
}

impl Parts<'_> {
    /// [`vervet_snapshot::Snapshot::entries_together`]. `split`: whether each of the segments is split.
    pub(crate) fn entries_together(
        &self,
        segments: &[(Id, Direction)],
        split: &[bool],
        keys: &[Id],
        limit: usize,
    ) -> Result<Vec<KeyEntries>> {
        let count = segments.len().max(1);
        let keys = &keys[..keys.len().min(ROWS_MAX).min(LOOKUPS_MAX / count)];
        let limit = limit.min(ENTRIES_MAX / count);
        // The part of each key, and its position among the keys of that part.
        let mut places = Vec::with_capacity(keys.len());
        let parts = self.stores.len() + self.remotes.len();
        let mut shares: Vec<Vec<Id>> = vec![Vec::new(); parts];
        for key in keys {
            let part = self.routes.part(*key)?;
            let share = shares.get_mut(part).ok_or_else(another_kind)?;
            places.push((part, share.len()));
            share.push(*key);
        }
        let of_kind = |is_split: bool| -> Vec<(Id, Direction)> {
            segments.iter().zip(split).filter(|(_, split)| **split == is_split).map(|(of, _)| *of).collect()
        };
        let share_of = |part: usize| shares[part].clone();
        let keyed = self.ask(of_kind(false), limit, &share_of)?;
        let merged = self.ask(of_kind(true), limit, &|_| keys.to_vec())?;
        let (keyed, merged) = (self.receive(keyed)?, self.receive(merged)?);
        let (mut at_keyed, mut at_merged) = (0, 0);
        let mut all = Vec::with_capacity(segments.len());
        for is_split in split {
            let mut found = KeyEntries::default();
            let (asked, at) = match is_split {
                true => (&merged, &mut at_merged),
                false => (&keyed, &mut at_keyed),
            };
            let of = |part: &Asked<'_>, row: usize| Some(part.found.get(*at)?.of(row)?.to_vec());
            'rows: for (part, position) in &places {
                let start = found.entries.len();
                let row = found.ends.len();
                let concerned =
                    asked.iter().filter(|one| *is_split || one.part == *part).map(|one| match is_split {
                        true => of(one, row),
                        false => of(one, *position),
                    });
                for entries in concerned {
                    // A key of which a part has too many entries ends the list.
                    let Some(entries) = entries else { break 'rows };
                    found.entries.extend(entries);
                }
                if *is_split {
                    found.entries[start..].sort_unstable();
                }
                found.ends.push(found.entries.len());
            }
            *at += 1;
            all.push(found);
        }
        Ok(all)
    }

    /// Sends a request to each other server of which `keys_of` has keys, and answers those of this process.
    fn ask(
        &self,
        segments: Vec<(Id, Direction)>,
        limit: usize,
        keys_of: &dyn Fn(usize) -> Vec<Id>,
    ) -> Result<Vec<Asked<'_>>> {
        let mut all = Vec::new();
        for part in 0..self.stores.len() + self.remotes.len() {
            let request = EntriesRequest { segments: segments.clone(), keys: keys_of(part), limit };
            if request.segments.is_empty() || request.keys.is_empty() {
                continue;
            }
            let awaited = match part.checked_sub(self.stores.len()) {
                None => None,
                Some(remote) => {
                    ThreadLimits::check()?;
                    let mut bytes = Vec::new();
                    bytes::write_entries_request(&request, &mut bytes);
                    Some(counted::send(&*self.remotes[remote], &bytes, request.keys.len())?)
                }
            };
            all.push(Asked { part, request, awaited, found: Vec::new() });
        }
        Ok(all)
    }

    fn receive(&self, mut all: Vec<Asked<'_>>) -> Result<Vec<Asked<'static>>> {
        for asked in all.iter_mut().filter(|asked| asked.awaited.is_none()) {
            asked.found = asked.request.answer(&*self.stores[asked.part].1)?;
        }
        let receive = |asked: Asked<'_>| -> Result<Asked<'static>> {
            let Asked { part, request, awaited, mut found } = asked;
            if let Some(awaited) = awaited {
                let name = self.remotes[part - self.stores.len()].name();
                let bytes = awaited.receive()?;
                found = bytes::read_entries_reply(&bytes, &request)
                    .map_err(|error| error.context(format_args!("server {name}")))?;
            }
            Ok(Asked { part, request, awaited: None, found })
        };
        all.into_iter().map(receive).collect()
    }
}
