//! Breadth-first search over pairs of a state and a node: what a path reaches from one node.
//!
//! # Shape
//! For each state of the automaton a set of nodes ([`Reached`]): those it has been reached with, in the order
//! in which they were found, of which the last ones wait to be followed. [`Search::advance`] follows some
//! hundred of them at once. Walks of at most so many equal steps (`k/(k/k?)?`) need one set for all states:
//! whoever was reached with fewer steps gets as far as with more, and the states are worked off in their
//! order.
//! # Cost
//! Each node is followed once in each state: one call of a segment for a few hundred nodes and each move,
//! then for each neighbour one test of a bit ([`NodeSet`]). No closure is ever materialised.
//! # Source
//! Automata as Glushkov made them (1961), in the planner; regular path queries on compressed graphs: ZipG
//! (SIGMOD 2017) §4.3, which follows one edge at a time.

use crate::chain::Run;
use crate::nodes::NodeSet;
use crate::plan::{Automaton, Move};
use rustc_hash::FxHashMap;
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter, Segment};

/// Nodes followed at once.
const CHUNK: usize = 512;

/// A set of nodes that remembers the order in which they came.
#[derive(Default)]
pub(crate) struct Reached {
    set: NodeSet,
    pub(crate) members: Vec<Id>,
    /// How many of them have been followed.
    followed: usize,
    /// How many of them somebody has looked at.
    pub(crate) seen: usize,
}

impl Reached {
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.set.contains(id)
    }

    /// Adds a node; `vertices`: how many there are in the graph.
    pub(crate) fn insert(&mut self, id: Id, vertices: u64) {
        if self.set.insert(id, vertices) {
            self.members.push(id);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.set.clear(&self.members);
        self.members.clear();
        (self.followed, self.seen) = (0, 0);
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.set.size_bytes() + 8 * self.members.capacity() as u64
    }
}

/// A move, by its place among those that differ, and the state that it leads to.
struct Way {
    segments: usize,
    to: usize,
}

/// A search in one direction: from the start of the paths forwards, or from their ends backwards.
pub(crate) struct Search<'a> {
    ways: Vec<Vec<Way>>,
    /// Of each different move. An automaton of 1,000 states may have a million moves, and few that differ.
    segments: Vec<Vec<&'a dyn Segment>>,
    starts: Vec<usize>,
    /// By state.
    pub(crate) reached: Vec<Reached>,
    ends: Vec<usize>,
    keys: Vec<Id>,
    expansion: Expansion,
    vertices: u64,
    counted_bytes: u64,
    /// The results, if several states end a path.
    merged: Reached,
    /// Whether all states after the first may share a set; and whether this search does.
    is_chain: bool,
    shares: bool,
}

impl<'a> Search<'a> {
    /// `backwards`: from the ends.
    pub(crate) fn new(automaton: &Automaton, backwards: bool, run: &Run<'a>) -> Result<Self> {
        let states = automaton.moves.len();
        assert_eq!(states, automaton.accepting.len(), "one mark for each state");
        let mut ways: Vec<Vec<Way>> = (0..states).map(|_| Vec::new()).collect();
        let mut of_moves: Vec<Vec<&'a dyn Segment>> = Vec::new();
        let mut places: FxHashMap<&Move, usize> = FxHashMap::default();
        for (from, moves) in automaton.moves.iter().enumerate() {
            run.control.work(moves.len())?;
            run.control.grow((moves.len() * size_of::<Way>()) as u64)?;
            for (one, to) in moves {
                let to = usize::from(*to);
                let (from, to) = if backwards { (to, from) } else { (from, to) };
                let place = match places.get(one) {
                    Some(&place) => place,
                    None => {
                        of_moves.push(segments(one, backwards, run)?);
                        places.insert(one, of_moves.len() - 1);
                        of_moves.len() - 1
                    }
                };
                ways[from].push(Way { segments: place, to });
            }
        }
        let accepting: Vec<usize> = (0..states).filter(|&state| automaton.accepting[state]).collect();
        let (starts, ends) = if backwards { (accepting, vec![0]) } else { (vec![0], accepting) };
        Ok(Self {
            ways,
            segments: of_moves,
            starts,
            reached: (0..states).map(|_| Reached::default()).collect(),
            ends,
            keys: Vec::new(),
            expansion: Expansion::new(4 * CHUNK),
            vertices: run.snapshot.vertex_count(),
            counted_bytes: 0,
            merged: Reached::default(),
            is_chain: !backwards && is_chain(automaton),
            shares: false,
        })
    }

