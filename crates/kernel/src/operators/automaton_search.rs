//! Breadth-first search in the product of automaton and graph: all nodes that a path reaches from one node.
//!
//! # Shape
//! Each state of the automaton has a set of visited nodes ([`VisitedSet`]) in order of discovery, whose tail
//! is the frontier. [`AutomatonSearch::advance`] expands some hundred frontier nodes at once. Paths of a
//! bounded number of equal steps (`k/(k/k?)?`) share one set for all states: a node reached with fewer steps
//! reaches at least as far as with more, and the states are processed in order. In other automata a node is
//! not visited in a state if it has been visited in another one that accepts at least the same rests of
//! paths (it *simulates* the state): `(a/b)?/(a/b)?/(a/b)?` visits each node once after each `a`, as a
//! counter of the remaining repetitions would.
//! [`AutomatonSearch::begin_everywhere`] searches from all nodes at once: which nodes have a path, in time
//! linear in the statements.
//! # Cost
//! Each node is expanded once in each state: one segment call for a few hundred nodes and each move, then one
//! bit test for each neighbour ([`NodeSet`]). Closures are never materialised.
//! # Source
//! Glushkov automata (1961), built by the planner; regular path queries on compressed graphs: ZipG (SIGMOD
//! 2017) §4.3, which follows one edge at a time.

use crate::operators::search_graph::{SearchGraph, Transition};
use crate::pipeline::chain::Run;
use crate::pipeline::nodes::NodeSet;
use crate::plan::Automaton;
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter};

/// Number of nodes handled at once.
const CHUNK: usize = 512;

/// An insertion-ordered set of nodes.
#[derive(Default)]
pub(crate) struct VisitedSet {
    set: NodeSet,
    pub(crate) members: Vec<Id>,
    /// Number of expanded members.
    expanded: usize,
    /// Number of members that the caller has processed.
    pub(crate) seen: usize,
}

impl VisitedSet {
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.set.contains(id)
    }

    /// Inserts a node; `vertices`: number of vertices of the graph.
    pub(crate) fn insert(&mut self, id: Id, vertices: u64) {
        if self.set.insert(id, vertices) {
            self.members.push(id);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.set.clear(&self.members);
        self.members.clear();
        (self.expanded, self.seen) = (0, 0);
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.set.size_bytes() + 8 * self.members.capacity() as u64
    }
}

/// A search in one direction: from the start of the paths forwards, or from their ends backwards.
pub(crate) struct AutomatonSearch<'a> {
    graph: SearchGraph<'a>,
    /// Visited nodes by state.
    pub(crate) visited: Vec<VisitedSet>,
    keys: Vec<Id>,
    expansion: Expansion,
    /// Number of nodes expanded at once.
    chunk: usize,
    vertices: u64,
    counted_bytes: u64,
    /// Merged results, if several states accept.
    merged: VisitedSet,
    /// Whether all states after the first may share a set, and whether the current search does.
    is_chain: bool,
    shares: bool,
    /// For each state, the other states that simulate it.
    simulators: Vec<Vec<u16>>,
}

/// Maximum number of states and of transitions for which simulations are computed.
const SIMULATED_STATES_MAX: usize = 64;
const SIMULATED_TRANSITIONS_MAX: usize = 256;

impl<'a> AutomatonSearch<'a> {
    /// A search along the automaton; `backwards`: from the ends of paths.
    pub(crate) fn new(automaton: &Automaton, backwards: bool, run: &Run<'a>) -> Result<Self> {
        let graph = SearchGraph::new(automaton, backwards, run)?;
        let (states, chunk) = (graph.transitions.len(), graph.chunk());
        Ok(Self {
            simulators: simulators(&graph.transitions, &graph.ends, run)?,
            graph,
            visited: (0..states).map(|_| VisitedSet::default()).collect(),
            keys: Vec::new(),
            expansion: Expansion::new(4 * chunk),
            chunk,
            vertices: run.snapshot.vertex_count(),
            counted_bytes: 0,
            merged: VisitedSet::default(),
            is_chain: !backwards && is_chain(automaton),
            shares: false,
        })
    }

