//! Every step against a reference definition of a few lines, over random graphs.
//!
//! A chain of fast steps must find the same rows as the general `Match` step, and joins the same as nested
//! loops. Every message contains the seed. Every plan runs on one thread and, cut into the smallest morsels,
//! on two and four, and must find the same rows.

use crate::sample::*;
use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use std::collections::BTreeMap;
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Function, OrderKey, Variable};
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{
    Access, GraphOperand, JoinKind, Leg, Match, Operand, Pipeline, Plan, PlanStep, Step,
};
use vervet_kernel::{Batch, Control, Flow, Limits, execute};
use vervet_model::{Direction, Id, Inline};
use vervet_snapshot::GraphFilter;
use vervet_testkit::{MemorySnapshot, Statement};

#[test]
fn chains_of_fast_steps_agree_with_patterns() {
    for seed in 0..40 {
        let sample = sample(seed, seed % 8 == 0);
        let triangles = sample
            .run(vec![sample.pattern(A, 0, B), sample.pattern(B, 1, C), sample.pattern(A, 2, C)], &[A, B, C]);
        let check = Step::Check {
            key: Operand::Variable(A),
            access: sample.access(2, Direction::Out),
            neighbour: Operand::Variable(C),
        };
        let checked = vec![sample.scan(0, A, Some(B)), sample.expand(B, 1, Direction::Out, Some(C)), check];
        assert_eq!(sample.run(checked, &[A, B, C]), triangles, "check, seed {seed}");
        let legs = vec![
            Leg { key: Operand::Variable(B), access: sample.access(1, Direction::Out) },
            Leg { key: Operand::Variable(A), access: sample.access(2, Direction::Out) },
        ];
        let intersect = |count_only| Step::Intersect { target: C, legs: legs.clone(), count_only };
        let intersected = vec![sample.scan(0, A, Some(B)), intersect(false)];
        assert_eq!(sample.run(intersected, &[A, B, C]), triangles, "intersect, seed {seed}");
        let counted = vec![sample.scan(0, A, Some(B)), intersect(true)];
        assert_eq!(sample.run(counted, &[A]).len(), triangles.len(), "count, seed {seed}");
    }
}

/// Vertices and edges of one predicate, parallel ones among them, and statements without an edge.
fn sample_with_edges(seed: u64) -> Sample {
    let mut random = Random(seed);
    let mut snapshot = MemorySnapshot::default();
    let mut node = |name: String| snapshot.intern(&NamedNode::new_unchecked(name).into());
    let vertices: Vec<Id> = (0..20).map(|i| node(format!("urn:v{i}"))).collect();
    let predicates: Vec<Id> = (0..2).map(|i| node(format!("urn:p{i}"))).collect();
    for &predicate in &predicates {
        for _ in 0..if seed.is_multiple_of(4) { 600 } else { 90 } {
            let pick = |random: &mut Random| vertices[usize::try_from(random.below(20)).expect("small")];
            let (subject, object) = (pick(&mut random), pick(&mut random));
            if random.below(3) > 0 {
                snapshot.add_edge(subject, predicate, object, Id::UNBOUND);
            } else {
                snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
            }
        }
    }
    Sample { snapshot: snapshot.finish(), predicates, entries: Vec::new() }
}

/// Finding "plan F3": patterns with an edge were always matched in general form.
#[test]
fn f3_expansions_with_edges_agree_with_patterns() {
    for seed in 0..16 {
        let sample = sample_with_edges(seed);
        for parallel in [false, true] {
            let pattern = |subject, predicate: usize, object, edge| {
                Step::Match(Match {
                    subject: Operand::Variable(subject),
                    predicate: Operand::Constant(sample.predicates[predicate]),
                    object: Operand::Variable(object),
                    graph: GraphOperand::Filter(GraphFilter::Default),
                    edge: Some(Operand::Variable(edge)),
                    parallel,
                    predicates_once: false,
                })
            };
            for direction in Direction::BOTH {
                let expand = Step::Expand {
                    key: Operand::Variable(B),
                    access: Access { parallel, ..sample.access(1, direction) },
                    neighbour: Some(C),
                    edge: Some(D),
                };
                let (subject, object) = if direction == Direction::Out { (B, C) } else { (C, B) };
                let matched = vec![sample.scan(0, A, Some(B)), pattern(subject, 1, object, D)];
                let expanded = vec![sample.scan(0, A, Some(B)), expand.clone()];
                let columns = [A, B, C, D];
                assert_eq!(sample.run(expanded, &columns), sample.run(matched, &columns), "seed {seed}");
                // Twice: edge and neighbour replace the vectors of other columns.
                let again = Step::Expand {
                    key: Operand::Variable(C),
                    access: Access { parallel, ..sample.access(0, direction) },
                    neighbour: Some(A),
                    edge: Some(ROW),
                };
                let (subject, object) = if direction == Direction::Out { (C, A) } else { (A, C) };
                let matched = vec![
                    sample.scan(0, B, None),
                    pattern(
                        if direction == Direction::Out { B } else { C },
                        1,
                        if direction == Direction::Out { C } else { B },
                        D,
                    ),
                    pattern(subject, 0, object, ROW),
                ];
                let columns = [A, B, C, D, ROW];
                let expanded = vec![sample.scan(0, B, None), expand, again];
                assert_eq!(sample.run(expanded, &columns), sample.run(matched, &columns), "seed {seed}");
            }
        }
    }
}