    /// Starts a search for all that can be reached from one node: what is asked then are its results, not
    /// which states have what.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn begin_all(&mut self, node: Id, run: &Run<'_>) -> Result<()> {
        self.begin(node, run)?;
        self.shares = self.is_chain;
        if self.shares {
            self.merged.clear();
            if self.ends.contains(&0) {
                self.merged.insert(node, self.vertices);
            }
        }
        Ok(())
    }

    /// Starts anew from one node.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn begin(&mut self, node: Id, run: &Run<'_>) -> Result<()> {
        run.control.work(self.reached.len())?;
        self.reached.iter_mut().for_each(Reached::clear);
        self.shares = false;
        for &state in &self.starts {
            self.reached[state].insert(node, self.vertices);
        }
        // The sets of many states take memory however few nodes are in them.
        self.recount(run)
    }

    /// How many nodes wait to be followed.
    pub(crate) fn waiting(&self) -> usize {
        self.reached.iter().map(|reached| reached.members.len() - reached.followed).sum()
    }

    /// Whether anything but the start has been reached.
    pub(crate) fn has_moved(&self) -> bool {
        let members: usize = self.reached.iter().map(|reached| reached.members.len()).sum();
        members > self.starts.len()
    }

    /// Follows some of those that wait; `false`: there are none.
    pub(crate) fn advance(&mut self, graphs: &[GraphFilter], run: &Run<'_>) -> Result<bool> {
        let Some(state) = (0..self.reached.len())
            .find(|&state| self.reached[state].followed < self.reached[state].members.len())
        else {
            return Ok(false);
        };
        let reached = &mut self.reached[state];
        let end = reached.members.len().min(reached.followed + CHUNK);
        self.keys.clear();
        // A term that the query has made is in no statement.
        let known = reached.members[reached.followed..end].iter().filter(|id| id.tag() != Tag::Computed);
        self.keys.extend(known);
        reached.followed = end;
        for way in &self.ways[state] {
            run.control.work(1)?;
            for segment in &self.segments[way.segments] {
                for &graph in graphs {
                    // A node is reached once however many statements lead there.
                    let filter = EntryFilter { graph, parallel: true };
                    let mut cursor = Cursor::default();
                    while cursor.row < self.keys.len() {
                        self.expansion.clear();
                        segment.expand(&self.keys, filter, &mut cursor, &mut self.expansion)?;
                        run.control.work(self.expansion.len() + 1)?;
                        let target = &mut self.reached[way.to];
                        let before = target.size_bytes() + self.merged.size_bytes();
                        if self.shares {
                            let new = self.merged.members.len();
                            for &neighbour in &self.expansion.neighbours {
                                self.merged.insert(neighbour, self.vertices);
                            }
                            target.members.extend_from_slice(&self.merged.members[new..]);
                        } else {
                            for &neighbour in &self.expansion.neighbours {
                                target.insert(neighbour, self.vertices);
                            }
                        }
                        let after = target.size_bytes() + self.merged.size_bytes();
                        let bytes = self.counted_bytes + after - before;
                        run.control.recount(&mut self.counted_bytes, bytes)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Counts sets that have grown otherwise than by a search: its first nodes, and results put together.
    fn recount(&mut self, run: &Run<'_>) -> Result<()> {
        let bytes = self.reached.iter().map(Reached::size_bytes).sum::<u64>() + self.merged.size_bytes();
        run.control.recount(&mut self.counted_bytes, bytes)
    }

    /// Whether the node is where a path ends.
    pub(crate) fn ends_at(&self, node: Id) -> bool {
        self.ends.iter().any(|&state| self.reached[state].contains(node))
            || self.shares && self.merged.contains(node)
    }

    /// The nodes where paths end, each once.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn results(&mut self, run: &Run<'_>) -> Result<&[Id]> {
        if !self.shares && self.ends.len() > 1 {
            self.merged.clear();
            for &state in &self.ends {
                for ids in self.reached[state].members.chunks(CHUNK) {
                    run.control.work(ids.len())?;
                    ids.iter().for_each(|&id| self.merged.insert(id, self.vertices));
                }
            }
            self.recount(run)?;
        }
        Ok(match self.ends.as_slice() {
            _ if self.shares => &self.merged.members,
            [] => &[],
            [only] => &self.reached[*only].members,
            _ => &self.merged.members,
        })
    }
}

/// Whether each state leads to the next one by the same moves, and every state but the first ends a path.
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

fn segments<'a>(one: &Move, backwards: bool, run: &Run<'a>) -> Result<Vec<&'a dyn Segment>> {
    let turned = |direction: Direction| if backwards { direction.reverse() } else { direction };
    let mut all = Vec::new();
    match one {
        Move::Predicate(predicate, direction) => {
            all.extend(run.snapshot.segment(*predicate, turned(*direction))?);
        }
        Move::Except(these, direction) => {
            debug_assert!(these.is_sorted(), "excluded predicates ascend");
            for (predicate, _) in run.snapshot.predicates() {
                run.control.work(1)?;
                if these.binary_search(predicate).is_err() {
                    all.extend(run.snapshot.segment(*predicate, turned(*direction))?);
                }
            }
        }
    }
    run.control.grow((all.len() * size_of::<&dyn Segment>()) as u64)?;
    Ok(all)
}
