//! Aggregates answered from statistics, without data access.

use crate::kinds::{KindCondition, TermKinds};
use crate::lower::Planner;
use crate::scope::possible;
use vervet_algebra::{Aggregate, AggregateKind, Expression, GraphSlot, Node, Pattern, Slot, Variable};
use vervet_model::{Direction, Id, Result, inline_id};
use vervet_snapshot::{ClassId, EntryFilter, GraphFilter};

const XSD_INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// Exact counts of the solutions of one pattern.
struct PatternCounts {
    solutions: u64,
    /// Number of distinct values of each variable.
    distinct: Vec<(Variable, u64)>,
}

impl Planner<'_> {
    /// The values of all `aggregates` over all solutions of `input`, if they are counts that the statistics
    /// contain exactly.
    pub(crate) fn known_counts(
        &self,
        input: &Node,
        aggregates: &[(Variable, Aggregate)],
    ) -> Result<Option<Vec<Id>>> {
        if !self.options.known_counts || aggregates.iter().any(|(_, one)| one.kind != AggregateKind::Count) {
            return Ok(None);
        }
        let mut conditions = Vec::new();
        let Some(pattern) = single_pattern(input, &mut conditions) else { return Ok(None) };
        let counts = match conditions.is_empty() {
            true => self.count_pattern(pattern)?,
            false => self.count_kinds(pattern, &conditions)?,
        };
        let Some(counts) = counts else { return Ok(None) };
        let mut values = Vec::with_capacity(aggregates.len());
        for (_, aggregate) in aggregates {
            let count = match &aggregate.expression {
                // A projection may hide a variable in which solutions differ.
                None => {
                    let visible = possible(input);
                    let is_whole = pattern.variables().all(|variable| visible.contains(variable));
                    (is_whole || !aggregate.distinct).then_some(counts.solutions)
                }
                Some(Expression::Variable(variable)) => counts
                    .distinct
                    .iter()
                    .find(|(of, _)| of == variable)
                    .map(|(_, distinct)| if aggregate.distinct { *distinct } else { counts.solutions }),
                Some(_) => None,
            };
            match count.and_then(|count| inline_id(&count.to_string(), XSD_INTEGER)) {
                Some(id) => values.push(id),
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    fn count_pattern(&self, pattern: &Pattern) -> Result<Option<PatternCounts>> {
        let graph = match pattern.graph {
            GraphSlot::Default => GraphFilter::Default,
            GraphSlot::Any => GraphFilter::Any,
            GraphSlot::Named(_) | GraphSlot::Variable(_) => return Ok(None),
        };
        let bound_outside = pattern.variables().any(|variable| self.parameters.contains(variable));
        if pattern.edge.is_some() || bound_outside {
            return Ok(None);
        }
        let lookup = |slot: &Slot| match slot {
            Slot::Constant(term) => Ok(self.snapshot.lookup(term.as_ref())?.ok_or(())),
            Slot::Variable(_) => Result::Ok(Err(())),
        };
        let zero = || PatternCounts {
            solutions: 0,
            distinct: pattern.variables().map(|variable| (variable, 0)).collect(),
        };
        match (&pattern.subject, &pattern.predicate, &pattern.object) {
            (Slot::Variable(s), Slot::Variable(p), Slot::Variable(o)) if s != p && p != o && s != o => {
                let plain = self.snapshot.graphs().is_empty() && self.snapshot.edge_count() == 0;
                Ok(plain.then(|| PatternCounts {
                    solutions: self.snapshot.statement_count(),
                    distinct: vec![(*p, self.snapshot.predicates().len() as u64)],
                }))
            }
            (subject, predicate @ Slot::Constant(_), object) => {
                let Ok(predicate) = lookup(predicate)? else { return Ok(Some(zero())) };
                let Some(segment) = self.snapshot.segment(predicate, Direction::Out)? else {
                    let any = self.snapshot.segment(predicate, Direction::In)?.is_some();
                    return Ok((!any).then(zero));
                };
                let statistics = segment.statistics();
                // Equal statements count once unless the pattern counts parallel statements.
                let repeats = statistics.has_parallel && !pattern.parallel;
                if repeats || statistics.has_named_graphs || !statistics.exact {
                    return Ok(None);
                }
                let (key, other, direction) = match (subject, object) {
                    (Slot::Variable(s), Slot::Variable(o)) if s != o => {
                        return Ok(Some(PatternCounts {
                            solutions: statistics.entries,
                            distinct: vec![(*s, statistics.keys), (*o, statistics.neighbours)],
                        }));
                    }
                    (key @ Slot::Constant(_), Slot::Variable(o)) => (key, *o, Direction::Out),
                    (Slot::Variable(s), key @ Slot::Constant(_)) => (key, *s, Direction::In),
                    _ => return Ok(None),
                };
                let Ok(key) = lookup(key)? else { return Ok(Some(zero())) };
                let Some(segment) = self.snapshot.segment(predicate, direction)? else { return Ok(None) };
                let mut degrees = Vec::new();
                segment.degrees(&[key], EntryFilter { graph, parallel: pattern.parallel }, &mut degrees)?;
                let degree = degrees.first().copied().unwrap_or_default();
                let distinct = if statistics.has_parallel { Vec::new() } else { vec![(other, degree)] };
                Ok(Some(PatternCounts { solutions: degree, distinct }))
            }
            _ => Ok(None),
        }
    }

    /// The solutions of `pattern` that satisfy conditions on the kinds of its terms, such as `isLiteral(?o)`.
    fn count_kinds(&self, pattern: &Pattern, conditions: &[&Expression]) -> Result<Option<PatternCounts>> {
        let is_open = match (&pattern.subject, &pattern.predicate, &pattern.object) {
            (Slot::Variable(s), Slot::Variable(p), Slot::Variable(o)) => s != p && p != o && s != o,
            (Slot::Variable(s), Slot::Constant(_), Slot::Variable(o)) => s != o,
            _ => false,
        };
        // Its conditions, and all counts except those of kinds, are those of the pattern alone.
        let (true, Some(all)) = (is_open, self.count_pattern(pattern)?) else { return Ok(None) };
        let count = |solutions| Ok(Some(PatternCounts { solutions, distinct: Vec::new() }));
        if all.solutions == 0 {
            return count(0);
        }
        let kinds = TermKinds {
            blanks: self.snapshot.may_have_blanks(),
            triples: self.snapshot.may_have_triple_terms(),
        };
        let condition = KindCondition { pattern, conditions };
        let (Some(on_vertices), Some(on_literals)) =
            (condition.truth(kinds, kinds.of_vertices()), condition.truth(kinds, kinds.of_literals()))
        else {
            return Ok(None);
        };
        if on_vertices == on_literals {
            return count(if on_vertices { all.solutions } else { 0 });
        }
        let mut literals = 0_u64;
        let mut add = |predicate: Id| -> Result<Option<()>> {
            let Some(segment) = self.snapshot.segment(predicate, Direction::Out)? else { return Ok(None) };
            let statistics = segment.statistics();
            if !statistics.exact {
                return Ok(None);
            }
            let of_literals = statistics.class_pairs.iter().filter(|pair| pair.target == ClassId::LITERAL);
            literals += of_literals.map(|pair| pair.entries).sum::<u64>();
            Ok(Some(()))
        };
        match &pattern.predicate {
            Slot::Constant(term) => {
                let Some(predicate) = self.snapshot.lookup(term.as_ref())? else { return Ok(None) };
                if add(predicate)?.is_none() {
                    return Ok(None);
                }
            }
            Slot::Variable(_) => {
                for (predicate, _) in self.snapshot.predicates() {
                    self.control.check()?;
                    if add(*predicate)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        count(if on_literals { literals } else { all.solutions.saturating_sub(literals) })
    }

    /// Whether the solutions of `node`, lowered under set semantics, are provably distinct.
    ///
    /// A graph is a set, and so are the pairs of a path: their joins have distinct solutions if all variables
    /// are visible, or if a path tests a hidden end that nothing else mentions.
    pub(crate) fn is_set(&self, node: &Node) -> bool {
        let (input, visible) = match node {
            Node::Project { input, variables } => (&**input, Some(variables)),
            node => (node, None),
        };
        let is_visible = |variable: &Variable| visible.is_none_or(|visible| visible.contains(variable));
        let nodes = match input {
            Node::Distinct(_) | Node::Group { .. } => return visible.is_none(),
            Node::Patterns(_) | Node::Path(_) => std::slice::from_ref(input),
            Node::Join(nodes) => nodes,
            _ => return false,
        };
        let mentions = |variable: Variable| {
            nodes.iter().map(|node| usize::from(possible(node).contains(variable))).sum::<usize>()
        };
        let is_one_graph = |graph: &GraphSlot| match graph {
            GraphSlot::Default | GraphSlot::Named(_) | GraphSlot::Variable(_) => true,
            GraphSlot::Any => self.snapshot.graphs().is_empty(),
        };
        nodes.iter().all(|node| match node {
            Node::Patterns(patterns) => patterns.iter().all(|pattern| {
                is_one_graph(&pattern.graph)
                    && !pattern.parallel
                    && (pattern.edge.is_none())
                    && pattern.variables().all(|variable| is_visible(&variable))
            }),
            Node::Path(path) => {
                let is_tested = |variable| {
                    self.stable
                        && self.options.frontiers
                        && path.subject != path.object
                        && mentions(variable) == 1
                };
                path.graph_variable().is_none_or(|graph| is_visible(&graph))
                    && path.ends().all(|end| is_visible(&end) || is_tested(end))
            }
            _ => false,
        })
    }
}

/// The only pattern of `node`; the conditions on its solutions are appended to `conditions`.
fn single_pattern<'n>(node: &'n Node, conditions: &mut Vec<&'n Expression>) -> Option<&'n Pattern> {
    match node {
        Node::Patterns(patterns) => match patterns.as_slice() {
            [pattern] => Some(pattern),
            _ => None,
        },
        Node::Join(nodes) => match nodes.as_slice() {
            [node] => single_pattern(node, conditions),
            _ => None,
        },
        Node::Project { input, .. } | Node::Reduced(input) => single_pattern(input, conditions),
        Node::Filter { input, condition } => {
            conditions.push(condition);
            single_pattern(input, conditions)
        }
        _ => None,
    }
}
