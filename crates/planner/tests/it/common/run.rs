//! Reference evaluator of plans: row by row, exactly by the contract of the steps, over a list of triples.

use super::algebra::integer;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use vervet_algebra::{Comparator, Expression, Function, Variable};
use vervet_kernel::plan::{
    GraphOperand, JoinKind, Move, Operand, PathStep, Pipeline, Plan, SemiJoinKind, Step,
};
use vervet_model::{Direction, Id, Tag, unmetered};
use vervet_snapshot::Snapshot;

/// A row: its columns, and its multiplicity.
pub type Row = (BTreeMap<Variable, Id>, u64);

/// The id of a term; derived from its text if the graph does not contain it.
pub fn id_of(term: &oxrdf::Term, snapshot: &dyn Snapshot) -> Id {
    snapshot.lookup(term.as_ref()).unwrap().unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        term.to_string().hash(&mut hasher);
        Id::new(Tag::Computed, hasher.finish())
    })
}

type Lookup<'a> = &'a dyn Fn(Variable) -> Option<Id>;

pub fn value(expression: &Expression, lookup: Lookup<'_>, snapshot: &dyn Snapshot) -> Option<Id> {
    match expression {
        Expression::Constant(term) => Some(id_of(term, snapshot)),
        Expression::Variable(variable) => lookup(*variable),
        // Terms of these tests are equal only to themselves.
        Expression::Call(Function::EqualityKey, operands) => value(&operands[0], lookup, snapshot),
        other => truth(other, lookup, snapshot).map(|truth| {
            vervet_model::inline_id(&truth.to_string(), oxrdf::vocab::xsd::BOOLEAN.as_str()).unwrap()
        }),
    }
}

