//! Searches from many nodes in the product of automaton and graph that share their work: strongly connected
//! components are condensed, and each component has the set of nodes at which its paths end.
//!
//! # Shape
//! [`CondensedSearch::reach`] explores what is new from a start node, finds the strongly connected components
//! of that, successors first, and makes the set of each component: the union of the sets of its successors
//! and of its own ends. Components with equal sets as one of their successors share it, so the members of a
//! large component and everything that leads to it only have one set.
//!
//! A set is a sorted list while it is small, and a range of words of a bit set otherwise. Ends are numbered
//! in order of discovery, so the ends of one component and of its successors are often close together.
//! # Cost
//! Each pair of node and state is expanded once for all starts, some 50 ns for each of its entries (a look-up
//! in a hash table), and each successor of a component costs a union. A search for each start visits a pair
//! again for each start that reaches it. Memory is bounded: beyond [`BYTES_MAX`] the sets are dropped, and
//! the caller searches from single nodes.
//! # Source
//! R. Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM J. Comput. 1972; E. Nuutila, "An
//! Efficient Transitive Closure Algorithm for Cyclic Digraphs", IPL 1994: sets of components, made as they
//! are found.

use crate::operators::search_graph::{SearchGraph, Transition};
use crate::pipeline::chain::Run;
use crate::plan::Automaton;
use rustc_hash::FxHashMap;
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter};

/// Maximum bytes of nodes and sets.
const BYTES_MAX: u64 = 256 << 20;

/// Minimum bytes that must be free below the memory cap.
const BYTES_MIN: u64 = 1 << 20;

/// Maximum members of a set that is a list.
const FEW_MAX: usize = 64;

/// The number of a node that is in no component yet.
const OPEN: u32 = u32::MAX;

/// A set of ends, by their numbers.
enum EndSet {
    /// Ascending.
    Few(Box<[u32]>),
    Bits {
        /// Index of the first word.
        first: usize,
        words: Box<[u64]>,
        count: usize,
    },
}

impl EndSet {
    fn len(&self) -> usize {
        match self {
            Self::Few(members) => members.len(),
            Self::Bits { count, .. } => *count,
        }
    }

    fn contains(&self, end: u32) -> bool {
        match self {
            Self::Few(members) => members.binary_search(&end).is_ok(),
            Self::Bits { first, words, .. } => {
                let word = (end as usize / 64).checked_sub(*first).and_then(|at| words.get(at));
                word.is_some_and(|word| word >> (end % 64) & 1 == 1)
            }
        }
    }

    /// The words from the first to the last that is not zero, as a range.
    fn words(&self) -> Option<(usize, usize)> {
        match self {
            Self::Few(members) => {
                let (first, last) = (members.first()?, members.last()?);
                Some((*first as usize / 64, *last as usize / 64 + 1))
            }
            Self::Bits { first, words, .. } => Some((*first, first + words.len())),
        }
    }

    fn size_bytes(&self) -> u64 {
        let own = size_of::<Self>();
        let more = match self {
            Self::Few(members) => 4 * members.len(),
            Self::Bits { words, .. } => 8 * words.len(),
        };
        (own + more) as u64
    }
}

/// A node of the graph in a state of the automaton.
type Place = (Id, usize);

/// Buffers of one exploration. Numbers of nodes are relative to the first new one.
#[derive(Default)]
struct Exploration {
    /// Edges from new nodes: (source, target), the target with its absolute number.
    edges: Vec<(u32, u32)>,
    /// Waiting nodes by state.
    waiting: Vec<Vec<u32>>,
    keys: Vec<Id>,
    numbers: Vec<u32>,
    expansion: Expansion,
    /// The targets of each new node, one after the other, and where those of each begin.
    targets: Vec<u32>,
    starts: Vec<u32>,
    /// Tarjan's numbers: order of discovery, and the least that is reached.
    order: Vec<u32>,
    low: Vec<u32>,
    /// Discovered nodes that are in no component yet.
    stack: Vec<u32>,
    /// The path of the depth-first search: a node, and its next target.
    path: Vec<(u32, u32)>,
    /// Sets of the successors of a component, and its own ends.
    successors: Vec<u32>,
    own: Vec<u32>,
    words: Vec<u64>,
}

