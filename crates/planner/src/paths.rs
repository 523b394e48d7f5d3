//! Paths: automata and estimates.
//!
//! The automaton is Glushkov's: a state for each place of the path where a predicate stands, which is reached by walking
//! such a statement, and one to start from; then states that nothing tells apart are one. So `p*` has one state, `p+` two.

use crate::cost;
use crate::flow::Flow;
use crate::lower::Planner;
use vervet_algebra::{GraphSlot, Path, PathPattern, Slot};
use vervet_kernel::plan::{Automaton, Move, Operand, PathGraphs, PathStep, Step};
use vervet_model::{Direction, Error, ErrorKind, Result};
use vervet_snapshot::GraphFilter;

/// Places of one path where a predicate stands.
pub(crate) const PATH_PLACES_MAX: usize = 1_000;

/// Steps from one node that an estimate looks ahead.
const STEPS_ESTIMATED: i32 = 6;

/// What a part of a path looks like from outside: places as numbers of states.
struct Part {
    nullable: bool,
    first: Vec<u16>,
    last: Vec<u16>,
}

struct Builder<'p, 'a> {
    planner: &'p Planner<'a>,
    /// By state; the start, 0, is entered by nothing. `None`: no statement is like that.
    entered: Vec<Option<Move>>,
    follow: Vec<Vec<u16>>,
}

impl Builder<'_, '_> {
    fn place(&mut self, entered: Option<Move>) -> Result<Part> {
        if self.entered.len() > PATH_PLACES_MAX {
            let message = format!("a property path has more than {PATH_PLACES_MAX} predicates");
            return Err(Error::new(ErrorKind::Query, message));
        }
        let state = u16::try_from(self.entered.len()).unwrap_or(u16::MAX);
        self.entered.push(entered);
        self.follow.push(Vec::new());
        Ok(Part { nullable: false, first: vec![state], last: vec![state] })
    }

    fn part(&mut self, path: &Path, direction: Direction) -> Result<Part> {
        match path {
            Path::Predicate(iri) => {
                let id = self.planner.snapshot.lookup(iri.as_ref().into())?;
                self.place(id.map(|id| Move::Predicate(id, direction)))
            }
            Path::Except(these) => {
                let mut ids = Vec::with_capacity(these.len());
                for iri in these {
                    ids.extend(self.planner.snapshot.lookup(iri.as_ref().into())?);
                }
                self.place(Some(Move::Except(ids, direction)))
            }
            Path::Inverse(path) => self.part(path, direction.reverse()),
            Path::Sequence(parts) => {
                let mut all = Part { nullable: true, first: Vec::new(), last: Vec::new() };
                let in_order: Vec<&Path> = match direction {
                    Direction::Out => parts.iter().collect(),
                    Direction::In => parts.iter().rev().collect(),
                };
                for path in in_order {
                    let next = self.part(path, direction)?;
                    self.connect(&all.last, &next.first);
                    if all.nullable {
                        all.first.extend_from_slice(&next.first);
                    }
                    if !next.nullable {
                        all.last.clear();
                    }
                    all.last.extend_from_slice(&next.last);
                    all.nullable &= next.nullable;
                }
                Ok(all)
            }
            Path::Alternative(parts) => {
                let mut all = Part { nullable: false, first: Vec::new(), last: Vec::new() };
                for path in parts {
                    let other = self.part(path, direction)?;
                    all.nullable |= other.nullable;
                    all.first.extend(other.first);
                    all.last.extend(other.last);
                }
                Ok(all)
            }
            Path::ZeroOrOne(path) => Ok(Part { nullable: true, ..self.part(path, direction)? }),
            Path::ZeroOrMore(path) => Ok(Part { nullable: true, ..self.repeated(path, direction)? }),
            Path::OneOrMore(path) => self.repeated(path, direction),
        }
    }

    fn repeated(&mut self, path: &Path, direction: Direction) -> Result<Part> {
        let part = self.part(path, direction)?;
        self.connect(&part.last, &part.first);
        Ok(part)
    }

    fn connect(&mut self, from: &[u16], to: &[u16]) {
        for &from in from {
            let follow = &mut self.follow[usize::from(from)];
            follow.extend_from_slice(to);
            follow.sort_unstable();
            follow.dedup();
        }
    }
}

