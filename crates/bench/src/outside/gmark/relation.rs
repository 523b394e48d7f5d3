//! Binary relations over the vertices `0..n`, with the operations that regular paths need.
//!
//! # Shape
//! A relation maps each source to a sorted set of targets; equal sets are stored once. Paths in a graph lead
//! many vertices to the same set, so the closure of an equivalence needs one set for each class.
//! # Invariants
//! Set 0 is empty; every set is ascending and stored once.
//! # Cost
//! Composition: for each distinct set of the left side, the sizes of the distinct sets that it leads to.
//! Closure: one pass over sources, sets and their members, and the sizes of the distinct results.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A binary relation over `0..n`.
#[derive(Clone, Debug)]
pub struct Relation {
    /// For each source the index of its set.
    set_of: Vec<u32>,
    sets: Vec<Rc<[u32]>>,
}

/// Stores each set once.
struct Sets {
    sets: Vec<Rc<[u32]>>,
    indexes: FxHashMap<Rc<[u32]>, u32>,
}

impl Sets {
    fn new() -> Self {
        let empty: Rc<[u32]> = Rc::from([]);
        Self { sets: vec![empty.clone()], indexes: FxHashMap::from_iter([(empty, 0)]) }
    }

    /// The index of a sorted set.
    fn index(&mut self, set: &[u32]) -> u32 {
        if let Some(&index) = self.indexes.get(set) {
            return index;
        }
        let index = position(self.sets.len());
        let set: Rc<[u32]> = Rc::from(set);
        self.sets.push(set.clone());
        self.indexes.insert(set, index);
        index
    }
}

/// Collects distinct numbers below a bound.
struct Collector {
    stamps: Vec<u32>,
    stamp: u32,
    found: Vec<u32>,
}

impl Collector {
    fn new(bound: usize) -> Self {
        Self { stamps: vec![0; bound], stamp: 1, found: Vec::new() }
    }

    fn add(&mut self, number: u32) -> bool {
        let seen = &mut self.stamps[number as usize];
        let is_new = *seen != self.stamp;
        if is_new {
            *seen = self.stamp;
            self.found.push(number);
        }
        is_new
    }

    fn add_all(&mut self, numbers: &[u32]) {
        for &number in numbers {
            self.add(number);
        }
    }

    /// Passes the numbers, ascending, to `take`, and starts anew.
    fn finish<T>(&mut self, take: impl FnOnce(&[u32]) -> T) -> T {
        self.found.sort_unstable();
        let result = take(&self.found);
        self.found.clear();
        self.stamp += 1;
        result
    }
}

impl Relation {
    /// The relation with these pairs.
    #[must_use]
    pub fn from_pairs(vertices: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let (mut sets, mut set_of) = (Sets::new(), vec![0; vertices]);
        for group in pairs.chunk_by(|one, other| one.0 == other.0) {
            let targets: Vec<u32> = group.iter().map(|pair| pair.1).collect();
            set_of[group[0].0 as usize] = sets.index(&targets);
        }
        Self { set_of, sets: sets.sets }
    }

    /// Every vertex with itself.
    #[must_use]
    pub fn identity(vertices: usize) -> Self {
        Self::from_pairs(vertices, (0..position(vertices)).map(|vertex| (vertex, vertex)).collect())
    }

