//! Tests of ids: what a filter demands of its rows, as far as ids alone decide it.
//!
//! A device has ids and no texts. It can run a filter whose conjuncts are tests of this file: a row that all
//! tests accept passes, a row that one rejects does not, and any other row needs the expression itself.
//!
//! # Why this is right
//! `decides(node, id, wanted)` is whether the value of `node` is `wanted`; an error is neither true nor
//! false. A conjunction is true if all its members are, and false if one is; a disjunction the other way
//! round; also where members are errors (SPARQL 1.1 §17.2). The leaves use the functions by which
//! [`CompiledExpression::filter`](crate::CompiledExpression::filter) decides rows.
//!
//! Every leaf compares the payload of the id with those of constants. So between two such payloads the
//! outcome depends on the tag alone, and one id of each such interval decides for all.
//! # Not here
//! Comparisons of decimals and doubles, whose payloads of one value differ.

use crate::batch::{CompiledExpression, equals_constant};
use crate::compile::Node;
use crate::context::Constant;
use crate::operands::{compare_ids, equal_ids};
use crate::value::Value;
use vervet_algebra::Comparator;
use vervet_model::{Id, Tag};

/// Maximum number of constants of a test.
const CONSTANTS_MAX: usize = 256;
/// Maximum number of members of `IN` that are compared one by one.
const MEMBERS_MAX: usize = 32;

/// What a test finds for a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum IdOutcome {
    /// The filter is not true.
    Rejected = 0,
    /// This test does not reject the row.
    Accepted = 1,
    /// The ids do not decide.
    Undecided = 2,
}

/// A relation of two ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdRelation {
    /// The same term: equal ids.
    Same,
    /// Equal values.
    Equal,
    /// The left value is less.
    Less,
}

/// A test of the ids of a row. A test of an unbound variable rejects, unless it is one of
/// [`IdTest::Value`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdTest {
    /// The value of one variable.
    Value {
        /// Index of the variable.
        variable: usize,
        /// Intervals of all ids: the first id of each, ascending from [`Id::UNBOUND`], and the outcome.
        intervals: Vec<(Id, IdOutcome)>,
    },
    /// The values of two variables: accepted if the relation holds (`wanted`), or if it does not.
    Pair {
        /// The relation.
        relation: IdRelation,
        /// Index of the left variable.
        left: usize,
        /// Index of the right variable.
        right: usize,
        /// Whether the relation must hold.
        wanted: bool,
    },
}

impl CompiledExpression {
    /// The tests of which a filter with this expression consists; `None`: it needs more than ids.
    #[must_use]
    pub fn id_tests(&self) -> Option<Vec<IdTest>> {
        let mut conjuncts = Vec::new();
        conjuncts_of(self.root(), &mut conjuncts);
        let mut tests = Vec::new();
        let mut of_one: Vec<(usize, Vec<&Node>, Vec<u64>)> = Vec::new();
        for node in conjuncts {
            if let Some(test) = pair(node, true) {
                tests.push(test);
                continue;
            }
            let (mut variable, mut points) = (None, Vec::new());
            if !collect(node, &mut variable, &mut points) {
                return None;
            }
            let variable = variable?;
            match of_one.iter_mut().find(|(other, ..)| *other == variable) {
                Some((_, nodes, all)) => {
                    nodes.push(node);
                    all.extend(points);
                }
                None => of_one.push((variable, vec![node], points)),
            }
        }
        for (variable, nodes, points) in of_one {
            if points.len() > 2 * CONSTANTS_MAX {
                return None;
            }
            tests.push(IdTest::Value { variable, intervals: intervals(&nodes, points) });
        }
        Some(tests)
    }
}

fn conjuncts_of<'n>(node: &'n Node, out: &mut Vec<&'n Node>) {
    match node {
        Node::And(all) => all.iter().for_each(|node| conjuncts_of(node, out)),
        one => out.push(one),
    }
}

/// A relation of two variables that must have the value `wanted`.
fn pair(node: &Node, wanted: bool) -> Option<IdTest> {
    let (relation, ab) = match node {
        Node::Not(inner) => return pair(inner, !wanted),
        Node::SameTerm(ab) => (IdRelation::Same, ab),
        Node::Equal(ab) => (IdRelation::Equal, ab),
        Node::Compare(_, ab) => (IdRelation::Less, ab),
        _ => return None,
    };
    let [Node::Variable(left), Node::Variable(right)] = **ab else { return None };
    // `a <= b` is true if `b < a` is false, since an undecided order is none of both.
    let (left, right, wanted) = match node {
        Node::Compare(Comparator::Greater, _) => (right, left, wanted),
        Node::Compare(Comparator::LessOrEqual, _) => (right, left, !wanted),
        Node::Compare(Comparator::GreaterOrEqual, _) => (left, right, !wanted),
        _ => (left, right, wanted),
    };
    (left != right).then_some(IdTest::Pair { relation, left, right, wanted })
}

