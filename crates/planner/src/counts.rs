//! Aggregates answered from statistics, without data access.

use crate::lower::Planner;
use crate::scope::possible;
use vervet_algebra::{Aggregate, AggregateKind, Expression, GraphSlot, Node, Pattern, Slot, Variable};
use vervet_model::{Direction, Id, Result, inline_id};
use vervet_snapshot::{EntryFilter, GraphFilter};

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
        let Some(pattern) = single_pattern(input) else { return Ok(None) };
        let Some(counts) = self.count_pattern(pattern)? else { return Ok(None) };
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

fn single_pattern(node: &Node) -> Option<&Pattern> {
    match node {
        Node::Patterns(patterns) => match patterns.as_slice() {
            [pattern] => Some(pattern),
            _ => None,
        },
        Node::Join(nodes) => match nodes.as_slice() {
            [node] => single_pattern(node),
            _ => None,
        },
        Node::Project { input, .. } | Node::Reduced(input) => single_pattern(input),
        _ => None,
    }
}
