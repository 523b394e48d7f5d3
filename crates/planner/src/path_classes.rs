//! Classes of the nodes of a path: which classes its ends may have, and whether there is a path at all.
//!
//! # Invariants
//! The sets are supersets: only predicates without changes narrow them, and no vertex changes its class
//! before the store is built again (`domain.rs` rests on the same facts).

use crate::classes::ClassSet;
use crate::lower::Planner;
use crate::path_facts::PathClasses;
use vervet_kernel::plan::{Automaton, Move};
use vervet_model::Result;

/// The classes of neighbours by those of the keys of one move.
struct MovePairs<'s> {
    from: usize,
    to: usize,
    /// `None`: any class leads to any other one.
    pairs: Option<&'s [vervet_snapshot::ClassPairCount]>,
}

impl MovePairs<'_> {
    /// The classes of targets whose sources are in `of`; `backwards`: of sources whose targets are.
    fn step(&self, of: &ClassSet, backwards: bool) -> ClassSet {
        if of.is_empty() {
            return ClassSet::EMPTY;
        }
        let Some(pairs) = self.pairs else { return ClassSet::ALL };
        let ends = pairs.iter().map(|pair| match backwards {
            false => (pair.source, pair.target),
            true => (pair.target, pair.source),
        });
        ends.filter(|(from, _)| of.contains(*from)).map(|(_, to)| to).collect()
    }
}

impl Planner<'_> {
    /// The classes of the ends of a path.
    pub(crate) fn path_classes(&self, automaton: &Automaton) -> Result<PathClasses> {
        if !self.options.inference || automaton.accepting.first() == Some(&true) {
            return Ok(PathClasses { first: ClassSet::ALL, last: ClassSet::ALL });
        }
        let mut moves = Vec::new();
        for (from, of_state) in automaton.moves.iter().enumerate() {
            for (one, to) in of_state {
                let to = usize::from(*to);
                match one {
                    Move::Predicate(predicate, direction) => {
                        let segment = self.snapshot.segment(*predicate, *direction)?;
                        let reverse = self.snapshot.segment(*predicate, direction.reverse())?;
                        let pairs = match (segment, reverse) {
                            (None, None) => Some(&[][..]),
                            (Some(segment), Some(reverse))
                                if segment.statistics().exact && reverse.statistics().exact =>
                            {
                                Some(&*segment.statistics().class_pairs)
                            }
                            _ => None,
                        };
                        moves.push(MovePairs { from, to, pairs });
                    }
                    Move::Except(..) => moves.push(MovePairs { from, to, pairs: None }),
                }
            }
        }
        let states = automaton.moves.len();
        let start = |state: usize| if state == 0 { ClassSet::ALL } else { ClassSet::EMPTY };
        let end = |state: usize| if automaton.accepting[state] { ClassSet::ALL } else { ClassSet::EMPTY };
        let forwards = self.fixpoint(&moves, (0..states).map(start).collect(), false)?;
        let backwards = self.fixpoint(&moves, (0..states).map(end).collect(), true)?;
        let last = (0..states).filter(|state| automaton.accepting[*state]);
        let last = last.fold(ClassSet::EMPTY, |all, state| all.union(&forwards[state]));
        Ok(PathClasses { first: backwards[0], last })
    }

    /// The classes that each state has in the end.
    fn fixpoint(
        &self,
        moves: &[MovePairs<'_>],
        mut classes: Vec<ClassSet>,
        backwards: bool,
    ) -> Result<Vec<ClassSet>> {
        // The classes of the source of each move when it was last followed.
        let mut followed = vec![ClassSet::EMPTY; moves.len()];
        loop {
            let mut changed = false;
            for (one, followed) in moves.iter().zip(&mut followed) {
                let (from, to) = if backwards { (one.to, one.from) } else { (one.from, one.to) };
                if *followed == classes[from] {
                    continue;
                }
                *followed = classes[from];
                self.control.work(one.pairs.map_or(1, <[_]>::len))?;
                let wider = classes[to].union(&one.step(followed, backwards));
                changed |= wider != classes[to];
                classes[to] = wider;
            }
            if !changed {
                return Ok(classes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_snapshot::{ClassId, ClassPairCount};

    #[test]
    fn a_step_follows_the_pairs_of_classes() {
        let pair =
            |source, target| ClassPairCount { source: ClassId(source), target: ClassId(target), entries: 1 };
        let pairs = [pair(3, 4), pair(5, 6)];
        let one = MovePairs { from: 0, to: 1, pairs: Some(&pairs) };
        let set = |class| [ClassId(class)].into_iter().collect::<ClassSet>();
        assert!(one.step(&set(3), false) == set(4));
        assert!(one.step(&set(6), true) == set(5));
        assert!(one.step(&set(4), false).is_empty());
        let any = MovePairs { pairs: None, ..one };
        assert!(any.step(&set(4), false) == ClassSet::ALL);
        assert!(any.step(&ClassSet::EMPTY, false).is_empty());
    }
}