/// Roots with some `B`s (predicate 0) and some `C`s (1); each `C` leads to `of_c` `B`s (2), or one in seven
/// to `long`, if that is not 0.
fn fans(random: &mut Random, roots: u64, bs: u64, cs: u64, of_c: u64, long: u64) -> Sample {
    let mut snapshot = MemorySnapshot::default();
    let mut nodes = |kind: &str, count: u64| -> Vec<Id> {
        let name = |number| NamedNode::new_unchecked(format!("urn:{kind}{number}"));
        (0..count).map(|number| snapshot.intern(&name(number).into())).collect()
    };
    let predicates = nodes("p", 3);
    let (a, b, c) = (nodes("a", roots), nodes("b", 3 * bs), nodes("c", 3 * cs));
    let mut entries = vec![Vec::new(); 3];
    let mut link = |of: usize, from: &[Id], to: &[Id], degree: u64| {
        for (number, &subject) in from.iter().enumerate() {
            for _ in 0..if long > 0 && number % 7 == 3 { long } else { degree } {
                let object = to[usize::try_from(random.below(to.len() as u64)).expect("small")];
                entries[of].push((subject, object));
                let predicate = predicates[of];
                snapshot.add(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND });
            }
        }
    };
    link(0, &a, &b, bs);
    link(1, &a, &c, cs);
    link(2, &c, &b, of_c);
    Sample { snapshot: snapshot.finish(), predicates, entries }
}

#[test]
fn intersections_agree_with_patterns() {
    // Depending on the degrees, a different method is cheapest: probe, list with a short, a marked or a long
    // prefix, or reverse. If both legs are short, the short-lists method applies, unless some lists are too
    // long.
    let shapes = [
        (40, 30, 1, 0),
        (40, 3, 1, 0),
        (3, 40, 6, 0),
        (40, 7, 9, 0),
        (40, 40, 9, 0),
        (1, 40, 9, 0),
        (12, 2, 2, 0),
        (12, 2, 2, 7),
        (12, 2, 2, 16),
        (1, 1, 3, 30),
    ];
    for seed in 0..3 {
        let random = &mut Random(seed);
        for (bs, cs, of_c, long) in shapes {
            let sample = fans(random, 60, bs, cs, of_c, long);
            let found = sample.run(
                vec![sample.pattern(A, 0, B), sample.pattern(A, 1, C), sample.pattern(C, 2, B)],
                &[A, B, C],
            );
            assert!(!found.is_empty());
            let legs = vec![
                Leg { key: Operand::Variable(A), access: sample.access(1, Direction::Out) },
                Leg { key: Operand::Variable(B), access: sample.access(2, Direction::In) },
            ];
            let intersect = |count_only| Step::Intersect { target: C, legs: legs.clone(), count_only };
            let listed = sample.run(vec![sample.scan(0, A, Some(B)), intersect(false)], &[A, B, C]);
            assert_eq!(listed, found, "seed {seed}: {bs}, {cs}, {of_c}, {long}");
            let count = Aggregate { kind: AggregateKind::Count, distinct: false, expression: None };
            let group = Step::Group { keys: vec![], aggregates: vec![(D, count)] };
            let counted = sample.run(vec![sample.scan(0, A, Some(B)), intersect(true), group.clone()], &[D]);
            let all = sample.run(vec![sample.scan(0, A, Some(B)), intersect(false), group], &[D]);
            assert_eq!(counted, all, "seed {seed}: {bs}, {cs}, {of_c}, {long}");
        }
    }
}

#[test]
fn degrees_count_without_listing() {
    for seed in 0..40 {
        let sample = sample(seed, seed % 8 == 0);
        let paths = sample.run(vec![sample.pattern(A, 0, B), sample.pattern(B, 1, C)], &[A, B]);
        let degrees = vec![sample.scan(0, A, Some(B)), sample.expand(B, 1, Direction::Out, None)];
        assert_eq!(sample.run(degrees, &[A, B]), paths, "seed {seed}");
        let keys = vec![
            Step::Scan { access: sample.access(0, Direction::In), key: B, neighbour: None },
            sample.expand(B, 1, Direction::Out, None),
            Step::Group {
                keys: vec![],
                aggregates: vec![(
                    D,
                    Aggregate { kind: AggregateKind::Count, expression: None, distinct: false },
                )],
            },
        ];
        let count = sample.run(keys, &[D]);
        let expected = Inline::Integer(i64::try_from(paths.len()).expect("few")).to_id().expect("fits");
        assert_eq!(count, [[expected.bits()]], "seed {seed}");
    }
}