    /// The number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.set_of.len()
    }

    /// The targets of a source, ascending.
    #[must_use]
    pub fn targets(&self, source: u32) -> &[u32] {
        &self.sets[self.set_of[source as usize] as usize]
    }

    /// Whether a pair is in the relation.
    #[must_use]
    pub fn contains(&self, source: u32, target: u32) -> bool {
        self.targets(source).binary_search(&target).is_ok()
    }

    /// The number of pairs.
    #[must_use]
    pub fn pair_count(&self) -> u64 {
        self.set_of.iter().map(|&set| self.sets[set as usize].len() as u64).sum()
    }

    /// For each vertex whether it is a target.
    #[must_use]
    pub fn has_source(&self) -> Vec<bool> {
        let mut is_target = vec![false; self.vertices()];
        for (set, is_used) in self.sets.iter().zip(self.used()) {
            if is_used {
                set.iter().for_each(|&target| is_target[target as usize] = true);
            }
        }
        is_target
    }

    /// For each set whether a source has it.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.sets.len()];
        self.set_of.iter().for_each(|&set| used[set as usize] = true);
        used
    }

    /// The same relation with each set replaced by `change`.
    fn map_sets(&self, mut change: impl FnMut(&[u32], &mut Sets) -> u32) -> Self {
        let mut sets = Sets::new();
        // Sets without a source are not worth a change.
        let used = self.used();
        let changed: Vec<u32> = self
            .sets
            .iter()
            .zip(&used)
            .map(|(set, &used)| if used { change(set, &mut sets) } else { 0 })
            .collect();
        Self { set_of: self.set_of.iter().map(|&set| changed[set as usize]).collect(), sets: sets.sets }
    }

    /// The pairs `(x, z)` with `(x, y)` here and `(y, z)` in `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let (mut middle, mut ends) = (Collector::new(next.sets.len()), Collector::new(self.vertices()));
        self.map_sets(|set, sets| {
            for &vertex in set {
                let reached = next.set_of[vertex as usize];
                if middle.add(reached) {
                    ends.add_all(&next.sets[reached as usize]);
                }
            }
            middle.finish(|_| ());
            ends.finish(|found| sets.index(found))
        })
    }

    /// The pairs of either relation.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = Collector::new(self.vertices());
        self.combine(other, |one, other, sets| {
            both.add_all(one);
            both.add_all(other);
            both.finish(|found| sets.index(found))
        })
    }

    /// The pairs of both relations.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |one, other, sets| {
            let (small, large) = if one.len() <= other.len() { (one, other) } else { (other, one) };
            let common: Vec<u32> =
                small.iter().copied().filter(|number| large.binary_search(number).is_ok()).collect();
            sets.index(&common)
        })
    }

    fn combine(&self, other: &Self, mut combine: impl FnMut(&[u32], &[u32], &mut Sets) -> u32) -> Self {
        let (mut sets, mut done) = (Sets::new(), FxHashMap::default());
        let mut of = |(&one, &other_set): (&u32, &u32)| {
            *done.entry((one, other_set)).or_insert_with(|| {
                combine(&self.sets[one as usize], &other.sets[other_set as usize], &mut sets)
            })
        };
        let set_of = self.set_of.iter().zip(&other.set_of).map(&mut of).collect();
        Self { set_of, sets: sets.sets }
    }

    /// The pairs whose source and target satisfy a condition.
    #[must_use]
    pub fn restricted(&self, source: impl Fn(u32) -> bool, target: impl Fn(u32) -> bool) -> Self {
        let mut kept = self.clone();
        for (vertex, set) in (0..).zip(&mut kept.set_of) {
            if !source(vertex) {
                *set = 0;
            }
        }
        kept.map_sets(|set, sets| {
            let set: Vec<u32> = set.iter().copied().filter(|&vertex| target(vertex)).collect();
            sets.index(&set)
        })
    }

    /// The pairs the other way round.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let mut sources = vec![Vec::new(); self.sets.len()];
        for (vertex, &set) in (0..).zip(&self.set_of) {
            sources[set as usize].push(vertex);
        }
        // For each target the sets that contain it; targets with the same sets share their sources.
        let mut holders = vec![Vec::new(); self.vertices()];
        for ((index, set), sources) in (0..).zip(&self.sets).zip(&sources) {
            if !sources.is_empty() {
                set.iter().for_each(|&target| holders[target as usize].push(index));
            }
        }
        let (mut sets, mut done) = (Sets::new(), FxHashMap::default());
        let mut all = Collector::new(self.vertices());
        let set_of = holders.into_iter().map(|holders: Vec<u32>| {
            if let Some(&index) = done.get(&holders) {
                return index;
            }
            holders.iter().for_each(|&set| all.add_all(&sources[set as usize]));
            let index = all.finish(|found| sets.index(found));
            done.insert(holders, index);
            index
        });
        let set_of = set_of.collect();
        Self { set_of, sets: sets.sets }
    }

    /// The reflexive and transitive closure.
    #[must_use]
    pub fn closure(&self) -> Self {
        // Sources, then sets, as vertices of one graph: far fewer edges than pairs.
        let vertices = self.vertices();
        let components = components(vertices + self.sets.len(), |place| {
            if place < vertices {
                Successors::Set(vertices + self.set_of[place] as usize)
            } else {
                Successors::Members(&self.sets[place - vertices])
            }
        });
        let mut component_of = vec![0; vertices + self.sets.len()];
        for (index, component) in (0..).zip(&components) {
            component.iter().for_each(|&place| component_of[place as usize] = index);
        }
        let (mut sets, mut reached) = (Sets::new(), Vec::with_capacity(components.len()));
        let (mut next, mut all) = (Collector::new(components.len()), Collector::new(vertices));
        // Successors come before their predecessors.
        for component in &components {
            for &place in component {
                let place = place as usize;
                if place < vertices {
                    all.add(position(place));
                    next.add(component_of[vertices + self.set_of[place] as usize]);
                } else {
                    let members = self.sets[place - vertices].iter();
                    members.for_each(|&member| _ = next.add(component_of[member as usize]));
                }
            }
            next.finish(|successors| {
                for &successor in successors {
                    // The component itself has no result yet.
                    if let Some(&set) = reached.get(successor as usize) {
                        all.add_all(&sets.sets[set as usize]);
                    }
                }
            });
            reached.push(all.finish(|found| sets.index(found)));
        }
        let set_of = component_of[..vertices].iter().map(|&component| reached[component as usize]).collect();
        Self { set_of, sets: sets.sets }
    }
}