    /// Starts a search for all results from one node. States may then share a set, so the sets of single
    /// states are not meaningful; the caller reads [`AutomatonSearch::results`].
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn begin_all(&mut self, node: Id, run: &Run<'_>) -> Result<()> {
        self.begin(node, run)?;
        self.shares = self.is_chain;
        if self.shares {
            self.merged.clear();
            if self.graph.ends.contains(&0) {
                self.merged.insert(node, self.vertices);
            }
        }
        Ok(())
    }

    /// Restarts from one node.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn begin(&mut self, node: Id, run: &Run<'_>) -> Result<()> {
        run.control.work(self.visited.len())?;
        self.visited.iter_mut().for_each(VisitedSet::clear);
        self.shares = false;
        for &state in &self.graph.starts {
            self.visited[state].insert(node, self.vertices);
        }
        // The sets of many states take memory even with few nodes.
        self.recount(run)
    }

    /// Starts a search from all nodes at once, for the nodes that non-empty paths reach. `opposite`: the
    /// search in the other direction, whose segments have these nodes as neighbours.
    ///
    /// # Errors
    /// Limits; damaged segment.
    pub(crate) fn begin_everywhere(
        &mut self,
        opposite: &Self,
        graphs: &[GraphFilter],
        run: &Run<'_>,
    ) -> Result<()> {
        run.control.work(self.visited.len())?;
        self.visited.iter_mut().for_each(VisitedSet::clear);
        self.shares = false;
        let mut degrees = Vec::new();
        for &state in &self.graph.starts {
            for transition in &self.graph.transitions[state] {
                // The nodes after the first transition.
                for segment in &opposite.graph.segments[transition.segments] {
                    let mut from = Some(Id::UNBOUND);
                    while let Some(key) = from {
                        self.keys.clear();
                        from = segment.keys(key, CHUNK, &mut self.keys)?;
                        for &graph in graphs {
                            run.control.work(self.keys.len() + 1)?;
                            let filter = EntryFilter { graph, parallel: true };
                            segment.degrees(&self.keys, filter, &mut degrees)?;
                            for (&key, _) in self.keys.iter().zip(&degrees).filter(|(_, degree)| **degree > 0)
                            {
                                self.visited[transition.to].insert(key, self.vertices);
                            }
                        }
                    }
                }
            }
        }
        self.recount(run)
    }

    /// Whether entries of some segment are at other servers.
    pub(crate) fn is_remote(&self) -> bool {
        self.graph.is_remote()
    }

    /// Whether all paths are empty or one statement long.
    pub(crate) fn is_one_step(&self) -> bool {
        let SearchGraph { transitions, starts, ends, .. } = &self.graph;
        starts.as_slice() == [0]
            && transitions.iter().skip(1).all(Vec::is_empty)
            && transitions.iter().flatten().all(|one| one.to != 0 && ends.contains(&one.to))
    }

    /// The ends of the first transitions from each of these nodes, which are few, as (position of the node,
    /// end); with the nodes themselves where the empty path is one. Ascending and distinct.
    ///
    /// # Errors
    /// Limits; damaged segment.
    pub(crate) fn first_ends(
        &mut self,
        nodes: &[Id],
        graphs: &[GraphFilter],
        run: &Run<'_>,
        out: &mut Vec<(u32, Id)>,
    ) -> Result<()> {
        out.clear();
        if self.starts_accept() {
            out.extend((0..).zip(nodes.iter().copied()));
        }
        for transition in self.graph.starts.iter().flat_map(|state| &self.graph.transitions[*state]) {
            for segment in &self.graph.segments[transition.segments] {
                for &graph in graphs {
                    let filter = EntryFilter { graph, parallel: true };
                    let mut cursor = Cursor::default();
                    while cursor.row < nodes.len() {
                        self.expansion.clear();
                        segment.expand(nodes, filter, &mut cursor, &mut self.expansion)?;
                        run.control.work(self.expansion.len() + 1)?;
                        let found = self.expansion.rows.iter().zip(&self.expansion.neighbours);
                        out.extend(found.map(|(row, id)| (*row, *id)));
                        run.control.check_room(16 * out.capacity() as u64)?;
                    }
                }
            }
        }
        run.control.work(out.len())?;
        out.sort_unstable();
        out.dedup();
        Ok(())
    }

    /// Whether each of these nodes has an entry to move along from the start of a path.
    ///
    /// # Errors
    /// Limits; damaged segment.
    pub(crate) fn have_first_moves(
        &self,
        nodes: &[Id],
        graphs: &[GraphFilter],
        run: &Run<'_>,
    ) -> Result<Vec<bool>> {
        let mut have = vec![false; nodes.len()];
        let mut degrees = Vec::new();
        for transition in self.graph.starts.iter().flat_map(|state| &self.graph.transitions[*state]) {
            for segment in &self.graph.segments[transition.segments] {
                for &graph in graphs {
                    run.control.work(nodes.len() + 1)?;
                    degrees.clear();
                    segment.degrees(nodes, EntryFilter { graph, parallel: true }, &mut degrees)?;
                    have.iter_mut().zip(&degrees).for_each(|(have, degree)| *have |= *degree > 0);
                }
            }
        }
        Ok(have)
    }

    fn starts_accept(&self) -> bool {
        self.graph.starts.iter().any(|state| self.graph.ends.contains(state))
    }

    /// Size of the frontier.
    pub(crate) fn waiting(&self) -> usize {
        self.visited.iter().map(|visited| visited.members.len() - visited.expanded).sum()
    }

    /// Number of visited nodes, those visited in several states once for each.
    pub(crate) fn size(&self) -> usize {
        self.visited.iter().map(|visited| visited.members.len()).sum()
    }

    /// See [`SearchGraph::entries`].
    pub(crate) fn entries(&self) -> u64 {
        self.graph.entries()
    }

    /// Whether a path has ended at some node.
    pub(crate) fn has_ended(&self) -> bool {
        self.graph.ends.iter().any(|&state| !self.visited[state].members.is_empty())
    }

    /// Whether the search has reached a node other than the start.
    pub(crate) fn has_moved(&self) -> bool {
        let members: usize = self.visited.iter().map(|visited| visited.members.len()).sum();
        members > self.graph.starts.len()
    }

    /// Expands part of the frontier; `false`: the frontier is empty.
    pub(crate) fn advance(&mut self, graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        let Some(state) = (0..self.visited.len())
            .find(|&state| self.visited[state].expanded < self.visited[state].members.len())
        else {
            return Ok(false);
        };
        let visited = &mut self.visited[state];
        let end = visited.members.len().min(visited.expanded + self.chunk);
        self.keys.clear();
        // Computed terms occur in no statement.
        let known = visited.members[visited.expanded..end].iter().filter(|id| id.tag() != Tag::Computed);
        self.keys.extend(known);
        visited.expanded = end;
        for transition in &self.graph.transitions[state] {
            run.control.work(1)?;
            for segment in &self.graph.segments[transition.segments] {
                for &graph in graphs {
                    // A node counts once, for any number of statements that lead to it.
                    let filter = EntryFilter { graph, parallel: true };
                    let mut cursor = Cursor::default();
                    while cursor.row < self.keys.len() {
                        self.expansion.clear();
                        segment.expand(&self.keys, filter, &mut cursor, &mut self.expansion)?;
                        run.control.work(self.expansion.len() + 1)?;
                        let simulators = self.simulators[transition.to].as_slice();
                        let before = self.visited[transition.to].size_bytes() + self.merged.size_bytes();
                        if self.shares {
                            let new = self.merged.members.len();
                            for &neighbour in &self.expansion.neighbours {
                                self.merged.insert(neighbour, self.vertices);
                            }
                            let target = &mut self.visited[transition.to];
                            target.members.extend_from_slice(&self.merged.members[new..]);
                        } else if simulators.is_empty() {
                            let target = &mut self.visited[transition.to];
                            for &neighbour in &self.expansion.neighbours {
                                target.insert(neighbour, self.vertices);
                            }
                        } else {
                            run.control.work(self.expansion.len())?;
                            for &neighbour in &self.expansion.neighbours {
                                let visited =
                                    |state: &u16| self.visited[usize::from(*state)].contains(neighbour);
                                if !simulators.iter().any(visited) {
                                    self.visited[transition.to].insert(neighbour, self.vertices);
                                }
                            }
                        }
                        let after = self.visited[transition.to].size_bytes() + self.merged.size_bytes();
                        let bytes = self.counted_bytes + after - before;
                        run.control.recount(&mut self.counted_bytes, bytes)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Counts growth outside of the search: start nodes and merged results.
    fn recount(&mut self, run: &Run<'_>) -> Result<()> {
        let bytes = self.visited.iter().map(VisitedSet::size_bytes).sum::<u64>() + self.merged.size_bytes();
        run.control.recount(&mut self.counted_bytes, bytes)
    }

    /// Whether a path ends at the node.
    pub(crate) fn ends_at(&self, node: Id) -> bool {
        self.graph.ends.iter().any(|&state| self.visited[state].contains(node))
            || self.shares && self.merged.contains(node)
    }

    /// The distinct nodes at which paths end.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn results(&mut self, run: &Run<'_>) -> Result<&[Id]> {
        if !self.shares && self.graph.ends.len() > 1 {
            self.merged.clear();
            for &state in &self.graph.ends {
                for ids in self.visited[state].members.chunks(CHUNK) {
                    run.control.work(ids.len())?;
                    ids.iter().for_each(|&id| self.merged.insert(id, self.vertices));
                }
            }
            self.recount(run)?;
        }
        Ok(match self.graph.ends.as_slice() {
            _ if self.shares => &self.merged.members,
            [] => &[],
            [only] => &self.visited[*only].members,
            _ => &self.merged.members,
        })
    }
}

/// Whether each state leads to the next one by the same moves, and every state but the first accepts.
fn is_chain(automaton: &Automaton) -> bool {
    let Automaton { moves, accepting } = automaton;
    let steps = |state: usize| moves[state].iter().map(|(one, _)| one);
    moves.len() > 2
        && moves.last().is_some_and(Vec::is_empty)
        && accepting.iter().skip(1).all(|&accepting| accepting)
        && (0..moves.len() - 1).all(|state| {
            let leads_on = moves[state].iter().all(|(_, to)| usize::from(*to) == state + 1);
            leads_on && steps(state).eq(steps(0))
        })
}

/// For each state, the other states that simulate it: they end if it ends, and have each of its transitions,
/// to the same state or to one that simulates it. So a path that goes on from the state also goes on from
/// them. The greatest such relation; empty for large automata.
fn simulators(transitions: &[Vec<Transition>], ends: &[usize], run: &Run<'_>) -> Result<Vec<Vec<u16>>> {
    let states = transitions.len();
    let count: usize = transitions.iter().map(Vec::len).sum();
    if !(3..=SIMULATED_STATES_MAX).contains(&states) || count > SIMULATED_TRANSITIONS_MAX {
        return Ok(vec![Vec::new(); states]);
    }
    let bit = |state: usize| 1_u64 << state;
    let ending = ends.iter().fold(0, |set, &state| set | bit(state));
    // For each state, the set of those that may simulate it.
    let mut sets: Vec<u64> = (0..states)
        .map(|state| {
            let others = (0..states).filter(|other| ending & bit(state) == 0 || ending & bit(*other) != 0);
            others.fold(0, |set, other| set | bit(other))
        })
        .collect();
    loop {
        let mut changed = false;
        for state in 0..states {
            for other in (0..states).filter(|other| *other != state) {
                if sets[state] & bit(other) == 0 {
                    continue;
                }
                run.control.work(transitions[state].len() * transitions[other].len() + 1)?;
                let follows = |one: &Transition| {
                    let same =
                        |its: &Transition| its.segments == one.segments && sets[one.to] & bit(its.to) != 0;
                    transitions[other].iter().any(same)
                };
                if !transitions[state].iter().all(follows) {
                    sets[state] &= !bit(other);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let others = |state: usize| {
        let those = (0_u16..).take(states).filter(move |&other| usize::from(other) != state);
        those.filter(|&other| sets[state] & bit(usize::from(other)) != 0).collect()
    };
    Ok((0..states).map(others).collect())
}