/// Finds the only variable and the payloads of constants; `false`: the node needs more than ids.
fn collect(node: &Node, variable: &mut Option<usize>, points: &mut Vec<u64>) -> bool {
    let mut is_variable = |found: &usize| *variable.get_or_insert(*found) == *found;
    let mut add = |constant: &Constant| points.push(constant.id.payload());
    match node {
        Node::Bound(found) | Node::Variable(found) => is_variable(found),
        Node::Not(inner) => collect(inner, variable, points),
        Node::And(all) | Node::Or(all) => all.iter().all(|node| collect(node, variable, points)),
        Node::Equal(ab) | Node::SameTerm(ab) | Node::Compare(_, ab) => match &**ab {
            [Node::Variable(found), Node::Constant(constant)]
            | [Node::Constant(constant), Node::Variable(found)] => {
                add(constant);
                is_variable(found)
            }
            _ => false,
        },
        Node::In(item, list) if list.len() <= MEMBERS_MAX => {
            let Node::Variable(found) = &**item else { return false };
            list.iter().all(|node| match node {
                Node::Constant(constant) => {
                    add(constant);
                    true
                }
                _ => false,
            }) && is_variable(found)
        }
        Node::InConstants(item, list, others) if others.is_empty() => {
            let Node::Variable(found) = &**item else { return false };
            points.extend(list.ids().map(Id::payload));
            points.len() <= 2 * CONSTANTS_MAX && is_variable(found)
        }
        _ => false,
    }
}

/// The outcomes of all ids for a conjunction of nodes of one variable.
fn intervals(nodes: &[&Node], mut points: Vec<u64>) -> Vec<(Id, IdOutcome)> {
    let after: Vec<u64> = points.iter().map(|point| point + 1).collect();
    points.extend(after);
    // Those of booleans, and of the unbound id.
    points.extend([0, 1, 2]);
    points.retain(|point| *point <= Id::PAYLOAD_MAX);
    points.sort_unstable();
    points.dedup();
    let mut intervals: Vec<(Id, IdOutcome)> = Vec::new();
    for tag in 0..16_u64 {
        for point in &points {
            let id = Id::from_bits(tag << Id::PAYLOAD_BITS | point);
            let outcome = match all(nodes.iter().map(|node| decides(node, id, true))) {
                Some(true) => IdOutcome::Accepted,
                Some(false) => IdOutcome::Rejected,
                None => IdOutcome::Undecided,
            };
            if intervals.last().is_none_or(|(_, last)| *last != outcome) {
                intervals.push((id, outcome));
            }
        }
    }
    intervals
}

/// Whether the value of `node` is `wanted` for this value of its variable; `None`: the id does not decide.
fn decides(node: &Node, id: Id, wanted: bool) -> Option<bool> {
    match node {
        Node::Not(inner) => decides(inner, id, !wanted),
        Node::And(list) if wanted => all(list.iter().map(|node| decides(node, id, true))),
        Node::And(list) => any(list.iter().map(|node| decides(node, id, false))),
        Node::Or(list) if wanted => any(list.iter().map(|node| decides(node, id, true))),
        Node::Or(list) => all(list.iter().map(|node| decides(node, id, false))),
        Node::Bound(_) => Some(id.is_bound() == wanted),
        // An error.
        _ if !id.is_bound() => Some(false),
        Node::Variable(_) => (id.tag() == Tag::Boolean).then_some((id.payload() == 1) == wanted),
        Node::Equal(ab) => constant_of(ab).and_then(|constant| is_equal(id, constant, wanted)),
        Node::SameTerm(ab) => constant_of(ab).map(|constant| (id == constant.id) == wanted),
        Node::Compare(comparator, ab) => match &**ab {
            [_, Node::Constant(constant)] => is_ordered(*comparator, id, constant, wanted),
            [Node::Constant(constant), _] => is_ordered(comparator.flipped(), id, constant, wanted),
            _ => None,
        },
        Node::In(_, list) => {
            let mut members = list.iter().map(|node| match node {
                Node::Constant(constant) => is_equal(id, constant, wanted),
                _ => None,
            });
            if wanted { any(&mut members) } else { all(&mut members) }
        }
        Node::InConstants(_, list, _) if wanted => list.has_id(id, true),
        _ => None,
    }
}

fn constant_of(ab: &[Node; 2]) -> Option<&Constant> {
    match ab {
        [Node::Constant(constant), _] | [_, Node::Constant(constant)] => Some(constant),
        _ => None,
    }
}

fn is_equal(id: Id, constant: &Constant, wanted: bool) -> Option<bool> {
    match wanted {
        true => equals_constant(id, constant),
        // Here an error must not count as unequal.
        false => equal_ids(id, constant.id).map(|equal| !equal),
    }
}

fn is_ordered(comparator: Comparator, id: Id, constant: &Constant, wanted: bool) -> Option<bool> {
    match compare_ids(comparator, id, constant.id) {
        Some(holds) => Some(holds == wanted),
        // An IRI or blank node has an order with no literal: an error.
        None if id.is_vertex() && !matches!(constant.value, Value::Iri(_) | Value::Blank(_)) => Some(false),
        None => None,
    }
}

/// Whether all are true, if those that are known decide it.
fn all(list: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(list.map(|one| one.map(|one| !one))).map(|any| !any)
}

/// Whether any is true, if those that are known decide it.
fn any(list: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(false);
    for one in list {
        match one {
            Some(true) => return one,
            Some(false) => {}
            None => result = None,
        }
    }
    result
}