/// Searches in one direction; see the header.
pub(crate) struct CondensedSearch<'a> {
    graph: SearchGraph<'a>,
    /// Number of nodes expanded at once.
    chunk: usize,
    /// The state in which searches start.
    start: usize,
    /// Whether paths may end in each state.
    is_end: Vec<bool>,
    /// The numbers of nodes, by state.
    numbers: Vec<FxHashMap<Id, u32>>,
    places: Vec<Place>,
    /// The set of each node; [`OPEN`]: not made yet.
    set_of: Vec<u32>,
    /// Whether each node has an entry to move along.
    moves: Vec<bool>,
    /// The first set is empty.
    sets: Vec<EndSet>,
    sets_bytes: u64,
    /// Ends by number, and their numbers.
    ends: Vec<Id>,
    end_numbers: FxHashMap<Id, u32>,
    exploration: Exploration,
    counted_bytes: u64,
}

impl<'a> CondensedSearch<'a> {
    /// Without nodes yet; `backwards`: from the ends of paths.
    ///
    /// # Errors
    /// Limits; damaged data.
    pub(crate) fn new(automaton: &Automaton, backwards: bool, run: &Run<'a>) -> Result<Self> {
        let graph = SearchGraph::new(automaton, backwards, run)?.with_one_start(run)?;
        let start = graph.starts.first().copied().unwrap_or(0);
        let chunk = graph.chunk();
        let states = graph.transitions.len();
        let is_end = (0..states).map(|state| graph.ends.contains(&state)).collect();
        let mut search = Self {
            graph,
            chunk,
            start,
            is_end,
            numbers: vec![FxHashMap::default(); states],
            places: Vec::new(),
            set_of: Vec::new(),
            moves: Vec::new(),
            sets: Vec::new(),
            sets_bytes: 0,
            ends: Vec::new(),
            end_numbers: FxHashMap::default(),
            exploration: Exploration { expansion: Expansion::new(4 * chunk), ..Exploration::default() },
            counted_bytes: 0,
        };
        search.clear();
        Ok(search)
    }

    /// Drops all nodes and sets.
    fn clear(&mut self) {
        self.numbers.iter_mut().for_each(|numbers| *numbers = FxHashMap::default());
        self.places = Vec::new();
        self.set_of = Vec::new();
        self.moves = Vec::new();
        self.sets = vec![EndSet::Few(Box::default())];
        self.sets_bytes = 0;
        self.ends = Vec::new();
        self.end_numbers = FxHashMap::default();
        let expansion = std::mem::take(&mut self.exploration.expansion);
        self.exploration = Exploration { expansion, ..Exploration::default() };
    }

    /// Searches from a node, unless that has been done; `false`: there is too little memory, and the search
    /// has been emptied.
    ///
    /// # Errors
    /// Limits; damaged segment.
    pub(crate) fn reach(&mut self, node: Id, graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        if self.numbers[self.start].contains_key(&node) {
            return Ok(true);
        }
        // Explored nodes are complete: everything that they reach is explored. So a second attempt from
        // scratch keeps only what this node reaches.
        let was_empty = self.places.is_empty();
        if self.explore(&[node], graphs, run)? {
            return Ok(true);
        }
        self.clear();
        self.recount(run)?;
        if was_empty {
            return Ok(false);
        }
        let fits = self.explore(&[node], graphs, run)?;
        if !fits {
            self.clear();
            self.recount(run)?;
        }
        Ok(fits)
    }

    /// Searches from many nodes together, with far fewer calls of segments than from one after the other;
    /// `false`: as [`CondensedSearch::reach`].
    ///
    /// # Errors
    /// As [`CondensedSearch::reach`].
    pub(crate) fn reach_all(&mut self, nodes: &[Id], graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        if self.explore(nodes, graphs, run)? {
            return Ok(true);
        }
        self.clear();
        self.recount(run)?;
        Ok(false)
    }

    fn set(&self, node: Id) -> &EndSet {
        let number = self.numbers[self.start].get(&node);
        let set = number.and_then(|number| self.set_of.get(*number as usize)).copied();
        &self.sets[set.filter(|set| *set != OPEN).unwrap_or(0) as usize]
    }

    /// Number of nodes at which paths from a reached node end.
    pub(crate) fn count(&self, node: Id) -> usize {
        self.set(node).len()
    }

    /// Whether a path from a reached node ends at `end`.
    pub(crate) fn connects(&self, node: Id, end: Id) -> bool {
        self.end_numbers.get(&end).is_some_and(|end| self.set(node).contains(*end))
    }