#[test]
fn joins_agree_with_nested_loops() {
    for seed in 0..40 {
        let sample = sample(seed, false);
        let (left, right) = (&sample.entries[0], &sample.entries[1]);
        let join = |kind| Step::Join {
            right: pipeline(vec![sample.pattern(B, 1, C)]),
            kind,
            on: vec![B],
            compatible: vec![],
            adds: vec![C],
        };
        let run = |kind| sample.run(vec![sample.pattern(A, 0, B), join(kind)], &[A, B, C]);
        let matches = |b: Id| right.iter().filter(move |entry| entry.0 == b);
        let row = |a: Id, b: Id, c: Id| vec![a.bits(), b.bits(), c.bits()];
        let mut inner = Vec::new();
        let mut outer = Vec::new();
        let mut semi = Vec::new();
        let mut anti = Vec::new();
        for &(a, b) in left {
            inner.extend(matches(b).map(|&(_, c)| row(a, b, c)));
            let found = matches(b).next().is_some();
            if found { &mut semi } else { &mut anti }.push(row(a, b, Id::UNBOUND));
        }
        outer.extend(inner.iter().chain(&anti).cloned());
        for rows in [&mut inner, &mut outer, &mut semi, &mut anti] {
            rows.sort();
        }
        assert_eq!(run(JoinKind::Inner(None)), inner, "seed {seed}");
        assert_eq!(run(JoinKind::Left(None)), outer, "seed {seed}");
        assert_eq!(run(JoinKind::Semi(None)), semi, "seed {seed}");
        assert_eq!(run(JoinKind::Anti(None)), anti, "seed {seed}");
        assert_eq!(run(JoinKind::Minus), anti, "seed {seed}");
        let optional =
            Step::Optional { inner: pipeline(vec![sample.expand(B, 1, Direction::Out, Some(C))]), row: ROW };
        assert_eq!(sample.run(vec![sample.pattern(A, 0, B), optional], &[A, B, C]), outer, "seed {seed}");
        let inner = pipeline(vec![sample.expand(B, 1, Direction::Out, Some(C))]);
        let seeded = Step::Seeded { inner, seed: B, on: vec![B], adds: vec![C] };
        assert_eq!(sample.run(vec![sample.pattern(A, 0, B), seeded], &[A, B, C]), outer, "seed {seed}");
    }
}

/// Without its dead columns, a match of all statements lists each key once, with a multiplicity.
#[test]
fn matches_of_all_statements_count_those_of_dead_columns() {
    for seed in 0..20 {
        let sample = sample(seed, seed % 4 == 0);
        let all = sample.entries.iter().zip(&sample.predicates).flat_map(|(entries, predicate)| {
            entries.iter().map(move |(subject, object)| [*subject, *predicate, *object])
        });
        let all: Vec<[Id; 3]> = all.collect();
        for kept in 0..8 {
            let keys: Vec<Variable> = [A, B, C]
                .into_iter()
                .enumerate()
                .filter(|(at, _)| kept >> at & 1 == 1)
                .map(|(_, one)| one)
                .collect();
            let mut expected: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
            for statement in &all {
                let key = keys.iter().map(|key| statement[key.index()].bits()).collect();
                *expected.entry(key).or_default() += 1;
            }
            let pattern = Step::Match(Match {
                subject: Operand::Variable(A),
                predicate: Operand::Variable(B),
                object: Operand::Variable(C),
                graph: GraphOperand::Filter(GraphFilter::Default),
                edge: None,
                parallel: false,
                predicates_once: false,
            });
            let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
            let step =
                |step, keep: &[Variable]| PlanStep { step, keep: keep.to_vec(), rows: 0.0, validity: None };
            let result = [keys.as_slice(), &[D]].concat();
            let plan = Pipeline {
                steps: vec![
                    step(pattern, &keys),
                    step(Step::Group { keys: keys.clone(), aggregates: vec![(D, count)] }, &result),
                ],
            };
            let rows =
                sample.try_run(1, plan, &result, &Control::default()).expect("nothing stops this query");
            let number = |count: i64| Inline::Integer(count).to_id().expect("small").bits();
            let expected: Vec<Vec<u64>> =
                expected.into_iter().map(|(key, count)| [key, vec![number(count)]].concat()).collect();
            assert_eq!(rows, expected, "seed {seed}, columns {keys:?}");
        }
    }
}