/// The successors of a vertex in the graph of sources and sets.
enum Successors<'s> {
    Set(usize),
    Members(&'s [u32]),
}

impl Successors<'_> {
    fn get(&self, index: usize) -> Option<usize> {
        match self {
            Successors::Set(set) => (index == 0).then_some(*set),
            Successors::Members(members) => members.get(index).map(|&member| member as usize),
        }
    }
}

/// Strongly connected components, each after all that it reaches (Tarjan, without recursion).
fn components<'s>(count: usize, successors: impl Fn(usize) -> Successors<'s>) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let (mut order, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let (mut open, mut is_open) = (Vec::new(), vec![false; count]);
    let (mut components, mut seen) = (Vec::new(), 0);
    for root in 0..count {
        if order[root] != UNSEEN {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((vertex, at)) = path.last_mut() {
            let vertex = *vertex;
            if *at == 0 && order[vertex] == UNSEEN {
                (order[vertex], low[vertex]) = (seen, seen);
                seen += 1;
                open.push(position(vertex));
                is_open[vertex] = true;
            }
            let next = successors(vertex).get(*at);
            *at += 1;
            match next {
                Some(next) if order[next] == UNSEEN => path.push((next, 0)),
                Some(next) if is_open[next] => low[vertex] = low[vertex].min(order[next]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some(&(parent, _)) = path.last() {
                        low[parent] = low[parent].min(low[vertex]);
                    }
                    if low[vertex] == order[vertex] {
                        let from = open.iter().rposition(|&place| place as usize == vertex).unwrap_or(0);
                        let component = open.split_off(from);
                        component.iter().for_each(|&place| is_open[place as usize] = false);
                        components.push(component);
                    }
                }
            }
        }
    }
    components
}

/// A position as a number; graphs here have fewer than 2^32 vertices.
fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    type Pairs = BTreeSet<(u32, u32)>;

    fn pairs(relation: &Relation) -> Pairs {
        let vertices = 0..position(relation.vertices());
        vertices.flat_map(|x| relation.targets(x).iter().map(move |&y| (x, y))).collect()
    }

    /// Every operation against its definition, on random relations.
    #[test]
    fn operations_match_their_definitions() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let vertices = random.usize(1..9);
            let mut draw = || {
                let count = random.usize(..2 * vertices);
                let vertex = |random: &mut fastrand::Rng| random.u32(..position(vertices));
                let drawn = (0..count).map(|_| (vertex(&mut random), vertex(&mut random))).collect();
                Relation::from_pairs(vertices, drawn)
            };
            let (one, other) = (draw(), draw());
            let (left, right) = (pairs(&one), pairs(&other));
            let composed = |left: &Pairs, right: &Pairs| -> Pairs {
                let joined = left.iter().flat_map(|&(x, y)| right.iter().map(move |&(z, w)| (x, y, z, w)));
                joined.filter(|&(_, y, z, _)| y == z).map(|(x, _, _, w)| (x, w)).collect()
            };
            assert_eq!(pairs(&one.then(&other)), composed(&left, &right));
            assert_eq!(pairs(&one.union(&other)), left.union(&right).copied().collect());
            assert_eq!(pairs(&one.intersection(&other)), left.intersection(&right).copied().collect());
            assert_eq!(pairs(&one.inverted()), left.iter().map(|&(x, y)| (y, x)).collect());
            let even = |x: u32| x.is_multiple_of(2);
            let kept = left.iter().copied().filter(|&(x, y)| even(x) && !even(y)).collect();
            assert_eq!(pairs(&one.restricted(even, |y| !even(y))), kept);
            let mut closure = pairs(&Relation::identity(vertices));
            loop {
                let more: Pairs = closure.union(&composed(&closure, &left)).copied().collect();
                if more == closure {
                    break;
                }
                closure = more;
            }
            assert_eq!(pairs(&one.closure()), closure);
            assert_eq!(one.pair_count(), left.len() as u64);
        }
    }
}