    /// Whether there is an entry to move along from a reached node.
    pub(crate) fn has_moved(&self, node: Id) -> bool {
        self.numbers[self.start].get(&node).is_some_and(|number| self.moves[*number as usize])
    }

    /// Appends the nodes at which paths from a reached node end.
    pub(crate) fn append_ends(&self, node: Id, out: &mut Vec<Id>) {
        match self.set(node) {
            EndSet::Few(members) => out.extend(members.iter().map(|end| self.ends[*end as usize])),
            EndSet::Bits { first, words, .. } => {
                for (at, &word) in words.iter().enumerate() {
                    let ends = &self.ends[64 * (first + at)..];
                    let mut left = word;
                    while left != 0 {
                        out.push(ends[left.trailing_zeros() as usize]);
                        left &= left - 1;
                    }
                }
            }
        }
    }

    fn size_bytes(&self) -> u64 {
        let numbers: usize = self.numbers.iter().map(FxHashMap::capacity).sum();
        let exploration = &self.exploration;
        let of_exploration = 8 * exploration.edges.capacity()
            + 4 * (exploration.targets.capacity() + exploration.starts.capacity())
            + 4 * (exploration.order.capacity() + exploration.low.capacity())
            + 4 * exploration.stack.capacity()
            + 8 * (exploration.path.capacity() + exploration.words.capacity())
            + 4 * (exploration.successors.capacity() + exploration.own.capacity());
        let bytes = 16 * (numbers + self.end_numbers.capacity())
            + (size_of::<Place>() + 5) * self.places.capacity()
            + 8 * self.ends.capacity()
            + of_exploration;
        bytes as u64 + self.sets_bytes
    }