/// Texts and local names of datatypes; values of all orders, some of them equal or incomparable.
const COMPARED: [(&str, &str); 34] = [
    ("1", "integer"),
    ("2", "integer"),
    ("02", "integer"),
    ("-3", "integer"),
    ("16777217", "integer"),
    ("9007199254740993", "integer"),
    ("123456789012345678901234567890123456789012345", "integer"),
    ("2", "short"),
    ("1.5", "decimal"),
    ("0.1", "decimal"),
    ("1.5", "double"),
    ("0.1", "double"),
    ("16777216.5", "double"),
    ("9007199254740992", "double"),
    ("NaN", "double"),
    ("INF", "double"),
    ("16777216", "float"),
    ("0.1", "float"),
    ("NaN", "float"),
    ("a", "string"),
    ("a longer text", "string"),
    ("a longer text than that", "string"),
    ("true", "boolean"),
    ("false", "boolean"),
    ("2020-01-01T00:00:00Z", "dateTime"),
    ("2020-01-01T05:00:00", "dateTime"),
    ("2020-01-02T00:00:00+10:00", "dateTime"),
    ("2020-01-01", "date"),
    ("2020-01-01Z", "date"),
    ("1999", "gYear"),
    ("2001", "gYear"),
    ("P1M", "duration"),
    ("P30D", "dayTimeDuration"),
    ("x", "integer"),
];

#[test]
fn joins_with_comparisons_agree_with_filters() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut snapshot = MemorySnapshot::default();
        let mut values: Vec<Id> = COMPARED
            .iter()
            .map(|(text, datatype)| {
                let datatype =
                    NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{datatype}"));
                snapshot.intern(&oxrdf::Literal::new_typed_literal(*text, datatype).into())
            })
            .collect();
        values.push(snapshot.intern(&NamedNode::new_unchecked("urn:v").into()));
        values.push(Id::UNBOUND);
        let sample = Sample { snapshot: snapshot.finish(), predicates: Vec::new(), entries: Vec::new() };
        let number = |number| Inline::Integer(number).to_id().expect("small");
        let mut pick = |count: usize| values[usize::try_from(random.below(count as u64)).expect("small")];
        // Fewer values in some cases, so that a class has several of them in most.
        let count = if seed % 2 == 0 { values.len() } else { 10 };
        let left: Vec<Vec<Id>> =
            (0..40).map(|row| vec![number(row % 4), pick(count), number(100 + row), pick(count)]).collect();
        let right: Vec<Vec<Id>> = (0..40).map(|row| vec![number(row % 5), pick(count)]).collect();
        let table = |variables: &[Variable], rows: &[Vec<Id>]| Step::Values {
            variables: variables.to_vec(),
            rows: rows.to_vec().into(),
        };
        let on = if seed % 3 == 0 { vec![] } else { vec![A] };
        let of_right = if on.is_empty() { [D, C] } else { [A, C] };
        let left_step = table(&[A, B, ROW, E], &left);
        let comparators =
            [Comparator::Less, Comparator::LessOrEqual, Comparator::Greater, Comparator::GreaterOrEqual];
        for comparator in comparators {
            let variable = |variable| Box::new(Expression::Variable(variable));
            let (a, b) = if seed % 4 < 2 { (B, C) } else { (C, B) };
            let compared = Expression::Compare(comparator, variable(a), variable(b));
            let unequal = Expression::Not(Box::new(Expression::SameTerm(variable(B), variable(C))));
            let other = comparators[usize::try_from(seed % 4).expect("small")];
            let band = Expression::Compare(other, variable(E), variable(C));
            let conditions = [
                compared.clone(),
                Expression::And(vec![compared.clone(), unequal]),
                Expression::And(vec![compared, band]),
            ];
            for condition in conditions {
                let join = |kind, adds: &[Variable]| Step::Join {
                    right: pipeline(vec![table(&of_right, &right)]),
                    kind,
                    on: on.clone(),
                    compatible: vec![],
                    adds: adds.to_vec(),
                };
                let filtered = vec![
                    left_step.clone(),
                    join(JoinKind::Inner(None), &[C]),
                    Step::Filter(condition.clone()),
                ];
                let mut matching = sample.run(filtered.clone(), &[A, B, ROW]);
                let counted = matching.clone();
                matching.dedup();
                let all = sample.run(vec![left_step.clone()], &[A, B, ROW]);
                let others: Vec<_> = all.into_iter().filter(|row| !matching.contains(row)).collect();
                let pairs = sample.run(filtered, &[A, B, C, ROW]);
                // Without the right column, pairs are counted.
                let with = |kind, result: &[Variable]| {
                    let mut joined = pipeline(vec![left_step.clone(), join(kind, &[C])]);
                    joined.steps[1].keep = result.to_vec();
                    sample.try_run(1, joined, result, &Control::default()).expect("no limit")
                };
                let sorted = |all: [Vec<Vec<u64>>; 2]| {
                    let mut all = all.concat();
                    all.sort();
                    all
                };
                let inner = JoinKind::Inner(Some(condition.clone()));
                let left = JoinKind::Left(Some(condition.clone()));
                let unmatched = others.iter().map(|row| vec![row[0], row[1], 0, row[2]]).collect();
                assert_eq!(with(inner.clone(), &[A, B, C, ROW]), pairs, "{condition:?}");
                assert_eq!(with(inner, &[A, B, ROW]), counted, "{condition:?}");
                assert_eq!(with(left.clone(), &[A, B, C, ROW]), sorted([pairs, unmatched]), "{condition:?}");
                assert_eq!(with(left, &[A, B, ROW]), sorted([counted, others.clone()]), "{condition:?}");
                let run = |kind| sample.run(vec![left_step.clone(), join(kind, &[C])], &[A, B, ROW]);
                let context = format!("seed {seed}: {condition:?}");
                assert_eq!(run(JoinKind::Semi(Some(condition.clone()))), matching, "{context}");
                assert_eq!(run(JoinKind::Anti(Some(condition.clone()))), others, "{context}");
            }
        }
    }
}