/// Compares ids for equality, which is correct for the terms of these tests.
pub fn truth(expression: &Expression, lookup: Lookup<'_>, snapshot: &dyn Snapshot) -> Option<bool> {
    let of = |one: &Expression| truth(one, lookup, snapshot);
    match expression {
        Expression::Bound(variable) => Some(lookup(*variable).is_some()),
        Expression::Not(one) => of(one).map(|truth| !truth),
        Expression::And(all) => {
            let all: Vec<_> = all.iter().map(of).collect();
            if all.contains(&Some(false)) {
                Some(false)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Expression::Or(all) => {
            let all: Vec<_> = all.iter().map(of).collect();
            if all.contains(&Some(true)) {
                Some(true)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
        Expression::Equal(a, b) | Expression::SameTerm(a, b) => {
            Some(value(a, lookup, snapshot)? == value(b, lookup, snapshot)?)
        }
        // Any total order of ids: only plans of one graph are compared.
        Expression::Compare(comparator, a, b) => {
            let order = value(a, lookup, snapshot)?.cmp(&value(b, lookup, snapshot)?);
            Some(match comparator {
                Comparator::Less => order.is_lt(),
                Comparator::LessOrEqual => order.is_le(),
                Comparator::Greater => order.is_gt(),
                Comparator::GreaterOrEqual => order.is_ge(),
            })
        }
        Expression::Unbound => None,
        other => panic!("{other:?}"),
    }
}

pub struct Runner<'a> {
    pub snapshot: &'a dyn Snapshot,
    pub triples: &'a [[Id; 3]],
    pub computed: Vec<Id>,
}

impl<'a> Runner<'a> {
    pub fn new(plan: &Plan, snapshot: &'a dyn Snapshot, triples: &'a [[Id; 3]]) -> Self {
        let computed = plan.computed.iter().map(|term| id_of(term, snapshot)).collect();
        Self { snapshot, triples, computed }
    }

    pub fn run(&self, plan: &Plan) -> Vec<Row> {
        self.pipeline(&plan.pipeline, vec![(BTreeMap::new(), 1)])
    }

    fn pipeline(&self, pipeline: &Pipeline, rows: Vec<Row>) -> Vec<Row> {
        pipeline.steps.iter().fold(rows, |rows, step| {
            let mut rows = match &step.step {
                Step::Path(path) => self.path(path, &step.keep, rows),
                step => self.step(step, rows),
            };
            rows.iter_mut().for_each(|(row, _)| row.retain(|variable, _| step.keep.contains(variable)));
            rows
        })
    }

    /// The ends of the paths from one node of the graph.
    fn ends(&self, path: &PathStep, start: Id) -> BTreeSet<Id> {
        let mut visited = BTreeSet::from([(start, 0_u16)]);
        let mut waiting = vec![(start, 0_u16)];
        while let Some((node, state)) = waiting.pop() {
            for (one, to) in &path.automaton.moves[usize::from(state)] {
                let Move::Predicate(predicate, direction) = one else { panic!("no negated sets here") };
                for next in self.neighbours(*predicate, *direction, node) {
                    if visited.insert((next, *to)) {
                        waiting.push((next, *to));
                    }
                }
            }
        }
        let ends = visited.into_iter().filter(|(_, state)| path.automaton.accepting[usize::from(*state)]);
        ends.map(|(node, _)| node).collect()
    }

    fn path(&self, path: &PathStep, keep: &[Variable], rows: Vec<Row>) -> Vec<Row> {
        let nodes: BTreeSet<Id> = self.triples.iter().flat_map(|[s, _, o]| [*s, *o]).collect();
        let mut out = Vec::new();
        for (row, count) in rows {
            let bound = |end: Operand| match end {
                Operand::Constant(id) => Some(id),
                Operand::Variable(variable) => row.get(&variable).copied(),
            };
            let mut found = BTreeMap::new();
            for start in nodes.iter().filter(|node| bound(path.subject).is_none_or(|id| id == **node)) {
                for end in self.ends(path, *start) {
                    let mut next = row.clone();
                    let is_new =
                        [(path.subject, *start), (path.object, end)].into_iter().all(|(end, id)| match end {
                            Operand::Constant(constant) => constant == id,
                            Operand::Variable(variable) => *next.entry(variable).or_insert(id) == id,
                        });
                    if !is_new {
                        continue;
                    }
                    for (end, tested) in [path.subject, path.object].into_iter().zip(path.tested) {
                        if let (Operand::Variable(variable), true) = (end, tested) {
                            assert!(!keep.contains(&variable), "a tested end is not kept");
                            next.remove(&variable);
                        }
                    }
                    let times = found.entry(next).or_insert(0);
                    *times = if path.tested == [false, false] { *times + 1 } else { 1 };
                }
            }
            out.extend(found.into_iter().map(|(row, times)| (row, count * times)));
        }
        out
    }

    fn entries(&self, predicate: Id, direction: Direction) -> impl Iterator<Item = (Id, Id)> + '_ {
        self.triples.iter().filter(move |triple| triple[1] == predicate).map(move |[s, _, o]| match direction
        {
            Direction::Out => (*s, *o),
            Direction::In => (*o, *s),
        })
    }

    fn neighbours(&self, predicate: Id, direction: Direction, key: Id) -> Vec<Id> {
        self.entries(predicate, direction)
            .filter(|(of, _)| *of == key)
            .map(|(_, neighbour)| neighbour)
            .collect()
    }

    fn get(row: &Row, operand: Operand) -> Id {
        match operand {
            Operand::Constant(id) => id,
            Operand::Variable(variable) => *row.0.get(&variable).expect("an operand is bound"),
        }
    }

    fn listed(row: &Row, variable: Option<Variable>, found: &[Id], out: &mut Vec<Row>) {
        match variable {
            None if found.is_empty() => {}
            None => out.push((row.0.clone(), row.1 * found.len() as u64)),
            Some(variable) => {
                for id in found {
                    let mut next = row.clone();
                    assert!(next.0.insert(variable, *id).is_none(), "a target is unbound before");
                    out.push(next);
                }
            }
        }
    }

    fn step(&self, step: &Step, rows: Vec<Row>) -> Vec<Row> {
        let mut out = Vec::new();
        match step {
            Step::Empty => {}
            Step::Scan { access, key, neighbour } => {
                let mut keys: Vec<_> =
                    self.entries(access.predicate, access.direction).map(|(key, _)| key).collect();
                keys.sort();
                keys.dedup();
                for row in rows {
                    for id in &keys {
                        let mut next = row.clone();
                        assert!(next.0.insert(*key, *id).is_none());
                        let found = self.neighbours(access.predicate, access.direction, *id);
                        Self::listed(&next, *neighbour, &found, &mut out);
                    }
                }
            }
            Step::Seek { access, key, neighbour, candidates } => {
                let segment = self.snapshot.segment(access.predicate, access.direction).unwrap().unwrap();
                let mut keys = Vec::new();
                for (first, last) in &candidates.keys {
                    segment.keys(*first, usize::MAX, &mut keys).unwrap();
                    keys.truncate(keys.partition_point(|key| key <= last));
                }
                self.snapshot.literals_in_order(candidates.literals.clone(), &mut keys).unwrap();
                if let Some(texts) = &candidates.string_range {
                    self.snapshot
                        .unordered_literals(&texts.from, texts.to.as_deref(), &mut keys, &mut unmetered)
                        .unwrap();
                }
                let count = keys.len();
                keys.sort();
                keys.dedup();
                assert_eq!(keys.len(), count, "each key once");
                for row in rows {
                    for id in &keys {
                        let mut next = row.clone();
                        assert!(next.0.insert(*key, *id).is_none());
                        let found = self.neighbours(access.predicate, access.direction, *id);
                        Self::listed(&next, *neighbour, &found, &mut out);
                    }
                }
            }
            Step::Expand { key, access, neighbour, edge } => {
                assert!(edge.is_none(), "these graphs have no edges");
                for row in rows {
                    let found = self.neighbours(access.predicate, access.direction, Self::get(&row, *key));
                    Self::listed(&row, *neighbour, &found, &mut out);
                }
            }
            Step::Check { key, access, neighbour } => {
                out = rows;
                out.retain(|row| {
                    self.neighbours(access.predicate, access.direction, Self::get(row, *key))
                        .contains(&Self::get(row, *neighbour))
                });
            }
            Step::Intersect { target, legs, count_only } => {
                for row in rows {
                    let mut lists = legs.iter().map(|leg| {
                        self.neighbours(leg.access.predicate, leg.access.direction, Self::get(&row, leg.key))
                    });
                    let mut found = lists.next().unwrap();
                    lists.for_each(|list| found.retain(|id| list.contains(id)));
                    Self::listed(&row, (!count_only).then_some(*target), &found, &mut out);
                }
            }
            // A seek may omit only rows that a later condition rejects.
            Step::Match(pattern) | Step::SeekMatch { pattern, .. } => {
                assert!(matches!(pattern.graph, GraphOperand::Filter(_)) && pattern.edge.is_none());
                for row in rows {
                    for triple in self.triples {
                        let mut next = row.clone();
                        let fits = [pattern.subject, pattern.predicate, pattern.object]
                            .iter()
                            .zip(triple)
                            .all(|(operand, id)| match operand {
                                Operand::Constant(constant) => constant == id,
                                Operand::Variable(variable) => *next.0.entry(*variable).or_insert(*id) == *id,
                            });
                        if fits {
                            out.push(next);
                        }
                    }
                }
            }
            Step::Filter(condition) => {
                out = rows;
                out.retain(|row| truth(condition, &|v| row.0.get(&v).copied(), self.snapshot) == Some(true));
            }
            Step::Extend { variable, expression } => {
                for mut row in rows {
                    if let Some(id) = value(expression, &|v| row.0.get(&v).copied(), self.snapshot) {
                        row.0.insert(*variable, id);
                    }
                    out.push(row);
                }
            }
            Step::Values { variables, rows: table } => {
                for row in rows {
                    for of_table in table.iter() {
                        let mut next = row.clone();
                        let fits = variables.iter().zip(of_table).all(|(variable, id)| {
                            let id = if id.tag() == Tag::Computed {
                                self.computed[usize::try_from(id.payload()).unwrap()]
                            } else {
                                *id
                            };
                            !id.is_bound() || *next.0.entry(*variable).or_insert(id) == id
                        });
                        if fits {
                            out.push(next);
                        }
                    }
                }
            }
            Step::Join { right, kind, on, compatible, adds } => {
                let right = self.pipeline(right, vec![(BTreeMap::new(), 1)]);
                for row in rows {
                    let fits = |other: &Row| {
                        on.iter().all(|v| {
                            row.0.get(v).expect("on is bound") == other.0.get(v).expect("on is bound")
                        }) && compatible.iter().all(|v| match (row.0.get(v), other.0.get(v)) {
                            (Some(a), Some(b)) => a == b,
                            _ => true,
                        })
                    };
                    let shares = |other: &Row| {
                        on.iter().chain(compatible).any(|v| row.0.contains_key(v) && other.0.contains_key(v))
                    };
                    let both = |other: &Row| {
                        let mut next = row.clone();
                        next.1 *= other.1;
                        for v in adds.iter().chain(compatible) {
                            if let Some(id) = other.0.get(v) {
                                next.0.insert(*v, *id);
                            }
                        }
                        next
                    };
                    let matches = right.iter().filter(|other| fits(other));
                    match kind {
                        JoinKind::Inner(condition) => {
                            out.extend(matches.map(both).filter(|row| {
                                condition.as_ref().is_none_or(|condition| {
                                    truth(condition, &|v| row.0.get(&v).copied(), self.snapshot) == Some(true)
                                })
                            }));
                        }
                        JoinKind::Left(condition) => {
                            let before = out.len();
                            out.extend(matches.map(both).filter(|row| {
                                condition.as_ref().is_none_or(|condition| {
                                    truth(condition, &|v| row.0.get(&v).copied(), self.snapshot) == Some(true)
                                })
                            }));
                            if out.len() == before {
                                out.push(row);
                            }
                        }
                        JoinKind::Minus => {
                            if !right.iter().any(|other| fits(other) && shares(other)) {
                                out.push(row);
                            }
                        }
                        JoinKind::Semi(condition) | JoinKind::Anti(condition) => {
                            let found = matches.map(both).any(|pair| {
                                condition.as_ref().is_none_or(|condition| {
                                    truth(condition, &|v| pair.0.get(&v).copied(), self.snapshot)
                                        == Some(true)
                                })
                            });
                            if found == matches!(kind, JoinKind::Semi(_)) {
                                out.push(row);
                            }
                        }
                    }
                }
            }
            Step::Optional { inner, row: position } => {
                for (at, row) in rows.into_iter().enumerate() {
                    let mut start = row.clone();
                    start.0.insert(*position, integer(at as u64));
                    let found = self.pipeline(inner, vec![start]);
                    if found.is_empty() {
                        out.push(row);
                    } else {
                        out.extend(found);
                    }
                }
            }
            Step::Seeded { inner, seed, on, adds } => {
                let mut seeds: Vec<Id> = rows.iter().map(|(row, _)| row[seed]).collect();
                seeds.sort();
                seeds.dedup();
                let start = |id: &Id| (BTreeMap::from([(*seed, *id)]), 1);
                let found = self.pipeline(inner, seeds.iter().map(start).collect());
                for row in rows {
                    let before = out.len();
                    for other in found.iter().filter(|other| on.iter().all(|v| row.0[v] == other.0[v])) {
                        let mut next = row.clone();
                        next.1 *= other.1;
                        next.0.extend(adds.iter().filter_map(|v| Some((*v, *other.0.get(v)?))));
                        out.push(next);
                    }
                    if out.len() == before {
                        out.push(row);
                    }
                }
            }
            Step::Path(_) => unreachable!("a path is evaluated by `path`"),
            Step::Exists { inner, row: position, semi_join_kind } => {
                for (at, row) in rows.into_iter().enumerate() {
                    let mut start = row.clone();
                    start.0.insert(*position, integer(at as u64));
                    let found = !self.pipeline(inner, vec![start]).is_empty();
                    match semi_join_kind {
                        SemiJoinKind::Semi | SemiJoinKind::Anti => {
                            out.extend((found == (*semi_join_kind == SemiJoinKind::Semi)).then_some(row));
                        }
                        SemiJoinKind::Mark(_) => panic!("the queries of these tests have none"),
                    }
                }
            }
            Step::Union { branches } => {
                for branch in branches {
                    out.extend(self.pipeline(branch, rows.clone()));
                }
            }
            Step::Group { keys, aggregates } => {
                let mut groups: BTreeMap<BTreeMap<Variable, Id>, Vec<Row>> = BTreeMap::new();
                if keys.is_empty() {
                    groups.insert(BTreeMap::new(), Vec::new());
                }
                for row in rows {
                    let key =
                        row.0.iter().filter(|(v, _)| keys.contains(v)).map(|(v, id)| (*v, *id)).collect();
                    groups.entry(key).or_default().push(row);
                }
                for (mut key, of) in groups {
                    for (variable, aggregate) in aggregates {
                        let count = match (&aggregate.expression, aggregate.distinct) {
                            (None, false) => of.iter().map(|(_, count)| count).sum(),
                            (Some(Expression::Variable(v)), false) => {
                                of.iter().filter(|(row, _)| row.contains_key(v)).map(|(_, count)| count).sum()
                            }
                            (Some(Expression::Variable(v)), true) => {
                                let mut all: Vec<_> = of.iter().filter_map(|(row, _)| row.get(v)).collect();
                                all.sort();
                                all.dedup();
                                all.len() as u64
                            }
                            other => panic!("{other:?}"),
                        };
                        key.insert(*variable, integer(count));
                    }
                    out.push((key, 1));
                }
            }
            Step::Frontier { variables } => {
                let mut seen = std::collections::BTreeSet::new();
                let key = |row: &BTreeMap<_, _>| -> Vec<_> {
                    variables.iter().map(|variable| row.get(variable).copied()).collect()
                };
                out.extend(rows.into_iter().filter(|(row, _)| seen.insert(key(row))));
            }
            Step::Distinct { variables } => {
                let mut seen = std::collections::BTreeSet::new();
                for (row, _) in rows {
                    let key: BTreeMap<_, _> =
                        row.iter().filter(|(v, _)| variables.contains(v)).map(|(v, id)| (*v, *id)).collect();
                    if seen.insert(key.clone()) {
                        out.push((key, 1));
                    }
                }
            }
            Step::Order { .. } => out = rows,
            Step::Slice { start, length } => {
                let (mut skip, mut left) = (*start as u64, length.map_or(u64::MAX, |length| length as u64));
                for (row, count) in rows {
                    let skipped = count.min(skip);
                    skip -= skipped;
                    let kept = (count - skipped).min(left);
                    left -= kept;
                    if kept > 0 {
                        out.push((row, kept));
                    }
                }
            }
        }
        out
    }
}
