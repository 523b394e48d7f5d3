//! Aggregates not covered by the comparison with Oxigraph: empty groups, whole solutions, many groups,
//! expressions, memory.

use crate::common::{Terms, now, parse, term};
use vervet_algebra::{Aggregate, AggregateKind, Variable};
use vervet_expression::{Accumulators, ComputedTerms, Evaluator};
use vervet_model::{Id, Inline, Multiplicity};

fn aggregate(kind: AggregateKind, expression: Option<&str>, distinct: bool) -> Aggregate {
    Aggregate { kind, expression: expression.map(parse), distinct }
}

fn integer(value: i64) -> Id {
    Inline::Integer(value).to_id().expect("small enough")
}

#[test]
fn empty_groups_have_values() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let concat = AggregateKind::GroupConcat { separator: ",".to_owned() };
    for (kind, expected) in [
        (AggregateKind::Count, Some("0")),
        (AggregateKind::Sum, Some("0")),
        (AggregateKind::Avg, Some("0")),
        (AggregateKind::Min, None),
        (AggregateKind::Max, None),
        (AggregateKind::Sample, None),
        (concat, Some("''")),
    ] {
        let aggregate = aggregate(kind, Some("?v0"), false);
        let mut accumulators = Accumulators::new(&aggregate, &evaluator).unwrap();
        let found = evaluator.term(accumulators.finish(5).unwrap()).unwrap();
        assert_eq!(found, expected.map(term), "{aggregate:?}");
    }
}

#[test]
fn solutions_are_counted_with_their_multiplicity_or_once() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let columns = [
        vec![integer(1), integer(1), integer(2), integer(1)],
        vec![integer(7), Id::UNBOUND, integer(7), integer(7)],
    ];
    let groups = [0, 0, 1, 0];
    let times = [1, 10, 5, 0].map(Multiplicity::new);
    let count = |distinct, solution: Option<Vec<Variable>>, times: Option<&[Multiplicity]>| {
        let mut all =
            Accumulators::new(&aggregate(AggregateKind::Count, None, distinct), &evaluator).unwrap();
        if let Some(solution) = solution {
            all = all.with_solution(solution);
        }
        all.update(&groups, &columns, times).unwrap();
        [all.finish(0).unwrap(), all.finish(1).unwrap()]
    };
    assert_eq!(count(false, None, None), [integer(3), integer(1)]);
    assert_eq!(count(false, None, Some(&times)), [integer(11), integer(5)]);
    assert_eq!(count(true, None, None), [integer(2), integer(1)]);
    assert_eq!(count(true, Some(vec![Variable(0)]), None), [integer(1), integer(1)]);
    assert_eq!(count(true, Some(vec![Variable(9)]), None), [integer(1), integer(1)]);
}

#[test]
fn errors_of_the_expression() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let column = [integer(2), evaluator.intern(term("'x'").as_ref()).unwrap(), integer(4)];
    let value = |kind, text: &str, rows: usize| {
        let mut all = Accumulators::new(&aggregate(kind, Some(text), false), &evaluator).unwrap();
        all.update(&vec![0; rows], &[column[..rows].to_vec()], None).unwrap();
        evaluator.term(all.finish(0).unwrap()).unwrap()
    };
    assert_eq!(value(AggregateKind::Count, "?v0 + 1", 3), Some(term("2")));
    assert_eq!(value(AggregateKind::Sum, "?v0 + 1", 3), None);
    assert_eq!(value(AggregateKind::Sum, "?v0", 3), None);
    assert_eq!(value(AggregateKind::Sum, "COALESCE(?v0 + 1, 0)", 3), Some(term("8")));
    assert_eq!(value(AggregateKind::Avg, "?v0 / 4", 1), Some(term("0.5")));
    assert_eq!(value(AggregateKind::Min, "?v0 + 1", 3), None);
    assert_eq!(value(AggregateKind::Max, "?v0", 3), Some(term("'x'")));
    assert_eq!(value(AggregateKind::Min, "-?v0", 1), Some(term("-2")));
    assert_eq!(value(AggregateKind::Sample, "?v0 * 2", 3), Some(term("4")));
    let concat = || AggregateKind::GroupConcat { separator: ",".to_owned() };
    assert_eq!(value(concat(), "STR(?v0)", 3), Some(term("'2,x,4'")));
    // The text that STR has, for a number too.
    assert_eq!(value(concat(), "?v0", 3), Some(term("'2,x,4'")));
    assert_eq!(value(concat(), "IRI(CONCAT('urn:', STR(?v0)))", 3), Some(term("'urn:2,urn:x,urn:4'")));
    assert_eq!(value(concat(), "?v0 = 2", 1), Some(term("'true'")));
    assert_eq!(value(concat(), "BNODE()", 3), None);
    // A simple literal, for any language tags of the texts.
    assert_eq!(value(concat(), "STRLANG(STR(?v0), 'en')", 3), Some(term("'2,x,4'")));
}