#[test]
fn joins_respect_variables_that_some_rows_leave_unbound() {
    for seed in 0..40 {
        let sample = sample(seed, false);
        let optional = |predicate, from, to| Step::Optional {
            inner: pipeline(vec![sample.expand(from, predicate, Direction::Out, Some(to))]),
            row: ROW,
        };
        // Both sides bind C only in some rows.
        let left = vec![sample.scan(0, A, Some(B)), optional(1, B, C)];
        let right = vec![sample.scan(2, A, Some(D)), optional(1, D, C)];
        let left_rows = sample.run(left.clone(), &[A, B, C]);
        let right_rows = sample.run(right.clone(), &[A, C, D]);
        let mut expected = Vec::new();
        let mut minus = Vec::new();
        for l in &left_rows {
            let mut excluded = false;
            for r in &right_rows {
                if l[0] == r[0] && (l[2] == 0 || r[1] == 0 || l[2] == r[1]) {
                    expected.push(vec![l[0], l[1], l[2].max(r[1]), r[2]]);
                    excluded = true;
                }
            }
            if !excluded {
                minus.push(l.clone());
            }
        }
        expected.sort();
        let join = |kind| Step::Join {
            right: pipeline(right.clone()),
            kind,
            on: vec![A],
            compatible: vec![C],
            adds: vec![D],
        };
        let with = |kind| [left.clone(), vec![join(kind)]].concat();
        assert_eq!(sample.run(with(JoinKind::Inner(None)), &[A, B, C, D]), expected, "seed {seed}");
        assert_eq!(sample.run(with(JoinKind::Minus), &[A, B, C]), minus, "seed {seed}");
    }
}

#[test]
fn union_distinct_group_order_and_slice() {
    for seed in 0..20 {
        let sample = sample(seed, seed % 8 == 0);
        let union = Step::Union {
            branches: vec![pipeline(vec![sample.pattern(A, 0, B)]), pipeline(vec![sample.pattern(A, 1, B)])],
        };
        let mut all: Vec<Vec<u64>> =
            sample.entries[..2].iter().flatten().map(|(a, b)| vec![a.bits(), b.bits()]).collect();
        all.sort();
        assert_eq!(sample.run(vec![union.clone()], &[A, B]), all, "seed {seed}");
        let mut distinct = all.clone();
        distinct.dedup();
        let step = Step::Distinct { variables: vec![A, B] };
        assert_eq!(sample.run(vec![union.clone(), step], &[A, B]), distinct, "seed {seed}");
        let mut counts: BTreeMap<u64, i64> = BTreeMap::new();
        all.iter().for_each(|row| *counts.entry(row[0]).or_default() += 1);
        let counts: Vec<Vec<u64>> = counts
            .into_iter()
            .map(|(a, count)| vec![a, Inline::Integer(count).to_id().expect("fits").bits()])
            .collect();
        let count = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
        let step = Step::Group { keys: vec![A], aggregates: vec![(D, count)] };
        assert_eq!(sample.run(vec![union.clone(), step], &[A, D]), counts, "seed {seed}");
        let key = |variable| OrderKey { expression: Expression::Variable(variable), descending: false };
        for limit in [Some(5), None] {
            let order = Step::Order { keys: vec![key(A), key(B)], limit };
            let slice = Step::Slice { start: 2, length: Some(3) };
            let sliced = sample.run(vec![union.clone(), order, slice], &[A, B]);
            assert_eq!(sliced.len(), 3.min(all.len().saturating_sub(2)), "seed {seed}");
        }
    }
}