/// Makes states one that nothing tells apart, until there are none.
fn merge_states(automaton: &mut Automaton) {
    loop {
        let states = automaton.moves.len();
        let twin = (1..states).find_map(|state| {
            let same = |other: usize| {
                automaton.accepting[other] == automaton.accepting[state]
                    && automaton.moves[other] == automaton.moves[state]
            };
            (0..state).find(|&other| same(other)).map(|other| (other, state))
        });
        let Some((kept, gone)) = twin else { return };
        automaton.moves.remove(gone);
        automaton.accepting.remove(gone);
        for moves in &mut automaton.moves {
            for (_, to) in &mut *moves {
                let old = usize::from(*to);
                let new = if old == gone { kept } else { old - usize::from(old > gone) };
                *to = u16::try_from(new).unwrap_or(u16::MAX);
            }
            let mut unique = Vec::with_capacity(moves.len());
            for one in moves.drain(..) {
                if !unique.contains(&one) {
                    unique.push(one);
                }
            }
            *moves = unique;
        }
    }
}

impl Planner<'_> {
    pub(crate) fn automaton(&self, path: &Path) -> Result<Automaton> {
        let mut builder = Builder { planner: self, entered: vec![None], follow: vec![Vec::new()] };
        let whole = builder.part(path, Direction::Out)?;
        let Builder { entered, mut follow, .. } = builder;
        follow[0] = whole.first;
        let mut accepting = vec![false; entered.len()];
        accepting[0] = whole.nullable;
        whole.last.iter().for_each(|&state| accepting[usize::from(state)] = true);
        let moves = (follow.iter())
            .map(|follow| {
                let enter = |&to: &u16| entered[usize::from(to)].clone().map(|entered| (entered, to));
                follow.iter().filter_map(enter).collect()
            })
            .collect();
        let mut automaton = Automaton { moves, accepting };
        merge_states(&mut automaton);
        Ok(automaton)
    }

    /// Joins `flow` with the ends of a path.
    pub(crate) fn lower_path(&mut self, pattern: &PathPattern, flow: &mut Flow) -> Result<()> {
        let automaton = self.automaton(&pattern.path)?;
        let graphs = match pattern.graph_variable() {
            Some(variable) => PathGraphs::Variable(variable),
            None => {
                let mut filters = Vec::with_capacity(pattern.graphs.len());
                for graph in &pattern.graphs {
                    match graph {
                        GraphSlot::Default => filters.push(GraphFilter::Default),
                        GraphSlot::Any => filters.push(GraphFilter::Any),
                        GraphSlot::Named(name) => {
                            let id = self.snapshot.lookup(name.as_ref().into())?;
                            filters.extend(id.map(GraphFilter::Named));
                        }
                        GraphSlot::Variable(_) => {
                            return Err(Error::internal("a path in several graphs, one of them a variable"));
                        }
                    }
                }
                PathGraphs::These(filters)
            }
        };
        let mut end = |slot: &Slot| {
            Ok(match slot {
                Slot::Constant(term) => (Operand::Constant(self.value(term)?), true),
                Slot::Variable(variable) => {
                    (Operand::Variable(*variable), self.parameters.contains(*variable))
                }
            })
        };
        let (subject, subject_stands) = end(&pattern.subject)?;
        let (object, object_stands) = end(&pattern.object)?;
        let (rows, cost) = self.path_estimate(&automaton, [subject, object], flow)?;
        flow.cost += cost;
        let step = PathStep {
            subject,
            object,
            path: pattern.path.clone(),
            automaton,
            graphs,
            stand_alone: [subject_stands, object_stands],
        };
        flow.push(Step::Path(step), rows);
        let variables = pattern.variables().collect();
        flow.possible.add_all(&variables);
        flow.certain.add_all(&variables);
        Ok(())
    }

    /// Rows after a path, and what finding them costs.
    fn path_estimate(&self, automaton: &Automaton, ends: [Operand; 2], flow: &Flow) -> Result<(f64, f64)> {
        let is_bound = |operand: Operand| match operand {
            Operand::Constant(_) => true,
            Operand::Variable(variable) => flow.certain.contains(variable),
        };
        let forwards = self.reach(automaton, false)?;
        let backwards = self.reach(automaton, true)?;
        let all = self.snapshot.vertex_count().max(1) as f64;
        Ok(match ends.map(is_bound) {
            [true, true] => {
                let least = if forwards.cost < backwards.cost { forwards } else { backwards };
                let passed = (least.nodes / all).clamp(0.1, 0.9);
                // The search from the cheaper end ends where they meet.
                (flow.rows * passed, flow.rows * (4.0 * least.cost / least.nodes.sqrt().max(4.0)))
            }
            [true, false] => (flow.rows * forwards.nodes, flow.rows * (cost::MATCH_ROW + forwards.cost)),
            [false, true] => (flow.rows * backwards.nodes, flow.rows * (cost::MATCH_ROW + backwards.cost)),
            [false, false] => {
                let starts = if automaton.accepting.first() == Some(&true) { all } else { forwards.starts };
                let rows = flow.rows * starts;
                (rows * forwards.nodes, rows * (cost::MATCH_ROW + forwards.cost))
            }
        })
    }

    /// What a search from one node reaches: as many nodes as [`STEPS_ESTIMATED`] steps with mean degrees lead to, and in each state
    /// not more than there are at the ends of its moves.
    pub(crate) fn reach(&self, automaton: &Automaton, backwards: bool) -> Result<Reach> {
        let states = automaton.moves.len();
        // From and to which state, entries, keys, and ends.
        let mut ways: Vec<(usize, usize, f64, f64, f64)> = Vec::new();
        for (from, moves) in automaton.moves.iter().enumerate() {
            for (one, to) in moves {
                let (entries, keys, ends) = self.move_counts(one)?;
                let to = usize::from(*to);
                ways.push(match backwards {
                    false => (from, to, entries, keys, ends),
                    true => (to, from, entries, ends, keys),
                });
            }
        }
        let starts = |state: usize| if backwards { automaton.accepting[state] } else { state == 0 };
        let is_end = |state: usize| if backwards { state == 0 } else { automaton.accepting[state] };
        let most = |state: usize| {
            let into = ways.iter().filter(|way| way.1 == state);
            into.map(|way| way.4).sum::<f64>() + f64::from(u8::from(starts(state)))
        };
        let most: Vec<f64> = (0..states).map(most).collect();
        let mut now: Vec<f64> = (0..states).map(|state| f64::from(u8::from(starts(state)))).collect();
        let (mut reached, mut cost) = (now.clone(), 0.0);
        for _ in 0..STEPS_ESTIMATED {
            let mut next = vec![0.0; states];
            for &(from, to, entries, keys, _) in &ways {
                let found = now[from] * entries / keys.max(1.0);
                cost += now[from] * cost::EXPAND_ROW + found * cost::OUTPUT_ROW;
                next[to] += found;
            }
            for state in 0..states {
                // What has been reached before is not followed again.
                let new = next[state].min(most[state] - reached[state]).max(0.0);
                reached[state] += new;
                now[state] = new;
            }
        }
        // States may share nodes: at most as many as the one with most.
        let ends = (0..states).filter(|&state| is_end(state));
        let (nodes, most) =
            ends.fold((0.0, 0.0_f64), |(nodes, all), state| (nodes + reached[state], all.max(most[state])));
        let of_start = ways.iter().filter(|way| starts(way.0)).map(|way| way.3).sum();
        Ok(Reach { nodes: nodes.min(most), most, cost, starts: of_start })
    }

    /// Entries, keys and ends of the statements of a move.
    fn move_counts(&self, one: &Move) -> Result<(f64, f64, f64)> {
        let (mut entries, mut keys, mut ends) = (0.0, 0.0, 0.0);
        let mut add = |predicate, direction: Direction| {
            let side = |direction| self.snapshot.segment(predicate, direction);
            if let (Some(segment), Some(other)) = (side(direction)?, side(direction.reverse())?) {
                entries += segment.statistics().entries as f64;
                keys += segment.statistics().keys as f64;
                ends += other.statistics().keys as f64;
            }
            Ok::<_, Error>(())
        };
        match one {
            Move::Predicate(predicate, direction) => add(*predicate, *direction)?,
            Move::Except(these, direction) => {
                for (predicate, _) in self.snapshot.predicates() {
                    if !these.contains(predicate) {
                        add(*predicate, *direction)?;
                    }
                }
            }
        }
        Ok((entries, keys, ends))
    }
}

/// An estimate of what a search from one node does.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// Nodes where paths end.
    nodes: f64,
    /// The same, from any number of nodes.
    pub(crate) most: f64,
    /// In ns.
    cost: f64,
    /// Nodes from which the first move leads anywhere.
    starts: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut automaton: Automaton, states: usize) {
        merge_states(&mut automaton);
        assert_eq!(automaton.moves.len(), states);
        assert_eq!(automaton.accepting.len(), states);
        assert!(automaton.moves.iter().flatten().all(|(_, to)| usize::from(*to) < states));
    }

    #[test]
    fn states_that_nothing_tells_apart_are_one() {
        let step = |to| (Move::Except(Vec::new(), Direction::Out), to);
        let any = Automaton { moves: vec![vec![step(1)], vec![step(1)]], accepting: vec![true, true] };
        check(any, 1);
        let some = Automaton { moves: vec![vec![step(1)], vec![step(1)]], accepting: vec![false, true] };
        check(some, 2);
    }
}