#[test]
fn many_groups_at_once() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let kinds = [AggregateKind::Sum, AggregateKind::Min, AggregateKind::Max, AggregateKind::Count];
    let mut all: Vec<_> =
        kinds.map(|kind| Accumulators::new(&aggregate(kind, Some("?v0"), true), &evaluator).unwrap()).into();
    let before: usize = all.iter().map(Accumulators::size_bytes).sum();
    // Group g has the numbers g, g + 1, ... g + 9, each twice.
    for batch in 0..20_i64 {
        let groups: Vec<u32> = (0..1000).collect();
        let column = groups.iter().map(|&group| integer(i64::from(group) + batch % 10)).collect();
        for accumulators in &mut all {
            accumulators.update(&groups, std::slice::from_ref(&column), None).unwrap();
        }
    }
    for group in 0..1000_usize {
        let first = i64::try_from(group).unwrap();
        let expected = [10 * first + 45, first, first + 9, 10];
        for (accumulators, expected) in all.iter_mut().zip(expected) {
            assert_eq!(accumulators.finish(group).unwrap(), integer(expected));
        }
    }
    let after: usize = all.iter().map(Accumulators::size_bytes).sum();
    assert!(after > before + 4 * 10_000 * size_of::<(u32, Id)>(), "{before} {after}");
}

#[test]
fn multiplicity_is_repetition() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let texts: Vec<Id> =
        ["'a'@en", "'b'@en"].map(|text| evaluator.intern(term(text).as_ref()).unwrap()).into();
    let concat = AggregateKind::GroupConcat { separator: "-".to_owned() };
    let mut all = Accumulators::new(&aggregate(concat, Some("?v0"), false), &evaluator).unwrap();
    all.update(&[0, 0], &[texts], Some(&[2, 3].map(Multiplicity::new))).unwrap();
    assert_eq!(evaluator.term(all.finish(0).unwrap()).unwrap(), Some(term("'a-a-b-b-b'")));
    // A multiplicity beyond any memory is an error, not an endless loop.
    let mut all = Accumulators::new(
        &aggregate(AggregateKind::GroupConcat { separator: "-".to_owned() }, Some("?v0"), false),
        &evaluator,
    )
    .unwrap();
    assert!(all.update(&[0], &[vec![integer(1)]], Some(&[Multiplicity::new(u64::MAX)])).is_err());
    let text = evaluator.intern(term("'x'").as_ref()).unwrap();
    let mut all = Accumulators::new(
        &aggregate(AggregateKind::GroupConcat { separator: "-".to_owned() }, Some("?v0"), false),
        &evaluator,
    )
    .unwrap();
    assert!(all.update(&[0], &[vec![text]], Some(&[Multiplicity::new(u64::MAX)])).is_err());
}

/// Finding "query B9": counts and sums are exact, or an error.
#[test]
fn b9_counts_are_exact_or_an_error() {
    let (snapshot, computed) = (Terms::default(), ComputedTerms::new());
    let evaluator = Evaluator::new(&snapshot, &computed, now(), 1);
    let large = Multiplicity::new(u64::MAX).scale(1 << 20).unwrap();
    let value = |kind: &AggregateKind, text: Option<&str>, rows: usize| {
        let make = || Accumulators::new(&aggregate(kind.clone(), text, false), &evaluator).unwrap();
        // Alternate rows belong to the half of another thread.
        let mut halves = [make(), make()];
        for row in 0..rows {
            halves[row % 2].update(&[7], &[vec![integer(3)]], Some(&[large])).unwrap();
        }
        let [mut all, other] = halves;
        let numbers: Vec<u32> = (0..8).collect();
        all.merge(other, &numbers, &|_| Ok(())).unwrap();
        (all.finish(0).unwrap(), evaluator.term(all.finish(7).unwrap()).unwrap())
    };
    let count = large.get() * 5;
    for text in [None, Some("?v0")] {
        let (empty, found) = value(&AggregateKind::Count, text, 5);
        assert_eq!((empty, found), (integer(0), Some(term(&count.to_string()))));
    }
    assert_eq!(value(&AggregateKind::Sum, Some("?v0"), 5).1, Some(term(&(3 * count).to_string())));
    // The sum exceeds the range of narrow decimals; its average is exact.
    assert_eq!(value(&AggregateKind::Avg, Some("?v0"), 5).1, Some(term("'3'^^xsd:decimal")));
    let most = Multiplicity::new(1 << 63).scale(1 << 63).unwrap();
    let mut all = Accumulators::new(&aggregate(AggregateKind::Count, None, false), &evaluator).unwrap();
    all.update(&[0], &[], Some(&[most])).unwrap();
    all.update(&[0], &[], Some(&[Multiplicity::new(7)])).unwrap();
    let found = evaluator.term(all.finish(0).unwrap()).unwrap();
    assert_eq!(found, Some(term(&((1_u128 << 126) + 7).to_string())));
    assert!(all.update(&[0], &[], Some(&[most])).is_err(), "2^127");
}