#[test]
fn distinct_pairs_of_grouped_input() {
    for seed in 0..20 {
        let sample = sample(seed, seed % 4 == 0);
        let (left, right) = (&sample.entries[0], &sample.entries[1]);
        let mut expected: Vec<Vec<u64>> = Vec::new();
        for &(a, b) in left {
            expected
                .extend(right.iter().filter(|entry| entry.0 == b).map(|&(_, c)| vec![a.bits(), c.bits()]));
        }
        expected.sort();
        expected.dedup();
        let distinct = || Step::Distinct { variables: vec![A, C] };
        let grouped =
            vec![sample.scan(0, A, Some(B)), sample.expand(B, 1, Direction::Out, Some(C)), distinct()];
        assert_eq!(sample.run(grouped, &[A, C]), expected, "grouped, seed {seed}");
        let backwards = vec![
            Step::Scan { access: sample.access(1, Direction::In), key: C, neighbour: Some(B) },
            sample.expand(B, 0, Direction::In, Some(A)),
            distinct(),
        ];
        assert_eq!(sample.run(backwards, &[A, C]), expected, "grouped by the other column, seed {seed}");
        let mixed = vec![
            Step::Scan { access: sample.access(0, Direction::In), key: B, neighbour: Some(A) },
            sample.expand(B, 1, Direction::Out, Some(C)),
            distinct(),
        ];
        assert_eq!(sample.run(mixed, &[A, C]), expected, "not grouped, seed {seed}");
    }
}

#[test]
fn a_frontier_keeps_each_value_and_the_result() {
    for seed in 0..20 {
        for large in [false, true] {
            let sample = sample(seed, large);
            let walk = |frontier: bool| {
                let mut steps =
                    vec![sample.scan(0, A, Some(B)), sample.expand(B, 1, Direction::Out, Some(C))];
                if frontier {
                    steps.insert(1, Step::Frontier { variables: vec![B] });
                    steps.push(Step::Frontier { variables: vec![C] });
                }
                steps.push(Step::Distinct { variables: vec![C] });
                sample.run(steps, &[C])
            };
            let mut expected: Vec<Vec<u64>> = Vec::new();
            for &(_, b) in &sample.entries[0] {
                let found = sample.entries[1].iter().filter(|entry| entry.0 == b);
                expected.extend(found.map(|&(_, c)| vec![c.bits()]));
            }
            expected.sort();
            expected.dedup();
            assert_eq!(walk(false), expected, "distinct, seed {seed}");
            assert_eq!(walk(true), expected, "frontiers, seed {seed}");
            // Two columns, of which later steps read both.
            let walk = |frontier: bool| {
                let mut steps =
                    vec![sample.scan(0, A, Some(B)), sample.expand(B, 1, Direction::Out, Some(C))];
                if frontier {
                    steps.push(Step::Frontier { variables: vec![A, C] });
                }
                steps.push(sample.expand(C, 0, Direction::Out, Some(D)));
                steps.push(Step::Distinct { variables: vec![A, D] });
                sample.run(steps, &[A, D])
            };
            assert_eq!(walk(true), walk(false), "frontier of two columns, seed {seed}");
        }
    }
}

#[test]
fn limits_stop_a_query_with_their_reason() {
    let sample = sample(1, true);
    let product = || {
        pipeline(vec![
            sample.scan(0, A, Some(B)),
            sample.scan(1, C, Some(D)),
            Step::Distinct { variables: vec![A, B, C, D] },
        ])
    };
    for threads in THREADS {
        let control = Control::new(Limits { memory_bytes: Some(1 << 20), ..Limits::default() });
        let error = sample.try_run(threads, product(), &[A], &control).expect_err("1 MiB is not enough");
        assert_eq!(error.kind(), vervet_model::ErrorKind::MemoryLimit);
        let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let control = Control::new(Limits { cancelled: Some(flag), ..Limits::default() });
        let error = sample.try_run(threads, product(), &[A], &control).expect_err("cancelled");
        assert_eq!(error.kind(), vervet_model::ErrorKind::Cancelled);
        let error = sample.try_run(threads, product(), &[A], &late()).expect_err("late");
        assert_eq!(error.kind(), vervet_model::ErrorKind::Deadline);
    }
}

/// An inline table with `count` rows for one variable.
fn table(variable: Variable, count: i64) -> Step {
    let row = |number| vec![Inline::Integer(number).to_id().expect("fits")];
    Step::Values { variables: vec![variable], rows: (0..count).map(row).collect() }
}

fn late() -> Control<'static> {
    let past = std::time::Instant::now();
    Control::new(Limits { deadline: Some((past, std::time::Duration::ZERO)), ..Limits::default() })
}

fn text(text: &str) -> Expression {
    Expression::Constant(oxrdf::Literal::from(text).into())
}

