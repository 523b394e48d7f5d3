//! Reference evaluator of the algebra: bottom-up evaluation as defined by SPARQL 1.1 §18, over a list of
//! triples.

use super::run::value;
use std::collections::{BTreeMap, BTreeSet};
use vervet_algebra::{AggregateKind, Expression, Node, Pattern, Slot, Variable};
use vervet_model::{Id, inline_id};
use vervet_snapshot::Snapshot;

/// A solution.
pub type Solution = BTreeMap<Variable, Id>;

pub struct Evaluator<'a> {
    pub snapshot: &'a dyn Snapshot,
    pub triples: &'a [[Id; 3]],
}

pub fn compatible(a: &Solution, b: &Solution) -> bool {
    a.iter().all(|(variable, id)| b.get(variable).is_none_or(|other| other == id))
}

fn merged(a: &Solution, b: &Solution) -> Solution {
    a.iter().chain(b).map(|(variable, id)| (*variable, *id)).collect()
}

pub fn integer(number: u64) -> Id {
    inline_id(&number.to_string(), oxrdf::vocab::xsd::INTEGER.as_str()).unwrap()
}

impl Evaluator<'_> {
    fn join(&self, left: &[Solution], right: &[Solution]) -> Vec<Solution> {
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| compatible(a, b)).map(|(a, b)| merged(a, b)).collect()
    }

    fn pattern(&self, pattern: &Pattern) -> Vec<Solution> {
        let slots = [&pattern.subject, &pattern.predicate, &pattern.object];
        let fits = |triple: &[Id; 3]| {
            let mut solution = Solution::new();
            for (slot, id) in slots.iter().zip(triple) {
                match slot {
                    Slot::Constant(term) => {
                        if self.snapshot.lookup(term.as_ref()).unwrap() != Some(*id) {
                            return None;
                        }
                    }
                    Slot::Variable(variable) => {
                        if solution.insert(*variable, *id).is_some_and(|before| before != *id) {
                            return None;
                        }
                    }
                }
            }
            Some(solution)
        };
        self.triples.iter().filter_map(fits).collect()
    }

    fn holds(&self, condition: &Expression, solution: &Solution) -> bool {
        let lookup = |variable: Variable| solution.get(&variable).copied();
        super::run::truth(condition, &lookup, self.snapshot) == Some(true)
    }

    pub fn evaluate(&self, node: &Node) -> Vec<Solution> {
        match node {
            Node::Path(_) | Node::Service(_) => panic!("the queries of these tests have neither"),
            Node::Patterns(patterns) => patterns
                .iter()
                .fold(vec![Solution::new()], |all, pattern| self.join(&all, &self.pattern(pattern))),
            Node::Join(nodes) => {
                nodes.iter().fold(vec![Solution::new()], |all, node| self.join(&all, &self.evaluate(node)))
            }
            Node::LeftJoin { left, right, condition } => {
                let right = self.evaluate(right);
                let mut out = Vec::new();
                for a in self.evaluate(left) {
                    let before = out.len();
                    out.extend(right.iter().filter(|b| compatible(&a, b)).map(|b| merged(&a, b)).filter(
                        |both| condition.as_ref().is_none_or(|condition| self.holds(condition, both)),
                    ));
                    if out.len() == before {
                        out.push(a);
                    }
                }
                out
            }
            Node::Union(nodes) => nodes.iter().flat_map(|node| self.evaluate(node)).collect(),
            Node::Minus { left, right } => {
                let right = self.evaluate(right);
                let excludes =
                    |a: &Solution, b: &Solution| a.keys().any(|v| b.contains_key(v)) && compatible(a, b);
                let left = self.evaluate(left).into_iter();
                left.filter(|a| !right.iter().any(|b| excludes(a, b))).collect()
            }
            Node::Filter { input, condition } => {
                self.evaluate(input).into_iter().filter(|solution| self.holds(condition, solution)).collect()
            }
            Node::Extend { input, variable, expression } => self
                .evaluate(input)
                .into_iter()
                .map(|mut solution| {
                    let id = value(expression, &|variable| solution.get(&variable).copied(), self.snapshot);
                    if let Some(id) = id {
                        solution.insert(*variable, id);
                    }
                    solution
                })
                .collect(),
            Node::Values { variables, rows } => rows
                .iter()
                .map(|row| {
                    let pairs = variables.iter().zip(row);
                    pairs.filter_map(|(variable, term)| Some((*variable, self.id(term.as_ref()?)))).collect()
                })
                .collect(),
            Node::Group { input, keys, aggregates } => {
                let mut groups: BTreeMap<Solution, Vec<Solution>> = BTreeMap::new();
                if keys.is_empty() {
                    groups.insert(Solution::new(), Vec::new());
                }
                for solution in self.evaluate(input) {
                    let key =
                        solution.iter().filter(|(v, _)| keys.contains(v)).map(|(v, id)| (*v, *id)).collect();
                    groups.entry(key).or_default().push(solution);
                }
                let count = |of: &[Solution], variable: Option<Variable>, distinct: bool| match variable {
                    None if distinct => of.iter().collect::<BTreeSet<_>>().len(),
                    None => of.len(),
                    Some(variable) => {
                        let values = of.iter().filter_map(|solution| solution.get(&variable));
                        if distinct { values.collect::<BTreeSet<_>>().len() } else { values.count() }
                    }
                };
                groups
                    .into_iter()
                    .map(|(mut key, of)| {
                        for (variable, aggregate) in aggregates {
                            assert_eq!(aggregate.kind, AggregateKind::Count);
                            let counted = match &aggregate.expression {
                                None => None,
                                Some(Expression::Variable(variable)) => Some(*variable),
                                other => panic!("{other:?}"),
                            };
                            key.insert(*variable, integer(count(&of, counted, aggregate.distinct) as u64));
                        }
                        key
                    })
                    .collect()
            }
            Node::Project { input, variables } => {
                let visible = |solution: Solution| {
                    solution.into_iter().filter(|(variable, _)| variables.contains(variable)).collect()
                };
                self.evaluate(input).into_iter().map(visible).collect()
            }
            Node::Distinct(input) => {
                self.evaluate(input).into_iter().collect::<BTreeSet<_>>().into_iter().collect()
            }
            Node::Reduced(input) | Node::OrderBy { input, .. } => self.evaluate(input),
            Node::Slice { .. } => panic!("not in these tests"),
        }
    }

    fn id(&self, term: &oxrdf::Term) -> Id {
        super::run::id_of(term, self.snapshot)
    }
}
