//! Classes of vertices without types: sets of predicates.
//!
//! # Shape
//! The *characteristic set* of a vertex is the set of predicate ends at which it occurs: a predicate, as
//! subject or as object. Vertices with the same set are a class, as vertices with the same types are. Ends
//! are added in ascending order, so the sets form a trie: one table access for each vertex and end.
//!
//! The most frequent sets have classes of their own. Each rarer set joins the class with which it adds the
//! fewest pairs of ends that no vertex has together, since a pair of ends that no class has together proves
//! a join empty; of these the most similar one. If it adds such pairs to every class, it gets a new one while
//! there is room. The class [`ClassId::UNTYPED`] takes part in this, and has all
//! sets beyond [`SETS_MAX`].
//! # Cost
//! 5 to 20 ns an entry and direction; 2 bytes a vertex. Nothing where nearly all vertices have types.
//! # Source
//! T. Neumann, G. Moerkotte, "Characteristic Sets: Accurate Cardinality Estimation for RDF Queries with
//! Multiple Joins", ICDE 2011. Difference: objects count as well, and the sets become classes, so that the
//! entries between them are counted.

use crate::statistics::{ClassTable, Classes};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vervet_model::{Id, Result, Watch};
use vervet_snapshot::ClassId;

/// Maximum number of classes by predicates; more take longer to plan with than they improve.
const CLASSES_MAX: usize = 64;

/// Number of possible pairs of classes in all predicates for each vertex without types; few of them occur.
const PAIRS_OF_VERTEX: u64 = 2;

/// Share of vertices without types from which they get classes: one of this number.
const UNTYPED_SHARE: u64 = 64;

/// Maximum number of sets that get a class or join the most similar one.
const SETS_MAX: usize = 4_096;

/// Maximum number of ends of which the pairs that occur together are remembered.
const PAIRED_ENDS_MAX: usize = 2_048;

/// The characteristic set of each vertex, under construction.
#[derive(Debug)]
pub(crate) struct PredicateSets {
    /// The set of each vertex by number; 0: empty.
    of_vertex: Vec<u16>,
    /// Each set: the one without its last end, and that end.
    sets: Vec<(u16, u32)>,
    next: FxHashMap<(u16, u32), u16>,
    /// Number of ends.
    ends: u32,
}

/// The set of a vertex that has types, or one of too many sets.
const NONE: u16 = u16::MAX;

/// Calls the function that it gets with subject and object of each entry of a predicate.
type Visit<'a> = dyn FnMut(&mut dyn FnMut([u64; 2])) + 'a;

/// Calls the function that it gets with each vertex, or value, at an end.
type VisitEnds<'a> = dyn FnMut(&mut dyn FnMut(u64)) + 'a;

impl PredicateSets {
    /// Empty sets for the vertices without types; `None`: they are few.
    pub(crate) fn new(table: &ClassTable, of_vertex: &[u8]) -> Option<Self> {
        let untyped = table.sizes.get(usize::from(ClassId::UNTYPED.0)).copied().unwrap_or_default();
        if untyped.saturating_mul(UNTYPED_SHARE) < of_vertex.len() as u64 {
            return None;
        }
        let is_typed = |class: &u8| u16::from(*class) != ClassId::UNTYPED.0;
        Some(Self {
            of_vertex: of_vertex.iter().map(|class| if is_typed(class) { NONE } else { 0 }).collect(),
            sets: vec![(NONE, u32::MAX)],
            next: FxHashMap::default(),
            ends: 0,
        })
    }

    /// Adds both ends of the next predicate, by its subjects and objects: each at least once.
    pub(crate) fn add_predicate(&mut self, visit: &mut Visit<'_>, watch: &Watch<'_>) -> Result<()> {
        for at in 0..2 {
            self.add_end(&mut |each| visit(&mut |entry| each(entry[at])), watch)?;
        }
        Ok(())
    }

    /// Adds the next end of a predicate, the subjects or the objects that `visit` calls its function with.
    pub(crate) fn add_end(&mut self, visit: &mut VisitEnds<'_>, watch: &Watch<'_>) -> Result<()> {
        watch.check()?;
        let end = self.ends;
        self.ends = end.saturating_add(1);
        visit(&mut |bits| self.add(bits, end));
        Ok(())
    }

