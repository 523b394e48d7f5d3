//! The entries of one predicate and direction at one server, sorted: in memory in the narrowest form, or in a
//! temporary file.

use crate::buffers::{EntryBuffer, PredicateBuffer, drop_plain_twins};
use crate::entries::{Entries, Narrow};
use crate::halves::ObjectCounts;
use crate::merge::MergedRun;
use crate::sort;
use crate::spill::{RunKind, SortedRun, Spill};
use vervet_model::{Result, Watch};

/// Sorted entries without duplicates, by their key.
#[derive(Debug)]
pub(crate) enum SortedEntries {
    /// Tags of keys and neighbours, in place; entries.
    Narrow([u64; 2], Vec<u64>),
    Pairs(Vec<[u64; 2]>),
    Quads(Vec<[u64; 4]>),
    /// In a temporary file.
    Run(SortedRun),
}

impl Default for SortedEntries {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

/// What is done with entries, whatever their form.
pub(crate) trait EntriesVisitor {
    type Output;
    fn visit<E: Entries + ?Sized>(self, entries: &E) -> Self::Output;
}

impl SortedEntries {
    /// Sorts the entries of a buffer, whose runs in files are merged.
    pub(crate) fn of(mut buffer: PredicateBuffer, spill: Option<&Spill>, watch: &Watch<'_>) -> Result<Self> {
        if let Some(spill) = spill {
            buffer.merge(spill, watch)?;
            if let Some(run) = buffer.run() {
                return Ok(Self::Run(run.clone()));
            }
        }
        Ok(match buffer.gather() {
            EntryBuffer::Narrow { key_tag, neighbour_tag, mut entries } => {
                sort::sort(&mut entries, u64::MAX, &mut Vec::new(), watch)?;
                entries.dedup();
                Self::Narrow([key_tag, neighbour_tag], entries)
            }
            EntryBuffer::Pairs(mut entries) => {
                watch.sort(&mut entries, Ord::cmp)?;
                entries.dedup();
                Self::Pairs(entries)
            }
            EntryBuffer::Quads(mut entries) => {
                watch.sort(&mut entries, Ord::cmp)?;
                entries.dedup();
                drop_plain_twins(&mut entries);
                Self::Quads(entries)
            }
        })
    }

    pub(crate) fn visit<V: EntriesVisitor>(&self, visitor: V) -> V::Output {
        match self {
            Self::Narrow([key_tag, neighbour_tag], entries) => {
                visitor.visit(&Narrow { entries, key_tag: *key_tag, neighbour_tag: *neighbour_tag })
            }
            Self::Pairs(entries) => visitor.visit(entries.as_slice()),
            Self::Quads(entries) => visitor.visit(entries.as_slice()),
            Self::Run(run) if run.kind() == RunKind::Quads => visitor.visit(&MergedRun::<true>(run)),
            Self::Run(run) => visitor.visit(&MergedRun::<false>(run)),
        }
    }

    /// The entries whose keys `keep` accepts, in memory.
    ///
    /// # Cost
    /// One pass over all entries.
    pub(crate) fn part(&self, keep: impl Fn(u64) -> bool, watch: &Watch<'_>) -> Result<Self> {
        watch.check()?;
        Ok(match self {
            Self::Narrow(tags, entries) => {
                let kept = entries.iter().copied().filter(|entry| keep(tags[0] | entry >> 32));
                Self::Narrow(*tags, kept.collect())
            }
            Self::Pairs(entries) => {
                Self::Pairs(entries.iter().copied().filter(|entry| keep(entry[0])).collect())
            }
            Self::Quads(entries) => {
                Self::Quads(entries.iter().copied().filter(|entry| keep(entry[0])).collect())
            }
            Self::Run(run) => {
                let rows = (0..run.len()).map(|index| run.row(index)).filter(|row| keep(row[0]));
                match run.kind() {
                    RunKind::Quads => Self::Quads(rows.collect()),
                    _ => Self::Pairs(rows.map(|[key, neighbour, ..]| [key, neighbour]).collect()),
                }
            }
        })
    }

    /// The same entries by their neighbours, in memory.
    pub(crate) fn reversed(&self, watch: &Watch<'_>) -> Result<Self> {
        Ok(match self {
            Self::Narrow([key_tag, neighbour_tag], entries) => {
                let mut reversed: Vec<u64> = entries.iter().map(|entry| entry.rotate_left(32)).collect();
                sort::sort(&mut reversed, u64::MAX << 32, &mut Vec::new(), watch)?;
                Self::Narrow([*neighbour_tag, *key_tag], reversed)
            }
            Self::Pairs(entries) => {
                let mut reversed: Vec<[u64; 2]> = entries.iter().map(|[key, other]| [*other, *key]).collect();
                watch.sort(&mut reversed, Ord::cmp)?;
                Self::Pairs(reversed)
            }
            Self::Quads(entries) => {
                let turned = entries.iter().map(|[key, other, graph, edge]| [*other, *key, *graph, *edge]);
                let mut reversed: Vec<[u64; 4]> = turned.collect();
                watch.sort(&mut reversed, Ord::cmp)?;
                Self::Quads(reversed)
            }
            Self::Run(_) => self.part(|_| true, watch)?.reversed(watch)?,
        })
    }

    /// Entries, keys, and the most entries of a key.
    pub(crate) fn counts(&self) -> ObjectCounts {
        struct Count;
        impl EntriesVisitor for Count {
            type Output = ObjectCounts;
            fn visit<E: Entries + ?Sized>(self, entries: &E) -> ObjectCounts {
                let mut counts = ObjectCounts { entries: entries.len() as u64, ..ObjectCounts::default() };
                let (mut last, mut degree) = (u64::MAX, 0);
                for index in 0..entries.len() {
                    let key = entries.key(index);
                    if key != last {
                        (last, degree) = (key, 0);
                        counts.objects += 1;
                    }
                    degree += 1;
                    counts.degree_max = counts.degree_max.max(degree);
                }
                counts
            }
        }
        self.visit(Count)
    }

    /// Calls `each` with key, neighbour, graph and edge of every entry.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut([u64; 4])) {
        struct Each<'a>(&'a mut dyn FnMut([u64; 4]));
        impl EntriesVisitor for Each<'_> {
            type Output = ();
            fn visit<E: Entries + ?Sized>(self, entries: &E) {
                for at in 0..entries.len() {
                    (self.0)([entries.key(at), entries.neighbour(at), entries.graph(at), entries.edge(at)]);
                }
            }
        }
        self.visit(Each(each));
    }
}