#[test]
fn values_agree_for_hash_lookup_and_scan() {
    let sample = sample(3, false);
    for (left, right) in [(5, 10), (5, 3000), (3000, 5), (3000, 3000)] {
        let both = vec![table(A, left), table(A, right)];
        assert_eq!(sample.run(both, &[A]).len(), usize::try_from(left.min(right)).expect("small"));
        let product = vec![table(A, left), table(B, 20), table(B, 17)];
        assert_eq!(sample.run(product, &[A, B]).len(), usize::try_from(left * 17).expect("small"));
    }
    let wild = Step::Values {
        variables: vec![A, B],
        rows: (0..40)
            .map(|i| {
                let id = |number| Inline::Integer(number).to_id().expect("fits");
                vec![if i % 2 == 0 { Id::UNBOUND } else { id(i) }, id(i)]
            })
            .collect(),
    };
    // Each of 40 rows pairs with the 20 without A, and every second one with its equal.
    assert_eq!(sample.run(vec![table(A, 40), wild], &[A, B]).len(), 40 * 20 + 20);
}

#[test]
fn steps_without_output_check_the_deadline() {
    let sample = sample(3, false);
    // No pair is compatible, so no batch passes a step.
    let unlike = |count| {
        let row = |number: i64| vec![Inline::Integer(-1 - number).to_id().expect("fits"), Id::UNBOUND];
        Step::Values { variables: vec![A, B], rows: (0..count).map(row).collect() }
    };
    let minus = Step::Join {
        right: pipeline(vec![unlike(2000)]),
        kind: JoinKind::Inner(None),
        on: vec![],
        compatible: vec![A],
        adds: vec![B],
    };
    for (step, threads) in [unlike(15), minus].iter().flat_map(|step| THREADS.map(|n| (step.clone(), n))) {
        let steps = vec![table(A, 100_000), step];
        let error = sample.try_run(threads, pipeline(steps), &[A], &late()).expect_err("late");
        assert_eq!(error.kind(), vervet_model::ErrorKind::Deadline);
    }
    // A single step whose output is the sink.
    let error = sample.try_run(1, pipeline(vec![table(A, 200_000)]), &[A], &late()).expect_err("late");
    assert_eq!(error.kind(), vervet_model::ErrorKind::Deadline);
}

#[test]
fn tables_and_computed_terms_count_as_memory() {
    let sample = sample(3, false);
    let cap = |bytes| Control::new(Limits { memory_bytes: Some(bytes), ..Limits::default() });
    let number = |variable| Expression::Call(Function::Str, vec![Expression::Variable(variable)]);
    let long = |variable| Expression::Call(Function::Concat, vec![text(&"x".repeat(1000)), number(variable)]);
    let extend = Step::Extend { variable: B, expression: long(A) };
    let nothing = Step::Filter(Expression::Equal(Box::new(long(A)), Box::new(text("no"))));
    let order = |limit| Step::Order { keys: vec![OrderKey { expression: long(A), descending: true }], limit };
    let join = |kind| Step::Join {
        right: pipeline(vec![table(A, 20_000)]),
        kind,
        on: vec![A],
        compatible: vec![],
        adds: vec![],
    };
    for (step, bytes) in [
        (extend, 10_000_000),
        (order(None), 10_000_000),
        (order(Some(15_000)), 10_000_000),
        // Rows 8 bytes, places in their group 4, links 4, keys 17 for each place of the table.
        (join(JoinKind::Inner(None)), 600_000),
        (join(JoinKind::Semi(None)), 600_000),
    ] {
        let steps = || pipeline(vec![table(A, 20_000), step.clone(), Step::Filter(text(""))]);
        for threads in THREADS {
            let error = sample.try_run(threads, steps(), &[A], &cap(bytes)).expect_err("too little");
            assert_eq!(error.kind(), vervet_model::ErrorKind::MemoryLimit, "{threads} threads, {step:?}");
            let done = sample.try_run(threads, steps(), &[A], &cap(60_000_000));
            assert!(done.is_ok(), "{threads} threads, {step:?}: {:?}", done.err());
        }
    }
    // Rows that are only read take no memory.
    assert!(sample.try_run(1, pipeline(vec![table(A, 20_000), nothing]), &[A], &cap(1_000_000)).is_ok());
}