    #[inline]
    fn add(&mut self, bits: u64, end: u32) {
        let id = Id::from_bits(bits);
        if !id.is_vertex() {
            return;
        }
        let Some(slot) = usize::try_from(id.payload()).ok().and_then(|vertex| self.of_vertex.get_mut(vertex))
        else {
            return;
        };
        let set = *slot;
        if set == NONE || self.sets[usize::from(set)].1 == end {
            return;
        }
        let new = u16::try_from(self.sets.len()).unwrap_or(NONE);
        let next = *self.next.entry((set, end)).or_insert(new);
        if next == new && new != NONE {
            self.sets.push((set, end));
        }
        *slot = next;
    }

    /// The ends of a set, ascending.
    fn ends_of(&self, mut set: u16) -> Vec<u32> {
        let mut ends = Vec::new();
        while let Some(&(before, end)) = self.sets.get(usize::from(set)).filter(|_| set != 0) {
            ends.push(end);
            set = before;
        }
        ends.reverse();
        ends
    }

    /// Gives the vertices without types classes by their sets.
    pub(crate) fn classify(self, classes: &mut Classes, watch: &Watch<'_>) -> Result<()> {
        let assigned = assign(self.counts(), self.ends, &mut classes.table, watch)?;
        self.fill(&assigned, &mut classes.of_vertex);
        Ok(())
    }

    /// The number of vertices with each set, but the empty one.
    pub(crate) fn counts(&self) -> SetCounts {
        let mut counts = vec![0_u64; self.sets.len()];
        for set in self.of_vertex.iter().filter(|set| **set != NONE) {
            counts[usize::from(*set)] += 1;
        }
        let used = (0..=NONE).zip(counts).skip(1).filter(|(_, count)| *count != 0);
        used.map(|(set, count)| (self.ends_of(set), count)).collect()
    }

    /// Writes the class of each vertex without types to `of_vertex`: that of its set in `assigned`.
    pub(crate) fn fill(&self, assigned: &SetClasses, of_vertex: &mut [u8]) {
        let numbers = 0..u16::try_from(self.sets.len()).unwrap_or(NONE);
        let class_of: Vec<u8> =
            numbers.map(|set| assigned.get(&self.ends_of(set)).copied().unwrap_or_default()).collect();
        for (class, set) in of_vertex.iter_mut().zip(&self.of_vertex).filter(|(_, set)| **set != NONE) {
            *class = class_of.get(usize::from(*set)).copied().unwrap_or_default();
        }
    }
}

/// The number of vertices with each set of ends.
pub(crate) type SetCounts = BTreeMap<Vec<u32>, u64>;

/// The class of each set of ends; others are [`ClassId::UNTYPED`].
pub(crate) type SetClasses = FxHashMap<Vec<u32>, u8>;

/// Adds classes of these sets of `ends` ends to `table`.
pub(crate) fn assign(
    counts: SetCounts,
    ends: u32,
    table: &mut ClassTable,
    watch: &Watch<'_>,
) -> Result<SetClasses> {
    let mut ranked: Vec<(u64, Vec<u32>)> = counts.into_iter().map(|(ends, count)| (count, ends)).collect();
    // The most frequent first; equal ones in the order of their ends, for equal files.
    ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let vertices: u64 = ranked.iter().map(|(count, _)| count).sum();
    let pairs = vertices.saturating_mul(PAIRS_OF_VERTEX) / u64::from(ends / 2).max(1);
    let most = usize::try_from(pairs.isqrt()).unwrap_or(CLASSES_MAX).clamp(4, CLASSES_MAX);
    let first = table.sizes.len();
    let most = most.min(ClassId::COUNT_MAX - first);
    let mut groups = Groups::new(ends as usize, &ranked);
    let mut assigned = SetClasses::default();
    for (rank, (count, ends)) in ranked.into_iter().enumerate() {
        watch.check()?;
        let group = match rank {
            _ if rank < most - most / 4 => groups.open(&ends),
            _ if rank < SETS_MAX => groups.join(&ends, most),
            _ => 0,
        };
        // Group 0 is that of the vertices without a class of their own.
        let class = if group == 0 { 0 } else { first + group - 1 };
        if class >= table.sizes.len() {
            table.sizes.push(0);
        }
        table.sizes[usize::from(ClassId::UNTYPED.0)] -= count;
        table.sizes[class] += count;
        assigned.insert(ends, u8::try_from(class).unwrap_or_default());
    }
    Ok(assigned)
}

/// Sets of ends that share a class.
struct Groups {
    ends: usize,
    /// For each group whether it has each end; group 0 is that of [`ClassId::UNTYPED`].
    groups: Vec<Vec<bool>>,
    /// Whether some vertex has both ends, by `first * ends + second`; empty: unknown.
    together: Vec<bool>,
}

