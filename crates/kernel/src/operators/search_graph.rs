//! The automaton of a path in one direction, with the segments of its moves.

use crate::pipeline::chain::Run;
use crate::plan::{Automaton, Move};
use rustc_hash::FxHashMap;
use vervet_model::{Direction, Result};
use vervet_snapshot::Segment;

/// Number of nodes expanded at once; over other servers, where each call is a round trip.
const CHUNK: usize = 512;
const REMOTE_CHUNK: usize = 8 * CHUNK;

/// A transition: index of its distinct move in [`SearchGraph::segments`], and target state.
#[derive(Clone, Copy)]
pub(crate) struct Transition {
    pub(crate) segments: usize,
    pub(crate) to: usize,
}

/// States, transitions and segments of a search: from the start of the paths forwards, or from their ends
/// backwards.
pub(crate) struct SearchGraph<'a> {
    /// By source state.
    pub(crate) transitions: Vec<Vec<Transition>>,
    /// Segments of each distinct move. An automaton of 1,000 states may have a million moves, few of them
    /// distinct.
    pub(crate) segments: Vec<Vec<&'a dyn Segment>>,
    /// The states in which a search starts.
    pub(crate) starts: Vec<usize>,
    /// The states in which a path may end.
    pub(crate) ends: Vec<usize>,
}

impl<'a> SearchGraph<'a> {
    /// The graph of a search along the automaton; `backwards`: from the ends of paths.
    ///
    /// # Errors
    /// Limits; damaged data.
    pub(crate) fn new(automaton: &Automaton, backwards: bool, run: &Run<'a>) -> Result<Self> {
        let states = automaton.moves.len();
        assert_eq!(states, automaton.accepting.len(), "one mark for each state");
        let mut transitions: Vec<Vec<Transition>> = (0..states).map(|_| Vec::new()).collect();
        let mut of_moves: Vec<Vec<&'a dyn Segment>> = Vec::new();
        let mut indexes: FxHashMap<&Move, usize> = FxHashMap::default();
        for (from, moves) in automaton.moves.iter().enumerate() {
            run.control.work(moves.len())?;
            run.control.grow((moves.len() * size_of::<Transition>()) as u64)?;
            for (one, to) in moves {
                let to = usize::from(*to);
                let (from, to) = if backwards { (to, from) } else { (from, to) };
                let index = match indexes.get(one) {
                    Some(&index) => index,
                    None => {
                        of_moves.push(segments(one, backwards, run)?);
                        indexes.insert(one, of_moves.len() - 1);
                        of_moves.len() - 1
                    }
                };
                transitions[from].push(Transition { segments: index, to });
            }
        }
        let accepting: Vec<usize> = (0..states).filter(|&state| automaton.accepting[state]).collect();
        let (starts, ends) = if backwards { (accepting, vec![0]) } else { (vec![0], accepting) };
        Ok(Self { transitions, segments: of_moves, starts, ends })
    }

    /// The same graph with one start state: if there are several, a new one with the transitions of all.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn with_one_start(mut self, run: &Run<'a>) -> Result<Self> {
        if self.starts.len() == 1 {
            return Ok(self);
        }
        let new = self.transitions.len();
        let mut of_all: Vec<(usize, usize)> = Vec::new();
        for &start in &self.starts {
            run.control.work(self.transitions[start].len() + 1)?;
            of_all.extend(self.transitions[start].iter().map(|one| (one.segments, one.to)));
        }
        of_all.sort_unstable();
        of_all.dedup();
        run.control.grow((of_all.len() * size_of::<Transition>()) as u64)?;
        let all = of_all.into_iter().map(|(segments, to)| Transition { segments, to });
        self.transitions.push(all.collect());
        if self.starts.iter().any(|start| self.ends.contains(start)) {
            self.ends.push(new);
        }
        self.starts = vec![new];
        Ok(self)
    }

    /// Whether entries of some segment are at other servers.
    pub(crate) fn is_remote(&self) -> bool {
        self.segments.iter().flatten().any(|segment| segment.is_remote(None))
    }

    /// Number of nodes that searches expand at once.
    pub(crate) fn chunk(&self) -> usize {
        if self.is_remote() { REMOTE_CHUNK } else { CHUNK }
    }

    /// Number of entries of all segments: an upper bound on the work of a search, up to the number of states.
    pub(crate) fn entries(&self) -> u64 {
        let of_move = |segments: &Vec<&dyn Segment>| {
            segments.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.statistics().entries))
        };
        self.segments.iter().map(of_move).fold(0, u64::saturating_add)
    }
}

fn segments<'a>(one: &Move, backwards: bool, run: &Run<'a>) -> Result<Vec<&'a dyn Segment>> {
    let reversed = |direction: Direction| if backwards { direction.reverse() } else { direction };
    let mut all = Vec::new();
    match one {
        Move::Predicate(predicate, direction) => {
            all.extend(run.snapshot.segment(*predicate, reversed(*direction))?);
        }
        Move::Except(these, direction) => {
            debug_assert!(these.is_sorted(), "excluded predicates ascend");
            for (predicate, _) in run.snapshot.predicates() {
                run.control.work(1)?;
                if these.binary_search(predicate).is_err() {
                    all.extend(run.snapshot.segment(*predicate, reversed(*direction))?);
                }
            }
        }
    }
    run.control.grow((all.len() * size_of::<&dyn Segment>()) as u64)?;
    Ok(all)
}