#[test]
fn sorts_of_many_runs_are_stable() {
    let sample = sample(3, false);
    let half = Expression::Divide(
        Box::new(Expression::Variable(A)),
        Box::new(Expression::Constant(oxrdf::Literal::from(2).into())),
    );
    let key = Expression::Call(Function::Floor, vec![half]);
    for (limit, expected) in [
        (None, 150_000),
        (Some(usize::MAX), 150_000),
        (Some(70_000), 70_000),
        // Selected, and cut between equal rows.
        (Some(7), 7),
        (Some(1), 1),
    ] {
        let order = Step::Order { keys: vec![OrderKey { expression: key.clone(), descending: true }], limit };
        let mut rows = Vec::new();
        let plan = Plan {
            pipeline: pipeline(vec![table(A, 150_000), order]),
            variables: vec![String::new(); VARIABLES],
            result: vec![A],
            parameters: Vec::new(),
            computed: Vec::new(),
            cost: 0.0,
            joined: Vec::new(),
        };
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&sample.snapshot, &computed, DateTime::MIN, 0);
        let mut input = Batch::unit(VARIABLES);
        let control = Control::default();
        execute(&plan, &sample.snapshot, &evaluator, &control, &mut input, false, &mut |batch| {
            rows.extend_from_slice(&batch.columns[A.index()]);
            Ok(Flow::More)
        })
        .expect("nothing stops this query");
        let sorted = (0..75_000).rev().flat_map(|pair| [2 * pair, 2 * pair + 1]);
        let sorted: Vec<Id> = sorted.map(|i| Inline::Integer(i).to_id().expect("fits")).collect();
        assert!(rows[..] == sorted[..expected], "limit {limit:?}");
    }
}

/// The input is neither in the requested order nor in its reverse, and many rows are equal in the first key.
#[test]
fn a_limit_leaves_the_first_of_many_rows() {
    let sample = sample(3, false);
    let digits = Expression::Call(Function::Str, vec![Expression::Variable(A)]);
    let length = Expression::Call(Function::StrLen, vec![digits.clone()]);
    let key = |expression: &Expression, descending| OrderKey { expression: expression.clone(), descending };
    let mut texts: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    texts.sort();
    for limit in [0, 1, 5, 700, 15_000] {
        for first in [None, Some(false), Some(true)] {
            for descending in [false, true] {
                let mut expected = texts.clone();
                if descending {
                    expected.reverse();
                }
                match first {
                    Some(false) => expected.sort_by_key(String::len),
                    Some(true) => expected.sort_by_key(|text| std::cmp::Reverse(text.len())),
                    None => {}
                }
                expected.truncate(limit);
                let mut expected: Vec<Vec<u64>> = expected
                    .iter()
                    .map(|text| {
                        vec![Inline::Integer(text.parse().expect("digits")).to_id().expect("fits").bits()]
                    })
                    .collect();
                expected.sort();
                let mut keys: Vec<OrderKey> = first.iter().map(|&first| key(&length, first)).collect();
                keys.push(key(&digits, descending));
                let order = Step::Order { keys, limit: Some(limit) };
                let rows = sample.run(vec![table(A, 20_000), order], &[A]);
                assert_eq!(rows, expected, "limit {limit}, length {first:?}, descending {descending}");
            }
        }
    }
}

#[test]
fn volatile_expressions_see_each_solution_of_a_row() {
    let sample = sample(3, true);
    let call = |function, arguments: Vec<Expression>| Expression::Call(function, arguments);
    let paths = sample.run(vec![sample.pattern(A, 0, B), sample.pattern(B, 1, C)], &[A]).len();
    for expression in [
        call(Function::Uuid, vec![]),
        call(Function::BNode, vec![]),
        call(Function::BNode, vec![text("x")]),
        call(Function::Rand, vec![]),
    ] {
        let steps = vec![
            sample.scan(0, A, Some(B)),
            sample.expand(B, 1, Direction::Out, None),
            Step::Extend { variable: C, expression: expression.clone() },
            Step::Extend { variable: D, expression: expression.clone() },
        ];
        let mut pipeline = pipeline(steps);
        // No column that distinguishes solutions is carried.
        pipeline.steps[1].keep = vec![];
        let plan = Plan {
            pipeline,
            variables: vec![String::new(); VARIABLES],
            result: vec![C, D],
            parameters: Vec::new(),
            computed: Vec::new(),
            cost: 0.0,
            joined: Vec::new(),
        };
        let computed = ComputedTerms::new();
        let evaluator = Evaluator::new(&sample.snapshot, &computed, DateTime::MIN, 0)
            .with_solution(vervet_kernel::solution_column(&plan));
        let (mut seen, mut rows, mut same) = (std::collections::BTreeSet::new(), 0, 0);
        let mut input = Batch::unit(VARIABLES);
        let control = Control::default();
        execute(&plan, &sample.snapshot, &evaluator, &control, &mut input, false, &mut |batch| {
            for row in 0..batch.rows {
                rows += 1;
                seen.insert(batch.value(C, row));
                same += usize::from(batch.value(C, row) == batch.value(D, row));
            }
            Ok(Flow::More)
        })
        .expect("nothing stops this query");
        assert_eq!((rows, seen.len()), (paths, paths), "{expression:?}");
        let labelled = matches!(&expression, Expression::Call(Function::BNode, of) if !of.is_empty());
        assert_eq!(same, if labelled { paths } else { 0 }, "{expression:?}");
    }
}