impl Groups {
    fn new(ends: usize, sets: &[(u64, Vec<u32>)]) -> Self {
        let mut together = Vec::new();
        if ends <= PAIRED_ENDS_MAX {
            together.resize(ends * ends, false);
            for (_, set) in sets {
                for first in set {
                    set.iter().for_each(|second| together[*first as usize * ends + *second as usize] = true);
                }
            }
        }
        Self { ends, groups: vec![vec![false; ends]], together }
    }

    /// A new group of this set; returns its number.
    fn open(&mut self, set: &[u32]) -> usize {
        let mut group = vec![false; self.ends];
        set.iter().for_each(|end| group[*end as usize] = true);
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Adds this set to the group that suits it best, or a new one of at most `most`; returns its number.
    fn join(&mut self, set: &[u32], most: usize) -> usize {
        let distance = |group: &Vec<bool>| {
            let missing: Vec<usize> =
                set.iter().map(|end| *end as usize).filter(|end| !group[*end]).collect();
            let size = group.iter().filter(|has| **has).count();
            let others = size + missing.len() - set.len();
            let mut new_pairs = 0_usize;
            if !self.together.is_empty() {
                for (end, _) in group.iter().enumerate().filter(|(_, has)| **has) {
                    let row = &self.together[end * self.ends..(end + 1) * self.ends];
                    new_pairs += missing.iter().filter(|other| !row[**other]).count();
                }
            }
            (new_pairs, missing.len() + others)
        };
        let all = self.groups.iter().enumerate().map(|(number, group)| (distance(group), number));
        let ((new_pairs, _), best) = all.min().unwrap_or_default();
        if new_pairs > 0 && self.groups.len() <= most {
            return self.open(set);
        }
        set.iter().for_each(|end| self.groups[best][*end as usize] = true);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classes of vertices that occur at these ends.
    fn classify(sets: &[Vec<u32>], predicates: u32) -> Classes {
        let mut classes = Classes::new::<[[u64; 2]]>(&[], sets.len() as u64, 0);
        let mut of = PredicateSets::new(&classes.table, &classes.of_vertex).expect("no vertex has a type");
        let literal = Id::literal(0).bits();
        for predicate in 0..predicates {
            let visit = &mut |each: &mut dyn FnMut([u64; 2])| {
                for (vertex, set) in (0..).map(|vertex| Id::vertex(vertex).bits()).zip(sets) {
                    let at = |end| if set.contains(&end) { vertex } else { literal };
                    each([at(2 * predicate), at(2 * predicate + 1)]);
                    each([at(2 * predicate), literal]);
                }
            };
            of.add_predicate(visit, &Watch::new("test")).expect("it is not cancelled");
        }
        of.classify(&mut classes, &Watch::new("test")).expect("it is not cancelled");
        classes
    }

    #[test]
    fn equal_sets_are_a_class() {
        let sets: Vec<Vec<u32>> =
            (0..60).map(|vertex| [vec![0], vec![1, 2], vec![]][vertex % 3].clone()).collect();
        let classes = classify(&sets, 2);
        assert_eq!(classes.table.sizes, [20, 0, 0, 20, 20]);
        assert_eq!(&classes.of_vertex[..6], [3, 4, 0, 3, 4, 0]);
        assert_eq!(classes.table.typed_end(), ClassId::FIRST);
    }

    #[test]
    fn rare_sets_join_classes_of_the_same_component() {
        // Even vertices have subsets of the ends below 12, odd ones of those from 12 on.
        let mut sets = Vec::new();
        for vertex in 0..4_000_u32 {
            let bits = vertex.wrapping_mul(2_654_435_761) >> 7;
            let base = if vertex % 2 == 0 { 0 } else { 12 };
            sets.push((0..12).filter(|end| bits >> end & 1 == 1).map(|end| base + end).collect::<Vec<u32>>());
        }
        let classes = classify(&sets, 12);
        assert!(classes.table.sizes.len() <= usize::from(ClassId::FIRST.0) + CLASSES_MAX);
        assert_eq!(classes.table.sizes.iter().sum::<u64>(), 4_000);
        let mut has = vec![[false; 2]; classes.table.sizes.len()];
        for (class, set) in classes.of_vertex.iter().zip(&sets) {
            set.iter().for_each(|end| has[usize::from(*class)][usize::from(*end >= 12)] = true);
        }
        assert!(has.iter().skip(1).all(|has| *has != [true, true]), "{has:?}");
    }
}