    /// Drops everything and counts it as freed.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn release(&mut self, run: &Run<'_>) -> Result<()> {
        self.clear();
        run.control.recount(&mut self.counted_bytes, 0)
    }

    fn recount(&mut self, run: &Run<'_>) -> Result<()> {
        let bytes = self.size_bytes();
        run.control.recount(&mut self.counted_bytes, bytes)
    }

    /// Counts memory; `false`: there is too much.
    fn fits(&mut self, run: &Run<'_>) -> Result<bool> {
        let bytes = self.size_bytes();
        // Growing doubles a table.
        if bytes > BYTES_MAX
            || !run.control.has_room(bytes.saturating_sub(self.counted_bytes) + bytes + BYTES_MIN)
        {
            return Ok(false);
        }
        self.recount(run)?;
        Ok(true)
    }

    /// The number of a place, and whether it is new.
    fn number(&mut self, (id, state): Place) -> (u32, bool) {
        let next = u32::try_from(self.places.len()).unwrap_or(OPEN);
        let number = *self.numbers[state].entry(id).or_insert(next);
        if number == next {
            self.places.push((id, state));
            self.set_of.push(OPEN);
            self.moves.push(false);
        }
        (number, number == next)
    }

    /// Explores from new nodes and makes the sets; `false`: there is too little memory.
    fn explore(&mut self, nodes: &[Id], graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        let first = self.places.len();
        if !self.expand_all(nodes, graphs, run)? || self.places.len() >= OPEN as usize {
            return Ok(false);
        }
        self.sort_edges(first, run)?;
        self.condense(first, run)
    }

    /// Expands all nodes that are new; collects their edges.
    fn expand_all(&mut self, nodes: &[Id], graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        let states = self.graph.transitions.len();
        let mut work = std::mem::take(&mut self.exploration);
        work.edges.clear();
        work.waiting.resize(states, Vec::new());
        run.control.work(nodes.len())?;
        for node in nodes {
            let (number, is_new) = self.number((*node, self.start));
            if is_new {
                work.waiting[self.start].push(number);
            }
        }
        let mut fits = true;
        while let Some(state) = (0..states).find(|state| !work.waiting[*state].is_empty()) {
            let at = work.waiting[state].len().saturating_sub(self.chunk);
            work.numbers.clear();
            work.numbers.extend(work.waiting[state].drain(at..));
            // Computed terms occur in no statement.
            work.numbers.retain(|number| self.places[*number as usize].0.tag() != Tag::Computed);
            work.keys.clear();
            work.keys.extend(work.numbers.iter().map(|number| self.places[*number as usize].0));
            for at in 0..self.graph.transitions[state].len() {
                let Transition { segments, to } = self.graph.transitions[state][at];
                for of_move in 0..self.graph.segments[segments].len() {
                    let segment = self.graph.segments[segments][of_move];
                    for &graph in graphs {
                        let filter = EntryFilter { graph, parallel: true };
                        let mut cursor = Cursor::default();
                        while cursor.row < work.keys.len() {
                            work.expansion.clear();
                            segment.expand(&work.keys, filter, &mut cursor, &mut work.expansion)?;
                            run.control.work(4 * work.expansion.len() + 1)?;
                            for at in 0..work.expansion.rows.len() {
                                let source = work.numbers[work.expansion.rows[at] as usize];
                                let (target, is_new) = self.number((work.expansion.neighbours[at], to));
                                self.moves[source as usize] = true;
                                work.edges.push((source, target));
                                if is_new {
                                    work.waiting[to].push(target);
                                }
                            }
                        }
                    }
                }
            }
            std::mem::swap(&mut self.exploration, &mut work);
            fits = self.fits(run)? && self.places.len() < OPEN as usize;
            std::mem::swap(&mut self.exploration, &mut work);
            if !fits {
                break;
            }
        }
        self.exploration = work;
        Ok(fits)
    }

    /// Groups the edges by their source.
    fn sort_edges(&mut self, first: usize, run: &Run<'_>) -> Result<()> {
        let count = self.places.len() - first;
        let Exploration { edges, targets, starts, .. } = &mut self.exploration;
        run.control.work(count + edges.len())?;
        starts.clear();
        starts.resize(count + 1, 0);
        for (source, _) in &*edges {
            starts[*source as usize - first + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        targets.clear();
        targets.resize(edges.len(), 0);
        // Each start moves to its end, which is the start of the next one.
        for &(source, target) in &*edges {
            let at = &mut starts[source as usize - first];
            targets[*at as usize] = target;
            *at += 1;
        }
        starts.rotate_right(1);
        if let Some(zero) = starts.first_mut() {
            *zero = 0;
        }
        Ok(())
    }

    /// Finds the components of the nodes from `first` on, and makes their sets.
    fn condense(&mut self, first: usize, run: &Run<'_>) -> Result<bool> {
        let count = self.places.len() - first;
        let mut work = std::mem::take(&mut self.exploration);
        work.order.clear();
        work.order.resize(count, OPEN);
        work.low.clear();
        work.low.resize(count, OPEN);
        let mut discovered = 0_u32;
        let mut fits = true;
        // The next new node that may be in no component.
        let mut root = 0;
        loop {
            let Some((node, next)) = work.path.last_mut() else {
                while root < count && work.order[root] != OPEN {
                    root += 1;
                }
                if root == count {
                    break;
                }
                enter(&mut work, u32::try_from(root).unwrap_or(OPEN), &mut discovered);
                continue;
            };
            let at = *node as usize;
            if *next < work.starts[at + 1] {
                let target = work.targets[*next as usize] as usize;
                *next += 1;
                // Nodes of earlier explorations, and of components that are complete.
                if target < first || self.set_of[target] != OPEN {
                    continue;
                }
                let target = target - first;
                if work.order[target] == OPEN {
                    enter(&mut work, u32::try_from(target).unwrap_or(OPEN), &mut discovered);
                } else {
                    work.low[at] = work.low[at].min(work.order[target]);
                }
                continue;
            }
            work.path.pop();
            if let Some((before, _)) = work.path.last() {
                let before = *before as usize;
                work.low[before] = work.low[before].min(work.low[at]);
            }
            if work.low[at] != work.order[at] {
                continue;
            }
            let members = work.stack.iter().rposition(|member| *member as usize == at).unwrap_or(0);
            self.make_set(&mut work, members, first, run)?;
            std::mem::swap(&mut self.exploration, &mut work);
            fits = self.sets_bytes + self.counted_bytes <= BYTES_MAX || self.fits(run)?;
            std::mem::swap(&mut self.exploration, &mut work);
            if !fits {
                break;
            }
        }
        self.exploration = work;
        Ok(fits && self.fits(run)?)
    }

    /// Makes the set of the component whose members are on the stack from `members` on, and removes them.
    fn make_set(
        &mut self,
        work: &mut Exploration,
        members: usize,
        first: usize,
        run: &Run<'_>,
    ) -> Result<()> {
        work.successors.clear();
        work.own.clear();
        for &member in &work.stack[members..] {
            let at = member as usize;
            let (id, state) = self.places[first + at];
            if self.is_end[state] {
                let next = u32::try_from(self.ends.len()).unwrap_or(OPEN);
                let number = *self.end_numbers.entry(id).or_insert(next);
                if number == next {
                    self.ends.push(id);
                }
                work.own.push(number);
            }
            let targets = &work.targets[work.starts[at] as usize..work.starts[at + 1] as usize];
            run.control.work(targets.len() + 1)?;
            // Open successors are members of this component.
            let sets = targets.iter().map(|target| self.set_of[*target as usize]);
            let last = work.successors.last().copied();
            work.successors.extend(sets.filter(|set| *set != OPEN && *set != 0 && Some(*set) != last));
        }
        work.successors.sort_unstable();
        work.successors.dedup();
        work.own.sort_unstable();
        work.own.dedup();
        let set = self.union(&work.successors, &work.own, &mut work.words, run)?;
        for member in work.stack.drain(members..) {
            self.set_of[first + member as usize] = set;
        }
        Ok(())
    }

    /// The number of a set with all members of these sets and these ends; an equal one of them if there is
    /// one.
    fn union(&mut self, sets: &[u32], own: &[u32], words: &mut Vec<u64>, run: &Run<'_>) -> Result<u32> {
        let largest = sets.iter().copied().max_by_key(|set| self.sets[*set as usize].len());
        let Some(largest) = largest else {
            return Ok(if own.is_empty() { 0 } else { self.add(made_of(own)) });
        };
        let of_largest = &self.sets[largest as usize];
        if sets.len() == 1 && own.iter().all(|end| of_largest.contains(*end)) {
            return Ok(largest);
        }
        let range = |set: &u32| self.sets[*set as usize].words();
        let of_own = own.first().zip(own.last()).map(|(a, b)| (*a as usize / 64, *b as usize / 64 + 1));
        let ranges = sets.iter().filter_map(range).chain(of_own);
        let Some((from, to)) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return Ok(0) };
        let total: usize = sets.iter().map(|set| self.sets[*set as usize].len()).sum::<usize>() + own.len();
        if total <= FEW_MAX && sets.iter().all(|set| matches!(self.sets[*set as usize], EndSet::Few(_))) {
            let mut all: Vec<u32> = own.to_vec();
            for set in sets {
                if let EndSet::Few(members) = &self.sets[*set as usize] {
                    all.extend_from_slice(members);
                }
            }
            all.sort_unstable();
            all.dedup();
            run.control.work(total)?;
            return Ok(if all.len() == of_largest.len() { largest } else { self.add(made_of(&all)) });
        }
        words.clear();
        words.resize(to - from, 0);
        for &end in own {
            words[end as usize / 64 - from] |= 1 << (end % 64);
        }
        for set in sets {
            match &self.sets[*set as usize] {
                EndSet::Few(members) => {
                    members.iter().for_each(|end| words[*end as usize / 64 - from] |= 1 << (end % 64));
                }
                EndSet::Bits { first, words: its, .. } => {
                    let mine = &mut words[first - from..];
                    mine.iter_mut().zip(its).for_each(|(mine, its)| *mine |= its);
                }
            }
            run.control.work((to - from) / 16 + 1)?;
        }
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        if count == of_largest.len() {
            return Ok(largest);
        }
        let set = EndSet::Bits { first: from, words: words.as_slice().into(), count };
        Ok(self.add(set))
    }

    fn add(&mut self, set: EndSet) -> u32 {
        self.sets_bytes += set.size_bytes();
        self.sets.push(set);
        u32::try_from(self.sets.len() - 1).unwrap_or(0)
    }
}

/// A set of these ends, which ascend.
fn made_of(ends: &[u32]) -> EndSet {
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
        return EndSet::Few(Box::default());
    };
    if ends.len() <= FEW_MAX {
        return EndSet::Few(ends.into());
    }
    let first = *first as usize / 64;
    let mut words = vec![0; *last as usize / 64 + 1 - first];
    ends.iter().for_each(|end| words[*end as usize / 64 - first] |= 1 << (end % 64));
    EndSet::Bits { first, words: words.into(), count: ends.len() }
}

/// Discovers a node.
fn enter(work: &mut Exploration, node: u32, discovered: &mut u32) {
    let at = node as usize;
    (work.order[at], work.low[at]) = (*discovered, *discovered);
    *discovered += 1;
    work.stack.push(node);
    work.path.push((node, work.starts[at]));
}
